# SPDX-License-Identifier: MIT
"""Convolutions as anchors: what is fused to them, and kernels put together again."""

import numpy as np

from cklang.families.conv.plan import FusedConv
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.explain import explain_kernel
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.reference.evaluate import evaluate
from tests.support.errors import expect_error
from tests.support.plans import kernel_function, plan, product_kernels

ATTRS = "{dilation = [1, 1], groups = 2, padding = [[1, 0], [0, 1]], stride = [2, 1]}"
POINT = "{dilation = [1, 1], groups = 1, padding = [[0, 0], [0, 0]], stride = [1, 1]}"

BLOCK = f"""
func @block(%x: f16[N, H, W, C], %w: f16[K, 3, 2, P], %v: f16[C, 1, 1, K], %bias: f16[K],
            %gate: f32[N, C]) -> f16[N, Ho, Wo, C] {{
  %0: f32[N, Ho, Wo, K] = conv(%x, %w) {ATTRS}
  %1: f32[K] = cast(%bias) {{to = f32}}
  %2: f32[N, Ho, Wo, K] = broadcast(%1) {{dims = [3]}}
  %3: f32[N, Ho, Wo, K] = add(%0, %2)
  %4: f32[N, Ho, Wo, K] = relu(%3)
  %5: f16[N, Ho, Wo, K] = cast(%4) {{to = f16}}
  %6: f32[N, Ho, Wo, C] = conv(%5, %v) {POINT}
  %7: f32[N, Ho, Wo, C] = broadcast(%gate) {{dims = [0, 3]}}
  %8: f32[N, Ho, Wo, C] = mul(%6, %7)
  %9: f16[N, Ho, Wo, C] = cast(%8) {{to = f16}}
  return %9
}}
"""


def run(function: Function, values: dict[str, np.ndarray]) -> np.ndarray:
    (result,) = evaluate(function, [values[param.name] for param in function.params])
    return result


def test_each_convolution_is_a_kernel_with_its_epilogue() -> None:
    function = parse_function(BLOCK)
    first, second = plan(function).kernels
    assert isinstance(first, FusedConv)
    assert [str(each.value) for each in first.reads] == ["%bias"]
    assert isinstance(second, FusedConv)
    assert second.a.value == first.result
    assert second.reads[0].axes == (0, None, None, 1)
    assert "acc = conv(%x, %w)" in explain_kernel(first)
    assert "d0 = %gate[n, k]: f32[N, C]" in explain_kernel(second)


def test_kernels_compute_the_function_one_after_the_other() -> None:
    function = parse_function(BLOCK)
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 5, 4, 6), "w": (4, 3, 2, 3), "v": (6, 1, 1, 4), "bias": (4,)}
    values = {name: rng.uniform(-1, 1, s).astype(np.float16) for name, s in shapes.items()}
    values["gate"] = rng.uniform(-1, 1, (2, 6)).astype(np.float32)
    want = run(function, values)
    for kernel in product_kernels(plan(function)):
        values[kernel.result.name] = run(kernel_function(kernel), values)
    np.testing.assert_array_equal(values["9"], want)


def test_a_product_may_follow() -> None:
    text = (
        "func @f(%x: f16[N, H, C], %w: f16[K, 1, C], %v: f16[K, M]) -> f32[N, H, M] {\n"
        "  %0: f32[N, H, K] = conv(%x, %w) "
        "{dilation = [1], groups = 1, padding = [[0, 0]], stride = [1]}\n"
        "  %1: f16[N, H, K] = cast(%0) {to = f16}\n"
        "  %2: f32[N, H, M] = gemm(%1, %v)\n"
        "  return %2\n}"
    )
    first, second = plan(parse_function(text)).kernels
    assert isinstance(first, FusedConv)
    assert isinstance(second, FusedGemm)


def test_operands_are_stored() -> None:
    text = (
        "func @f(%x: f16[N, H, W, C], %w: f16[K, 1, 1, C]) -> f32[N, H, W, K] {\n"
        "  %0: f32[N, H, W, C] = cast(%x) {to = f32}\n"
        "  %1: f32[N, H, W, C] = relu(%0)\n"
        "  %2: f16[N, H, W, C] = cast(%1) {to = f16}\n"
        f"  %3: f32[N, H, W, K] = conv(%2, %w) {POINT}\n"
        "  return %3\n}"
    )
    with expect_error("X005", match="operand A of conv is computed by relu"):
        plan(parse_function(text))


def test_channels_may_go_elsewhere() -> None:
    """The runtime copies such a result: kernels write the channels last."""
    text = (
        "func @f(%x: f16[N, C, H, W], %w: f16[K, 1, 1, C]) -> f32[N, K, H, W] {\n"
        "  %0: f16[N, H, W, C] = transpose(%x) {perm = [0, 2, 3, 1]}\n"
        f"  %1: f32[N, H, W, K] = conv(%0, %w) {POINT}\n"
        "  %2: f32[N, K, H, W] = transpose(%1) {perm = [0, 3, 1, 2]}\n"
        "  return %2\n}"
    )
    function = parse_function(text)
    (kernel,) = product_kernels(plan(function))
    assert isinstance(kernel, FusedConv)
    assert (kernel.a.perm, kernel.axes) == ((0, 2, 3, 1), (0, 2, 3, 1))
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 5, 3, 4), "w": (6, 1, 1, 5)}
    values = {name: rng.uniform(-1, 1, s).astype(np.float16) for name, s in shapes.items()}
    np.testing.assert_array_equal(run(kernel_function(kernel), values), run(function, values))


def test_other_axes_may_be_exchanged() -> None:
    text = (
        "func @f(%x: f16[N, H, W, C], %w: f16[K, 1, 1, C]) -> f16[W, N, H, K] {\n"
        f"  %0: f32[N, H, W, K] = conv(%x, %w) {POINT}\n"
        "  %1: f32[W, N, H, K] = transpose(%0) {perm = [2, 0, 1, 3]}\n"
        "  %2: f16[W, N, H, K] = cast(%1) {to = f16}\n"
        "  return %2\n}"
    )
    function = parse_function(text)
    (kernel,) = product_kernels(plan(function))
    assert kernel.axes == (1, 2, 0, 3)
    rng = np.random.default_rng(0)
    values = {
        "x": rng.uniform(-1, 1, (2, 3, 4, 5)).astype(np.float16),
        "w": rng.uniform(-1, 1, (6, 1, 1, 5)).astype(np.float16),
    }
    np.testing.assert_array_equal(run(kernel_function(kernel), values), run(function, values))
