# SPDX-License-Identifier: MIT
"""One door to the families: what a plan of fusion needs to be chosen and launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec, arch
from cklang.errors import error
from cklang.fusion.attention_plan import AttentionPlan
from cklang.fusion.plan import FusionPlan
from cklang.runtime import dispatch
from cklang.runtime.arrays import Array
from cklang.runtime.attention.call import AttentionChoice, choose_attention, prepare_attention
from cklang.runtime.bind import Binding
from cklang.runtime.device import Device
from cklang.runtime.dispatch import CallPlan, Choice
from cklang.runtime.select import Request

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cklang.runtime.build import Builder, Wanted
    from cklang.runtime.record import Artifact

__all__ = [
    "AnyChoice",
    "AnyPlan",
    "build_choices",
    "choices_of",
    "copies",
    "gemms",
    "prepare",
    "wanted",
]

AnyPlan = FusionPlan | AttentionPlan
AnyChoice = Choice | AttentionChoice


def choices_of(
    plan: AnyPlan,
    binding: Binding,
    outs: Sequence[Array] | None,
    spec: ArchSpec,
    request: Request,
) -> Sequence[AnyChoice]:
    """Return a problem and an algorithm for each kernel whose result has an element.

    Raises:
        CkError: As :func:`cklang.runtime.dispatch.choose` and
            :func:`cklang.runtime.attention.call.choose_attention`.
    """
    if isinstance(plan, AttentionPlan):
        return choose_attention(plan, binding, outs, spec, request)
    return dispatch.choose(plan, binding, None if outs is None else outs[0], spec, request)


def prepare(
    plan: AnyPlan,
    binding: Binding,
    outs: Sequence[Array],
    device: Device,
    builder: Builder,
    request: Request,
) -> CallPlan:
    """Return the launches of a call, with every kernel built and loaded."""
    if isinstance(plan, AttentionPlan):
        return prepare_attention(plan, binding, outs, device, builder, request)
    return dispatch.prepare(plan, binding, outs[0], device, builder, request)


def wanted(choice: AnyChoice) -> Wanted:
    """Return what the builder needs to build the kernel of a choice."""
    if isinstance(choice, AttentionChoice):
        return choice.selection.key, choice.filling
    return choice.selection.key, choice.kernel.epilogue


def copies(choice: AnyChoice, spec: ArchSpec) -> list[Wanted]:
    """Return what the builder needs to build the kernels that copy around that of a choice."""
    if isinstance(choice, AttentionChoice):
        return []
    return [(copy.key(spec), None) for copy in (*choice.before, *choice.after)]


def build_choices(choices: Sequence[AnyChoice], executor: Executor | None) -> tuple[Artifact, ...]:
    """Build the kernels of choices.

    Args:
        choices: Of one call.
        executor: Builds instead of this machine's compilers, for other families than attention.

    Raises:
        CkBuildError: B rows, a compiler failed.
        CkUnsupportedError: G005, an executor and an attention.
    """
    from cklang.runtime.build import shared_builder
    from cklang.runtime.parallel import built
    from cklang.runtime.registry import Kernel

    products = [choice for choice in choices if not isinstance(choice, AttentionChoice)]
    if len(products) < len(choices):
        if executor is not None:
            raise error("G005", what="executor", name=choices[0].kernel.name)
        return tuple(shared_builder().build_all([wanted(choice) for choice in choices]))
    kernels = [Kernel(key=c.selection.key, epilogue=c.kernel.epilogue) for c in products]
    around = [each for c in products for each in copies(c, arch(c.selection.key.arch))]
    return (*built(kernels, executor), *shared_builder().build_all(around))


def gemms(plan: AnyPlan, what: str) -> FusionPlan:
    """Return a plan of matrix products, which alone can be asked for ``what``.

    Raises:
        CkUnsupportedError: G005, it is another family.
    """
    if isinstance(plan, AttentionPlan):
        raise error("G005", what=what, name=plan.function.name)
    return plan
