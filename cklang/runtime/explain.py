# SPDX-License-Identifier: MIT
"""What a call would run, and why, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.device.arrays import Array
from cklang.device.device import Target, target_of
from cklang.errors import CkUnsupportedError
from cklang.families.attention.call import AttentionChoice, choice_lines
from cklang.families.attention.select import Combination
from cklang.keys import Algorithm, ConvSpecial, Reduction
from cklang.runtime.bind import Binding
from cklang.runtime.call_plan import Choice
from cklang.runtime.planner import AnyChoice, AnyPlan, choices_of, copies, wanted
from cklang.selection.select import AnySelection, Request

__all__ = ["explain", "inspect"]


def explain(
    plan: AnyPlan,
    binding: Binding,
    outs: Sequence[Array] | None,
    device: str | None,
    request: Request,
) -> str:
    """Return the IR, the fusion decisions, each kernel's key and why that algorithm, the device."""
    target = target_of(device)
    choices = choices_of(plan, binding, outs, target.spec, request)
    parts = [str(plan.function), plan.explain()]
    parts += [_kernel(index, choice) for index, choice in enumerate(_distinct(choices))]
    if not choices:
        parts.append("the result has no element: nothing is launched")
    parts.append(_device(target))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def inspect(
    plan: AnyPlan,
    binding: Binding,
    outs: Sequence[Array] | None,
    device: str | None,
    request: Request,
) -> str:
    """Return the generated C++ of each kernel with its functions in place."""
    choices = choices_of(plan, binding, outs, target_of(device).spec, request)
    builder = shared_builder()
    spec = target_of(device).spec
    work = [
        each for choice in _distinct(choices) for each in (wanted(choice), *copies(choice, spec))
    ]
    return "\n".join(builder.source(*each).inline for each in work)


def _distinct(choices: Sequence[AnyChoice]) -> list[AnyChoice]:
    """Return the choices without bands whose kernel a band of the same product before has."""
    distinct: dict[Any, AnyChoice] = {}
    for index, choice in enumerate(choices):
        banded = isinstance(choice, Choice) and choice.band.count > 1
        place = (choice.selection.key, id(choice.kernel)) if banded else index
        distinct.setdefault(place, choice)
    return list(distinct.values())


def _kernel(index: int, choice: AnyChoice) -> str:
    lines = choice_lines(choice) if isinstance(choice, AttentionChoice) else _lines(index, choice)
    lines += _terms(choice.selection)
    artifact = shared_builder().find(*wanted(choice))
    if artifact is None:
        lines.append("  built      no")
    else:
        lines.append(f"  built      {artifact.code_object}")
        lines.append(f"  resources  {artifact.resources}")
    return "\n".join(lines)


def _lines(index: int, choice: Choice) -> list[str]:
    problem, selection = choice.problem, choice.selection
    key, chosen = selection.key, selection.key.algorithm
    lines = [
        f"kernel {index} computes {choice.kernel.result}: {problem}",
        f"  key        {key.digest}",
        f"  label      {key.label}",
        f"  algorithm  {_words(chosen)}",
        f"  because    {selection.reason}",
        f"  from       {selection.origin}",
    ]
    if choice.band.count > 1:
        lines.insert(1, f"  cut        into {choice.band}")
    reasons = Counter(str(rejection) for rejection in selection.rejections)
    lines += [f"  rejected   {count} x {reason}" for reason, count in reasons.items()]
    spec = arch(key.arch)
    for when, made in (("before", choice.before), ("after", choice.after)):
        for copy in made:
            lines += [f"  {when:9}  {copy}, so that channels are {_WHERE[when]}"]
            lines += [f"             by {copy.key(spec)}"]
    return lines


def _terms(selection: AnySelection | Combination) -> list[str]:
    """Return what the cost model says of the chosen kernel and of the quickest other legal one.

    Kernels with equal predictions differ in what the model does not see.
    """
    if isinstance(selection, Combination):
        return []
    pool, problem = selection.pool, selection.problem
    try:
        times = np.where(pool.legal(problem), pool.times_of(problem), np.inf)
    except CkUnsupportedError:
        return []  # the reason of the choice says why
    same = times == times[selection.position]
    alike = np.count_nonzero(same) - 1
    title = "  predicted by the cost model" + (f" ({alike} others alike)" if alike else "")
    other = int(np.argmin(np.where(same, np.inf, times)))
    keys = [selection.key] + ([] if same[other] or np.isinf(times[other]) else [pool.keys[other]])
    return [title, *pool.table(keys, problem)]


_WHERE = {"before": "last", "after": "where the program has them"}
"""What a copy around a convolution is for."""


def _words(algorithm: Algorithm) -> str:
    tile, warps, warp_tile = (
        "x".join(map(str, triple))
        for triple in (algorithm.tile, algorithm.warps, algorithm.warp_tile)
    )
    vectors = f"A {algorithm.vector_a}, B {algorithm.vector_b}, E {algorithm.vector_e}"
    if algorithm.vector_d:
        vectors += f", D {', '.join(map(str, algorithm.vector_d))}"
    return (
        f"tile {tile}, warps {warps}, warp tile {warp_tile}, {algorithm.pipeline.value}, "
        f"{algorithm.scheduler.value}, {algorithm.epilogue.value}, vectors {vectors}"
        + "".join(f", {word}" for word in _more(algorithm))
    )


def _more(a: Algorithm) -> list[str]:
    """Return what most algorithms do not have."""
    words = {
        f"{a.special.value} only": a.special is not ConvSpecial.DEFAULT,
        f"{a.groups_merged} groups in a tile": a.groups_merged > 1,
        f"{a.split_k} workgroups share a tile": a.split_k > 1,
        "all workgroups share all steps": a.stream_k,
        f"reduction {a.reduction.value}": a.reduction is not Reduction.NONE,
    }
    return [word for word, said in words.items() if said]


def _device(target: Target) -> str:
    if not target.emulated:
        return f"device: {target}"
    return (
        f"device: {target} ({target.spec.product}): there is no GPU in this run; its instructions "
        "are executed on the CPU"
    )
