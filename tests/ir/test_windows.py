# SPDX-License-Identifier: MIT
"""The geometry of convolutions: window arithmetic, and extents that follow from others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.ir.derive import derive
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.ir.verifier import verify
from cklang.ir.windows import Window, geometry
from cklang.types import Dim
from tests.support.errors import expect_error

WINDOWS = st.builds(
    Window,
    stride=st.integers(1, 4),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    dilation=st.integers(1, 3),
)
EXTENTS = range(12)


@given(window=WINDOWS)
def test_each_extent_is_solved_by_the_two_others(window: Window) -> None:
    """``inputs`` and ``weights`` list exactly the extents whose ``outputs`` is the given one."""
    for weight in range(1, 5):
        for output in range(1, 5):
            fit = [x for x in range(40) if output in window.outputs(x, weight)]
            assert [x for x in window.inputs(output, weight) if x < 40] == fit
    for given_ in EXTENTS:
        for output in range(1, 5):
            fit = [w for w in range(1, 40) if output in window.outputs(given_, w)]
            assert [w for w in window.weights(given_, output) if w < 40] == fit


def test_output_counts_the_places_of_the_window() -> None:
    window = Window(stride=2, before=1, after=0, dilation=2)
    # Padded to 8, the three taps reach 5: places 0 and 2.
    assert list(window.outputs(7, 3)) == [2]
    assert list(window.outputs(3, 3)) == []
    assert list(window.outputs(7, 0)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"stride": (0, 1)},
        {"stride": (1,)},
        {"dilation": (1, 0)},
        {"padding": ((0, 0), (0, -1))},
        {"padding": ((0, 0), (0, 0, 0))},
        {"groups": 0},
        {"rank": 3},
        {"rank": 6},
        {"rank": 5, "groups": 2},
        {"stride": (), "padding": (), "dilation": (), "rank": 2},
        {"stride": (1,) * 4, "padding": ((0, 0),) * 4, "dilation": (1,) * 4, "rank": 6},
    ],
)
def test_no_geometry(change: dict[str, Any]) -> None:
    legal: dict[str, Any] = {
        "stride": (1, 1),
        "padding": ((0, 0), (0, 0)),
        "dilation": (1, 1),
        "groups": 2,
        "rank": 4,
    }
    assert geometry(**legal) is not None
    assert geometry(**(legal | change)) is None


ATTRS = "{dilation = [1, 1], groups = %d, padding = [[1, 1], [1, 1]], stride = [2, 2]}"


def conv(
    result: str = "f32[N, Ho, Wo, K]",
    w: str = "f16[K, 3, 3, C]",
    groups: int = 1,
    op: str = "conv",
    a: str = "f16[N, H, W, C]",
) -> Function:
    return parse_function(
        f"func @f(%x: {a}, %w: {w}) -> {result} {{\n"
        f"  %0: {result} = {op}(%x, %w) {ATTRS % groups}\n"
        "  return %0\n}"
    )


def dims(**extents: int) -> dict[Dim, int]:
    return {Dim(name): extent for name, extent in extents.items()}


KNOWN = dims(N=2, H=7, W=8, C=4, K=6)


def test_extents_are_derived() -> None:
    extents = derive(verify(conv()), KNOWN)
    assert extents == KNOWN | dims(Ho=4, Wo=4)


def test_channels_of_groups_are_derived() -> None:
    function = verify(conv("f32[K, 3, 3, P]", "f16[N, Ho, Wo, K]", 2, "conv_grad_weight"))
    assert derive(function, KNOWN | dims(Ho=4, Wo=4))[Dim("P")] == 2
    function = verify(
        conv("f32[N, 7, 8, P]", groups=2, op="conv_grad_input", a="f16[N, Ho, Wo, K]")
    )
    assert derive(function, KNOWN | dims(Ho=4, Wo=4))[Dim("P")] == 8


@pytest.mark.parametrize(
    ("code", "function", "known"),
    [
        ("I033", conv(groups=2, w="f16[K, 3, 3, P]"), KNOWN | dims(P=3)),
        ("I033", conv(groups=4, w="f16[K, 3, 3, P]"), KNOWN | dims(P=1)),
        ("I033", conv(w="f16[K, Y, 3, C]"), KNOWN | dims(Y=10)),
        ("I033", conv(w="f16[K, Y, 3, C]"), KNOWN | dims(Y=0)),
        ("I034", conv(op="conv_grad_input", result="f32[N, P, Q, C]"), KNOWN),
        ("I035", conv(), KNOWN | dims(Ho=5)),
        ("I035", conv("f32[N, 5, Wo, K]"), KNOWN),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_extents_that_do_not_fit(code: str, function: Function, known: dict[Dim, int]) -> None:
    if "conv_grad_input" in str(function):
        function = conv(op="conv_grad_input", result="f32[N, P, Q, C]", a="f16[N, H, W, K]")
    with expect_error(code):
        derive(verify(function), known)


@pytest.mark.parametrize(
    "function",
    [
        conv("f32[N, Ho, Wo, C]"),
        conv(w="f16[K, 3, 3, 5]", a="f16[N, H, W, 7]"),
        conv(groups=2),
        conv("f32[N, Ho, Wo, K, 1]"),
        conv(a="f16[N, 7, 7, C]", result="f32[N, 3, Wo, K]"),
    ],
    ids=["channels of the result", "channels", "channels of a group", "rank", "numbers"],
)
def test_verifier_refuses_what_cannot_be(function: Function) -> None:
    with expect_error("I019"):
        verify(function)
