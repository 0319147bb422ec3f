# SPDX-License-Identifier: MIT
"""Which plan of a program a call takes, where its extents decide: by the predicted times.

The rules of fusion give one plan; :mod:`cklang.fusion.alternatives` names values that it could
store instead of computing them in each kernel that reads them, or the other way round. All are
planned, and another one is taken where the cost models predict that it is clearly quicker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cklang.arch import ArchSpec
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families import alternatives_of, plan_of
from cklang.fusion.alternatives import Alternative, alternative_program
from cklang.fusion.plan import Plan
from cklang.ir.nodes import Function
from cklang.runtime.bind import Binding
from cklang.runtime.planner import choices_of, memory_of
from cklang.runtime.predicted import predicted_time
from cklang.selection.request import Request
from cklang.selection.strategy import Heuristic

GAIN = 0.95
"""Another plan must take at most this fraction of the present one's time: models err by that."""

LEAST = 4.0
"""Microseconds that it must save besides, about two launches: calls that take little more than
their launches keep the plan of the rules."""


def options_of(
    function: Function, plan: Plan, binding: Binding, request: Request
) -> tuple[Alternative, ...]:
    """Return the alternatives of a call; none if somebody named algorithms, or extents are open."""
    if len(plan.kernels) == 1 and not _computes(plan):
        return ()
    is_known = all(type(extent) is int for extent in binding.dims.values())
    options = alternatives_of(function, plan) if is_known and not request.algorithms else ()
    return tuple(option for option in options if _is_worth_it(option, binding.dims))


def quickest_plan(
    function: Function,
    plan: Plan,
    options: Sequence[Alternative],
    binding: Binding,
    spec: ArchSpec,
    request: Request,
) -> Plan:
    """Return the plan that is predicted to be the quickest, with both times of each alternative.

    ``options`` are tried in order, each on top of those taken before.
    """
    request = replace(request, strategy=Heuristic())  # nothing is built or measured for this
    time = _time(plan, binding, spec, request)
    if time is None:
        return plan
    taken: tuple[Alternative, ...] = ()
    notes: list[str] = []
    for option in options:
        candidate = _plan(function, (*taken, option))
        other = None if candidate is None else _time(candidate, binding, spec, request)
        if other is None or candidate is None:
            continue
        takes = other < min(time * GAIN, time - LEAST)
        notes.append(_note(option, time, other, takes=takes))
        if takes:
            plan, time, taken = candidate, other, (*taken, option)
    return replace(plan, notes=(*plan.notes, *notes))


def _is_worth_it(option: Alternative, dims: Mapping[str, int]) -> bool:
    if option.below is None:
        return True
    own, other = (
        value.type.extents(dims)[-1] * value.type.dtype.bits
        for value in (option.value, option.below)
    )
    return own < other


def _computes(plan: Plan) -> bool:
    """Tell whether the kernel of a plan computes operands as it loads them."""
    return any("prologue" in hole for kernel in plan.kernels for hole in kernel.functions)


def _plan(function: Function, options: Sequence[Alternative]) -> Plan | None:
    """Return the plan of a program with these alternatives; None if no kernels compute that."""
    try:
        return plan_of(alternative_program(function, options))
    except CkUnsupportedError:
        return None


def _time(plan: Plan, binding: Binding, spec: ArchSpec, request: Request) -> float | None:
    """Return the predicted time of a call; None if no kernel serves it, which the call says."""
    try:
        memory = memory_of(plan, binding, None)
        return predicted_time(choices_of(plan, binding, memory, spec, request), memory, spec)
    except (CkUnsupportedError, CkValueError):
        return None


def _note(option: Alternative, time: float, other: float, *, takes: bool) -> str:
    """Return both times and the choice as a sentence."""
    once, again = (other, time) if option.once else (time, other)
    verdict = "it is stored" if takes == option.once else "it is not"
    return (
        f"{option.value}: {once:.1f} µs predicted if a kernel stores it for its readers, "
        f"{again:.1f} µs if none does: {verdict}"
    )
