# SPDX-License-Identifier: MIT
"""The data-flow graph of a function, and the queries by which the partition is computed."""

import networkx as nx
import pytest
from hypothesis import given

from cklang.errors import CkUnsupportedError
from cklang.families import FAMILIES
from cklang.families.rowwise.outline import OUTLINED
from cklang.fusion.flow import Flow
from cklang.fusion.graph import build_graph
from cklang.fusion.kernel import RULES
from cklang.ir.nodes import Function
from cklang.ir.ops import OPS, Kind
from cklang.ir.parser import parse_function
from cklang.ir.reductions import MEANINGS
from tests.support.errors import expect_error
from tests.support.plans import MAKERS, plan
from tests.support.programs import programs

CHAIN = parse_function("""
func @chain(%x: f16[M, M], %w: f16[M, M], %row: f32[M]) -> f32[M, M] {
  %g: f32[M, M] = gemm(%x, %w)
  %b: f32[M, M] = broadcast(%row) {dims = [1]}
  %s: f32[M, M] = add(%g, %b)
  %t: f32[M, M] = tanh(%s)
  %e: f32[M, M] = exp(%s)
  %h: f16[M, M] = cast(%t) {to = f16}
  %i: f16[M, M] = cast(%e) {to = f16}
  %v: f16[M, M] = transpose(%i) {perm = [1, 0]}
  %p: f32[M, M] = gemm(%h, %v)
  %q: f32[M, M] = mul(%p, %e)
  %r: f32[M, M] = add(%q, %t)
  return %r
}
""")


def flow_of(function: Function) -> Flow:
    return Flow(function, MAKERS)


def ids(flow: Flow, names: str) -> list[int]:
    by_name = {flow.value(node).name: node for node in reversed(list(flow.graph))}
    return [by_name[name] for name in names.split()]


def names(flow: Flow, nodes: list[int]) -> list[str]:
    return [flow.value(node).name for node in nodes]


def test_colours_are_the_last_anchor_that_reaches_a_value() -> None:
    flow = flow_of(CHAIN)
    first, second = ids(flow, "g p")
    colours = {flow.value(node).name: flow.colour(node) for node in flow.graph}
    assert {name for name, colour in colours.items() if colour == first} == set("gstehiv")
    assert {name for name, colour in colours.items() if colour == second} == set("pqr")
    assert {name for name, colour in colours.items() if colour is None} == {"x", "w", "row", "b"}


def test_edges_carry_index_maps() -> None:
    flow = flow_of(CHAIN)
    row, b, i, v, s, p = ids(flow, "row b i v s p")
    edges = flow.graph.edges
    assert edges[row, b, 0]["axes"] == (None, 0)
    assert edges[i, v, 0]["axes"] == (1, 0)
    assert edges[b, s, 1]["axes"] == (0, 1)
    assert edges[v, p, 1]["axes"] is None
    (turned,) = flow.anchors(v)
    assert turned == (ids(flow, "g")[0], (1, 0))


def test_dominators_are_where_all_paths_meet() -> None:
    flow = flow_of(CHAIN)
    g, t, e = ids(flow, "g t e")
    both = flow.dominators(g, [t, e], fixed=())
    assert both is not None
    assert names(flow, both) == ["s", "g"]
    alone = flow.dominators(g, [t], fixed=())
    assert alone is not None
    assert names(flow, alone) == ["t", "s", "g"]
    # What is stored anyway needs no second store.
    assert flow.dominators(g, [t, e], fixed=(t, e)) is None
    assert flow.dominators(g, [t], fixed=(g,)) is None


def test_a_slice_ends_at_its_leaves() -> None:
    flow = flow_of(CHAIN)
    (s, r) = ids(flow, "s r")
    cone = flow.slice(flow.occurrence(r), lambda use: use.node == s or flow.is_anchor(use.node))
    assert {flow.value(use.node).name for use in cone} == set("rqtpes")
    leaves = {use.node for use, operands in cone.out_degree() if not operands}
    assert names(flow, sorted(leaves)) == ["s", "p"]


def test_a_plan_owns_the_graph_that_it_was_computed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def counted(function: Function) -> nx.MultiDiGraph:
        built.append(build_graph(function))
        return built[-1]

    monkeypatch.setattr("cklang.fusion.flow.build_graph", counted)
    planned = plan(CHAIN)
    assert planned.graph is planned.graph
    assert built == [planned.graph]
    assert nx.is_frozen(planned.graph)


def test_anchors_are_the_rows_of_the_table() -> None:
    anchors = {op for family in FAMILIES.values() for op in family.fusion.makers}
    rows = {op for op, row in OPS.items() if row.kind in (Kind.ANCHOR, Kind.ATTENTION)}
    # Reductions are outlined: kernels of rows are made of what holds them.
    assert anchors == {*(rows - set(MEANINGS)), OUTLINED}
    assert set(MAKERS) <= anchors
    products = {op: maker for op, maker in MAKERS.items() if op == "gemm24"}
    with expect_error("X002", match="no kernel computes", kind=CkUnsupportedError):
        plan(CHAIN, products)


@given(programs())
def test_colours_and_order_hold_for_all_programs(function: Function) -> None:
    flow = flow_of(function)
    assert nx.is_directed_acyclic_graph(flow.graph)
    assert all(source < target for source, target in flow.graph.edges())
    for node, colour in flow.graph.nodes(data="colour"):
        above = set(flow.ancestors(node)) | {node}
        covering = {
            anchor
            for anchor, axes in flow.anchors(node)
            if None not in axes and len(axes) == flow.value(anchor).type.rank
        }
        assert covering <= above
        assert colour == max(covering, default=None)


def test_rules_of_dead_edges() -> None:
    text = str(CHAIN).replace("return %r", "return %p")
    dead = [each for each in plan(parse_function(text)).decisions if each.rule == "dead"]
    assert {each.edge.target for each in dead} == set(ids(flow_of(CHAIN), "q r"))
    assert {each.reason for each in dead} == {RULES["dead"]}
