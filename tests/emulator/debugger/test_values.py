# SPDX-License-Identifier: MIT
"""Values of lanes and memory as text."""

import numpy as np
import pytest

from cklang.emulator.debugger.expressions import (
    Registers,
    _parsed_index,
    parse_registers,
    parse_shape,
)
from cklang.emulator.debugger.values import FORMATS, decoded, format_of, lanes_text, shaped
from cklang.errors import CkValueError


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_reads_what_it_has_written(name: str) -> None:
    format_ = format_of(name)
    size = format_.dtype().itemsize
    values = np.arange(8 // size * 2).astype(format_.dtype())
    rows = np.repeat(values.view(np.uint32)[:, None], 64, axis=1)
    read = decoded(rows, format_)
    np.testing.assert_array_equal(read[63], values)
    assert all(format_.text(value) for value in values)


def test_half_of_a_long_value() -> None:
    with pytest.raises(CkValueError, match="D039"):
        decoded(np.zeros((1, 64), np.uint32), format_of("f64"))


def test_an_unknown_format() -> None:
    with pytest.raises(CkValueError, match="f16"):
        format_of("half")


def test_memory_that_ends_early() -> None:
    assert shaped(bytes(10), format_of("f32"), (2, 2)).shape == (2,)


def test_several_values_of_a_lane_are_a_line() -> None:
    text = lanes_text(np.arange(6).reshape(2, 3), format_of("u32"), 1)
    assert text.splitlines() == ["0:   0   1   2", "1: (3) (4) (5)"]


@pytest.mark.parametrize(
    ("text", "registers"),
    [
        ("v7", Registers("v", 7, 1)),
        ("a[2:5]", Registers("a", 2, 4)),
        ("s[4]", Registers("s", 4, 1)),
        ("v[5:2]", None),
        ("vcc", None),
        ("v", None),
    ],
)
def test_registers(text: str, registers: Registers | None) -> None:
    assert parse_registers(text) == registers
    assert registers is None or parse_registers(str(registers)) == registers


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("", ()),
        ("3", (3,)),
        ("-1, 0:8", (-1, slice(0, 8, None))),
        (":, ::2", (slice(None), slice(None, None, 2))),
        ("x", None),
        ("1.5", None),
        ("1)", None),
    ],
)
def test_indices(text: str, index: object) -> None:
    assert _parsed_index(text) == index


def test_shapes() -> None:
    assert parse_shape("32x4") == (32, 4)
    with pytest.raises(CkValueError, match="D039"):
        parse_shape("32x")
