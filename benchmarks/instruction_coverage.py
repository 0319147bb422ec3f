# SPDX-License-Identifier: MIT
"""Which instructions of a folder of code objects the emulator knows.

Counts, for each GPU, the instructions in the code sections of all different code objects below
folders (``.co`` and ``.hsaco``; by default the ones that the amd-aiter package brings) and in files
that are named, which may be programs with code objects in an offload bundle: how many,
how many distinct operations, how many words cannot be decoded, and which operations have no
handler. A word that cannot be decoded may be data among the code. Prints a Markdown table; with
``--missing`` also what is missing; with ``--forms`` it writes one instruction of each form to a
file, for ``tests/emulator/test_census.py``.

    python benchmarks/instruction_coverage.py [folder or file ...] [--missing] [--forms file.json]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cklang import emulator
from cklang.emulator.engine.library import text_section
from cklang.emulator.hipcc import fat_binary

MACHINES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x41: "gfx1100", 0x4E: "gfx1201"}

#: How the names of code objects end: those of packages, and those of cklang's kernel cache.
ENDINGS = ("*.co", "*.hsaco")

#: What follows the last instruction of a kernel so that the GPU may fetch ahead: never executed.
PADDING = "s_code_end"

HEADER = (
    "| GPU | files | instructions | emulated | distinct | emulated | not decoded (words) |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(slots=True, kw_only=True)
class Coverage:
    """Counts over the code objects of one GPU."""

    files: int = 0
    undecoded: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)

    def row(self, arch: str) -> str:
        """The line of the table."""
        total = self.executed.total() + self.missing.total()
        distinct = len(self.executed | self.missing)
        known = len(set(self.executed) - set(self.missing))
        cells = (
            arch,
            f"{self.files:,}",
            f"{total:,}",
            f"{100 * self.executed.total() / max(total, 1):.3f} %",
            f"{distinct:,}",
            f"{100 * known / max(distinct, 1):.1f} %",
            f"{self.undecoded:,}",
        )
        return f"| {' | '.join(cells)} |"


#: What two instructions of one form may differ in: numbers, registers, what is waited for.
_FORM = (
    (re.compile(r"\b([vsa]|ttmp)(?:\d+\b|\[\d+:\d+\])"), r"\1"),
    (re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]+|\d+(?:\.\d+(?:e[-+]?\d+)?)?)\b"), "#"),
    (re.compile(r"\b(?:vm|lgkm|exp|vs)cnt\(#\)(?: & )?"), "counts"),
)


def form(text: str) -> str:
    """An instruction's text without its numbers.

    >>> form("v_add_f32_e64 v3, -v4, 0x3f800001 clamp")
    'v_add_f32_e64 v, -v, # clamp'
    """
    for pattern, instead in _FORM:
        text = pattern.sub(instead, text)
    return text


def instructions(arch: str, code: bytes) -> Iterator[tuple[str, bytes]]:
    """Text and machine code of each instruction; padding is left out."""
    at = 0
    while at < len(code):
        if not any(code[at : at + 4]):
            at += 4
            continue
        lines = [
            line.partition(": ") for line in emulator.disassemble(arch, code[at:]).splitlines()
        ]
        starts = [at + int(start, 16) for start, _, _ in lines] + [len(code)]
        for (_, _, text), start, end in zip(lines, starts, starts[1:], strict=False):
            if not any(code[start : start + 4]):  # zeros between kernels end the text
                at = start
                break
            if not text.startswith(PADDING):
                yield text, code[start:end]
        else:
            return


def forms(paths: Iterable[Path]) -> dict[str, list[str]]:
    """By GPU the machine code, in hexadecimal digits, of one instruction of each form."""
    codes: dict[str, dict[str, str]] = {}
    for arch, image in (one for path in paths for one in code_objects(path)):
        known = codes.setdefault(arch, {})
        for text, code in instructions(arch, text_section(image)):
            known.setdefault(form(text), code.hex())
    return {arch: sorted(known.values()) for arch, known in sorted(codes.items())}


def default_folder() -> Path:
    """The code objects in the amd-aiter package."""
    package = importlib.util.find_spec("aiter_meta")
    if package is None or not package.submodule_search_locations:
        sys.exit("the package amd-aiter is not installed: name a folder of code objects")
    return Path(next(iter(package.submodule_search_locations)))


def machine(image: bytes) -> str | None:
    """The GPU of a code object, or None if it is none of the emulated ones."""
    if image[:4] != b"\x7fELF":
        return None
    return MACHINES.get(int.from_bytes(image[0x30:0x34], "little") & 0xFF)


def code_objects(path: Path) -> Iterator[tuple[str, bytes]]:
    """GPU and bytes of the file, or of what is bundled in it."""
    image = path.read_bytes()
    arch = machine(image)
    if arch is not None:
        yield arch, image
        return
    for match in re.finditer(b"__CLANG_OFFLOAD_BUNDLE__", image):
        with contextlib.suppress(ValueError):  # the word also stands among a program's texts
            for part in fat_binary.entries(image[match.start() :]).values():
                if (arch := machine(part)) is not None:
                    yield arch, part


def measure(paths: Iterable[Path]) -> dict[str, Coverage]:
    """Count the instructions of all files, by GPU."""
    result: dict[str, Coverage] = {}
    visited: set[bytes] = set()
    for arch, image in (one for path in paths for one in code_objects(path)):
        if image in visited:
            continue
        visited.add(image)
        coverage = result.setdefault(arch, Coverage())
        coverage.files += 1
        census = emulator.instruction_census(arch, image)
        coverage.undecoded += census.undecoded
        coverage.executed.update(census.emulated)
        coverage.missing.update({k: n for k, n in census.missing.items() if k != PADDING})
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--missing", action="store_true", help="list what has no handler")
    parser.add_argument("--forms", type=Path, help="write one instruction of each form here")
    options = parser.parse_args()
    folders = options.folders or [default_folder()]
    below = (path for f in folders for end in ENDINGS for path in f.rglob(end))
    paths = sorted([*below, *(f for f in folders if f.is_file())])
    result = measure(paths)
    print(HEADER)
    for arch, coverage in sorted(result.items()):
        print(coverage.row(arch))
    if options.missing:
        for arch, coverage in sorted(result.items()):
            for name, count in coverage.missing.most_common():
                print(f"{arch} {name} {count:,}")
    if options.forms:
        rows = (
            f"{json.dumps(arch)}: [\n" + ",\n".join(map(json.dumps, codes)) + "\n]"
            for arch, codes in forms(paths).items()
        )
        options.forms.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
