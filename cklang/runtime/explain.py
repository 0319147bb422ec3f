# SPDX-License-Identifier: MIT
"""What a call would run, and why, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from cklang.build.builder import shared_builder
from cklang.device.arrays import Array
from cklang.device.device import Target, target_of
from cklang.errors import CkUnsupportedError
from cklang.families import family_of
from cklang.families.stage import Stage
from cklang.fusion.explain import explain as explain_plan
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding
from cklang.runtime.planner import Choice, choices_of, memory_of
from cklang.selection.select import AnySelection, Request

__all__ = ["explain", "inspect"]


def explain(
    plan: Plan,
    binding: Binding,
    outs: Sequence[Array] | None,
    device: str | None,
    request: Request,
) -> str:
    """Return the IR, the fusion decisions, each kernel's key and why that algorithm, the device."""
    target = target_of(device)
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, target.spec, request)
    parts = [str(plan.function), explain_plan(plan)]
    parts += [_kernel(index, choice) for index, choice in enumerate(_distinct(choices))]
    if not choices:
        parts.append("the result has no element: nothing is launched")
    parts.append(_device(target))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def inspect(
    plan: Plan,
    binding: Binding,
    outs: Sequence[Array] | None,
    device: str | None,
    request: Request,
) -> str:
    """Return the generated C++ of each kernel with its functions in place."""
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, target_of(device).spec, request)
    builder = shared_builder()
    stages = [
        stage
        for choice in _distinct(choices)
        for stage in (choice.main, *choice.before, *choice.after)
    ]
    return "\n".join(builder.source(stage.key, stage.functions).inline for stage in stages)


def _distinct(choices: Sequence[Choice]) -> list[Choice]:
    """Return the choices without further bands of a result that the same kernel computes."""
    distinct: list[Choice] = []
    keys: set[object] = set()
    for choice in choices:
        if choice.band and choice.main.key in keys:
            continue
        if not choice.band:
            keys.clear()
        keys.add(choice.main.key)
        distinct.append(choice)
    return distinct


def _kernel(index: int, choice: Choice) -> str:
    selection, stage = choice.selection, choice.main
    key = selection.key
    family = family_of(key.signature)
    results = ", ".join(f"%{name}" for name in _results(stage))
    lines = [f"kernel {index} computes {results}: {selection.problem}"]
    lines += [f"  {choice.note}"] if choice.note else []
    lines += [f"  key        {key.digest}", f"  label      {key.label}"]
    if family.algorithm is not None:
        lines.append(f"  algorithm  {family.algorithm_words(key.algorithm)}")
    lines += [f"  because    {selection.reason}", f"  from       {selection.origin}"]
    lines += _candidates(selection)
    for when, stages in (("before", choice.before), ("after", choice.after)):
        for each in stages:
            lines += [f"  {when:9}  {each.problem}", f"             by {each.key}"]
    lines += _terms(selection) if family.algorithm is not None else []
    artifact = shared_builder().find(stage.key, stage.functions)
    if artifact is None:
        lines.append("  built      no")
    else:
        lines.append(f"  built      {artifact.code_object}")
        lines.append(f"  resources  {artifact.resources}")
    return "\n".join(lines)


def _results(stage: Stage) -> list[str]:
    """Return the names of what a stage writes: without its temporaries, unless they are all."""
    return sorted(stage.written - set(stage.temporaries) or stage.written)


def _candidates(selection: AnySelection) -> Iterator[str]:
    """Yield what became of each candidate; how often each rule objected where they are many."""
    family = family_of(selection.key.signature)
    if family.algorithm is not None and family.candidate_words(selection.key.algorithm):
        for key, verdict in selection.pool.account(selection.problem):
            yield f"  candidate  {family.candidate_words(key.algorithm)}: {verdict}"
        return
    reasons = Counter(str(rejection) for rejection in selection.rejections)
    yield from (f"  rejected   {count} x {reason}" for reason, count in reasons.items())


def _terms(selection: AnySelection) -> list[str]:
    """Return what the cost model says of the chosen kernel and of the quickest other legal one.

    Kernels with equal predictions differ in what the model does not see.
    """
    pool, problem = selection.pool, selection.problem
    try:
        times = np.where(pool.legal(problem), pool.times_of(problem), np.inf)
    except CkUnsupportedError:
        return []  # the reason of the choice says why
    same = times == times[selection.position]
    alike = np.count_nonzero(same) - 1
    title = "  predicted by the cost model" + (f" ({alike} others alike)" if alike else "")
    other = int(np.argmin(np.where(same, np.inf, times)))
    places = [selection.position] + ([] if same[other] or np.isinf(times[other]) else [other])
    return [title, *pool.table(places, problem)]


def _device(target: Target) -> str:
    if not target.emulated:
        return f"device: {target}"
    return (
        f"device: {target} ({target.spec.product}): there is no GPU in this run; its instructions "
        "are executed on the CPU"
    )
