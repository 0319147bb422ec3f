# SPDX-License-Identifier: MIT

# %% [markdown]
# # Attention variants
#
# The variants of FlexAttention's gallery, each as a function of one score or of one pair of positions, in one fused kernel.
#
# `ck.attention(q, k, v)` computes `softmax(q @ k.mT / sqrt(D)) @ v` for each batch and head, and stores no score. A variant changes a score, `score=`, or hides
# pairs, `mask=`. Both are functions of one element. Their parameters are matched by name: `s` is the score, `b` and `h` are batch and head, `i` is the row of q, `j` that of k.

# %%
import numpy as np

import cklang as ck

B, H, S, D, W = ck.dims("B H S D W")
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((2, 4, 48, 32)).astype(np.float16) for _ in range(3))


def by_numpy(q, k, v, score=None, mask=None):
    """Attention in float64, with all scores in memory."""
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    b, h, i, j = np.indices(s.shape)
    s = s if score is None else score(s, b, h, i, j)
    s = s if mask is None else np.where(mask(b, h, i, j), s, -np.inf)
    weights = np.exp(s - s.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def compare(name, got, expected):
    """Print how far the kernel is from NumPy."""
    distance = np.abs(got.astype(np.float64) - expected).max()
    print(f"{name:18} {'as NumPy' if distance < 0.01 else f'wrong by {distance:.2g}'}")

# %% [markdown]
# ## Masks
#
# `ck.causal()` and `ck.sliding_window(left, right)` are masks that the kernel knows. It skips tiles in which every pair is hidden. Any function is a mask as well, and masks
# are joined by `&` and `|`.

# %%
@ck.op
def causal(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal())


@ck.op
def window(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.sliding_window(7, 0))


@ck.op
def prefix(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=lambda i, j: (j <= i) | (j < 16))


@ck.op
def documents(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D], doc: ck.i32[B, S]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal() & (lambda b, i, j: doc[b, i] == doc[b, j]))


doc = np.repeat(np.arange(3, dtype=np.int32), 16)[None].repeat(2, axis=0)
compare("causal", causal(q, k, v), by_numpy(q, k, v, mask=lambda b, h, i, j: j <= i))
near = lambda b, h, i, j: (j <= i) & (i - j <= 7)
compare("sliding window", window(q, k, v), by_numpy(q, k, v, mask=near))
shown = lambda b, h, i, j: (j <= i) | (j < 16)
compare("prefix", prefix(q, k, v), by_numpy(q, k, v, mask=shown))
same = lambda b, h, i, j: (j <= i) & (doc[b, i] == doc[b, j])
compare("documents", documents(q, k, v, doc), by_numpy(q, k, v, mask=same))
#: causal             as NumPy
#: sliding window     as NumPy
#: prefix             as NumPy
#: documents          as NumPy

# %% [markdown]
# `doc` is a tensor of the op that the mask reads at one index for each of its axes. FlexAttention's captured tensors are parameters here.
#
# ## Scores
#
# A score function gets the scaled score and returns another.

# %%
@ck.op
def alibi(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D], slope: ck.f32[H]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s, h, i, j: s + slope[h] * (j - i), mask=ck.causal())


@ck.op
def soft_cap(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s: 20.0 * ck.tanh(s / 20.0))


@ck.op
def relative(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D], bias: ck.f16[H, S, S]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s, h, i, j: s + bias[h, i, j])


slope = np.exp2(-np.arange(1, 5)).astype(np.float32)
bias = rng.standard_normal((4, 48, 48)).astype(np.float16)
line = lambda s, b, h, i, j: s + slope[h] * (j - i)
compare("ALiBi", alibi(q, k, v, slope), by_numpy(q, k, v, line, lambda b, h, i, j: j <= i))
capped = lambda s, b, h, i, j: 20 * np.tanh(s / 20)
compare("soft cap", soft_cap(q, k, v), by_numpy(q, k, v, capped))
added = lambda s, b, h, i, j: s + bias[h, i, j]
compare("relative bias", relative(q, k, v, bias), by_numpy(q, k, v, added))
#: ALiBi              as NumPy
#: soft cap           as NumPy
#: relative bias      as NumPy

# %% [markdown]
# ## One kernel each
#
# cklang compiles each function alone and links it into an existing kernel, in 0.3 s. No variant stores its scores: `fusion` shows one kernel for each.

# %%
calls = {
    causal: (q, k, v),
    prefix: (q, k, v),
    documents: (q, k, v, doc),
    alibi: (q, k, v, slope),
    relative: (q, k, v, bias),
}
for op, args in calls.items():
    print(f"{op.program.name:10} {len(op.fusion(*args).kernels)} kernel")
alibi.fusion(q, k, v, slope)
#: causal     1 kernel
#: prefix     1 kernel
#: documents  1 kernel
#: alibi      1 kernel
#: relative   1 kernel
#: ![fusion graph of alibi](pictures/attention_variants_1.svg)

# %% [markdown]
# ## More
#
# Heads may share keys (`k: ck.f16[B, G, S, D]`). `return_lse=True` returns the log-sum-exp of each row, `cu_seqlens_q=` takes packed sequences, `block_table=` a cache in
# pages. `ck.vjp(op)` gives the gradients, with CK Tile's backward kernels. `docs/language_attention.md` has them all.
