# SPDX-License-Identifier: MIT
"""What the launches of a call move and take, as the cost models predict."""

from collections.abc import Sequence

import numpy as np

from cklang.arch import ArchSpec
from cklang.families import family_of
from cklang.families.memory_cost import memory_time
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.runtime.planner import CallMemory, Choice


def predicted_time(choices: Sequence[Choice], memory: CallMemory, spec: ArchSpec) -> float | None:
    """Return the time of all launches in µs; None if that of one is not known."""
    times = [time_of_choice(choice, memory, spec) for choice in choices]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def time_of_choice(choice: Choice, memory: CallMemory, spec: ArchSpec) -> float | None:
    """Return the time of a kernel in µs, with its functions and the copies around it.

    None if its cost model has no rate for the element types.
    """
    selection = choice.selection
    family = family_of(selection.key.signature)
    own = selection.predicted
    if own is None:
        return None
    own += family.function_time(selection.problem, selection.key, choice.main.functions, spec)
    others = (*choice.before, *choice.after)
    return own + sum(memory_time(moved_bytes(stage, memory), spec) for stage in others)


def moved_bytes(stage: Stage, memory: CallMemory) -> int:
    """Return the bytes of the tensors of a launch, each counted once."""
    sizes = {name: touched_bytes(name, memory) for name in stage.values if name in memory.layouts}
    return sum({**sizes, **stage.temporaries}.values())


def touched_bytes(name: str, memory: CallMemory) -> int:
    """Return the bytes of a tensor; of a view no more than the memory has in which it lies."""
    size = layout_bytes(memory.layouts[name])
    view = memory.views.get(name)
    if view is None or view.memory not in memory.layouts:
        return size
    return min(size, layout_bytes(memory.layouts[view.memory]))


def layout_bytes(layout: TensorLayout) -> int:
    """Return the bytes of a tensor; an axis of stride 0 repeats what is there."""
    extents = zip(layout.shape, layout.strides, strict=True)
    elements = int(np.prod([extent if stride else min(extent, 1) for extent, stride in extents]))
    return elements * layout.dtype.bits // 8
