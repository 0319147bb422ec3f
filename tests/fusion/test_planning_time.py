# SPDX-License-Identifier: MIT
"""The work of planning a program of many equal blocks: near to linear in their number."""

from typing import Any

import pytest

from cklang.families import plan_of
from cklang.fusion import pairing
from cklang.fusion.flow import Flow
from cklang.ir.nodes import Function
from tests.support.written_ops import expression_op


def blocks(count: int) -> Function:
    """Return layers one after the other: softmax, two products of it in one kernel, a product."""
    names = [f"{name}{at}" for at in range(count) for name in ("g", "u")]
    weights = ", ".join(f"{each}: ck.f16[N, K]" for each in names)
    downs = ", ".join(f"d{at}: ck.f16[K, N]" for at in range(count))
    steps = [
        step
        for at in range(count)
        for step in (
            "y = ck.softmax(x).to(ck.f16)",
            f"h = (ck.silu(y @ g{at}.T) * (y @ u{at}.T)).to(ck.f16)",
            f"x = x + (h @ d{at}.T).to(ck.f16)",
        )
    ]
    params = f"x: ck.f16[M, K], {weights}, {downs}"
    return expression_op(params, "ck.f16[M, K]", "x", steps).program.specialise()


@pytest.mark.parametrize("count", [1, 6])
def test_pairs_of_products_are_looked_for_together(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs: list[Flow] = []

    def flow(*args: Any, **kwargs: Any) -> Flow:
        graphs.append(Flow(*args, **kwargs))
        return graphs[-1]

    monkeypatch.setattr(pairing, "Flow", flow)
    plan = plan_of(blocks(count))
    assert len(graphs) == 2, "one graph without pairs and one with all of them"
    assert len([note for note in plan.notes if note.startswith("pair")]) == count
    assert len(plan.kernels) == 3 * count
