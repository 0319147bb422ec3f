# SPDX-License-Identifier: MIT
"""One door to the families: what a plan of fusion needs to be chosen and launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec, arch
from cklang.device.arrays import Array
from cklang.device.device import Device
from cklang.errors import error
from cklang.families.attention.call import AttentionChoice, choose_attention, prepare_attention
from cklang.families.attention.plan import AttentionPlan
from cklang.families.family import NOTHING, ChosenKey, signature_of
from cklang.fusion.plan import FusionPlan
from cklang.runtime import call_plan
from cklang.runtime.bind import Binding
from cklang.runtime.call_plan import CallPlan, Choice
from cklang.selection.select import Request

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cklang.build.builder import Builder, Wanted
    from cklang.build.record import Artifact
    from cklang.selection.registry import Registry
    from cklang.selection.space import Pattern

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
        CkError: As :func:`cklang.runtime.call_plan.choose` and
            :func:`cklang.families.attention.call.choose_attention`.
    """
    if isinstance(plan, AttentionPlan):
        return choose_attention(plan, binding, outs, spec, request)
    return call_plan.choose(plan, binding, None if outs is None else outs[0], spec, request)


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
    return call_plan.prepare(plan, binding, outs[0], device, builder, request)


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
    from cklang.build.parallel import built
    from cklang.selection.registry import Kernel

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
