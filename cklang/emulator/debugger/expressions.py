# SPDX-License-Identifier: MIT
"""Values by name: registers, addresses, tensors with an index."""

import ast
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.values import (
    FORMATS,
    Format,
    decoded,
    format_of,
    lanes_text,
    shaped,
    tensor_text,
)
from cklang.emulator.debugger.wire import Words
from cklang.errors import error

_REGISTERS = re.compile(r"([vas])(?:(\d+)|\[(\d+)(?::(\d+))?\])")
_TERM = re.compile(r"\s*([+-])?\s*(0x[0-9a-fA-F]+|\d+|[a-zA-Z_]\w*(?:\[[^\]]*\])?)")
_INDEX = re.compile(r"([a-zA-Z_]\w*)\s*(?:\[(.*)\])?")
_MOST = 1 << 28
"""Bytes that one value may have."""
_NAMED = {"vcc": (106, "address"), "m0": (124, "hex"), "exec": (126, "address")}
"""Scalar registers with names, and how they are shown."""
_FORMAT_OF = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_FORMAT_OF |= {"float8_e4m3fn": "fp8", "float8_e5m2": "bf8", "float8_e4m3fnuz": "fp8_fnuz"}
_FORMAT_OF |= {"float8_e5m2fnuz": "bf8_fnuz", "bool": "u8"}


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers that follow each other: ``v``, ``a`` or ``s``."""

    file: str
    first: int
    count: int

    def __str__(self) -> str:
        last = self.first + self.count - 1
        one = f"{self.file}{self.first}"
        return one if self.count == 1 else f"{self.file}[{self.first}:{last}]"


def parse_registers(text: str) -> Registers | None:
    """Return the registers that a text names; None if it names none.

    Example:
        >>> parse_registers("v[2:5]"), parse_registers("exec")
        (Registers(file='v', first=2, count=4), None)
    """
    match = _REGISTERS.fullmatch(text)
    if match is None:
        return None
    first = int(match[2] or match[3])
    last = int(match[4] or first)
    return Registers(match[1], first, last - first + 1) if last >= first else None


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``32x32``."""
    parts = text.split("x")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise error("D039", command="x", problem=f"{text!r} is no shape such as 32x32")
    return tuple(map(int, parts))


