# SPDX-License-Identifier: MIT
"""What a call launches, in numbers: kernels, bytes, predicted time."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from cklang.arch import ArchSpec
from cklang.charts import stacked_bars
from cklang.device.arrays import Array
from cklang.device.device import Target
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding
from cklang.runtime.planner import CallMemory, Choice, choices_of, memory_of
from cklang.runtime.predicted import layout_bytes, moved_bytes, time_of_choice, touched_bytes
from cklang.runtime.workspace import byte_size
from cklang.selection.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSummary:
    """One kernel of a call, with the copies around it."""

    family: str
    problem: str
    launches: int
    bytes: int
    """Bytes that the launches read and write, each tensor counted once a launch."""
    microseconds: float | None
    """Predicted by the cost model of its family, with the copies around it and what computing the
    user's functions adds; None if the model has no rate for the element types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a call launches: ``op.summary``."""

    kernels: tuple[KernelSummary, ...]
    gpu: str
    """The product that the times are predicted for."""
    least_bytes: int
    """Bytes of the arguments that are read and of the results, each counted once."""
    partition_bytes: int
    """Bytes of what the kernels compute from and compute, each value once a kernel; copies and
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
        times = [kernel.microseconds for kernel in self.kernels if kernel.microseconds is not None]
        return sum(times) if len(times) == len(self.kernels) else None

    def __str__(self) -> str:
        rows = [
            (
                kernel.family,
                str(kernel.launches),
                byte_size(kernel.bytes),
                _time(kernel.microseconds),
            )
            for kernel in self.kernels
        ]
        head = ("kernel", "launches", "bytes", "predicted")
        total = ("all", str(self.launches), byte_size(self.bytes), _time(self.microseconds))
        table = [head, *rows, total]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        texts = ["", *(kernel.problem for kernel in self.kernels), self._ratio()]
        lines = []
        for row, text in zip(table, texts, strict=True):
            first, *others = row
            cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([f"{first:{widths[0]}}", *cells, text]).rstrip())
        return "\n".join(lines)

    def _repr_svg_(self) -> str | None:
        """Draw a bar for the predicted time of each kernel."""
        known = [kernel for kernel in self.kernels if kernel.microseconds is not None]
        rows = [
            (f"{number}: {stage.family}", {stage.family: stage.microseconds or 0.0})
            for number, stage in enumerate(known)
        ]
        return stacked_bars(f"Predicted on {self.gpu}", rows) if rows else None

    def _repr_html_(self) -> str:
        return f"{self._repr_svg_() or ''}<pre>{escape(str(self))}</pre>"

    def _ratio(self) -> str:
        ratio = self.bytes / self.least_bytes if self.least_bytes else 1.0
        return f"on {self.gpu}; {ratio:.2f} times the arguments and results"


def summarise(
    plan: Plan, binding: Binding, outs: Sequence[Array] | None, target: Target, request: Request
) -> Summary:
    """Return what a bound call launches on a GPU."""
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, target.spec, request)
    layouts, views = memory.layouts, memory.views
    values = {name for choice in choices for stage in choice.stages for name in stage.values}
    # Whoever reads or writes a view moves bytes of the memory in which it lies.
    values |= {views[name].memory for name in values if name in views}
    own = {*binding.arrays, *(value.name for value in plan.function.results)}
    return Summary(
        kernels=tuple(_kernel(choice, memory, target.spec) for choice in choices),
        gpu=target.spec.product,
        partition_bytes=sum(
            touched_bytes(name, memory)
            for kernel in plan.kernels
            for name in {value.name for value in (*kernel.inputs, *kernel.results)}
        ),
        least_bytes=sum(layout_bytes(layouts[name]) for name in values & own),
    )


def _kernel(choice: Choice, memory: CallMemory, spec: ArchSpec) -> KernelSummary:
    return KernelSummary(
        family=choice.selection.key.family,
        problem=str(choice.selection.problem),
        launches=len(choice.stages),
        bytes=sum(moved_bytes(stage, memory) for stage in choice.stages),
        microseconds=time_of_choice(choice, memory, spec),
    )


def _time(microseconds: float | None) -> str:
    return "unknown" if microseconds is None else f"{microseconds:.1f} µs"
