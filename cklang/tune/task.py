# SPDX-License-Identifier: MIT
"""What is measured, as plain data that another process or machine can make again.

A task is one kernel of one call: the program as IR text, which of its kernels, and how each value
lies in memory. Operands are made where the task is measured, from a seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from cklang.codec import decode, encode
from cklang.errors import error
from cklang.families import FAMILIES, family_of, plan_of
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.plan import AnyKernel, Plan
from cklang.fusion.unfuse import kernel_program
from cklang.ir.nodes import Function, print_function
from cklang.ops.attention_backward import GradientKind, expect_gradient, gradient_problem
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.runtime.planner import memory_of

if TYPE_CHECKING:
    from cklang.runtime.bind import Binding

Call = Mapping[str, Any] | Sequence[Any]
"""Names for :func:`packed_arguments`; or the arguments of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningTask:
    """One kernel of one call."""

    function: str
    """The program for the call's dtypes and constants, as IR text."""
    kernel: int
    """Which of the kernels that fusion makes of it."""
    layouts: tuple[TensorLayout, ...]
    """How each input of the kernel lies in memory, and then its results."""
    dims: tuple[tuple[str, int], ...]
    splits: int = 1
    """Workgroups that share the keys of a tile of queries."""
    gradient: GradientKind | None = None
    """The gradients of an attention that are measured in its place."""
    launch: int | None = None
    """Which of the launches that the kernel is cut into; None if it is not cut."""

    @property
    def fused(self) -> AnyKernel:
        """The kernel as fusion made it, or as one launch of it computes it."""
        return self._planned_kernel if self.launch is None else self.launched[0]

    @property
    def _planned_kernel(self) -> AnyKernel:
        return _planned(self.function).kernels[self.kernel]

    @property
    def launched(self) -> tuple[Any, Any]:
        """What a launch of a kernel that is cut computes, and for which problem."""
        return next(islice(self._launches(), self.launch or 0, None))

    def _launches(self) -> Iterator[tuple[Any, Any]]:
        kernel = self._planned_kernel
        return FAMILIES[kernel.family].tuning.launches(kernel, self._problem)

    def in_launches(self) -> tuple[TuningTask, ...]:
        """Return a task for each different launch if the kernel is cut, else the task itself."""
        problems = [problem for _, problem in self._launches()]
        if len(problems) == 1:
            return (self,)
        tasks: dict[str, TuningTask] = {}
        for index, problem in enumerate(problems):
            tasks.setdefault(problem_text(problem), replace(self, launch=index))
        return tuple(tasks.values())

    @property
    def program(self) -> Function:
        """What the kernel computes, as a program of its own."""
        return kernel_program(_planned(self.function).function, self._planned_kernel)

    @property
    def places(self) -> dict[str, TensorLayout]:
        """The layout of each value by its name in the program."""
        kernel = self._planned_kernel
        names = (value.name for value in (*kernel.inputs, *kernel.results))
        return dict(zip(names, self.layouts, strict=True))

    @property
    def functions(self) -> Functions:
        """What fills the kernel's stencil."""
        problem = self.problem
        if self.gradient is not None:
            functions: Functions = problem.functions
            return functions
        return family_of(problem.signature).variants.functions(problem, self.fused.functions)

    @property
    def problem(self) -> Any:
        """The problem that the kernel is selected and launched for.

        Raises:
            CkValueError: A030-A036, strides; I045, heads do not fit; N008, the result has no
                element.
        """
        if self.gradient is not None:
            return gradient_problem(
                self._planned_kernel, self.places, dict(self.dims), self.gradient
            )
        return self._problem if self.launch is None else self.launched[1]

    @property
    def forward(self) -> Any:
        """The same of the kernel itself, where its gradients are measured."""
        return self._problem if self.gradient is not None else self.problem

    @property
    def _problem(self) -> Any:
        kernel, dims = self._planned_kernel, dict(self.dims)
        family = FAMILIES[kernel.family]
        problem = family.problem(kernel, self.places, dims)
        if problem is None:
            raise error("N008", name=kernel.name)
        return family.variants.of(problem, self.splits)[0]

    def in_splits(self, count: int) -> TuningTask:
        """Return the same with the keys shared by ``count`` workgroups."""
        return replace(self, splits=count)

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        data: dict[str, Any] = encode(self)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TuningTask:
        """Read it back."""
        return decode(TuningTask, dict(data), "tuning task")


@lru_cache(maxsize=64)
def _planned(text: str) -> Plan:
    from cklang.ir.parser import parse_function

    return plan_of(parse_function(text))


def tasks_of(op: AnyOp, call: Call, gradient: GradientKind | None = None) -> tuple[TuningTask, ...]:
    """Return the tasks of a call: its kernels whose result has an element, in launch order.

    Args:
        op: What is called.
        call: The extents of its dims, its dtype variables and constants (operands are packed
            then), or its arguments.
        gradient: Which gradients of it instead: :func:`cklang.attention_grad`.
    """
    args = () if isinstance(call, Mapping) else tuple(call)
    kwargs = packed_arguments(op.program.signature, call) if isinstance(call, Mapping) else {}
    binding = op._bound(args, kwargs)
    plan = op._planned(binding)
    if gradient is not None:
        expect_gradient(op, binding, gradient)
    return tuple(tasks_of_call(plan, binding, gradient))


def tasks_of_call(
    plan: Plan, binding: Binding, gradient: GradientKind | None = None
) -> Iterator[TuningTask]:
    """Yield the tasks of a bound call."""
    layouts = memory_of(plan, binding, None).layouts
    text = print_function(plan.function)
    for index, kernel in enumerate(plan.kernels):
        # Copies around a kernel are not part of it.
        places = FAMILIES[kernel.family].tuning.own_layouts(kernel, layouts, binding.dims)
        values = (*kernel.inputs, *kernel.results)
        problem = FAMILIES[kernel.family].problem(kernel, layouts, binding.dims)
        if problem is None:
            continue
        if gradient is None and not FAMILIES[kernel.family].tuning.measurable(problem):
            continue
        task = TuningTask(
            function=text,
            kernel=index,
            layouts=tuple(places[value.name] for value in values),
            dims=tuple(binding.dims.items()),
            gradient=gradient,
        )
        if gradient is None:
            yield from task.in_launches()
        elif task.problem.forward.has_scores:
            yield task


def problem_text(problem: Any) -> str:
    """Return all that a problem's cost depends on, as canonical JSON; names are not part of it."""
    facts = family_of(problem.signature).tuning.facts(problem)
    data = {"signature": encode(problem.signature), "problem": _nameless(facts)}
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _nameless(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _nameless(v) for k, v in data.items() if k != "value" and k[0] != "_"}
    if isinstance(data, list):
        return [_nameless(item) for item in data]
    return data
