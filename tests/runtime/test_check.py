# SPDX-License-Identifier: MIT
"""``op.check``: all mistakes of a call at once, of arrays and of descriptions of arrays."""

from html import escape

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.runtime.check import Report
from tests.support.algorithms import DEEP, wide
from tests.support.errors import expect_error

M, N, K, P = ck.dims("M N K P")


@ck.op
def linear(
    x: ck.f16[M, K], w: ck.f16[N, K], s: ck.f32 | None = None, *, cap: ck.const[float] = 1.0
) -> ck.f16[M, N]:
    y = ck.clamp(x @ w.T, -cap, cap)
    return y if s is None else y * s


@ck.op
def chain(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[P, N]) -> ck.f16[M, P]:
    return ck.relu(x @ w.T).to(ck.f16) @ v.T


def codes(report: Report) -> list[str]:
    return [mistake.code for mistake in report.mistakes]


X, W = ck.f16[4, 8], ck.f16[6, 8]


def test_a_right_call_has_no_mistake() -> None:
    x, w = np.ones((4, 8), np.float16), np.ones((6, 8), np.float16)
    for args in ((x, w), (X, W), (x, W, 2.0), (((4, 8), "f16"), ((6, 8), ck.f16, (16, 1)), ck.f32)):
        report = linear.check(*args, cap=2.0)
        assert report.ok, str(report)
        report.expect()
    assert str(linear.check(X, W)) == "linear: no mistakes"
    assert linear.check(X, W, out=ck.f16[4, 6], device="emu:gfx950").ok
    x = np.ones((4, 6), np.float16)
    assert codes(linear.check(x, ck.f16[6, 6], out=x)) == ["A043"]


def test_every_mistake_of_the_arguments_is_reported() -> None:
    report = linear.check(ck.f32[4, 8], ck.f16[6, 9], [1.0], cap="high", bias=X)
    assert codes(report) == ["A011", "A020", "A025", "A001", "F024"]
    text = str(report)
    assert text.startswith("linear: 5 mistakes")
    assert "K" in text
    assert "axis 1 of x" in text


def test_a_notebook_lists_the_mistakes() -> None:
    assert linear.check(X, W)._repr_html_() == "<p><b>linear: no mistakes</b></p>"
    report = linear.check(ck.f32[4, 8], ck.f16[6, 9])
    page = report._repr_html_()
    assert page.startswith("<p><b>linear: 2 mistakes</b></p><ol><li><pre>")
    assert page.count("</pre></li>") == 2
    assert all(escape(str(mistake)) in page for mistake in report.mistakes)


def test_missing_and_repeated_arguments_and_a_wrong_rank() -> None:
    assert codes(linear.check(ck.f16[4], x=X)) == ["A012", "A010", "A021"]
    assert codes(linear.check(X, W, None, 5)) == ["A011"]


def test_the_first_mistake_is_raised_with_the_others() -> None:
    report = linear.check(ck.f32[4, 8], ck.f16[6, 9])
    with expect_error("A020") as caught:
        report.expect()
    assert any("CK-A025" in note for note in caught.value.notes)


def test_a_call_raises_what_the_check_reports() -> None:
    x, w = np.ones((4, 8), np.float32), np.ones((6, 9), np.float16)
    with pytest.raises(CkError) as caught:
        linear.ir(x, w, [1.0])
    starts = ["also: CK-A025 ", "also: CK-A001 ", "in a call of t"]
    assert [note[:14] for note in caught.value.notes] == starts


def test_strides_that_no_kernel_reads() -> None:
    """Each kernel of the program says what it cannot read."""
    odd = ((8, 16), "f16", (48, 3))
    report = chain.using(wide(0, warp_tile=DEEP)).check(odd, ck.f16[16, 16], ck.f16[24, 16])
    assert codes(report) == ["A030"]
    assert "x has no contiguous axis" in str(report)


def test_no_legal_kernel_of_each_product() -> None:
    report = chain.using(wide(0, warp_tile=DEEP)).check(
        ck.f16[8, 17], ck.f16[17, 17], ck.f16[9, 17]
    )
    assert len(report.mistakes) == 2
    assert set(codes(report)) <= {"K101", "K102"}


def test_out_is_checked() -> None:
    assert codes(linear.check(X, W, out=ck.f16[4, 7])) == ["A041"]


@pytest.mark.parametrize("bad", [((4, -1), "f16"), ((4, K), "f16"), ((4, 8), "f16", (1,))])
def test_descriptions_of_no_array(bad: object) -> None:
    assert codes(linear.check(bad, W)) == ["A071"]
    assert codes(linear.check(((4, 8), "f17"), W)) == ["K001"]


def test_an_annotation_with_dims_is_no_description() -> None:
    assert codes(linear.check(ck.f16[M, K], W)) == ["A071"]
