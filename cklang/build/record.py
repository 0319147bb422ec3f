# SPDX-License-Identifier: MIT
"""What was built and what was called, as frozen data for ``op.last``, ``explain`` and the CLI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cklang.attention_keys import AnyKey
from cklang.errors import error
from cklang.families.attention.problem import AttentionCase
from cklang.families.conv.problem import AnyProblem
from cklang.families.layout_copy.plan import Transposition
from cklang.keys import KernelKey

__all__ = ["Artifact", "CallRecord", "LaunchRecord", "Resources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a kernel takes of the GPU, as its code object says."""

    vgprs: int
    """Vector registers a lane: the unified count on GPUs where AGPRs are part of it."""
    agprs: int
    sgprs: int
    lds_bytes: int
    """Static LDS of one workgroup."""
    scratch_bytes: int
    """Private memory of one lane."""
    vgpr_spills: int
    sgpr_spills: int
    kernarg_bytes: int

    @property
    def spills(self) -> int:
        """Registers of both kinds that live in memory."""
        return self.vgpr_spills + self.sgpr_spills

    def __str__(self) -> str:
        return (
            f"{self.vgprs} VGPRs ({self.agprs} of them AGPRs), {self.sgprs} SGPRs, "
            f"{self.lds_bytes} B LDS, {self.spills} spills"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A kernel that is built: its code object and its host face on disk."""

    key: AnyKey
    folder: Path
    code_object: Path
    host_face: Path
    source: Path
    """The generated C++ with the fill in place, for reading."""
    symbol: str
    resources: Resources
    seconds: float
    """How long the steps took that were not in the cache; 0.0 if all were."""
    cached: bool
    steps: Mapping[str, Any]
    """Seconds of each step (``stencil``, ``host``, ``fill``), and whether it was cached."""

    @property
    def gemm(self) -> KernelKey:
        """The key of a kernel that computes matrix products.

        Raises:
            CkInternalError: Z002, it computes something else.
        """
        if not isinstance(self.key, KernelKey):
            raise error("Z002", what=f"{self.key.label} is taken for a matrix product")
        return self.key

    def at(self, folder: Path) -> Artifact:
        """Return the same kernel with its files in another folder."""
        moved = {
            name: folder / getattr(self, name).relative_to(self.folder)
            for name in ("code_object", "host_face", "source")
        }
        return replace(self, folder=folder, **moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """One launch of a call."""

    artifact: Artifact
    problem: AnyProblem | AttentionCase | Transposition | str
    """What it was launched for; of kernels that only move data, in words."""
    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""

    @property
    def key(self) -> AnyKey:
        """The key of the kernel that ran."""
        return self.artifact.key

    @property
    def resources(self) -> Resources:
        """What the kernel takes of the GPU."""
        return self.artifact.resources

    def __str__(self) -> str:
        artifact = self.artifact
        steps = ", ".join(
            f"{name} from the cache" if step["cached"] else f"{name} {step['seconds']:.2f} s"
            for name, step in artifact.steps.items()
        )
        grid, block = ("x".join(map(str, extents)) for extents in (self.grid, self.block))
        built = "from the cache" if artifact.cached else f"{artifact.seconds:.2f} s ({steps})"
        return "\n".join(
            [
                f"kernel       {artifact.key}",
                f"generated    {artifact.source}",
                f"code object  {artifact.code_object}",
                f"build        {built}",
                f"launch       grid {grid} workgroups of {block} threads",
                f"resources    {self.resources}",
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """The last call of an op."""

    op: str
    device: str
    """As people read it: ``emulated gfx942``."""
    emulated: bool
    launches: tuple[LaunchRecord, ...]
    """Empty when the result had no element."""
    instructions: int | None
    """Wave instructions that the emulator executed for this call.

    None on a real GPU, for a call that launched nothing or did not wait for its launches (its
    arrays are a GPU's), and when another call has run on the device since: read the record before
    the next call.
    """
    engine_ns: int | None
    """Time the emulator spent executing them, in nanoseconds; None as above."""
    memoised: bool
    """Whether the call went straight from its arguments to the launch."""

    def __str__(self) -> str:
        memoised = ", plan memoised" if self.memoised else ""
        lines = [f"device       {self.device}{memoised}", *map(str, self.launches)]
        if self.instructions is not None and self.engine_ns is not None:
            lines.append(f"executed     {self.instructions} wave instructions")
            lines.append(f"engine time  {self.engine_ns / 1e6:.2f} ms")
        return "\n".join(lines)

    @property
    def cached(self) -> bool:
        """Whether every kernel was found in the cache when its plan was made."""
        return all(launch.artifact.cached for launch in self.launches)
