# SPDX-License-Identifier: MIT
"""One kernel of a plan that is made by hand: what it is asked, and its launch.

A stage asks its host face with a *mark* for each address; where the marks stand in the kernel's
argument, the addresses of the call are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cklang.attention_keys import AnyAttentionKey
from cklang.build.record import Artifact, LaunchRecord
from cklang.device.constants import Cell
from cklang.device.device import Device
from cklang.device.host_shim import Face, LaunchShape
from cklang.device.module_cache import resident
from cklang.errors import error
from cklang.families.attention.problem import AttentionCase
from cklang.families.gemm.launch import mark, words_of
from cklang.runtime.call_plan import Step

__all__ = ["Stage", "Values", "launch_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One kernel: its key, and what its host face is asked, with an address for each value."""

    key: AnyAttentionKey
    face: type[Face[Any]]
    values: tuple[str, ...]
    question: Callable[[Mapping[str, int]], Any]
    zeroed: str = ""
    """A value that must be 0 before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Where the values of a plan are."""

    slots: Mapping[str, int]
    """The place of each value's address among those of a call."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The bytes of the values that a stage may need zeroed."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """The addresses of values that are the same in each call."""
    constants: tuple[Cell, ...] = ()
    """Those that are constants, which live as long as the launch."""


def launch_step(
    stage: Stage, artifact: Artifact, device: Device, values: Values, case: AttentionCase | str
) -> Step:
    """Return the launch of a stage, its kernel loaded.

    Args:
        stage: What is launched.
        artifact: Its kernel.
        device: Where.
        values: Where its values are.
        case: What records and errors say that it is launched for.

    Raises:
        CkUnsupportedError: D007, the kernel's own check refuses the problem.
        CkInternalError: D008, the address of a value is in no argument.
    """
    label = stage.key.label
    marks = {name: mark(place) for place, name in enumerate(dict.fromkeys(stage.values))}
    kernel = resident(device, artifact, stage.face)
    shape: LaunchShape | str = kernel.face.describe(stage.question(marks))
    if isinstance(shape, str):
        raise error("D007", label=label, problem=case, verdict=shape)
    launch = device.launch(kernel.function, shape.grid, shape.block, shape.kernarg)
    patches = []
    for place, (name, marked) in enumerate(marks.items()):
        for word in words_of(shape.kernarg, marked, label, place):
            if name in values.fixed:
                launch.words[word] = values.fixed[name]
            else:
                patches.append((word, values.slots[name]))
    return Step(
        launch=launch,
        patches=tuple(patches),
        record=LaunchRecord(artifact=artifact, problem=case, grid=shape.grid, block=shape.block),
        workspace=values.slots[stage.zeroed] if stage.zeroed else 0,
        zeroed=values.sizes[stage.zeroed] if stage.zeroed else 0,
        constants=values.constants,
    )
