# SPDX-License-Identifier: MIT
"""Gradients of the layers of the examples, in f32, beside differences of their results."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.autodiff.step import Context
from cklang.autodiff.transform import backward
from cklang.families.gemm.plan import FusedGemm
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate

EXAMPLES = Path(__file__).parents[2] / "examples"
LAYERS: dict[str, tuple[str, dict[str, int], dict[str, object]]] = {
    "12_attention_block": ("attention_block", {"B": 2, "S": 7, "E": 16, "D": 16}, {}),
    "13_gpt2_block": ("gpt2_block", {"H": 2, "F": 12, "D": 4, "B": 2, "S": 5, "E": 8}, {}),
    "17_resnet_block": (
        "resnet_block",
        {"N": 2, "H": 5, "W": 4, "K": 8, "T": 6, "C": 8},
        {"groups": 2},
    ),
}
STEP = 2e-3


def in_f32(function: Function) -> Function:
    """Return a function without roundings, whose differences are smooth."""
    text = re.sub(r"\b(f16|bf16)\b", "f32", str(function))
    return parse_function(text)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_a_layer_are_its_differences(name: str) -> None:
    op, dims, consts = LAYERS[name]
    program: Any = runpy.run_path(str(EXAMPLES / f"{name}.py"))[op].program
    function = in_f32(program.specialise({}, consts, dims))
    rng = np.random.default_rng(0)

    def normal(shape: Any) -> Any:
        scale = 8 if len(shape) == 2 else 1
        return (rng.standard_normal(shape) / scale).astype("f")

    arrays = [normal(param.type.extents(dims)) for param in function.params]
    steps = [normal(each.shape) for each in arrays]
    wrt = [param.name for param in function.params]
    derived = verify(
        backward(function, wrt, ["dy"], name="g", context=Context(numbers=dims)), allow_unused=True
    )
    dy = normal(evaluate(function, arrays)[0].shape)
    gradients = evaluate(derived, [*arrays, dy])
    for place, (gradient, step) in enumerate(zip(gradients, steps, strict=True)):
        ends = []
        for sign in (1, -1):
            moved = list(arrays)
            moved[place] = arrays[place] + np.float32(sign * STEP) * step
            ends.append((moved[place], evaluate(function, moved)[0].astype("d")))
        (high, above), (low, below) = ends
        want = np.vdot(above - below, dy)
        got = np.vdot(gradient.astype("d"), high.astype("d") - low.astype("d"))
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-4, err_msg=wrt[place])


def test_gradients_of_layers_in_one_tensor_are_written_there() -> None:
    """One kernel a product: none pads, copies or adds, nor sums along an axis of one element."""
    b, s, e, h, d = ck.dims("B S E H D")

    @ck.op
    def loss(x: ck.f16[b, s, e], w: ck.f16[2, h, d, e], v: ck.f16[2, h, d, e]) -> ck.f32[()]:
        for layer in range(2):
            heads = ck.einsum("bse,hde->bhsd", x, w[layer]).to(ck.f16)
            x = ck.einsum("bhsd,hde->bse", ck.tanh(heads).to(ck.f16), v[layer]).to(ck.f16)
        return ck.mean(x)

    arguments = np.ones((2, 16, 32), "f2"), *(np.ones((2, 2, 16, 32), "f2") for _ in "wv")
    plan = ck.grad(loss, wrt=("w", "v")).fusion(*arguments)
    products = [each for each in plan.kernels if isinstance(each, FusedGemm)]
    assert len(products) == 3 + 3 + 4, "forward but for the last, by values, by weights"
    assert len(plan.kernels) == len(products)
