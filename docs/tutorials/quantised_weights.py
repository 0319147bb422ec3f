# SPDX-License-Identifier: MIT

# %% [markdown]
# # Quantised weights
#
# A weight in 4 or 8 bits, with scales for each row or each group of elements: what it saves, what it costs in accuracy, and how both fit one kernel.
#
# A layer with few tokens waits for its weight to come from memory. A weight of 4 bits is a quarter of the bytes of f16. It is converted where it is used: in the *prologue* of the product, as the
# kernel loads it. Scales of rows are applied in the *epilogue*, to the sums.

# %%
import numpy as np

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear_i4(x: ck.f16[M, K], w: ck.i4[N, K], scale: ck.f32[N]) -> ck.f16[M, N]:
    return (x @ w.T) * scale


rng = np.random.default_rng(0)
weight = rng.standard_normal((256, 512)).astype(np.float32)
x = rng.standard_normal((16, 512)).astype(np.float16)


def quantise(weight, largest, dtype):
    """Return a weight as integers from -largest to largest, and the factor of each row."""
    scale = np.abs(weight).max(axis=1) / largest
    return np.rint(weight / scale[:, None]).astype(dtype), scale.astype(np.float32)


codes, scale = quantise(weight, 7, ck.i4.numpy)
packed = ck.pack(codes)  # once: two elements in a byte
exact = x.astype(np.float64) @ weight.T.astype(np.float64)


def distance(y):
    """Return how far a result is from the unquantised layer."""
    return f"{np.linalg.norm(y.astype(np.float64) - exact) / np.linalg.norm(exact):.3f}"


print(
    "bytes of the weight:", weight.astype(np.float16).nbytes, "in f16,", packed.data.nbytes, "in i4"
)
print("relative distance:", distance(linear_i4(x, packed, scale)))
print(len(linear_i4.fusion(x, packed, scale).kernels), "kernel")
#: bytes of the weight: 262144 in f16, 65536 in i4
#: relative distance: 0.134
#: 1 kernel

# %% [markdown]
# ## 8 bits
#
# The same with `ck.i8`, or with an 8-bit float. The cast says in which type the kernel multiplies. On MI300X the encoding is `ck.fp8_fnuz`, on MI355X `ck.fp8`.

# %%
@ck.op
def linear_i8(x: ck.f16[M, K], w: ck.i8[N, K], scale: ck.f32[N]) -> ck.f16[M, N]:
    return (x @ w.to(ck.f16).T) * scale


codes8, scale8 = quantise(weight, 127, np.int8)
print("i8:", distance(linear_i8(x, codes8, scale8)))
#: i8: 0.007

# %% [markdown]
# If the activations have 8 bits too, the matrix instruction multiplies 8-bit operands, at twice the rate. Then each row of
# `x` needs a scale of its own, which depends on the row: a reduction, in a kernel before the product.

# %%
@ck.op
def linear_fp8(x: ck.f16[M, K], w: ck.fp8_fnuz[N, K], scale: ck.f32[N]) -> ck.f16[M, N]:
    own = ck.maximum(ck.max(ck.abs(x), axis=-1, keepdims=True), 1e-6) / 240.0
    return ((x / own).to(ck.fp8_fnuz) @ w.T) * own * scale


largest = np.abs(weight).max(axis=1) / 240
fp8 = (weight / largest[:, None]).astype(ck.fp8_fnuz.numpy)
print("fp8:", distance(linear_fp8(x, fp8, largest.astype(np.float32))))
plan = linear_fp8.fusion(x, fp8, largest.astype(np.float32))
print(len(plan.kernels), "kernels")
plan
#: fp8: 0.036
#: 2 kernels
#: ![fusion graph of linear_fp8](pictures/quantised_weights_1.svg)

# %% [markdown]
# ## Scales of groups
#
# One scale for a row of 512 is coarse: one large element spoils all. With a scale for each 128 elements of K, the prologue multiplies each element by the scale of its group. The
# index of the group is computed from the position.

# %%
G = ck.dims("G")[0]


@ck.op
def linear_groups(x: ck.f16[M, K], w: ck.i8[N, G, 128], scale: ck.f16[N, G]) -> ck.f16[M, N]:
    dense = (w * scale[:, :, None]).to(ck.f16)
    return x @ dense.reshape(N, G * 128).T


grouped = weight.reshape(256, 4, 128)
steps = np.abs(grouped).max(axis=2) / 127
codes = np.rint(grouped / steps[:, :, None]).astype(np.int8)
print("i8 in groups:", distance(linear_groups(x, codes, steps.astype(np.float16))))
print(len(linear_groups.fusion(x, codes, steps.astype(np.float16)).kernels), "kernels")
#: i8 in groups: 0.006
#: 2 kernels

# %% [markdown]
# `explain` says where each conversion is computed. For blocks of 32 with scales of powers of two (MX formats, `ck.fp4` and `ck.e8m0`), MI355X has matrix instructions that take the scales:
# `docs/language_scales.md`, *Block scales*.
