# SPDX-License-Identifier: MIT
"""The key of a call: equal for calls of one plan, different for anything a plan depends on."""

from typing import Any

import numpy as np
import pytest

from cklang.frontend.signature import Parameter
from cklang.runtime import call_key
from cklang.source import Source, Span
from cklang.types import const, dims, f16, f32
from tests.support.arrays import half
from tests.support.errors import expect_error

M, N = dims("M N")
SPAN = Span(source=Source(name="t", text=""), line=1, column=0, end_line=1, end_column=1)
PARAMETERS = [
    Parameter(name="x", type=f16[M, N], span=SPAN),
    Parameter(name="alpha", type=f32[()], span=SPAN),
    Parameter(name="cap", type=const[float], span=SPAN),
]


def look(x: Any, alpha: Any = 1.0, cap: Any = 2.0, out: Any = None, device: Any = None) -> Any:
    return call_key.of_call(PARAMETERS, (x, alpha, cap), out, (device,))


def test_addresses_are_those_of_the_arrays() -> None:
    x, out = half(4, 6)[:, 1:], half(4, 5)
    call = look(x, out=out)
    assert call.addresses == [x.ctypes.data, 0, out.ctypes.data]
    assert call.numbers == ((1, 1.0),)
    assert call_key.address(x) == x.ctypes.data


def test_values_of_run_time_scalars_are_not_in_the_key() -> None:
    assert look(half(4, 6), 1.0).key == look(half(4, 6), 7.0).key


@pytest.mark.parametrize(
    "other",
    [
        look(half(4, 7)),
        look(half(6, 4).T),
        look(half(4, 6).astype(np.float32)),
        look(half(4, 7)[:, 1:]),
        look(half(4, 12)[:, ::2]),
        look(half(4, 6), 1),
        look(half(4, 6), np.float32(1)),
        look(half(4, 6), cap=3.0),
        look(half(4, 6), cap=2),
        look(half(4, 6), device="emu:gfx90a"),
        look(half(4, 6), out=half(4, 6)),
    ],
    ids=[
        "shape",
        "transposed",
        "dtype",
        "alignment",
        "strides",
        "integer",
        "width",
        "constant",
        "kind",
        "device",
        "out",
    ],
)
def test_everything_a_plan_depends_on_is_in_the_key(other: Any) -> None:
    assert other.key != look(half(4, 6)).key


def test_constants_that_python_calls_equal_differ() -> None:
    keys = {look(half(1, 1), cap=cap).key for cap in (0.0, -0.0, 1, 1.0, True, float("nan"))}
    assert len(keys) == 6
    assert look(half(1, 1), cap=float("nan")).key == look(half(1, 1), cap=float("nan")).key


def test_a_read_only_out_has_another_key() -> None:
    out = half(4, 6)
    before = look(half(4, 6), out=out).key
    out.flags.writeable = False
    assert look(half(4, 6), out=out).key != before


def test_memory_of_other_libraries_is_held() -> None:
    class Face:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.__array_interface__ = array.__array_interface__
            self.array = array

    face = Face(half(4, 6))
    call = look(face)
    assert call.addresses[0] == face.array.ctypes.data
    assert call.borrowed == (face,)


def test_what_is_no_array_is_refused() -> None:
    with expect_error("A001"):
        look(object())
    with expect_error("A152"):
        look("text")


def test_masked_arrays_are_refused() -> None:
    with expect_error("A006"):
        look(np.ma.masked_array(half(2, 2), mask=True))
