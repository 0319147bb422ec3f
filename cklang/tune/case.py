# SPDX-License-Identifier: MIT
"""What is measured, as plain data that another process or machine can make again.

A case is one kernel of one call: the program as IR text, which of its kernels, and how each value
lies in memory. Operands are made where the case is measured, from a seed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cklang.codec import decode, encode
from cklang.errors import error
from cklang.families.attention.plan import AttentionPlan
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention_backward.stages import GradientKind
from cklang.families.conv.problem import AnyProblem, problem_of_kernel
from cklang.families.family import Asked
from cklang.families.gemm.problem import Storage
from cklang.families.layout_copy.plan import arranged
from cklang.fusion.plan import Kernel, epilogue_hash
from cklang.ir.nodes import Function
from cklang.ir.printer import print_function
from cklang.runtime.call_plan import storage_of
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.runtime.planner import AnyPlan
from cklang.tune.attention import AttentionRun, run_of
from cklang.tune.gradient import GradientRun

if TYPE_CHECKING:
    from cklang.runtime.bind import Binding
    from cklang.runtime.op import Op

__all__ = ["AnyCase", "Call", "Case", "calls_of", "cases_of", "problem_text"]

Call = Mapping[str, Any] | Sequence[Any]
"""Names for :func:`packed_arguments`; or the arguments of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kernel of one call."""

    function: str
    """The program for the call's dtypes and constants, as IR text."""
    kernel: int
    """Which of the kernels that fusion makes of it."""
    storage: tuple[Storage, ...]
    """How each input of the kernel lies in memory, and last its result."""
    dims: tuple[tuple[str, int], ...]

    @property
    def fused(self) -> Kernel:
        """The kernel as fusion made it."""
        return _planned(self.function)[self.kernel]

    @property
    def filling(self) -> Function:
        """What fills the kernel's stencil."""
        return self.fused.epilogue

    @property
    def places(self) -> dict[str, Storage]:
        """The storage of each value by its name in the program."""
        kernel = self.fused
        names = (*(value.name for value in kernel.inputs), kernel.result.name)
        return dict(zip(names, self.storage, strict=True))

    @property
    def problem(self) -> AnyProblem:
        """The problem that the kernel is selected and launched for.

        Raises:
            CkValueError: A030-A036, strides; N008, the result has no element.
        """
        kernel = self.fused
        region = epilogue_hash(kernel.epilogue)
        problem = problem_of_kernel(kernel, self.places, dict(self.dims), region)
        if problem is None:
            raise error("N008", name=kernel.name)
        return problem

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        data: dict[str, Any] = encode(self)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Case:
        """Read it back."""
        return decode(Case, dict(data), "case")


@lru_cache(maxsize=64)
def _planned(text: str) -> tuple[Kernel, ...]:
    from cklang.fusion.partition import plan
    from cklang.ir.parser import parse_function

    return plan(parse_function(text)).kernels


AnyCase = Case | AttentionRun | GradientRun
"""What is measured: one launch of products or convolutions, an attention, or its gradients."""


def calls_of(op: Op, call: Call, gradient: GradientKind | None = None) -> tuple[AnyCase, ...]:
    """Return the cases of a call: its kernels whose result has an element, in launch order.

    Args:
        op: What is called.
        call: The extents of its dims, its dtype variables and constants (operands are packed
            then), or its arguments.
        gradient: Which gradients of it instead: :func:`cklang.attention_grad`.

    Raises:
        CkError: What the call raises.
    """
    args = () if isinstance(call, Mapping) else tuple(call)
    kwargs = packed_arguments(op.program.signature, call) if isinstance(call, Mapping) else {}
    if gradient is not None:
        return op.gradient_cases(args, kwargs, gradient)
    return op.cases(*args, **kwargs)


def cases_of(plan: AnyPlan, binding: Binding) -> tuple[AnyCase, ...]:
    """Return the cases of a bound call."""
    if isinstance(plan, AttentionPlan):
        return run_of(plan, binding)
    stored = storage_of(plan, binding, None)
    text = print_function(plan.function)
    cases = []
    for index, kernel in enumerate(plan.kernels):
        names = (*(value.name for value in kernel.inputs), kernel.result.name)
        dims = tuple(binding.dims.items())
        # Copies around a convolution are not part of its kernel.
        places = arranged(kernel, stored).places
        storage = tuple(places[name] for name in names)
        if 0 not in storage[-1].shape:
            cases.append(Case(function=text, kernel=index, storage=storage, dims=dims))
    return tuple(cases)


def problem_text(problem: Asked) -> str:
    """Return all that a problem's cost depends on, as canonical JSON; names are not part of it."""
    data = {"signature": encode(problem.signature), "problem": _nameless(encode(problem))}
    if isinstance(problem, AttentionCase | AttentionGradCase):
        forward = isinstance(problem, AttentionCase)
        attention = data["problem"] if forward else data["problem"]["forward"]
        for names in _NAMES:
            del attention[names]
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_NAMES = ("values", "reads")
"""What an attention's problem says of names and nothing else."""


def _nameless(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _nameless(v) for k, v in data.items() if k != "value" and k[0] != "_"}
    if isinstance(data, list):
        return [_nameless(item) for item in data]
    return data
