# SPDX-License-Identifier: MIT
"""What a call launches, in numbers: kernels, bytes, predicted time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cklang.device.arrays import Array
from cklang.device.device import Target
from cklang.errors import CkUnsupportedError
from cklang.families import family_of
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding
from cklang.runtime.planner import CallMemory, Choice, choices_of, memory_of
from cklang.runtime.workspace import byte_size
from cklang.selection.select import AnySelection, Request

__all__ = ["KernelSummary", "Summary", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSummary:
    """One kernel of a call, with the copies around it."""

    family: str
    problem: str
    launches: int
    bytes: int
    """Of all that its launches read and write, each tensor counted once a launch."""
    microseconds: float | None
    """Predicted by the cost model of its family, without the copies; None if it has no rate for the
    element types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a call launches: ``op.summary``."""

    kernels: tuple[KernelSummary, ...]
    gpu: str
    """The product that the times are predicted for."""
    least_bytes: int
    """Of the arguments that something reads and of the results, each counted once."""
    partition_bytes: int
    """Of what the kernels compute from and what they compute, each value once a kernel: copies and
    workspaces come on top in :attr:`bytes`."""

    @property
    def launches(self) -> int:
        """How many kernels are launched."""
        return sum(kernel.launches for kernel in self.kernels)

    @property
    def bytes(self) -> int:
        """What all kernels read and write, if each reads its operands once."""
        return sum(kernel.bytes for kernel in self.kernels)

    @property
    def microseconds(self) -> float | None:
        """The predicted time of all kernels; None if that of one is not known."""
        times = [each.microseconds for each in self.kernels if each.microseconds is not None]
        return sum(times) if len(times) == len(self.kernels) else None

    def __str__(self) -> str:
        rows = [
            (each.family, str(each.launches), byte_size(each.bytes), _time(each.microseconds))
            for each in self.kernels
        ]
        head = ("kernel", "launches", "bytes", "predicted")
        total = ("all", str(self.launches), byte_size(self.bytes), _time(self.microseconds))
        table = [head, *rows, total]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        texts = ["", *(each.problem for each in self.kernels), self._ratio()]
        lines = []
        for row, text in zip(table, texts, strict=True):
            first, *others = row
            cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([f"{first:{widths[0]}}", *cells, text]).rstrip())
        return "\n".join(lines)

    def _ratio(self) -> str:
        ratio = self.bytes / self.least_bytes if self.least_bytes else 1.0
        return f"on {self.gpu}; {ratio:.2f} times the arguments and results"


def summarise(
    plan: Plan,
    binding: Binding,
    outs: Sequence[Array] | None,
    target: Target,
    request: Request,
) -> Summary:
    """Return what a bound call launches on a GPU.

    Raises:
        CkError: What planning the call raises.
    """
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, target.spec, request)
    layouts, views = memory.layouts, memory.views
    values = {name for choice in choices for stage in choice.stages for name in stage.values}
    # Whoever reads or writes a view moves bytes of the memory in which it lies.
    values |= {views[name].memory for name in values if name in views}
    own = {*binding.arrays, *(value.name for value in plan.function.results)}
    return Summary(
        kernels=tuple(_kernel(choice, memory) for choice in choices),
        gpu=target.spec.product,
        partition_bytes=sum(
            _touched(name, memory)
            for kernel in plan.kernels
            for name in {value.name for value in (*kernel.inputs, *kernel.results)}
        ),
        least_bytes=sum(_bytes(layouts[name]) for name in values & own),
    )


def _kernel(choice: Choice, memory: CallMemory) -> KernelSummary:
    return KernelSummary(
        family=choice.selection.key.family,
        problem=str(choice.selection.problem),
        launches=len(choice.stages),
        bytes=sum(_moved(stage, memory) for stage in choice.stages),
        microseconds=_predicted(choice.selection),
    )


def _moved(stage: Stage, memory: CallMemory) -> int:
    """Return the bytes of the tensors of a launch."""
    sizes = {name: _touched(name, memory) for name in stage.values if name in memory.layouts}
    return sum({**sizes, **stage.temporaries}.values())


def _touched(name: str, memory: CallMemory) -> int:
    """Return the bytes of a tensor; of a view no more than the memory has in which it lies."""
    size = _bytes(memory.layouts[name])
    view = memory.views.get(name)
    if view is None or view.memory not in memory.layouts:
        return size
    return min(size, _bytes(memory.layouts[view.memory]))


def _bytes(layout: TensorLayout) -> int:
    """Return the bytes of a tensor; an axis of stride 0 repeats what is there."""
    extents = zip(layout.shape, layout.strides, strict=True)
    elements = int(np.prod([extent if stride else min(extent, 1) for extent, stride in extents]))
    return elements * layout.dtype.bits // 8


def _predicted(selection: AnySelection) -> float | None:
    if family_of(selection.key.signature).algorithm is None:
        return None
    try:
        return float(selection.pool.times_of(selection.problem)[selection.position])
    except CkUnsupportedError:
        return None


def _time(microseconds: float | None) -> str:
    return "unknown" if microseconds is None else f"{microseconds:.1f} µs"
