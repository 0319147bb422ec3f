# SPDX-License-Identifier: MIT
"""Device code whose functions call those of other sources (``-fgpu-rdc``): what objects hold of it.

An object of the host has the LLVM bitcode of its kernels, for each GPU, as a fat binary in the
section that clang has for that. Its start-up code names the fat binary of the finished program,
``__hip_fatbin_…``, and the place for its handle, ``__hip_gpubin_handle_…``. The link joins the
bitcode of all objects and defines these names, all of them as one fat binary and one handle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cklang.elf import MAGIC, SYMBOLS, sections_of, symbols_of
from cklang.emulator.hipcc import fat_binary

_SECTION = ".llvm.offloading"
_NAMES = ("__hip_fatbin_", "__hip_gpubin_handle_")
_ARCHIVE, _MEMBER = b"!<arch>\n", 60


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The bitcode in some objects, by GPU, and the names that their link must define."""

    bitcode: dict[str, list[bytes]]
    fat_binaries: list[str]
    handles: list[str]


def device_code(paths: Sequence[Path]) -> DeviceCode:
    """Read objects and static libraries; what is neither has no device code."""
    bitcode: dict[str, list[bytes]] = {}
    names: dict[str, None] = {}
    for path in paths:
        for image in _objects_of(path.read_bytes()):
            names |= dict.fromkeys(_undefined(image))
            for section in sections_of(image):
                if section.name == _SECTION:
                    for arch, code in fat_binary.all_entries(section.content):
                        bitcode.setdefault(arch, []).append(code)
    first, second = ([n for n in names if n.startswith(kind)] for kind in _NAMES)
    return DeviceCode(bitcode, first, second)


def assembly(code: DeviceCode, fat_binary_file: Path) -> str:
    """Return assembly text that defines what the objects name.

    >>> print(assembly(DeviceCode({}, ["__hip_fatbin_1"], []), Path("a.hipfb")))
    .section .hip_fatbin,"a",@progbits
    .p2align 12
    .globl __hip_fatbin_1
    __hip_fatbin_1:
    .incbin "a.hipfb"
    .bss
    .p2align 3
    .zero 8
    """

    def labels(names: Sequence[str]) -> list[str]:
        return [line for name in names for line in (f".globl {name}", f"{name}:")]

    return "\n".join(
        [
            '.section .hip_fatbin,"a",@progbits',
            f".p2align {fat_binary.ALIGNMENT.bit_length() - 1}",
            *labels(code.fat_binaries),
            f'.incbin "{fat_binary_file}"',
            *(".bss", ".p2align 3"),
            *labels(code.handles),
            ".zero 8",
        ]
    )


def _objects_of(data: bytes) -> Iterator[bytes]:
    """The ELF files in an object or an archive."""
    if data.startswith(MAGIC):
        yield data
    if not data.startswith(_ARCHIVE):
        return
    at = len(_ARCHIVE)
    while at + _MEMBER <= len(data):
        size = int(data[at + 48 : at + 58])
        content = data[at + _MEMBER : at + _MEMBER + size]
        if content.startswith(MAGIC):
            yield content
        at += _MEMBER + size + size % 2


def _undefined(image: bytes) -> Iterator[str]:
    """The names that the object leaves to the link of device code."""
    sections = sections_of(image)
    for table in (section for section in sections if section.kind == SYMBOLS):
        for symbol in symbols_of(table, sections):
            if symbol.section == 0 and symbol.name.startswith(_NAMES):
                yield symbol.name
