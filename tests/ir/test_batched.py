# SPDX-License-Identifier: MIT
"""Functions over a batch: the same numbers as the function for each element."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.ir.batched import with_batch
from cklang.ir.nodes import Function
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from tests.support.written_ops import expression_op

EXTENTS = {"M": 3, "N": 4, "K": 5, "C": 2}
SIZE = 6

BODIES: dict[str, tuple[str, str, str]] = {
    "product": ("x: ck.f32[M, K], w: ck.f32[N, K]", "ck.f32[M, N]", "ck.gelu(x @ w.T)"),
    "products of batches": ("x: ck.f32[M, K], w: ck.f32[C, K, N]", "ck.f32[C, M, N]", "x @ w"),
    "softmax": ("x: ck.f32[M, N], w: ck.f32[N]", "ck.f32[M, N]", "ck.softmax(x * w)"),
    "scalar": ("x: ck.f32[M, N], w: ck.f32", "ck.f32[M, N]", "x * w + 1.0"),
    "parts": (
        "x: ck.f32[M, 6], w: ck.f32[M, 2]",
        "ck.f32[M, 6]",
        "ck.concat([w, x[:, 2:]], axis=1)",
    ),
    "lines": ("x: ck.f32[M, N], w: ck.f32[M]", "ck.f32[N, M]", "ck.cumsum(x, 1).T - w"),
    "row": ("x: ck.f32[M, N], w: ck.f32[N]", "ck.f32[N]", "x[1] * w"),
    "joined axes": ("x: ck.f32[M, N], w: ck.f32[M, N]", "ck.f32[M * N]", "(x - w).reshape(M * N)"),
    "table": ("x: ck.f32[M, N], w: ck.i32[C]", "ck.f32[C, N]", "ck.take(x, w, axis=0)"),
}


def function_of(name: str) -> Function:
    ir: Function = expression_op(*BODIES[name]).program.specialise()
    return ir


def drawn(function: Function, names: Collection[str]) -> list[Any]:
    rng = np.random.default_rng(0)
    arrays = []
    for param in function.params:
        shape = param.type.extents(EXTENTS)
        shape = (SIZE, *shape) if param.name in names else shape
        is_index = param.type.dtype == ck.i32
        draw = rng.integers(0, 3, shape) if is_index else rng.standard_normal(shape)
        arrays.append(draw.astype(param.type.dtype.numpy))
    return arrays


@pytest.mark.parametrize("names", [("x",), ("w",), ("x", "w")], ids="-".join)
@pytest.mark.parametrize("name", BODIES)
def test_a_batch_is_what_its_elements_are(name: str, names: tuple[str, ...]) -> None:
    function = function_of(name)
    pair = with_batch(function, names)
    if name == "table" and names == ("x", "w"):
        assert pair is None
        return
    assert pair is not None
    batched, has_axis = pair
    arrays = drawn(function, names)
    (got,) = evaluate(verify(batched), arrays)
    assert has_axis == (True,)
    params = [param.name for param in function.params]
    for index in range(SIZE):
        pairs = zip(params, arrays, strict=True)
        (want,) = evaluate(function, [x[index] if each in names else x for each, x in pairs])
        np.testing.assert_allclose(got[index], want, rtol=1e-5, atol=1e-6)


def test_a_result_that_no_batch_reaches_has_no_axis() -> None:
    results = "tuple[ck.f32[M], ck.f32[M]]"
    op = expression_op("x: ck.f32[M], y: ck.f32[M]", results, "(x + 1.0, y + 1.0)")
    pair = with_batch(op.program.specialise(), ["y"])
    assert pair is not None
    assert pair[1] == (False, True)


def test_what_has_no_rule_has_no_batch() -> None:
    heads = "ck.f16[M, 2, N, 8]"
    op = expression_op(f"q: {heads}, k: {heads}, v: {heads}", heads, "ck.attention(q, k, v)")
    assert with_batch(op.program.specialise(), ["q"]) is None
