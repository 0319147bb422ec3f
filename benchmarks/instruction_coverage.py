# SPDX-License-Identifier: MIT
"""Which instructions of a folder of code objects the emulator knows.

Counts, for each GPU, the instructions in the code sections of all different code objects below a
folder (``.co`` and ``.hsaco``; by default the ones that the amd-aiter package brings): how many,
how many distinct operations, how many words cannot be decoded, and which operations have no
handler. A word that cannot be decoded may be data among the code. Prints a Markdown table; with
``--missing`` also what is missing.

    python benchmarks/instruction_coverage.py [folder] [--missing]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cklang import emulator

#: The machine numbers in the flags of an AMD GPU code object's ELF header.
MACHINES = {
    0x3F: "gfx90a",
    0x4C: "gfx942",
    0x4F: "gfx950",
    0x41: "gfx1100",
    0x4E: "gfx1201",
}

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


def default_folder() -> Path:
    """The code objects in the amd-aiter package."""
    found = importlib.util.find_spec("aiter_meta")
    if found is None or not found.submodule_search_locations:
        sys.exit("the package amd-aiter is not installed: name a folder of code objects")
    return Path(next(iter(found.submodule_search_locations)))


def machine(image: bytes) -> str | None:
    """The GPU of a code object, or None if it is none of the emulated ones."""
    if image[:4] != b"\x7fELF":
        return None
    return MACHINES.get(int.from_bytes(image[0x30:0x34], "little") & 0xFF)


def measure(paths: Iterable[Path]) -> dict[str, Coverage]:
    """Count the instructions of all files, by GPU."""
    result: dict[str, Coverage] = {}
    seen: set[bytes] = set()
    for path in paths:
        image = path.read_bytes()
        arch = machine(image)
        if arch is None or image in seen:
            continue
        seen.add(image)
        found = result.setdefault(arch, Coverage())
        found.files += 1
        census = emulator.census(arch, image)
        found.undecoded += census.undecoded
        found.executed.update(census.emulated)
        found.missing.update({k: n for k, n in census.missing.items() if k != PADDING})
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=None)
    parser.add_argument("--missing", action="store_true", help="list what has no handler")
    options = parser.parse_args()
    folder = options.folder or default_folder()
    result = measure(sorted(path for end in ENDINGS for path in folder.rglob(end)))
    print(HEADER)
    for arch, found in sorted(result.items()):
        print(found.row(arch))
    if options.missing:
        for arch, found in sorted(result.items()):
            for name, count in found.missing.most_common():
                print(f"{arch} {name} {count:,}")


if __name__ == "__main__":
    main()
