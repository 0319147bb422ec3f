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
from cklang.runtime.family import NOTHING, ChosenKey, signature_of
from cklang.runtime.select import Request

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cklang.runtime.build import Builder, Wanted
    from cklang.runtime.record import Artifact
    from cklang.runtime.registry import Registry
    from cklang.runtime.space import Pattern

__all__ = [
    "AnyChoice",
    "AnyPlan",
    "build_choices",
    "choices_of",
    "copies",
    "declare",
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
    return [(copy.key(spec), NOTHING) for copy in (*choice.before, *choice.after)]


def build_choices(choices: Sequence[AnyChoice], executor: Executor | None) -> tuple[Artifact, ...]:
    """Build the kernels of choices.

    Args:
        choices: Of one call.
        executor: Builds instead of this machine's compilers.

    Raises:
        CkBuildError: B rows, a compiler failed.
    """
    from cklang.runtime.parallel import built
    from cklang.runtime.registry import Kernel

    kernels = [Kernel(key=key, filling=filling) for key, filling in map(wanted, choices)]
    around = [each for c in choices for each in copies(c, arch(c.selection.key.arch))]
    kernels += [Kernel(key=key, filling=filling) for key, filling in around]
    return built(kernels, executor)


def declare(
    registry: Registry, choice: AnyChoice, among: Pattern | str | None, priority: int
) -> int:
    """Declare kernels for one launch of a call and its copies, and return how many are new.

    Raises:
        CkValueError: As :meth:`cklang.Registry.declare`.
    """
    key, filling = wanted(choice)
    new = sum(registry.add(*copy, priority=priority) for copy in copies(choice, arch(key.arch)))
    if not isinstance(key, ChosenKey):
        return new + registry.add(key, filling, priority=priority)
    signature = signature_of(key)
    return new + registry.declare(signature, filling, key.arch, among, priority=priority)


def gemms(plan: AnyPlan, what: str) -> FusionPlan:
    """Return a plan of matrix products, which alone can be asked for ``what``.

    Raises:
        CkUnsupportedError: G005, it is another family.
    """
    if isinstance(plan, AttentionPlan):
        raise error("G005", what=what, name=plan.function.name)
    return plan
