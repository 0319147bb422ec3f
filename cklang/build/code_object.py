# SPDX-License-Identifier: MIT
"""What an AMD GPU code object says about its kernels: registers, LDS, spills, argument size.

The facts stand in the ELF note ``NT_AMDGPU_METADATA``, written as MessagePack; function symbols
show whether a call was left over. Format: LLVM's AMDGPU usage guide, "Code Object Metadata".
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from cklang.elf import MAGIC, NOTE, SYMBOLS, Section, sections_of, symbols_of
from cklang.errors import error

_NOTE_TYPE = 32
"""NT_AMDGPU_METADATA."""

_FUNCTION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """The resources of one kernel; registers are counted per lane (vector) or wave (scalar)."""

    name: str
    vgprs: int
    """Vector registers, the accumulation ones among them where the GPU has one file of both."""
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds_bytes: int
    """Static LDS of one workgroup."""
    scratch_bytes: int
    """Private memory of one lane."""
    kernarg_bytes: int
    max_threads: int
    """Most threads of a workgroup."""
    wave_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """One code object."""

    target: str
    """The GPU it is for: ``gfx942``."""
    kernels: tuple[KernelFacts, ...]
    functions: tuple[str, ...]
    """All functions in it by name; more than there are kernels means that calls were left."""

    def kernel(self, name: str) -> KernelFacts:
        """Return the facts of kernel ``name``."""
        for facts in self.kernels:
            if facts.name == name:
                return facts
        known = ", ".join(facts.name for facts in self.kernels)
        raise error("B012", path=name, problem=f"its kernels are: {known}")


def read(path: Path) -> CodeObject:
    """Read the code object in ``path``."""
    data = path.read_bytes()
    try:
        return _read(data)
    except (struct.error, IndexError, KeyError, ValueError) as problem:
        raise error("B012", path=path, problem=f"{problem}") from problem


def _read(data: bytes) -> CodeObject:
    if not data.startswith(MAGIC):
        raise ValueError("it is not a little-endian 64-bit ELF file")
    sections = sections_of(data)
    metadata = next(_metadata(data, sections), None)
    if metadata is None:
        raise ValueError("it has no AMDGPU metadata")
    target = str(metadata.get("amdhsa.target", "")).rpartition("--")[2]
    return CodeObject(
        target=target,
        kernels=tuple(_facts(kernel) for kernel in metadata["amdhsa.kernels"]),
        functions=tuple(_functions(sections)),
    )


def _metadata(data: bytes, sections: list[Section]) -> Iterator[dict[str, Any]]:
    for section in (s for s in sections if s.kind == NOTE):
        position, end = section.offset, section.offset + section.size
        while position < end:
            name_size, size, kind = struct.unpack_from("<III", data, position)
            start = position + 12 + _padded(name_size)
            name = data[position + 12 : position + 12 + name_size].rstrip(b"\0")
            if kind == _NOTE_TYPE and name == b"AMDGPU":
                yield _unpack(BytesIO(data[start : start + size]))
            position = start + _padded(size)


def _padded(size: int) -> int:
    return (size + 3) & ~3


def _functions(sections: list[Section]) -> Iterator[str]:
    for table in (s for s in sections if s.kind == SYMBOLS):
        yield from (s.name for s in symbols_of(table, sections) if s.kind == _FUNCTION)


def _facts(kernel: dict[str, Any]) -> KernelFacts:
    return KernelFacts(
        name=kernel[".name"],
        vgprs=kernel[".vgpr_count"],
        agprs=kernel.get(".agpr_count", 0),
        sgprs=kernel[".sgpr_count"],
        vgpr_spills=kernel.get(".vgpr_spill_count", 0),
        sgpr_spills=kernel.get(".sgpr_spill_count", 0),
        lds_bytes=kernel[".group_segment_fixed_size"],
        scratch_bytes=kernel[".private_segment_fixed_size"],
        kernarg_bytes=kernel[".kernarg_segment_size"],
        max_threads=kernel[".max_flat_workgroup_size"],
        wave_size=kernel[".wavefront_size"],
    )


# MessagePack: the first byte is a type, or a type with a small value or length in its low bits.
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = dict(zip(range(0xCA, 0xD4), "fdBHIQbhiq", strict=True))
_LENGTHS = dict(zip(bytes.fromhex("c4c5c6d9dadbdcdddedf"), "BHIBHIHIHI", strict=True))


def _unpack(data: BytesIO) -> Any:
    """Return the next value."""
    first = data.read(1)[0]
    if first in _CONSTANTS:
        return _CONSTANTS[first]
    if first in _NUMBERS:
        return _number(data, _NUMBERS[first])
    if first in _LENGTHS:
        return _items(data, first, _number(data, _LENGTHS[first]))
    if 0x80 <= first < 0xC0:
        return _items(data, first, first & (0x0F if first < 0xA0 else 0x1F))
    if 0xC0 <= first < 0xE0:
        raise ValueError(f"its metadata has an unknown MessagePack type {first:#x}")
    return first if first < 0x80 else first - 0x100


def _number(data: BytesIO, form: str) -> Any:
    return struct.unpack(f">{form}", data.read(struct.calcsize(f">{form}")))[0]


def _items(data: BytesIO, kind: int, size: int) -> Any:
    """Return a map, an array or a string of ``size`` items."""
    if 0x80 <= kind < 0x90 or kind >= 0xDE:
        return {_unpack(data): _unpack(data) for _ in range(size)}
    if 0x90 <= kind < 0xA0 or kind >= 0xDC:
        return [_unpack(data) for _ in range(size)]
    return data.read(size).decode()


_INSTRUCTION = re.compile(r"^\t([a-z][a-z0-9_]+)(?:\s|$)", re.M)


def count_instructions(assembly: str) -> Counter[str]:
    """Count the machine instructions of an assembly text by mnemonic.

    Only what clang puts in the text section counts: lines that start with a tab and no dot.
    """
    return Counter(_INSTRUCTION.findall(assembly))
