# SPDX-License-Identifier: MIT
"""``ck.moe``: a layer of experts, from the ids of tokens' experts to sums of tokens."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.autodiff.transform import backward
from cklang.families import plan_of
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.checks import check, compare
from tests.support.coverage import Covered
from tests.support.errors import expect_error

T, K, F, E, R = ck.dims("T K F E R")
WIDTHS = {"K": 64, "F": 32}
Array = np.ndarray[Any, Any]


@ck.op
def layer(
    x: ck.f16[T, K],
    w_gate_up: ck.f16[E, 2 * F, K],
    w_down: ck.f16[E, K, F],
    ids: ck.i32[T, R],
    weights: ck.f32[T, R],
) -> ck.f32[T, K]:
    return ck.moe(x, w_gate_up, w_down, ids, weights)


@ck.fn
def clamped(gate: Any, up: Any) -> Any:
    """What GPT-OSS has between the products."""
    gate = ck.minimum(gate, 7.0)
    return (ck.clamp(up, -7.0, 7.0) + 1.0) * gate * ck.sigmoid(1.702 * gate)


@ck.op
def turned(
    x: ck.bf16[T, K],
    w_gate_up: ck.bf16[E, K, 2 * F],
    w_down: ck.bf16[E, F, K],
    ids: ck.i64[T, R],
    weights: ck.bf16[T, R],
) -> ck.f32[T, K]:
    """Weights whose columns are contiguous, another activation, and sums in order."""
    first, second = ck.swapaxes(w_gate_up, 1, 2), ck.swapaxes(w_down, 1, 2)
    return ck.moe(x, first, second, ids, weights, activation=clamped, ordered=True)


@ck.op
def quantised(
    x: ck.bf16[T, K], w_gate_up: ck.fp8_fnuz[E, 2 * F, K], w_down: ck.fp8_fnuz[E, K, F],
    ids: ck.i32[T, R], weights: ck.f32[T, R], by_gate_up: ck.f32[E, 2 * F / 32, K / 32],
    by_down: ck.f32[E, K / 32, F / 32],
) -> ck.f32[T, K]:  # fmt: skip
    """Weights of 8 bits with scales of blocks, as DeepSeek-V3 has them of 128."""
    return ck.moe(
        x, w_gate_up, w_down, ids, weights, scale_gate_up=by_gate_up, scale_down=by_down, block=32
    )


def drawn(op: Op, seed: int = 0, **sizes: int) -> list[Array]:
    """Return arrays for a layer, with ids of no expert among its ids."""
    random = np.random.default_rng(seed)
    args: list[Array] = []
    for param in op.program.specialise().params:
        shape, dtype = param.type.extents(sizes), param.type.dtype.numpy
        if param.name == "ids":
            args.append(random.integers(-1, sizes["E"] + 1, shape).astype(dtype))
        else:
            args.append((random.standard_normal(shape) / 4).astype(dtype))
    return args


def by_loops(args: list[Array], rounded: Any) -> Array:
    """Return a layer in float64, token by token, with hidden values of a dtype."""
    x, w_gate_up, w_down, ids, weights = args
    result = np.zeros(x.shape)
    for t, r in np.ndindex(ids.shape):
        if 0 <= ids[t, r] < len(w_down):
            gate, up = np.split(w_gate_up[ids[t, r]] @ x[t], 2)
            hidden = (gate / (1 + np.exp(-gate)) * up).astype(rounded).astype(np.float64)
            result[t] += weights[t, r] * (w_down[ids[t, r]] @ hidden)
    return result


def test_a_layer_is_one_kernel_of_ids_one_of_numbers_and_two_products() -> None:
    families = [kernel.family for kernel in plan_of(layer.program.specialise()).kernels]
    assert families == ["group_ids", "rowwise", "gemm", "gemm"]
    in_order = [kernel.family for kernel in plan_of(turned.program.specialise()).kernels]
    assert in_order == ["group_ids", "rowwise", "gemm", "gemm", "scatter"]


@given(t=st.integers(0, 9), e=st.integers(1, 4), r=st.integers(1, 3), seed=st.integers(0, 99))
def test_numpy_and_the_reference_are_loops_over_tokens(t: int, e: int, r: int, seed: int) -> None:
    args = drawn(layer, seed, T=t, E=e, R=r, K=8, F=5)
    exact = [array if array.dtype.kind == "i" else array.astype(np.float64) for array in args]
    np.testing.assert_allclose(ck.moe(*exact), by_loops(exact, np.float64), atol=1e-9)
    if t:
        compare(layer, args, by_loops(exact, np.float16).astype(np.float32))


def test_a_layer_has_a_gradient_by_its_weights_which_it_is_linear_in() -> None:
    args = drawn(layer, T=5, E=3, R=2, K=8, F=5)
    function = layer.program.specialise()
    (value,) = evaluate(function, args)
    v = np.random.default_rng(1).standard_normal(value.shape).astype(np.float32)
    derived = verify(backward(function, ["weights"], ["dy"], name="t"), allow_unused=True)
    (gradient,) = evaluate(derived, [*args, v])
    np.testing.assert_allclose(np.vdot(v, value), np.vdot(gradient, args[-1]), rtol=1e-4)


def test_weights_of_8_bits_are_those_that_they_stand_for() -> None:
    """Quantised activations are all that makes a difference: fp8 has four bits."""
    x, up, down, ids, weights, *scales = drawn(quantised, T=20, E=3, R=2, **WIDTHS)
    (got,) = evaluate(quantised.program.specialise(), [x, up, down, ids, weights, *scales])
    whole = [
        array.astype(np.float64) * np.repeat(np.repeat(scale, 32, axis=1), 32, axis=2)
        for array, scale in zip((up, down), scales, strict=True)
    ]
    want = ck.moe(x.astype(np.float64), *whole, ids, weights)
    assert 0 < np.abs(got - want).max() < 2**-4 * np.abs(want).max()
    eager = ck.moe(
        x, up, down, ids, weights, scale_gate_up=scales[0], scale_down=scales[1], block=32
    )
    assert np.abs(eager - want).max() < 2**-4 * np.abs(want).max()
    families = [kernel.family for kernel in plan_of(quantised.program.specialise()).kernels]
    assert (families.count("gemm"), families[-1]) == (2, "gemm")


def test_scales_of_one_weight_alone_are_refused() -> None:
    def one(
        x: ck.bf16[T, K], up: ck.fp8[E, 2 * F, K], down: ck.fp8[E, K, F], ids: ck.i32[T, R],
        weights: ck.f32[T, R], by: ck.f32[E, F / 64, K / 128],
    ) -> ck.f32[T, K]:  # fmt: skip
        return ck.moe(x, up, down, ids, weights, scale_gate_up=by)

    with expect_error("F074", match="both weights have scales, or none"):
        ck.op(one).program.specialise()


@pytest.mark.usefixtures("compiler")
def test_a_quantised_layer_within_its_bound(covered: Covered) -> None:
    for t, e, r in ((67, 3, 2), (1, 9, 1), (130, 2, 3)):
        check(quantised, drawn(quantised, T=t, E=e, R=r, **WIDTHS), "gfx942")
    covered("experts: quantised", "fp8_fnuz", "gfx942")


def trained() -> Op:
    """The gradients of a layer by all that is trained."""
    return ck.vjp(layer, wrt=("x", "w_gate_up", "w_down", "weights"))


def test_gradients_of_a_layer_are_those_of_torch(torch: Any) -> None:
    from tests.support.torch_ir import gradients

    function = layer.program.specialise()
    args = drawn(layer, T=9, E=3, R=2, K=8, F=5)
    dy = np.random.default_rng(1).standard_normal((9, 8)).astype(np.float32)
    wanted = gradients(function, args, ["x", "w_gate_up", "w_down", "weights"], [dy])
    computed = evaluate(trained().program.specialise(), [*args, dy])
    for mine, theirs in zip(computed, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("compiler")
def test_gradients_of_a_layer_within_their_bound(covered: Covered) -> None:
    dy = np.random.default_rng(1).standard_normal((30, 64)).astype(np.float32)
    check(trained(), (*drawn(layer, T=30, E=4, R=2, **WIDTHS), dy), "gfx942")
    covered("experts: gradients", "f16", "gfx942")


def layers_of_every_size(op: Op, gpu: str) -> None:
    """Check layers on a GPU."""

    @settings(max_examples=5, deadline=None)
    @given(
        t=st.sampled_from([0, 1, 2, 61, 127]),
        e=st.integers(1, 9),
        r=st.integers(1, 3),
        seed=st.integers(0, 99),
    )
    @example(t=1, e=9, r=1, seed=0)
    def sizes(t: int, e: int, r: int, seed: int) -> None:
        check(op, drawn(op, seed, T=t, E=e, R=r, **WIDTHS), gpu)

    sizes()
    x, first, second, ids, weights = drawn(op, T=67, E=3, R=2, **WIDTHS)
    for one in (np.ones_like(ids), np.full_like(ids, -1), np.arange(134).reshape(67, 2) % 3):
        check(op, (x, first, second, one.astype(ids.dtype), weights), gpu)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "gpu"), [(layer, "gfx942"), (turned, "gfx950")])
def test_layers_of_every_size_within_their_bound(op: Op, gpu: str, covered: Covered) -> None:
    layers_of_every_size(op, gpu)
    covered(f"experts: {op.program.name}", "f16" if op is layer else "bf16", gpu)


@pytest.mark.usefixtures("compiler")
def test_a_captured_layer_takes_other_experts() -> None:
    """Nothing of a layer depends on numbers that the host has seen."""
    args = drawn(layer, T=30, E=4, R=2, **WIDTHS)
    arrays = [ck.to_device(array, device="emu:gfx942") for array in args]
    step = layer.captured(*arrays)
    for seed in (1, 2):
        args[3] = drawn(layer, seed, T=30, E=4, R=2, **WIDTHS)[3]
        ck.to_device(args[3], out=arrays[3])
        compare(layer, args, ck.to_host(step()))


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx1100", "gfx1201"])
def test_other_gpus(gpu: str, covered: Covered) -> None:
    layers_of_every_size(layer, gpu)
    covered("experts: layer", "f16", gpu)
