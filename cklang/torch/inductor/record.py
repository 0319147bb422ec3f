# SPDX-License-Identifier: MIT
"""What Inductor made of cklang's kernels: the programs that it calls, and what they refused."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Emitted:
    """One kernel that Inductor's code calls."""

    name: str
    """Its name in Inductor's code."""
    nodes: tuple[str, ...]
    """Inductor's operations that it computes, the product or convolution first."""
    text: str
    """Its program, as :func:`cklang.parse` reads it."""


@dataclass(frozen=True, slots=True)
class Declined:
    """Operations that Inductor wanted to fuse into a kernel, and why they were not."""

    nodes: tuple[str, ...]
    """All operations of the kernel as it would be."""
    reason: str


@dataclass(slots=True)
class Record:
    """What was compiled in one ``considered``; filled while Inductor compiles."""

    kernels: list[Emitted] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{len(self.kernels)} kernels"]
        lines += [f"  {kernel.name}: {' '.join(kernel.nodes)}" for kernel in self.kernels]
        if self.declined:
            lines += ["not fused"]
            lines += [f"  {' '.join(group.nodes)}: {group.reason}" for group in self.declined]
        return "\n".join(lines)
