# SPDX-License-Identifier: MIT
"""The experts of DeepSeek-V3 in fp8, as one op: python examples/29_deepseek_experts.py."""

import importlib.util
from typing import Any

import numpy as np

import cklang as ck

T, D, F, E = ck.dims("T D F E")


@ck.fn
def mlp(x: Any, up: Any, s_up: Any, down: Any, s_down: Any) -> Any:
    """Return the SwiGLU of all tokens."""
    q, s = ck.quantise(x, ck.fp8_fnuz, 128)
    y = ck.gemm(q, up.T, scale_a=s, scale_b=s_up.T).to(ck.bf16)
    q, s = ck.quantise(ck.silu(y[:, : y.shape[1] // 2]) * y[:, y.shape[1] // 2 :], ck.fp8_fnuz, 128)
    return ck.gemm(q, down.T, scale_a=s, scale_b=s_down.T)


@ck.op
def experts(
    x: ck.bf16[T, D], gain: ck.f32[D], router: ck.bf16[E, D], bias: ck.f32[E],
    up: ck.fp8_fnuz[E, 2 * F, D], s_up: ck.f32[E, 2 * F / 128, D / 128],
    down: ck.fp8_fnuz[E, D, F], s_down: ck.f32[E, D / 128, F / 128],
    own_up: ck.fp8_fnuz[2 * F, D], s_own_up: ck.f32[2 * F / 128, D / 128],
    own_down: ck.fp8_fnuz[D, F], s_own_down: ck.f32[D / 128, F / 128], E: ck.const[int] = 256,  # noqa: N803
) -> ck.bf16[T, D]:  # fmt: skip
    """Return x, what 8 of E experts make of each token, and what the expert of all tokens does."""
    h = ck.rms_norm(x, gain).to(ck.bf16)
    w, ids = ck.moe_gate(h @ router.T, bias, k=8, scoring="sigmoid", groups=8, group_k=4, scale=2.5)
    y = ck.moe(h, up, down, ids, w, scale_gate_up=s_up, scale_down=s_down)
    return y + mlp(h, own_up, s_own_up, own_down, s_own_down) + x


def arguments(t: int, d: int, f: int, e: int) -> list[Any]:
    """Return drawn arguments."""
    random = np.random.default_rng(0)
    shapes = (t, d), (e, d), (e, 2 * f, d), (e, d, f), (2 * f, d), (d, f)
    x, router, *weights = (random.standard_normal(s, np.float32) for s in shapes)
    pairs = list[Any]()
    for w in weights:
        pairs += ck.cast(w, ck.fp8_fnuz), np.full_like(w[..., ::128, ::128], w.shape[-1] ** -0.5)
    ones = np.ones(max(d, e), np.float32)
    return [ck.cast(x, ck.bf16), ones[:d], ck.cast(router, ck.bf16), 0 * ones[:e], *pairs]


if __name__ == "__main__":
    args = arguments(19, 256, 128, 16)
    y = experts(*args, E=16)
    if importlib.util.find_spec("torch"):
        wanted = importlib.import_module("torch_layers").deepseek_experts(*args)
        assert np.abs(y - wanted).max() < np.abs(wanted).max() / 16, "fp8 has four bits"
    shapes = [(512, 7168), (7168,), (256, 7168), (256,), (256, 4096, 7168), (256, 32, 56)]
    shapes += [(256, 7168, 2048), (256, 56, 16), (4096, 7168), (32, 56), (7168, 2048), (56, 16)]
    layer = (np.empty(shape, array.dtype) for shape, array in zip(shapes, args, strict=True))
    print(experts.summary(*layer, device="emu:gfx942"), "\nPASS")
