# SPDX-License-Identifier: MIT
"""What the passes make of a program, as text."""

from collections.abc import Iterator

from cklang.families import alternatives_of, makers_of, passes_of, plan_of, with_named
from cklang.fusion.alternatives import alternative_program
from cklang.fusion.explain import explain
from cklang.fusion.passes import Draft, drafts
from cklang.ir.nodes import Function, print_function

__all__ = ["after_passes", "texts_of_alternatives"]


def after_passes(function: Function, *, named: bool) -> Iterator[tuple[str, str]]:
    """Yield each pass that changes a program, with what it makes of it."""
    before = Draft(function=function, makers=makers_of(function))
    for name, draft in drafts(before, passes_of(function)):
        if str(draft) != str(before):
            yield name, str(draft)
        before = draft
    if named and before.plan is not None:
        yield "gating", explain(with_named(before.plan, ["ck_rows"]))


def texts_of_alternatives(function: Function) -> Iterator[tuple[str, str]]:
    """Yield the alternatives to the plan of a program, with the program that each makes."""
    for option in alternatives_of(function, plan_of(function)):
        below = "" if option.below is None else f" below {option.below}"
        program = print_function(alternative_program(function, [option]))
        yield f"{option.value}: {' '.join(option.names)} once={option.once}{below}", program
