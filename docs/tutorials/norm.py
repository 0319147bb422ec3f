# SPDX-License-Identifier: MIT

# %% [markdown]
# # A norm
#
# Write RMSNorm in the op's own words, see that it becomes one kernel, fuse it with the operations around it, and test it.
#
# A norm needs the whole row before it can compute any element of it. On a GPU one workgroup, or one wave, takes a row: it reads it once, reduces it in registers,
# and writes the result. In cklang you write the formula.

# %%
import numpy as np

import cklang as ck
from cklang.testing import check

M, N, K = ck.dims("M N K")


@ck.op
def rms_norm(x: ck.f16[M, N], gain: ck.f16[N]) -> ck.f16[M, N]:
    mean_square = ck.mean(x * x, axis=-1, keepdims=True)
    return x * ck.rsqrt(mean_square + 1e-6) * gain


rng = np.random.default_rng(0)
x = rng.standard_normal((300, 1000)).astype(np.float16)
gain = np.ones(1000, np.float16)
y = rms_norm(x, gain)
print(y.shape, y.dtype, f"{np.mean(np.square(y.astype(np.float32))):.3f}")
#: (300, 1000) float16 1.000

# %% [markdown]
# The operations of the op compute in f32, whatever the arguments are, and the result is rounded once, to the dtype of the annotation.
#
# `fusion` gives the kernels of a call without launching them. One kernel reads each row once, so only the bytes of the arguments and the result move.

# %%
print(len(rms_norm.fusion(x, gain).kernels), "kernel")
moved = x.nbytes + gain.nbytes + y.nbytes
print(f"{moved:,} bytes moved")
#: 1 kernel
#: 1,202,000 bytes moved

# %% [markdown]
# ## Around the norm
#
# A residual before the norm and a scale for fp8 after it are computed row by row too. So they join the kernel, and no intermediate value goes through memory.

# %%
@ck.op
def add_norm_quantise(
    x: ck.f16[M, N], residual: ck.f16[M, N], gain: ck.f16[N]
) -> tuple[ck.f16[M, N], ck.fp8_fnuz[M, N], ck.f32[M, 1]]:
    h = (x + residual).to(ck.f16)
    n = ck.rms_norm(h, gain)
    scale = ck.max(ck.abs(n), axis=-1, keepdims=True) / 240.0
    return h, (n / scale).to(ck.fp8_fnuz), scale


h, q, scale = add_norm_quantise(x, x, gain)
print(len(add_norm_quantise.fusion(x, x, gain).kernels), "kernel")
print(h.dtype, q.dtype, scale.shape)
add_norm_quantise.fusion(x, x, gain)  # a notebook draws it
#: 1 kernel
#: float16 float8_e4m3fnuz (300, 1)
#: ![fusion graph of add_norm_quantise](pictures/norm_1.svg)

# %% [markdown]
# Blue boxes are what kernels compute. The three here are the results of one kernel, which reads its operands along the dashed lines.
#
# `.to(ck.f16)` rounds `h`, because it is a result: the norm should read what the next layer will read. Without the cast the norm would take the sum in f32.
#
# ## In front of a product
#
# A product reads tiles of its operands again and again, so a norm in its prologue would be computed again and again. The planner stores the norm, and the product
# is a second kernel.

# %%
@ck.op
def norm_linear(x: ck.f16[M, K], gain: ck.f16[K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.rms_norm(x, gain).to(ck.f16) @ w.T


w = rng.standard_normal((64, 1000)).astype(np.float16)
plan = norm_linear.fusion(x, gain, w)
print([type(kernel).__name__ for kernel in plan.kernels])
plan
#: ['FusedRows', 'FusedGemm']
#: ![fusion graph of norm_linear](pictures/norm_2.svg)

# %% [markdown]
# ## A test
#
# `check` draws extents, strides and numbers, and compares with NumPy in float64. In the second op the mean is a sum by mistake.
# The call that fails is shrunk to the smallest one: a row of one element cannot tell a sum from a mean.

# %%
def expected(x, gain):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * gain


print(check(rms_norm, expected, examples=10), "calls are right")


@ck.op
def wrong(x: ck.f16[M, N], gain: ck.f16[N]) -> ck.f16[M, N]:
    return x * ck.rsqrt(ck.sum(x * x, axis=-1, keepdims=True) + 1e-6) * gain


try:
    check(wrong, expected, examples=10)
except ck.CkError as mistake:
    print(mistake)
#: 10 calls are right
#: CK-T005 wrong differs from expected on the device of calls
#:    = CK-T001 2 of 2 elements are outside their bound
#:    =    = worst at [0, 0] of the result, float16[1, 2]
#:    =    = got      0.316162109375
#:    =    = expected 0.447265625
#:    =    = error    0.131104, bound 0.000104148, ratio 1259
#:    = the smallest failing call is Call(op=wrong, dims={'M': 1, 'N': 2})
