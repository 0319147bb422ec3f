# SPDX-License-Identifier: MIT
"""Values of lanes and memory as typed arrays, and their text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang import types
from cklang.emulator.debugger.wire import Words
from cklang.errors import error

Array = npt.NDArray[Any]

_COLUMNS = 8
"""Values in a line of text."""
_MOST_LINES = 64
_WIDEST = 1 << 16
"""Letters of a row, which is never wrapped."""


@dataclass(frozen=True, slots=True)
class Format:
    """How bits are read and written."""

    dtype: Callable[[], np.dtype[Any]]
    text: Callable[[Any], str]


def _number(value: Any) -> str:
    return f"{float(value):.6g}"


def _integer(value: Any) -> str:
    return str(int(value))


def _plain(name: str, text: Callable[[Any], str]) -> Format:
    return Format(lambda: np.dtype(name), text)


def _of(dtype: types.DType) -> Format:
    return Format(lambda: dtype.numpy, _number)


FORMATS: dict[str, Format] = {
    "hex": _plain("uint32", lambda value: f"0x{int(value):08x}"),
    "f32": _plain("float32", _number),
    "f16": _plain("float16", _number),
    "bf16": _of(types.bf16),
    "f64": _plain("float64", _number),
    "fp8": _of(types.fp8),
    "bf8": _of(types.bf8),
    "fp8_fnuz": _of(types.fp8_fnuz),
    "bf8_fnuz": _of(types.bf8_fnuz),
    "i8": _plain("int8", _integer),
    "u8": _plain("uint8", _integer),
    "i16": _plain("int16", _integer),
    "u16": _plain("uint16", _integer),
    "i32": _plain("int32", _integer),
    "u32": _plain("uint32", _integer),
    "i64": _plain("int64", _integer),
    "u64": _plain("uint64", _integer),
    "address": _plain("uint64", lambda value: f"0x{int(value):x}"),
}
"""Formats by name. A register of 32 bits has two values of 16 or four of 8, lowest bits first."""


def format_of(name: str) -> Format:
    """Return a format."""
    if name not in FORMATS:
        raise error("D036", got=name, known=", ".join(FORMATS))
    return FORMATS[name]


def decoded(rows: Words, format_: Format) -> Array:
    """Return what registers [register, lane] hold, [lane, element].

    Example:
        >>> rows = np.array([[0x3C004000], [0]], np.uint32)
        >>> decoded(rows, format_of("f16"))[0].tolist()
        [2.0, 1.0, 0.0, 0.0]
    """
    dtype = format_.dtype()
    if rows.nbytes // max(1, rows.shape[-1]) % dtype.itemsize:
        problem = f"{len(rows)} registers are no whole number of {dtype.itemsize} bytes"
        raise error("D039", command="print", problem=problem)
    return np.ascontiguousarray(rows.T).view(dtype)


def shaped(data: bytes, format_: Format, shape: Sequence[int]) -> Array:
    """Return bytes as an array of a shape; of what is there, where that is less.

    Example:
        >>> shaped(bytes(range(6)), format_of("u8"), (2, 3)).tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    dtype = format_.dtype()
    values = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)
    return values.reshape(shape) if len(values) == int(np.prod(shape)) else values


def _rows_text(labels: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    width = max((len(text) for row in rows for text in row), default=0)
    margin = max(map(len, labels), default=0)
    lines = [
        f"{label:>{margin}}: " + " ".join(f"{text:>{width}}" for text in row)
        for label, row in zip(labels, rows, strict=True)
    ]
    return "\n".join(lines)


def lanes_text(values: Array, format_: Format, enabled: int) -> str:
    """Return the text of values [lane, element]; those of disabled lanes are in parentheses.

    Example:
        >>> print(lanes_text(np.arange(9)[:, None], format_of("i32"), 0x1FD))
        0:   0 (1)   2   3   4   5   6   7
        8:   8
    """
    shown = [
        [format_.text(word) if enabled >> lane & 1 else f"({format_.text(word)})" for word in row]
        for lane, row in enumerate(values)
    ]
    if values.shape[1] == 1:
        flat = [row[0] for row in shown]
        shown = [flat[at : at + _COLUMNS] for at in range(0, len(flat), _COLUMNS)]
        return _rows_text([str(_COLUMNS * n) for n in range(len(shown))], shown)
    return _rows_text([str(lane) for lane in range(len(shown))], shown)


def tensor_text(values: Array, format_: Format) -> str:
    """Return the text of an array; long ones are cut in the middle, as NumPy does.

    Example:
        >>> print(tensor_text(np.arange(4, dtype=np.float32).reshape(2, 2), format_of("f32")))
        [[0 1]
         [2 3]]
    """
    return np.array2string(
        values,
        formatter={"all": format_.text},
        threshold=_COLUMNS * _MOST_LINES,
        max_line_width=_WIDEST,
    )
