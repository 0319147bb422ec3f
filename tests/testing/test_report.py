# SPDX-License-Identifier: MIT
"""A result held against the reference of its op."""

from __future__ import annotations

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.reference.evaluate import evaluate
from cklang.testing import report

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
