# SPDX-License-Identifier: MIT
"""Strides to layouts and read kinds, and the rules that choose an algorithm for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.arch import arch
from cklang.errors import CkError
from cklang.families.gemm.key import DKind, Layout
from cklang.families.gemm.layout import problem_of
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Matrix, Problem
from cklang.families.gemm.rules import RULES
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import Read, View
from cklang.ir.nodes import Function, Value
from cklang.selection.rules import violations
from cklang.selection.select import select
from cklang.types import DType, TensorType, dims, f16, f32
from tests.support.algorithms import BASE
from tests.support.arrays import half
from tests.support.errors import expect_error
from tests.support.typed import instance

M, N, K = dims("M N K")
MI300X = arch("gfx942")


def value(name: str, *shape: Any, dtype: DType = f16) -> Value:
    return Value(name=name, type=TensorType(dtype=dtype, shape=shape))


def kernel(perm_b: tuple[int, int] = (1, 0), reads: tuple[Read, ...] = ()) -> FusedGemm:
    acc = value("acc", dtype=f32)
    w = value("w", N, K) if perm_b == (1, 0) else value("w", K, N)
    return FusedGemm(
        name="k0",
        a=View(value=value("x", M, K)),
        b=View(value=w, perm=perm_b),
        epilogue=Function(name="epilogue", params=(acc,), body=(), results=(acc,)),
        reads=reads,
        result=value("y", M, N),
        computed=("1",),
    )


def stored(name: str, array: np.ndarray[Any, Any]) -> TensorLayout:
    return TensorLayout(
        name=name,
        dtype=f16,
        shape=array.shape,
        strides=tuple(s // array.itemsize for s in array.strides),
        alignment=4,
    )


def make(
    x: np.ndarray[Any, Any],
    w: np.ndarray[Any, Any],
    out: np.ndarray[Any, Any] | None = None,
    perm_b: tuple[int, int] = (1, 0),
    **others: tuple[np.ndarray[Any, Any], tuple[int | None, int | None]],
) -> Problem | None:
    n, k = w.shape if perm_b == (1, 0) else w.shape[::-1]
    out = half(x.shape[0], n) if out is None else out
    extents = {"M": x.shape[0], "N": n, "K": k}
    reads = tuple(
        Read(value=value(name, *array.shape), axes=axes) for name, (array, axes) in others.items()
    )
    storage = {"x": stored("x", x), "w": stored("w", w), "y": stored("y", out)}
    storage |= {name: stored(name, array) for name, (array, _) in others.items()}
    return problem_of(kernel(perm_b, reads), storage, extents, "e" * 64)


def problem(*args: Any, **kwargs: Any) -> Problem:
    result = make(*args, **kwargs)
    assert result is not None
    return result


def operands(gemm: Problem) -> tuple[Matrix, Matrix]:
    return instance(Matrix, gemm.a), instance(Matrix, gemm.b)


def code_of(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(CkError) as caught:
        make(*args, **kwargs)
    return caught.value.code


@pytest.mark.parametrize(
    ("x", "w", "perm", "layouts"),
    [
        (half(3, 5), half(4, 5), (1, 0), "rcr"),
        (half(3, 5), half(5, 4), (0, 1), "rrr"),
        (half(5, 3).T, half(4, 5), (1, 0), "ccr"),
        (half(5, 3).T, half(5, 4), (0, 1), "crr"),
        (half(3, 5), half(5, 4).T, (1, 0), "rrr"),
    ],
)
def test_layouts_come_from_strides(x: Any, w: Any, perm: Any, layouts: str) -> None:
    assert problem(x, w, perm_b=perm).signature.layouts == layouts


def test_leading_strides() -> None:
    gemm = problem(half(3, 9)[:, 2:7], half(4, 8)[:, :5], half(3, 6)[:, 1:5])
    a, b = operands(gemm)
    assert (a.stride, b.stride, gemm.e.stride) == (9, 8, 6)


def test_broadcast_rows_are_stride_0() -> None:
    a, _ = operands(problem(np.broadcast_to(half(5), (3, 5)), half(4, 5)))
    assert (a.layout, a.stride, a.span) == (Layout.ROW, 0, 5)


def test_axes_of_extent_1_are_made_regular() -> None:
    one_row = half(10, 50)[4:5, ::7]
    assert one_row.strides == (100, 14)
    gemm = problem(half(1, 5), half(4, 5), one_row[:, :1].repeat(4, 1))
    assert gemm.e.stride == 4
    single_k = problem(half(3, 50)[:, 7:8], half(4, 50)[:, 3:4])
    assert single_k.signature.layouts == "rcr"
    assert [operand.stride for operand in operands(single_k)] == [50, 50]
    single_column = problem(half(3, 5), half(1, 5), half(3, 40)[:, 9:10])
    assert (single_column.n, single_column.e.stride) == (1, 40)
    # The axis that is contiguous in memory decides, so that it is read in vectors.
    assert single_column.signature.layouts == "rcr"
    assert problem(half(1, 1), half(1, 1)).signature.layouts == "rcr"
    assert problem(half(5, 1).T, half(4, 5)).signature.layouts == "rcr"
    assert problem(half(5, 9)[:, :1].T, half(4, 5)).signature.layouts == "ccr"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((half(3, 10)[:, ::2], half(4, 5)), "A030"),
        ((half(3, 5)[::-1], half(4, 5)), "A031"),
        ((half(3, 5)[:, ::-1], half(4, 5)), "A031"),
        ((half(3, 5), half(4, 5), half(4, 3).T), "A032"),
        ((half(3, 5), half(4, 5), half(3, 8)[:, ::2]), "A032"),
        ((half(3, 5), half(4, 5), half(3, 4)[::-1]), "A031"),
        (
            (half(3, 5), half(4, 5), np.lib.stride_tricks.as_strided(half(9), (3, 4), (4, 2))),
            "A033",
        ),
    ],
)
def test_strides_that_no_kernel_reads_or_writes(args: Any, code: str) -> None:
    assert code_of(*args) == code


@pytest.mark.parametrize(
    ("array", "axes", "kind", "strides"),
    [
        (half(3, 4), (0, 1), DKind.FULL, (4, 1)),
        (half(3, 9)[:, 1:5], (0, 1), DKind.FULL, (9, 1)),
        (half(4, 3), (1, 0), DKind.STRIDED, (1, 3)),
        (half(4), (None, 0), DKind.ROW, (0, 1)),
        (half(8)[::2], (None, 0), DKind.STRIDED, (0, 2)),
        (half(3), (0, None), DKind.COLUMN, (1, 0)),
        (half(9)[::3], (0, None), DKind.COLUMN, (3, 0)),
        (half(), (None, None), DKind.SCALAR, (0, 0)),
        (np.broadcast_to(half(4), (3, 4)), (0, 1), DKind.ROW, (0, 1)),
        (np.broadcast_to(half(), (3, 4)), (0, 1), DKind.SCALAR, (0, 0)),
    ],
)
def test_how_operands_are_read(array: Any, axes: Any, kind: DKind, strides: Any) -> None:
    (read,) = problem(half(3, 5), half(4, 5), d0=(array, axes)).d
    assert read.kind is kind
    assert (read.stride_m, read.stride_n) == strides


def test_negative_strides_of_operands_are_refused() -> None:
    assert code_of(half(3, 5), half(4, 5), d0=(half(4)[::-1], (None, 0))) == "A031"


def test_empty_results_have_no_problem() -> None:
    assert make(half(0, 5), half(4, 5)) is None
    assert make(half(3, 5), half(0, 5)) is None


def test_an_empty_sum_is_a_problem_with_k_0() -> None:
    gemm = problem(half(3, 0), half(4, 0))
    assert gemm.k == 0
    assert gemm.signature.layouts == "rcr"
    assert rejected(gemm) <= {"vector-e"}


def rejected(gemm: Problem, **changes: Any) -> set[str]:
    changed = replace(BASE, **changes)
    return {violation.rule for violation in violations(changed, gemm.signature, MI300X, gemm)}


WHOLE = (half(128, 64), half(256, 64))


def test_a_regular_problem_has_no_violation() -> None:
    assert rejected(problem(*WHOLE)) == set()


@pytest.mark.parametrize(
    ("args", "changes", "rule"),
    [
        ((half(128, 63), half(256, 63)), {"vector_b": 1}, "vector-a"),
        ((half(128, 63), half(256, 63)), {"vector_a": 1}, "vector-b"),
        ((half(128, 64), half(255, 64)), {}, "vector-e"),
        ((half(128, 65)[:, 1:], half(256, 64)), {}, "vector-a"),
        ((half(127, 64), half(256, 64)), {"pad_m": False}, "pad-m"),
        ((half(128, 64), half(264, 64)), {"pad_n": False}, "pad-n"),
        ((half(128, 72), half(256, 72)), {"pad_k": False}, "pad-k"),
        (WHOLE, {"warp_tile": (8, 8, 8)}, "warp-tile"),
        ((np.broadcast_to(half(1, 64), (128, 64)), half(256, 64)), {}, None),
    ],
)
def test_each_rule_objects(args: Any, changes: Any, rule: str | None) -> None:
    assert rejected(problem(*args), **changes) == ({rule} if rule else set())


def test_operands_of_more_than_2_gib_are_refused_by_rule() -> None:
    huge = np.lib.stride_tricks.as_strided(half(8), (1 << 20, 1 << 11), (1 << 12, 2))
    assert "operand-size" in rejected(problem(huge, half(256, 1 << 11)))
    with expect_error("K101", "operand-size"):
        select(problem(huge, half(256, 1 << 11)), arch="gfx942")


def test_misaligned_addresses_take_narrow_vectors() -> None:
    gemm = problem(*WHOLE)
    a, _ = operands(gemm)
    odd = replace(gemm, a=replace(a, alignment=2))
    assert rejected(odd) == {"vector-a"}
    assert rejected(odd, vector_a=1) == set()


def test_there_is_a_vector_width_for_each_operand() -> None:
    assert rejected(problem(*WHOLE), vector_d=(1,)) == {"vector-d", "width-d"}


def test_vector_d_looks_only_at_contiguous_kinds() -> None:
    row = (half(256), (None, 0))
    column = (half(128 * 3)[::3], (0, None))
    gemm = problem(*WHOLE, d0=row, d1=column)
    assert rejected(gemm, vector_d=(8, 1)) == set()
    ragged = problem(half(128, 64), half(255, 64), d0=(half(255), (None, 0)))
    assert rejected(ragged, vector_d=(8,), vector_e=1) == {"vector-d", "width-d"}


def test_rule_names_are_unique() -> None:
    rules = [rule.id for rule in RULES.algorithms] + [rule.id for rule in RULES.problems]
    assert len(set(rules)) == len(rules)


@given(
    m=st.integers(1, 9),
    n=st.integers(1, 9),
    k=st.integers(1, 9),
    a_transposed=st.booleans(),
    pad=st.integers(0, 3),
)
def test_every_dense_problem_has_a_layout(
    m: int, n: int, k: int, a_transposed: bool, pad: int
) -> None:
    x = half(k, m + pad)[:, :m].T if a_transposed else half(m, k + pad)[:, :k]
    a, _ = operands(problem(x, half(n, k)))
    rows, columns = a.rows, a.columns
    assert (rows, columns) == (m, k)
    step = (a.stride, 1) if a.layout is Layout.ROW else (1, a.stride)
    for axis in range(2):
        if x.shape[axis] > 1:
            assert step[axis] == x.strides[axis] // 2
