# SPDX-License-Identifier: MIT

# %% [markdown]
# # A Llama block
#
# Norms, rotary embedding, grouped-query attention and SwiGLU of Llama 3 as one op: which kernels it becomes, where values are rounded, and how to check it.
#
# The op is the formula of the block, on whole tensors. There is no transpose to make heads and none to join them again: `ck.einsum` names axes, and the products write
# in the order that the attention reads.

# %%
import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, P, H, D, F = ck.dims("B S E P H D F")


@ck.fn
def rotary(x, cos, sin):
    """Rotate the halves of each head by the angle of its position."""
    a, b = ck.split(x, 2, axis=-1)
    return ck.concat([a * cos - b * sin, b * cos + a * sin], axis=-1).to(ck.f16)


@ck.op
def llama_block(
    x: ck.f16[B, S, E],
    gain1: ck.f32[E],
    qkv: ck.f16[P, D, E],
    cos: ck.f32[S, D // 2],
    sin: ck.f32[S, D // 2],
    wo: ck.f16[E, H, D],
    gain2: ck.f32[E],
    gate: ck.f16[F, E],
    up: ck.f16[F, E],
    down: ck.f16[E, F],
    *,
    kv: ck.const[int],
) -> ck.f16[B, S, E]:
    h = ck.rms_norm(x, gain1, eps=1e-5).to(ck.f16)
    q, k, v = ck.split(ck.einsum("bse,pde->bpsd", h, qkv).to(ck.f16), (H, kv, kv), axis=1)
    q, k = rotary(q, cos, sin), rotary(k, cos, sin)
    o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
    y = (ck.einsum("bhsd,ehd->bse", o, wo) + x).to(ck.f16)
    h = ck.rms_norm(y, gain2, eps=1e-5).to(ck.f16)
    return (ck.silu(h @ gate.T) * (h @ up.T)).to(ck.f16) @ down.T + y

# %% [markdown]
# - `qkv` holds the weights of all heads: `P` is `H + 2 * kv`. One product computes q, k and v, and `ck.split` makes views of its result.
# - `kv` is a compile-time constant, the number of heads of keys. The attention shares each of them among several heads of q.
# - Each `.to(ck.f16)` is the dtype in which a value is stored between kernels, as in the original model.

# %%
b, s, e, h, kv, d, f = 2, 40, 128, 4, 2, 64, 192
rng = np.random.default_rng(0)


def weight(*shape, columns=1):
    """Return random weights that keep the size of what they multiply."""
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[-columns:]))).astype(np.float16)


angles = np.arange(s)[:, None] / 500_000.0 ** (np.arange(0, d, 2) / d)
args = [
    rng.standard_normal((b, s, e)).astype(np.float16),
    np.ones(e, np.float32),
    weight(h + 2 * kv, d, e),
    np.cos(angles).astype(np.float32),
    np.sin(angles).astype(np.float32),
    weight(e, h, d, columns=2),
    np.ones(e, np.float32),
    weight(f, e),
    weight(f, e),
    weight(e, f),
]
y = llama_block(*args, kv=kv)
plan = llama_block.fusion(*args, kv=kv)
print(y.shape, len(plan.kernels), "kernels")
for number, kernel in enumerate(plan.kernels):
    print(number, type(kernel).__name__)
plan
#: (2, 40, 128) 9 kernels
#: 0 FusedRows
#: 1 FusedGemm
#: 2 FusedRows
#: 3 FusedRows
#: 4 FusedAttention
#: 5 FusedGemm
#: 6 FusedRows
#: 7 FusedGemm
#: 8 FusedGemm
#: ![fusion graph of llama_block](pictures/llama_block_1.svg)

# %% [markdown]
# The rotary embedding of q and of k is a kernel each, since the attention reads its operands from memory. The gate and the up projection are one kernel, which multiplies one A by two
# weights and joins the two sums. Both residuals are in epilogues.
#
# ## Check it
#
# `report` compares with the reference: the same program, evaluated in NumPy with each rounding where the op has it. The bound of an element follows every rounding through the chain; after nine kernels
# it is wide, so look at the distance as well.

# %%
result = report(llama_block, args, y, kv=kv)
distance = np.abs(y.astype(np.float64) - result.expected.astype(np.float64)).max()
print("within the bound:", result.ratio <= 1, "- distance below 0.05:", distance < 0.05)
#: within the bound: True - distance below 0.05: True

# %% [markdown]
# ## Price it
#
# A plan needs shapes and no numbers. These are the sizes of Llama 3 8B with 512 tokens, in arrays that nobody fills.

# %%
b, s, e, h, kv, d, f = 1, 512, 4096, 32, 8, 128, 14336
shapes = [
    (b, s, e),
    (e,),
    (h + 2 * kv, d, e),
    (s, d // 2),
    (s, d // 2),
    (e, h, d),
    (e,),
    (f, e),
    (f, e),
    (e, f),
]
large = [np.empty(shape, each.dtype) for shape, each in zip(shapes, args, strict=True)]
summary = llama_block.summary(*large, kv=kv, device="emu:gfx942")
print(summary.launches, "launches on", summary.gpu)
summary
#: 9 launches on AMD Instinct MI300X
#: ![Predicted on AMD Instinct MI300X](pictures/llama_block_2.svg)

# %% [markdown]
# The chart has the predicted time of each launch. `print(summary)` is a table, with the bytes as well.