class Reader:
    """Reads values of the wave that a session shows."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def registers(self, which: Registers) -> Words:
        """Return registers: [register, lane] of vector registers, [register] of scalar ones."""
        focus, launch = self.session.focused(), self.session.controlled()
        if which.file == "s":
            values = launch.scalars(focus.group, focus.wave)
            values = values[which.first : which.first + which.count]
        else:
            first = which.first + (launch.first_agpr if which.file == "a" else 0)
            values = launch.rows(focus.group, focus.wave, first, which.count)
            values = values[:, : launch.facts.lanes]
        if len(values) < which.count:
            facts = launch.facts
            problem = f"the wave has {facts.vgprs} vector and {facts.sgprs} scalar registers"
            raise self._unknown(str(which), problem)
        return values

    def _unknown(self, text: str, problem: str) -> Exception:
        names = ", ".join(self.session.tensors())
        variables = "names of C++ variables are not in the code object, whose line table is all"
        return error(
            "D034", got=text, problem=problem, variables=f"tensors: {names}" if names else variables
        )

    def print(self, text: str, format_name: str = "") -> str:
        """Return the text of a value.

        Raises:
            CkValueError: D034, there is none of that name; D036, the format is unknown.
        """
        which = parse_registers(text)
        if which is not None:
            return self._registers_text(which, format_name)
        if text in ("pc", "scc", "mode", "kernarg"):
            return self._fact(text)
        if text in _NAMED:
            index, usual = _NAMED[text]
            count = 1 if text == "m0" or self.session.controlled().facts.lanes == 32 else 2
            return self._scalars_text(Registers("s", index, count), format_name, usual)
        return self.tensor_text(text)

    def _fact(self, name: str) -> str:
        wave, launch = self.session.wave(), self.session.controlled()
        facts = {
            "pc": f"0x{self.session.listing().pc(wave.dword):x}",
            "scc": str(wave.scc),
            "mode": f"0x{wave.mode:x}",
            "kernarg": f"0x{launch.kernarg:x}",
        }
        return facts[name]

    def _registers_text(self, which: Registers, format_name: str) -> str:
        if which.file == "s":
            return self._scalars_text(which, format_name, "hex")
        format_ = format_of(format_name or "hex")
        return lanes_text(
            decoded(self.registers(which), format_), format_, self.session.wave().exec
        )

    def _scalars_text(self, which: Registers, format_name: str, usual: str) -> str:
        name = format_name or usual
        format_ = format_of("hex" if name == "address" and which.count == 1 else name)
        values = shaped(self.registers(which).tobytes(), format_, (-1,))
        return " ".join(map(format_.text, values))

    def address(self, text: str) -> int:
        """Return an address: a sum of numbers, register pairs, ``kernarg`` and tensors.

        A pair of vector registers is that of the lane that is shown.

        Raises:
            CkValueError: D034, it is none.
        """
        total, at = 0, 0
        while at < len(text):
            match = _TERM.match(text, at)
            if match is None:
                raise self._unknown(text, f"{text[at:]!r} is no part of an address")
            value = self._term(match[2])
            total += -value if match[1] == "-" else value
            at = match.end()
        return total

    def _term(self, term: str) -> int:
        if term[0].isdigit():
            return int(term, 0)
        if term == "kernarg":
            return self.session.controlled().kernarg
        which = parse_registers(term)
        if which is None:
            return self._element_address(term)
        values = self.registers(which)
        words = values if which.file == "s" else values[:, self.session.focused().lane]
        return int.from_bytes(words.tobytes(), "little")

    def _element_address(self, text: str) -> int:
        name, index = self._split(text)
        place = self.session.tensors()[name]
        numbers = [part if isinstance(part, int) else (part.start or 0) for part in index]
        dtype = format_of(place.dtype).dtype()
        steps = zip(numbers, place.strides, strict=False)
        return place.address + dtype.itemsize * sum(n * stride for n, stride in steps)

    def _split(self, text: str) -> tuple[str, tuple[int | slice, ...]]:
        match = _INDEX.fullmatch(text)
        if match is None:
            raise self._unknown(text, "it is no name")
        tensors = self.session.tensors()
        if match[1] not in tensors:
            problem = "there is no register, and no tensor, of that name"
            raise self._unknown(match[1], problem)
        index = _parsed_index(match[2] or "")
        if index is None or len(index) > len(tensors[match[1]].shape):
            raise error("D039", command="print", problem=f"{text!r} has no legal index")
        return match[1], index

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """Return a tensor that the program has named.

        Raises:
            CkValueError: D037, there is none.
        """
        tensors = self.session.tensors()
        if name not in tensors:
            raise error("D037", got=name, known=", ".join(tensors) or "none")
        place = tensors[name]
        dtype = format_of(place.dtype).dtype()
        steps = zip(place.shape, place.strides, strict=True)
        span = 1 + sum((extent - 1) * stride for extent, stride in steps)
        size = 0 if 0 in place.shape else span * dtype.itemsize
        if size > _MOST:
            raise error("D039", command="tensor", problem=f"{name} has {size} bytes")
        data = self.session.controlled().memory(place.address, size)
        flat = np.frombuffer(data, dtype)
        strides = [stride * dtype.itemsize for stride in place.strides]
        return np.lib.stride_tricks.as_strided(flat, place.shape, strides, writeable=False)

    def tensor_text(self, text: str) -> str:
        """Return the text of a tensor, or of the part of it that an index takes."""
        name, index = self._split(text)
        values = self.tensor(name)
        try:
            part = values[index]
        except IndexError as problem:
            raise error("D039", command="print", problem=str(problem)) from problem
        return tensor_text(np.asarray(part), FORMATS[self.session.tensors()[name].dtype])

    def memory_text(self, data: bytes, format_: Format, shape: tuple[int, ...]) -> str:
        """Return the text of bytes of memory as an array."""
        values = shaped(data, format_, shape)
        text = tensor_text(values, format_)
        there = int(np.prod(shape))
        return (
            text if values.size == there else f"{text}\n({values.size} of {there} values are there)"
        )


def format_name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of the format of a NumPy dtype.

    Example:
        >>> format_name_of(np.dtype(np.float16)), format_name_of(np.dtype(np.int32))
        ('f16', 'i32')
    """
    return _FORMAT_OF.get(dtype.name) or f"{dtype.kind}{8 * dtype.itemsize}"


def _parsed_index(text: str) -> tuple[int | slice, ...] | None:
    """Read ``3, 0:8``; None if it is anything else."""
    if not text.strip():
        return ()
    try:
        tree = ast.parse(f"_[{text}]", mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Subscript):
        return None
    parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    index = [_parsed_part(part) for part in parts]
    return tuple(part for part in index if part is not None) if None not in index else None


def _parsed_part(node: ast.expr) -> int | slice | None:
    if isinstance(node, ast.Slice):
        ends = [_number(bound) for bound in (node.lower, node.upper, node.step)]
        return slice(*ends)
    return _number(node)


def _number(node: ast.expr | None) -> int | None:
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None
