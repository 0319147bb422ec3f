# SPDX-License-Identifier: MIT
"""What was called, as frozen data for ``op.last``, ``explain`` and the CLI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.display import ShownAsText

if TYPE_CHECKING:
    from cklang.device.artifact import Artifact
    from cklang.device.resources import Resources
    from cklang.keys import AnyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """One launch of a call."""

    artifact: Artifact
    purpose: Callable[[], object]
    """Gives what it was launched for."""
    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""
    awaited: AnyKey | None = None
    """The better kernel that the strategy ``tiered`` was building; None if this is it."""

    @property
    def problem(self) -> object:
        """What it was launched for."""
        return self.purpose()

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
        other = () if self.awaited is None else (f"instead of   {self.awaited}, being built",)
        return "\n".join(
            [
                f"kernel       {artifact.key}",
                *other,
                f"generated    {artifact.source}",
                f"code object  {artifact.code_object}",
                f"build        {built}",
                f"launch       grid {grid} workgroups of {block} threads",
                f"resources    {self.resources}",
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord(ShownAsText):
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
    workspace_bytes: int
    """Device memory for what stands between its launches, shared by what does not live together."""
    ms: float | None = None
    """Milliseconds of its launches where ``CKLANG_TIMING=1`` asks: by events on a GPU, by the clock
    (``docs/clock.md``) on an emulated one. None otherwise, and for a call inside of a profile."""

    def __str__(self) -> str:
        memoised = ", plan memoised" if self.memoised else ""
        lines = [f"device       {self.device}{memoised}", *map(str, self.launches)]
        if self.workspace_bytes:
            lines.append(f"workspace    {self.workspace_bytes} bytes")
        if self.instructions is not None and self.engine_ns is not None:
            lines.append(f"executed     {self.instructions} wave instructions")
            lines.append(f"engine time  {self.engine_ns / 1e6:.2f} ms")
        if self.ms is not None:
            by = "by the clock" if self.emulated else "by events"
            lines.append(f"launches     {self.ms:.4g} ms {by}")
        return "\n".join(lines)

    @property
    def cached(self) -> bool:
        """Whether every kernel was found in the cache when its plan was made."""
        return all(launch.artifact.cached for launch in self.launches)
