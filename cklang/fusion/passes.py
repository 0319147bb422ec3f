# SPDX-License-Identifier: MIT
"""Run the passes that make kernels of a program, one after another.

A pass takes what there is of a program, its :class:`Draft`, and returns what it makes of it. Some
are common to all programs (:mod:`cklang.fusion.placement`, :mod:`cklang.fusion.partition`), the
others are contributed by families (:class:`Fusion`): they write the program again, put parts of it
into operations of their own, or join kernels of a plan. Their order is a table,
:data:`cklang.families.PASSES`. ``CKLANG_PRINT_AFTER`` prints what a pass has made.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cklang import knobs
from cklang.errors import error
from cklang.fusion.alternatives import Alternative
from cklang.fusion.completeness import expect_complete
from cklang.fusion.explain import explain
from cklang.fusion.flow import Flow
from cklang.fusion.kernel import Maker
from cklang.fusion.plan import Plan
from cklang.ir.nodes import Function, print_function
from cklang.ir.verifier import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What passes have made of a program so far."""

    function: Function
    makers: Mapping[str, Maker]
    """The anchors, by op: what kernels are made of, and how."""
    strict: frozenset[str] = frozenset()
    """Results of anchors whose kernels may compute other kernels' values again, up to the anchors
    of those, and must not read too much then."""
    outlined: Function | None = None
    """The program with operations that are kernels by themselves; None if it has none."""
    unwritten: frozenset[str] = frozenset()
    """The values that kernels of other anchors must not be asked to write, by name."""
    flow: Flow | None = None
    """The graph, if a pass has drawn it."""
    roots: tuple[int, ...] = ()
    """Its nodes that kernels write."""
    plan: Plan | None = None
    """The kernels; None before the program is partitioned, or if that must begin again with
    further results in ``strict``."""

    def __str__(self) -> str:
        if self.plan is not None:
            return explain(self.plan)
        if self.flow is not None and self.flow.pairs:
            pairs = ((self.flow.value(a), self.flow.value(b)) for a, b in self.flow.pairs.items())
            return "\n".join(f"pair {first} {second}" for first, second in pairs)
        if self.outlined is not None:
            unwritten = " ".join(sorted(self.unwritten))
            return f"{print_function(self.outlined)}\nunwritten: {unwritten}"
        return print_function(self.function)


Rewrite: TypeAlias = Callable[[Draft], Draft]


@dataclass(frozen=True, slots=True)
class Pass:
    """One step from a program to its kernels."""

    name: str
    owner: str
    """The family that contributes it; ``fusion`` if it is common to all programs."""
    run: Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """What a family contributes to fusion."""

    makers: Mapping[str, Maker] = field(default_factory=dict)
    """The ops of the IR that it computes, its anchors, and how their kernels are made."""
    passes: Mapping[str, Rewrite] = field(default_factory=dict)
    """Its passes by name."""
    alternatives: Callable[[Function, Plan], Iterator[Alternative]] = lambda _function, _plan: iter(
        ()
    )
    """Yields other ways to share a program's values among kernels of the family."""


def on_program(rewrite: Callable[[Function], Function]) -> Rewrite:
    """Return the pass that writes a program again."""
    return lambda draft: replace(draft, function=rewrite(draft.function))


def on_plan(rewrite: Callable[[Plan], Plan]) -> Rewrite:
    """Return the pass that joins kernels of a plan."""

    def run(draft: Draft) -> Draft:
        plan = None if draft.plan is None else rewrite(draft.plan)
        if plan is None or plan is draft.plan:
            return draft
        return replace(draft, plan=expect_complete(plan))

    return run


def drafts(
    draft: Draft, passes: Sequence[Pass], print_after: str | None = None
) -> Iterator[tuple[str, Draft]]:
    """Yield the names of passes, and what each makes of what the one before it made."""
    for step in passes:
        draft = step.run(draft)
        if step.name == print_after:
            sys.stderr.write(f"@{draft.function.name} after {step.name}\n{draft}\n")
        yield step.name, draft


def fused(function: Function, makers: Mapping[str, Maker], passes: Sequence[Pass]) -> Plan:
    """Return the kernels that compute ``function`` and the decisions behind them.

    Raises:
        CkUnsupportedError: No kernels compute it: one value is two results (X001), or as
            :func:`cklang.fusion.partition.partitioned`; X rows of the families.
        CkError: ``function`` breaks a rule of the IR.
        CkInternalError: Z004, the kernels do not compute ``function``.
    """
    verify(function, allow_unused=True)
    if len(set(function.results)) < len(function.results):
        raise error("X001", at=function.span, name=function.name)
    draft = Draft(function=function, makers=makers)
    print_after = knobs.PRINT_AFTER.get()
    while True:
        *_, (_, last) = drafts(draft, passes, print_after)
        if last.plan is not None:
            return last.plan
        draft = replace(draft, strict=last.strict)
