# SPDX-License-Identifier: MIT
"""What the passes make of a program, as text."""

from __future__ import annotations

from collections.abc import Iterator

from cklang.families import FAMILIES, _families, _makers, plan_of
from cklang.families.ck_rows.gate import with_gates
from cklang.fusion.alternatives import alternative_program, alternatives
from cklang.fusion.explain import explain
from cklang.fusion.log_sums import with_log_sums
from cklang.fusion.partition import _paired
from cklang.fusion.partition import plan as partitioned
from cklang.fusion.picked import with_picked
from cklang.fusion.placement import placed
from cklang.ir.nodes import Function, print_function

__all__ = ["after_passes", "texts_of_alternatives"]


def after_passes(function: Function, *, named: bool) -> Iterator[tuple[str, str]]:
    """Yield each pass that changes a program, with what it makes of it."""
    makers = _makers(function)
    families = [each.name for each in _families(function)]
    for name, owner, run in (
        ("picked", "gemm", with_picked),
        ("log_sums", "gemm", with_log_sums),
        ("placement", "", placed),
        ("halves", "gemm", FAMILIES["gemm"].prepared),
        ("extremes", "rowwise", FAMILIES["rowwise"].prepared),
    ):
        changed = run(function) if owner in ("", *families) else function
        if changed != function:
            yield name, print_function(changed)
        function = changed
    outlined = FAMILIES["rowwise"].outline(function, makers)
    unwritten = " ".join(sorted(outlined.unwritten))
    yield "rows", f"{print_function(outlined.function)}\nunwritten: {unwritten}"
    try:
        flow, _ = _paired(outlined, makers)
    except Exception as mistake:
        assert getattr(mistake, "code", "") == "X004"
    else:
        if flow.pairs:
            pairs = ((flow.value(a), flow.value(b)) for a, b in flow.pairs.items())
            yield "pairs", "\n".join(f"pair {a} {b}" for a, b in pairs)

    plan = partitioned(
        function, makers, lambda f, strict: FAMILIES["rowwise"].outline(f, makers, strict)
    )
    yield "partition", explain(plan)
    if {"gemm", "scatter"} <= {kernel.family for kernel in plan.kernels}:
        joined = FAMILIES["gemm"].joined(plan)
        if joined != plan:
            yield "scattering", explain(joined)
        plan = joined
    if named:
        yield "gating", explain(with_gates(plan))


def texts_of_alternatives(function: Function) -> Iterator[tuple[str, str]]:
    """Yield the alternatives to the plan of a program, with the program that each makes."""
    for option in alternatives(function, plan_of(function)):
        names = " ".join((*option.groups, *option.stored, *option.parts))
        below = "" if option.below is None else f" below {option.below}"
        program = print_function(alternative_program(function, [option]))
        yield f"{option.value}: {names} once={option.once}{below}", program
