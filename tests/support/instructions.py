# SPDX-License-Identifier: MIT
"""What the code of a built kernel does, by kinds of instructions."""

from collections import Counter
from collections.abc import Sequence

from cklang.emulator.engine.library import disassemble, text_section
from cklang.runtime.record import LaunchRecord

_MATRIX = ("mfma", "wmma")
_KINDS = {"matrix": _MATRIX, "loads": ("buffer_load", "global_load"), "lds": ("ds_",)}


def instructions(
    launch: LaunchRecord, kinds: Sequence[str] = ("matrix", "loads")
) -> dict[str, Counter[str]]:
    """Return how often each instruction of some kinds stands in a kernel."""
    image = launch.artifact.code_object.read_bytes()
    names = _names(disassemble(launch.key.arch, text_section(image)))
    return {
        kind: Counter(name for name in names if any(word in name for word in _KINDS[kind]))
        for kind in kinds
    }


def loads_in_loop(launch: LaunchRecord) -> list[str]:
    """Return the loads past buffers that are between a kernel's first and last matrix product."""
    image = launch.artifact.code_object.read_bytes()
    names = _names(disassemble(launch.key.arch, text_section(image)))
    products = [at for at, name in enumerate(names) if any(word in name for word in _MATRIX)]
    loop = names[products[0] : products[-1]]
    return [name for name in loop if name.startswith(("global_load", "flat_load"))]


def _names(text: str) -> list[str]:
    """Return the name of each instruction, which follows its offset and a colon."""
    return [line.partition(":")[2].split()[0] for line in text.splitlines() if line.strip()]
