# SPDX-License-Identifier: MIT
"""assert_close: what passes, what fails, and what the report says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.reference.evaluate import evaluate
from cklang.testing import Report, assert_close, report, tolerance
from cklang.testing.compare import largest_ratio, unchecked_share
from cklang.testing.strategies import arrays, shapes
from tests.support.errors import expect_error


@given(st.data())
def test_equal_arrays_are_close(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([ck.f16, ck.bf16, ck.f32, ck.i32, ck.bool_]))
    array = data.draw(arrays(dtype, data.draw(shapes(2, 9))))
    assert_close(array, array.copy(), 0.0)
    assert largest_ratio(array, array.copy(), 0.0) == 0


def test_the_report_names_the_worst_element() -> None:
    want = np.arange(12, dtype=np.float32).reshape(3, 4)
    got = want.copy()
    got[1, 2] += 0.5
    got[2, 0] -= 2
    with pytest.raises(AssertionError) as caught:
        assert_close(got, want, np.full((3, 4), 0.25), what="y")
    assert isinstance(caught.value, CkError)
    assert caught.value.code == "T001"
    assert str(caught.value) == "\n".join(
        [
            "CK-T001 2 of 12 elements are outside their bound",
            "   = worst at [2, 0] of y, float32[3, 4]",
            "   = got      6.0",
            "   = expected 8.0",
            "   = error    2, bound 0.25, ratio 8",
        ]
    )
    assert largest_ratio(got, want, 0.25) == 8
    assert_close(got, want, 2)


@pytest.mark.parametrize(
    ("got", "want", "bound", "passes"),
    [
        (math.nan, math.nan, 0.0, True),
        (math.nan, 1.0, 1.0, False),
        (1.0, math.nan, 1.0, False),
        (math.inf, math.inf, 0.0, True),
        (math.inf, -math.inf, 1e300, False),
        (math.inf, 1.0, 1e300, False),
        (math.nan, 1.0, math.inf, True),
        (-math.inf, math.nan, math.inf, True),
        (1.0, 2.0, math.inf, True),
        (1.0, 1.0, 0.0, True),
        (0.0, -0.0, 0.0, True),
        (1.0, 1.0000001, 0.0, False),
    ],
)
def test_kinds_must_match_unless_the_bound_is_infinite(
    got: float, want: float, bound: float, passes: bool
) -> None:
    pair = np.array([got]), np.array([want])
    if passes:
        assert_close(*pair, bound, unchecked=1)
    else:
        with pytest.raises(AssertionError):
            assert_close(*pair, bound, unchecked=1)


def test_few_elements_may_be_unchecked() -> None:
    want, bound = np.ones(100, np.float32), np.zeros(100)
    bound[:5] = np.inf
    assert unchecked_share(want, bound) == 0.05
    assert_close(want, want, bound)
    bound[5] = np.inf
    with pytest.raises(AssertionError, match="T004 6 of 100 elements of y are not checked"):
        assert_close(want, want, bound, what="y")
    assert_close(want, want, bound, unchecked=0.06)
    with pytest.raises(AssertionError, match="T004"):
        assert_close(want, want, np.inf)
    with pytest.raises(AssertionError, match="T004"):
        Report(got=want, expected=want, bound=bound).check()
    assert not Report(got=want, expected=want, bound=bound).passed


def test_what_the_inputs_make_infinite_is_not_counted() -> None:
    want = np.array([np.inf, np.nan, 1.0])
    assert_close(want, want, np.array([np.inf, np.inf, 0.0]))
    assert unchecked_share(np.zeros(0), np.inf) == 0


def test_shapes_and_dtypes_must_agree() -> None:
    for other in (np.zeros((3, 1), np.float32), np.zeros(3, np.float16)):
        with pytest.raises(AssertionError) as caught:
            assert_close(np.zeros(3, np.float32), other, 1.0)
        assert isinstance(caught.value, CkError)
        assert caught.value.code == "T002"
    assert_close(np.zeros((0, 3)), np.zeros((0, 3)), 0.0)


def test_tolerance_holds_for_a_product_in_float32() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((40, 300), (300, 30)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    for dtype in (ck.f16, ck.bf16, ck.f32):
        got = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype.numpy)
        error = np.abs(got.astype(np.float64) - exact)
        assert (error <= tolerance(dtype, 300) * sizes).all()
    with expect_error("T003"):
        tolerance(ck.i32, 3)


# --- reports

M, N, K = ck.dims("M N K")


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K], s: ck.f32, c: ck.const[float]) -> ck.f16[M, N]:
    return ck.tanh(x @ w.T * s) + c


def arguments() -> tuple[object, ...]:
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 7), (3, 7)))
    return x, w, 0.25, 1.0


def test_the_reference_itself_passes() -> None:
    args = arguments()
    (expected,) = evaluate(scaled.ir(*args), args[:3])
    result = report(scaled, args, expected)
    assert result.passed
    result.check()
    assert "largest error 0 " in str(result)


def test_a_wrong_element_is_found_and_named() -> None:
    args = arguments()
    (expected,) = evaluate(scaled.ir(*args), args[:3])
    wrong = expected.copy()
    wrong[2, 1] += np.float16(0.125)
    result = report(scaled, args, wrong)
    assert not result.passed
    assert "largest error 0.125 at [2, 1]" in str(result)
    with pytest.raises(CkError, match=r"\[2, 1\]"):
        result.check()


def test_numbers_of_numpy_count_as_pythons() -> None:
    x, w, _, c = arguments()
    (expected,) = evaluate(scaled.ir(x, w, 2.0, c), (x, w, 2.0))
    for number in (np.float64(2), np.int64(2), np.float16(2)):
        report(scaled, (x, w, number, c), expected).check()
