# SPDX-License-Identifier: MIT
"""Steps between a kernel without an epilogue and a product, as kernels on the emulated GPU.

``tests/fusion/test_program_pairs.py`` has the plans of all such pairs.
"""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from tests.support.checks import check, launches
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("compiler")

EXTENTS = {"M": 48, "K": 32, "N": 64}
_PARAMS = "x: ck.f16[M, K], w: ck.f16[N, K], left: ck.f16[N, M], ids: ck.i32[M], by: ck.f32[K]"

STEPS = {
    "cumsum": "(ck.cumsum(x, 1) * by).to(ck.f16) @ w.T",
    "cumprod": "(ck.cumprod(x, 1) * by).to(ck.f16) @ w.T",
    "scatter": "(ck.silu(ck.scatter(x, ids, x)) * by).to(ck.f16) @ w.T",
    "scatter_add": "(ck.scatter_add(x, ids, x) * by).to(ck.f16) @ w.T",
    "segment_sum": "(ck.segment_sum(x, ids, M) * by).to(ck.f16) @ w.T",
    "right operand": "left @ (ck.cumsum(x, 1) * by).to(ck.f16)",
}
GRADIENTS = {"take": ("ck.take(ck.silu(x @ w.T), ids)", "ck.f32[M, N]")}


def arguments(op: ck.Op, **extents: int) -> list[Any]:
    """Return small numbers, and indices of rows some of which are equal."""
    rng = np.random.default_rng(4)
    arrays = []
    for param in op.program.specialise().params:
        shape = param.type.extents(extents)
        if param.name == "ids":
            arrays.append(rng.integers(0, extents["M"], shape).astype("i"))
        else:
            arrays.append((rng.standard_normal(shape) / 2).astype(param.type.dtype.numpy))
    return arrays


@pytest.mark.parametrize("expression", STEPS.values(), ids=STEPS)
def test_a_step_before_a_product(expression: str) -> None:
    result = "ck.f32[N, K]" if expression.startswith("left") else "ck.f32[M, N]"
    op = expression_op(_PARAMS, result, expression)
    check(op, arguments(op, **EXTENTS))
    assert {launch.key.family for launch in launches(op)} >= {"gemm"}


@pytest.mark.parametrize(("expression", "result"), GRADIENTS.values(), ids=GRADIENTS)
def test_a_step_behind_a_product_in_a_gradient(expression: str, result: str) -> None:
    op = ck.vjp(expression_op(_PARAMS, result, expression), wrt=("x", "w"))
    check(op, arguments(op, **EXTENTS))


def test_a_step_between_a_product_and_an_attention_in_a_gradient() -> None:
    image = "ck.f16[B, H, S, D]"
    params = f"x: {image}, w: ck.f16[D, D], k: {image}, v: {image}"
    step = "ck.attention(((x @ w.T) * 0.3).to(ck.f16), k, v)"
    op = ck.vjp(expression_op(params, image, step), wrt=("x", "w"))
    check(op, arguments(op, B=1, H=2, S=16, D=64))
    assert "attention_backward" in {launch.key.family for launch in launches(op)}
