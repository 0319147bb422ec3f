# SPDX-License-Identifier: MIT
"""Results that are written into arguments: parameters annotated with ``ck.inout``."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.in_place import InOutType
from cklang.ir.parser import parse_function
from cklang.ir.scatter import in_place_results
from cklang.runtime.op import Op
from tests.support.checks import launches
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op

S, D, B, N = ck.dims("S D B N")

Array = np.ndarray[Any, Any]


@ck.op
def put(cache: ck.inout[ck.f16[S, D]], slots: ck.i32[B], rows: ck.f16[B, D]) -> ck.f16[S, D]:
    return ck.scatter(cache, slots, rows)


@ck.op
def put_and_read(
    cache: ck.inout[ck.f16[S, D]], slots: ck.i32[B], rows: ck.f16[B, D]
) -> tuple[ck.f32[S], ck.f16[S, D]]:
    updated = ck.scatter(cache, slots, (rows * 2.0).to(ck.f16))
    return updated.sum(-1), updated


@ck.op
def count(totals: ck.inout[ck.f16[S, D]], ids: ck.i32[B], rows: ck.f32[B, D]) -> ck.f16[S, D]:
    return ck.scatter_add(totals, ids, rows)


@ck.op
def calls_put(cache: ck.f16[S, D], slots: ck.i32[B], rows: ck.f16[B, D]) -> ck.f16[S, D]:
    return put(cache, slots, rows)


def drawn() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    cache = rng.normal(size=(9, 40)).astype(np.float16)
    rows = rng.normal(size=(3, 40)).astype(np.float16)
    return cache, np.array([7, 2, 0], np.int32), rows


@pytest.mark.usefixtures("compiler")
def test_rows_are_written_into_the_argument() -> None:
    cache, slots, rows = drawn()
    want = ck.scatter(cache, slots, rows)
    for _ in range(2):
        assert put(cache, slots, rows) is cache
        assert np.array_equal(cache, want)
    assert len(launches(put)) == 1
    assert "rows of 40 written" in put.explain(cache, slots, rows)


@pytest.mark.usefixtures("compiler")
def test_other_results_are_new_and_read_what_is_written() -> None:
    cache, slots, rows = drawn()
    want = ck.scatter(cache, slots, (2 * rows.astype(np.float32)).astype(np.float16))
    sums, updated = put_and_read(cache, slots, rows)
    assert updated is cache
    assert np.array_equal(cache, want)
    assert np.allclose(sums, want.astype(np.float32).sum(-1), atol=1e-4)


@pytest.mark.usefixtures("compiler")
def test_sums_are_rounded_once_into_a_view() -> None:
    totals, ids, rows = np.zeros((40, 9), np.float16).T, np.array([1, 1, 5], np.int32), drawn()[2]
    exact = rows.astype(np.float32)
    assert count(totals, ids, exact) is totals
    assert np.array_equal(totals[1], (exact[0] + exact[1]).astype(np.float16))
    assert not totals[[0, 2, 3, 4, 6, 7, 8]].any()


@pytest.mark.usefixtures("compiler")
def test_an_op_of_text_writes_into_its_argument() -> None:
    cache, slots, rows = drawn()
    want = ck.scatter(cache, slots, rows)
    assert ck.parse(str(put.program.specialise()))(cache, slots, rows) is cache
    assert np.array_equal(cache, want)


@pytest.mark.usefixtures("compiler")
def test_torch_tensors_are_written_too(torch: Any) -> None:
    cache, slots, rows = (torch.from_numpy(each.copy()) for each in drawn())
    want = cache.index_copy(0, slots.long(), rows)
    assert put(cache, slots, rows) is cache
    assert torch.equal(cache, want)


@pytest.mark.usefixtures("compiler")
def test_called_by_another_op_it_updates_a_copy() -> None:
    cache, slots, rows = drawn()
    before = cache.copy()
    assert np.array_equal(calls_put(cache, slots, rows), ck.scatter(cache, slots, rows))
    assert np.array_equal(cache, before)


@pytest.mark.usefixtures("compiler")
def test_arguments_that_cannot_be_written_are_refused() -> None:
    cache, slots, rows = drawn()
    put(cache, slots, rows)
    fixed = cache.copy()
    fixed.flags.writeable = False
    for wrong, code in (((fixed, slots, rows), "A075"), ((cache, slots, cache[3:6]), "A076")):
        with expect_error(code):
            put(*wrong)
    with expect_error("A077"):
        put(cache, slots, rows, out=cache)


UPDATED = "x: ck.inout[ck.f16[S, D]], i: ck.i32[N], r: ck.f16[N, D]"


@pytest.mark.parametrize(
    "words",
    [
        "x + 0.0",
        "ck.scatter(x * 1.0, i, r.to(ck.f32))",
        "ck.scatter(x, i, r) + x",
        "ck.scatter(x, i, r) * 2.0",
        "ck.scatter(ck.scatter(x, i, r), i, r)",
    ],
)
def test_a_parameter_that_is_not_updated_is_an_error(words: str) -> None:
    with expect_error("F100") as caught:
        expression_op(UPDATED, "ck.f16[S, D]", words).program.specialise()
    assert caught.value.at is not None


def test_a_result_in_another_dtype_is_not_in_place() -> None:
    with expect_error("F100"):
        expression_op(UPDATED, "ck.f32[S, D]", "ck.scatter_add(x, i, r)").program.specialise()


def test_the_text_of_the_ir_says_it() -> None:
    function = put.program.specialise()
    assert "in_place = 1" in str(function)
    assert in_place_results(parse_function(str(function))) == {"0": "cache"}
    wrong = str(function).replace("return %0", "%1: f32[S, D] = cast(%0) {to = f32} return %1")
    wrong = wrong.replace("-> f16[S, D] {", "-> f32[S, D] {")
    for text in (wrong, str(function).replace("%cache)", "%rows)")):
        with expect_error("I047"):
            in_place_results(parse_function(text))


def test_an_op_shows_its_annotations() -> None:
    assert isinstance(put, Op)
    (cache, *_) = put.program.parameters
    assert cache.in_place
    assert str(InOutType(ck.f16["S", "D"])) == "inout[f16[S, D]]"
