# SPDX-License-Identifier: MIT
"""What batches are refused, by which rule, and what strides become: nothing is compiled here."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families.gemm.key import ProductKind, Reduction
from cklang.families.gemm.problem import Matrix, Problem
from cklang.keys import Key
from cklang.runtime.op import Op
from tests.support.algorithms import narrow
from tests.support.arrays import half
from tests.support.typed import instance, only

B, G, H, M, N, K, P = ck.dims("B G H M N K P")


@ck.op
def product(x: ck.f16[B, M, K], w: ck.f16[B, K, N]) -> ck.f16[B, M, N]:
    return x @ w


@ck.op
def four(x: ck.f16[B, G, H, P, M, K], w: ck.f16[B, G, H, P, K, N]) -> ck.f16[B, G, H, P, M, N]:
    return x @ w


@ck.op
def last_is_batch(x: ck.f16[B, M, K], w: ck.f16[B, K, N]) -> ck.f16[M, N, B]:
    return ck.einsum("bmk,bkn->mnb", x, w)


def refusal(op: Op, *args: Any, out: Any = None) -> CkError:
    with pytest.raises(CkError) as caught:
        op.explain(*args, out=out, device="emu:gfx942")
    return caught.value


def test_a_batch_has_a_stride_for_every_operand() -> None:
    args = (half(3, 8, 16), half(16, 3, 5).transpose(1, 0, 2))
    problem = only(Problem, product.problems(*args))
    a, b = instance(Matrix, problem.a), instance(Matrix, problem.b)
    assert problem.kind is ProductKind.BATCHED
    assert (problem.batch, a.batch, b.batch) == ((3,), (128,), (5,))
    assert (b.stride, problem.e.batch) == (15, (40,))


def test_one_product_needs_no_batch() -> None:
    problem = only(Problem, product.problems(half(1, 8, 16), half(1, 16, 5)))
    assert (problem.kind, problem.batch) == (ProductKind.GEMM, ())


def test_explain_says_the_batch() -> None:
    text = product.explain(half(3, 8, 16), half(3, 16, 8), device="emu:gfx942")
    assert "batch=3 M=8 N=8 K=16" in text
    assert "label      batched_f16_rrr" in text


def test_huge_matrices_far_apart_are_legal() -> None:
    # Each matrix is small; the batch spans more than 2**31 elements.
    far = np.lib.stride_tricks.as_strided(half(1), (3, 8, 16), (1 << 33, 32, 2), writeable=False)
    problem = only(Problem, product.problems(far, half(3, 16, 8)))
    assert instance(Matrix, problem.a).batch == (1 << 32,)
    assert "batch=3" in product.explain(far, half(3, 16, 8), device="emu:gfx942")


def test_too_many_products() -> None:
    wide = np.lib.stride_tricks.as_strided(half(1), (70000, 1, 8), (16, 16, 2), writeable=False)
    other = np.lib.stride_tricks.as_strided(half(1), (70000, 8, 2), (32, 4, 2), writeable=False)
    error = refusal(product, wide, other)
    assert error.code == "K101"
    assert "batch: the batch is 70000, must be at most 65535" in str(error)


def test_batch_strides_that_break_alignment() -> None:
    x = half(3 * 8 * 16 + 3)
    odd = np.lib.stride_tricks.as_strided(x, (3, 8, 16), (2 * (8 * 16 + 1), 32, 2))
    (choice,) = product._choices((odd, half(3, 16, 8)), {}, None, "emu:gfx942")
    assert instance(Key, choice.selection.key).algorithm.vector_a == 1
    assert any(each.rule == "batch-alignment" for each in choice.selection.rejections)


@pytest.mark.parametrize(
    ("op", "args", "out", "code"),
    [
        (product, (half(2, 8, 16), half(3, 16, 8)), None, "A025"),
        (product, (half(2, 8, 16)[:, :, ::2], half(2, 8, 8)), None, "A030"),
        (product, (half(2, 8, 16)[::-1], half(2, 16, 8)), None, "A031"),
        (
            product,
            (half(2, 8, 16), half(2, 16, 8)),
            np.lib.stride_tricks.as_strided(half(200), (2, 8, 8), (16, 16, 2)),
            "A035",
        ),
    ],
)
def test_refusals(op: Op, args: Any, out: Any, code: str) -> None:
    assert refusal(op, *args, out=out).code == code


@pytest.mark.parametrize("sharing", [{"split_k": 2}, {"stream_k": True}])
def test_a_batch_does_not_share_k(sharing: dict[str, Any]) -> None:
    chosen = narrow(reduction=Reduction.WORKSPACE, **sharing)
    error = refusal(product.using(chosen), half(2, 8, 16), half(2, 16, 8))
    assert error.code == "K101"
    assert any(name in note for name in sharing for note in error.notes)


def test_a_result_whose_last_axis_is_a_batch_is_copied_to_it() -> None:
    args = (half(2, 8, 16), half(2, 16, 8))
    (choice,) = last_is_batch._choices(args, {}, None, "emu:gfx942")
    assert (choice.before, len(choice.after)) == ((), 1)
    assert "kernels write rows" in last_is_batch.explain(*args, device="emu:gfx942")
    rows = np.zeros((2, 8, 8), np.float16).transpose(1, 2, 0)
    (choice,) = last_is_batch._choices(args, {}, rows, "emu:gfx942")
    assert choice.after == ()


def test_four_batch_axes_that_do_not_fold_are_launches_of_three() -> None:
    x = half(3, 3, 3, 4, 4, 8)[:2, :2, :2, :3]
    w = half(2, 2, 2, 3, 8, 4)
    text = four.explain(x, w, device="emu:gfx942")
    assert "batch=2x2x3 M=4 N=4 K=8" in text
    assert "cut        into 2 parts of the batch" in text
    launches = four._choices((x, w), {}, None, "emu:gfx942")
    assert [choice.main.offsets for choice in launches] == [
        (0, 0, 0),
        (3 * 3 * 4 * 4 * 8 * 2, 2 * 2 * 3 * 8 * 4 * 2, 2 * 2 * 3 * 4 * 4 * 2),
    ]
    problem = only(Problem, four.problems(half(2, 2, 2, 3, 4, 8), w))
    assert problem.batch == (24,)
