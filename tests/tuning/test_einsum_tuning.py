# SPDX-License-Identifier: MIT
"""Kernels of contractions are measured and checked by themselves, copies aside."""

import pytest

import cklang as ck
from cklang.runtime.op import Op
from cklang.tune.database import Status
from cklang.tune.measure import measure
from cklang.tune.task import tasks_of
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import Array, eighths

pytestmark = [pytest.mark.usefixtures("stencils")]

B, G, H, P, E, S, D, M, N, K, L = ck.dims("B G H P E S D M N K L")


@ck.op
def heads(o: ck.f16[B, H, S, D], wo: ck.f16[E, H, D]) -> ck.f16[B, S, E]:
    return ck.einsum("bhsd,ehd->bse", o, wo)


@ck.op
def vector(x: ck.f16[B, M, K], v: ck.f16[B, K]) -> ck.f16[B, M]:
    return ck.einsum("bmk,bk->bm", x, v)


@ck.op
def scalars(x: ck.f16[B, K], y: ck.f16[B, K]) -> ck.f16[B]:
    return ck.einsum("bk,bk->b", x, y)


@ck.op
def repeated(x: ck.f16[M, K], s: ck.f16[K, L], w: ck.f16[N, K, L]) -> ck.f16[M, N]:
    return ck.einsum("mkl,nkl->mn", (x[:, :, None] * s).to(ck.f16), w)


@ck.op
def four(x: ck.f16[B, G, H, P, M, K], w: ck.f16[P, H, G, B, N, K]) -> ck.f16[B, G, H, P, M, N]:
    return ck.einsum("bghpmk,phgbnk->bghpmn", x, w)


CASES = {
    "copied": (heads, (eighths(2, 3, 5, 7), eighths(9, 3, 7))),
    "vector": (vector, (eighths(3, 21, 40), eighths(3, 40))),
    "scalars": (scalars, (eighths(5, 33), eighths(5, 33))),
    "launches": (four, (eighths(2, 3, 2, 3, 5, 9), eighths(3, 2, 3, 2, 7, 9))),
}


def check(op: Op, args: tuple[Array, ...]) -> None:
    """Measure the kernel that a call would launch; it must be right."""
    pinned = op.using(narrow(warp_tile=DEEP))
    tasks = tasks_of(op, args)
    choices = pinned._choices(args, {}, None, "emu:gfx942")
    for task in tasks:
        key = choices[0].main.key
        answer = measure(task.to_json(), key.to_json(), {})
        assert answer["status"] == Status.RIGHT.value, answer["note"]


@pytest.mark.parametrize("name", CASES)
def test_it_is_measured(name: str) -> None:
    check(*CASES[name])


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_a_copy_that_repeats_an_operand_is_measured() -> None:
    check(repeated, (eighths(9, 5), eighths(5, 7), eighths(11, 5, 7)))
