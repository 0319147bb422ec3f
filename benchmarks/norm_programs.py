# SPDX-License-Identifier: MIT
"""The programs of ``hip/norms.hip`` on the emulated GPU, whole or timed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from hip_programs import Programs, ok

from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import LaunchDetail, launch_detail
from cklang.emulator.engine.recording import timing

GPU = "gfx950"
WIDTH = 2048
"""Of rows that are normalised."""
BATCH, HEADS, HEAD = 16, 16, 128
_SOURCE = Path(__file__).parent / "hip" / "norms.hip"


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a program."""

    program: str
    groups: tuple[int, int, int]
    block: int
    bytes: tuple[int, ...]
    """Of its operands, in the order of its parameters."""


def layer_norm(length: int, batch: int = BATCH) -> Launch:
    """Return the launch for some sequences of a length."""
    each = 2 * batch * length * WIDTH
    sizes = (each, each, each, each, 2 * WIDTH, 2 * WIDTH)
    return Launch("layer_norm", (length // 4, batch, 1), 256, sizes)


def rotary(length: int, batch: int = BATCH, heads: int = HEADS) -> Launch:
    """Return the launch for some sequences of a length."""
    each, turns = 2 * batch * heads * length * HEAD, length * HEAD
    return Launch("rotary", (heads, batch, length // 32), 64, (each, turns, turns, each))


class Module:
    """The compiled programs on the emulated GPU."""

    def __init__(self, where: Path) -> None:
        self._programs = Programs(_SOURCE, GPU, where)
        self.hip = self._programs.hip

    def run(self, launch: Launch, operands: list[int]) -> None:
        """Launch a program.

        Args:
            launch: The program and its shape.
            operands: Addresses.
        """
        arguments = struct.pack(f"={len(operands)}Q", *operands)
        self._programs.launch(launch.program, launch.groups, (launch.block, 1, 1), arguments)

    def time(self, launch: Launch) -> LaunchDetail:
        """Time a launch, of which a few workgroups are executed."""
        operands = [int(ok(self.hip.hipMalloc(size))) for size in launch.bytes]
        with timing(3, alone=True) as recording:
            self.run(launch, operands)
        for operand in operands:
            ok(self.hip.hipFree(operand))
        (recorded,) = recording.launches
        return launch_detail(recorded, arch(GPU), constants_of(GPU), sum(launch.bytes))
