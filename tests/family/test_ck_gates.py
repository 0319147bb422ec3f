# SPDX-License-Identifier: MIT
"""CK Tile's kernel of a softmax and its greatest elements, beside our two kernels."""

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkUnsupportedError
from cklang.runtime.op import Op
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error

T, X = ck.dims("T X")
THEIRS = ck.dispatch.CkTileRows(threads=256, vector=1, repeats=2)


@ck.op
def gate(x: ck.f16[T, X]) -> tuple[ck.f32[T, 4], ck.i32[T, 4]]:
    return ck.topk(ck.softmax(x), 4)


@ck.op
def stored(x: ck.f16[T, X]) -> tuple[ck.f32[T, 4], ck.i32[T, 4], ck.f32[T, X]]:
    """The softmax is a result too."""
    p = ck.softmax(x)
    best, which = ck.topk(p, 4)
    return best, which, p


@ck.op
def least(x: ck.f16[T, X]) -> tuple[ck.f32[T, 4], ck.i32[T, 4]]:
    return ck.topk(ck.softmax(x), 4, largest=False)


def one_kernel(gpu: str) -> None:
    """Check CK Tile's kernel on a GPU against the reference and against our two kernels."""
    op = gate.using(THEIRS)
    random = np.random.default_rng(0)
    for rows, experts in ((70, 60), (1, 33), (300, 64)):
        # No two elements of a row are equal.
        x = random.permuted(np.tile(np.linspace(-3, 3, experts), (rows, 1)), axis=1)
        x = x.astype(np.float16)
        _, which = check(op, (x,), gpu)
        np.testing.assert_array_equal(which, gate(x, device=f"emu:{gpu}")[1])
    (launch,) = launches(op)
    assert launch.resources.spills == 0


@pytest.mark.usefixtures("compiler")
def test_one_kernel_gives_what_two_of_ours_give(covered: Covered) -> None:
    one_kernel("gfx942")
    covered("CK Tile's own topk_softmax", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950"])
def test_one_kernel_on_other_gpus(gpu: str, covered: Covered) -> None:
    one_kernel(gpu)
    covered("CK Tile's own topk_softmax", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_of_equal_elements_it_gives_one_for_the_rest() -> None:
    x = np.zeros((1, 60), np.float16)
    x[0, 5:7] = 1  # the greatest two
    (theirs,), (ours,) = gate.using(THEIRS)(x)[1], gate(x)[1]
    np.testing.assert_array_equal(ours, [5, 6, 0, 1])
    np.testing.assert_array_equal(theirs, [6, 6, 6, 6])


def test_its_signature_has_the_longest_row() -> None:
    x = np.zeros((4, 60), np.float16)
    (choice,) = gate.using(THEIRS)._choices((x,), {}, None, "emu:gfx942")
    assert choice.main.key.signature.experts == 64
    assert "ck_rows_topk_softmax_f16_f32_of64" in choice.main.key.label


@pytest.mark.parametrize("op", [stored, least], ids=lambda op: op.program.name)
def test_what_it_does_not_compute_is_refused(op: Op) -> None:
    with expect_error("X031", kind=CkUnsupportedError):
        op.using(THEIRS).explain(np.zeros((4, 60), np.float16))


def test_rules() -> None:
    x = np.zeros((4, 60), np.float16)
    for algorithm, rule in (
        (ck.dispatch.CkTileRows(threads=256, vector=2), "ck-rows-vector"),
        (ck.dispatch.CkTileRows(threads=256, vector=1, two_pass=True), "ck-rows-repeats"),
    ):
        with pytest.raises(CkUnsupportedError, match=rule):
            gate.using(algorithm).explain(x)
