# SPDX-License-Identifier: MIT
"""The backend: it divides a graph, lowers its parts, and tells what became of each node.

A node that a part cannot have, because its op is not lowered in this form or no kernel computes
it, becomes an eager node with its reason, and the graph is divided again.
"""

import bisect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from cklang.errors import error
from cklang.torch.backend.capture import captured, parameters_of
from cklang.torch.backend.partition import Parts, is_computed, objection, part_of, partition
from cklang.torch.backend.program import Listing, Program, lower
from cklang.torch.backend.report import graph_report, record
from cklang.torch.backend.run import Options, assembled
from cklang.torch.backend.saved import SAVED, divided_by
from cklang.torch.backend.weights import with_converted

_NUMBERS = itertools.count()


def cklang_backend(
    graph: GraphModule, examples: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph of Dynamo: the backend ``"cklang"`` of ``torch.compile``.

    Args:
        graph: As Dynamo traced it.
        examples: Its arguments.
        options: ``device`` as in a call of an op; ``reference=True`` to compute programs by their
            NumPy reference; ``saved``, what is saved for the backward graph: "auto", "everything"
            or "least".

    Raises:
        CkTypeError, CkValueError: A090, A091, A150, an option that there is not, of another type,
            or with another value.
    """
    choices = options_of(options or {})
    reasons: list[str] = []

    def lowered(part: GraphModule) -> tuple[Program, ...]:
        return divided(part, "saved", choices)[1]

    def compile_part(part: GraphModule, what: str) -> Callable[..., Any]:
        return compiled(part, what, choices, "; ".join(reasons))

    divide = divided_by(choices.saved, lowered, choices.device, reasons.append)
    return captured(graph, examples, compile_part, divide)  # type: ignore[no-any-return]


def options_of(options: Mapping[str, Any]) -> Options:
    """Return the options of a ``torch.compile``.

    Example:
        >>> options_of({"reference": True})
        Options(device=None, reference=True, saved='auto')

    Raises:
        CkValueError: A090, an option that there is not; A150, ``saved`` is another word.
        CkTypeError: A091, an option of another type.
    """
    kinds = {"device": str, "reference": bool, "saved": str}
    for name, value in options.items():
        if name not in kinds:
            raise error("A090", name=name, known=", ".join(kinds))
        if not isinstance(value, kinds[name]):
            raise error("A091", name=name, got=value, want=kinds[name].__name__)
    choices = Options(**options)
    if choices.saved not in SAVED:
        raise error("A150", got=choices.saved, known=", ".join(map(repr, SAVED)))
    return choices


def compiled(
    graph: GraphModule, what: str, options: Options, saved: str = ""
) -> Callable[..., Any]:
    """Return a graph of aten ops with programs in the places of the nodes that they compute.

    ``what`` is "inference", "forward" or "backward".
    """
    name = f"{what}_{next(_NUMBERS)}"
    # In training, parameters change at each step.
    parameters = parameters_of(graph) if what == "inference" else frozenset()
    parameters = with_converted(graph, parameters)
    parts, programs, reasons = divided(graph, name, options)
    record(graph_report(name, graph, parts, programs, reasons, saved))
    return assembled(graph, parts, programs, parameters, options)


def divided(
    graph: GraphModule, name: str, options: Options
) -> tuple[Parts, tuple[Program, ...], dict[Node, str]]:
    """Divide a graph into programs that kernels compute, and eager nodes with their reasons."""
    listing = Listing.of(graph.graph, name)
    reasons = {
        node: reason
        for node in graph.graph.nodes
        if is_computed(node) and (reason := objection(node)) is not None
    }
    inputs = graph.graph.find_nodes(op="placeholder")
    while True:
        parts = partition(graph.graph, reasons.__contains__)
        results = [
            lower(part, f"{name}_{part.stage // 2}", listing, inputs) for part in parts.programs
        ]
        programs = tuple(result for result in results if isinstance(result, Program))
        refusals = {
            node: reason
            for result in results
            if isinstance(result, dict)
            for node, reason in result.items()
        }
        if not refusals:
            refusals = _without_kernels(programs, listing, inputs, options)
        if not refusals:
            return parts, programs, reasons
        reasons |= refusals


def _without_kernels(
    programs: Sequence[Program], listing: Listing, inputs: Sequence[Node], options: Options
) -> dict[Node, str]:
    """Return nodes that no kernels compute in the call that was traced, with the reasons."""
    reasons: dict[Node, str] = {}
    for program in programs:
        nodes = {node.name: node for node in program.part.nodes}
        for mistake in program.mistakes(options.device):
            culprit = nodes.get(listing.name_at(mistake.at) or "")
            if culprit is None:
                culprit = _first_without_kernel(program, listing, inputs, options)
            reasons[culprit] = f"{mistake.code}: {mistake.message}"
    return reasons


def _first_without_kernel(
    program: Program, listing: Listing, inputs: Sequence[Node], options: Options
) -> Node:
    """Return the last node of the shortest beginning of a program that kernels do not compute."""
    nodes = program.part.nodes

    def fails(count: int) -> bool:
        part = part_of(nodes[:count], program.part.stage)
        beginning = lower(part, program.op.program.name, listing, inputs)
        return not isinstance(beginning, Program) or bool(beginning.mistakes(options.device))

    return nodes[bisect.bisect_left(range(1, len(nodes)), True, key=fails)]


def register() -> None:
    """Make the backend known to torch under its name, once."""
    from_entry_point = "cklang" in torch._dynamo.list_backends(None)
    if not from_entry_point:
        torch._dynamo.register_backend(cklang_backend, name="cklang")
