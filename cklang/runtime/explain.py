# SPDX-License-Identifier: MIT
"""What a call would run, and why, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from cklang.build.builder import shared_builder
from cklang.build.schedules import INLINED, OVERLAPPED, SCHEDULES
from cklang.charts import stacked_bars
from cklang.device.arrays import Array
from cklang.device.device import Target, target_of
from cklang.errors import CkUnsupportedError
from cklang.families import family_of
from cklang.families.stage import Stage
from cklang.fusion.explain import explain as explain_plan
from cklang.fusion.plan import Plan
from cklang.runtime.bind import Binding
from cklang.runtime.planner import Choice, choices_of, memory_of
from cklang.selection.request import Request
from cklang.selection.select import AnySelection

Bar = tuple[str, Mapping[str, float]]
"""A kernel, and the terms of its predicted time in µs."""


class Explanation(str):
    """What ``op.explain`` returns: text, which a notebook shows below a chart of predicted times.

    The chart has a bar for each kernel of the call, made of the terms of the cost model, and one
    for the quickest other kernel that would be legal.
    """

    __slots__ = ("bars", "heading")
    bars: tuple[Bar, ...]
    heading: str

    def __new__(cls, text: str, heading: str = "", bars: tuple[Bar, ...] = ()) -> Explanation:
        """Return the text with a heading and the bars of its chart."""
        self = super().__new__(cls, text)
        self.heading, self.bars = heading, bars
        return self

    def __reduce__(self) -> tuple[type[Explanation], tuple[str, str, tuple[Bar, ...]]]:
        return type(self), (str(self), self.heading, self.bars)

    def _repr_svg_(self) -> str | None:
        return stacked_bars(self.heading, self.bars) if self.bars else None

    def _repr_html_(self) -> str:
        return f"{self._repr_svg_() or ''}<pre>{escape(self)}</pre>"


def explain(
    plan: Plan, binding: Binding, outs: Sequence[Array] | None, device: str | None, request: Request
) -> Explanation:
    """Return the IR, the fusion decisions, each kernel's key and why that algorithm, the device."""
    target = target_of(device)
    memory = memory_of(plan, binding, outs)
    choices = choices_of(plan, binding, memory, target.spec, request)
    parts = [str(plan.function), explain_plan(plan)]
    parts += [_kernel(index, choice) for index, choice in enumerate(_distinct(choices))]
    if not choices:
        parts.append("the result has no element: nothing is launched")
    parts.append(_device(target))
    text = "\n\n".join(part.rstrip() for part in parts) + "\n"
    bars = [bar for index, choice in enumerate(_distinct(choices)) for bar in _bars(index, choice)]
    return Explanation(text, f"{plan.function.name} on {target.spec.product}", tuple(bars))


def inspect(
    plan: Plan, binding: Binding, outs: Sequence[Array] | None, device: str | None, request: Request
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
        for planned in stages:
            lines += [f"  {when:9}  {planned.problem}", f"             by {planned.key}"]
    lines += _terms(selection) if family.algorithm is not None else []
    artifact = shared_builder().find(stage.key, stage.functions)
    if artifact is None:
        lines.append("  built      no")
    else:
        lines.append(f"  built      {artifact.code_object}")
        lines.append(f"  resources  {artifact.resources}")
        why = {schedule.name: schedule.why for schedule in (*SCHEDULES, OVERLAPPED, INLINED)}.get(
            artifact.schedule
        )
        lines += [f"  scheduled  {artifact.schedule}{why}"] if why else []
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
    places, alike = _compared(selection)
    if not places:
        return []  # the reason of the choice says why
    title = "  predicted by the cost model" + (f" ({alike} others alike)" if alike else "")
    return [title, *selection.pool.table(places, selection.problem)]


def _compared(selection: AnySelection) -> tuple[list[int], int]:
    """Return the places in the pool of the chosen kernel and of the quickest other legal one.

    And how many others have the prediction of the chosen one. No place if the model has no rates.
    """
    pool, problem = selection.pool, selection.problem
    try:
        times = np.where(pool.legal(problem), pool.times_of(problem), np.inf)
    except CkUnsupportedError:
        return [], 0
    same = times == times[selection.position]
    other = int(np.argmin(np.where(same, np.inf, times)))
    places = [selection.position] + ([] if same[other] or np.isinf(times[other]) else [other])
    return places, int(np.count_nonzero(same)) - 1


def _bars(index: int, choice: Choice) -> Iterator[Bar]:
    """Yield the terms of a kernel and of the quickest other one, where the model knows them."""
    selection = choice.selection
    if family_of(selection.key.signature).algorithm is None:
        return
    for name, place in zip(("", ", runner-up"), _compared(selection)[0], strict=False):
        terms = selection.pool.terms(place, selection.problem)
        yield f"kernel {index}, {selection.key.family}{name}", dict(terms)


def _device(target: Target) -> str:
    if not target.emulated:
        return f"device: {target}"
    return (
        f"device: {target} ({target.spec.product}): there is no GPU in this run; its instructions "
        "are executed on the CPU"
    )
