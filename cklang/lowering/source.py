# SPDX-License-Identifier: MIT
"""The generated texts of one kernel."""

from dataclasses import dataclass

from cklang.lowering.headers import PRECOMPILED
from cklang.places import PlacedFill, place_fill


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """The texts of one kernel."""

    stencil: str
    """HIP C++ for two passes: device pass, the kernel with its functions open; host pass, the host
    shim. Equal for all kernels whose keys differ in the functions only."""
    fill: str
    """Plain C that defines the functions. Its statements name the user's lines."""
    hole: str
    """Symbols of the functions that the stencil leaves open."""
    kernel: str
    """Symbol of the kernel."""
    precompiled: str = PRECOMPILED
    """The file of :mod:`cklang.lowering.headers` that holds all CK Tile headers it includes."""
    host_headers: bool = True
    """Whether the host shim includes them too."""
    overlapped: bool = False
    """Whether the compiler is told to overlap instructions (:mod:`cklang.build.schedules`)."""

    @property
    def placed(self) -> PlacedFill:
        """The fill as it is compiled: without the user's places, which it keeps beside it."""
        return place_fill(self.fill)

    @property
    def inline(self) -> str:
        """The kernel as one text: what a stencil and its fill are together."""
        return f"{self.stencil}\n{self.fill}"
