# SPDX-License-Identifier: MIT
# needs: triton

# %% [markdown]
# # Triton kernels on an emulated MI300X
#
# Run `@triton.jit` kernels unchanged on emulated AMD GPUs, and compare them with an op.
#
# Triton's own compiler makes the code object for the GPU that is named, and the emulator executes its instructions. Tensors are torch's, in host memory.

# %%
import torch
import triton
import triton.language as tl

import cklang.emulator.triton


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, values / tl.sum(values, 0), inside)


x = torch.randn(16, 100, generator=torch.Generator().manual_seed(0))
with cklang.emulator.triton.device("gfx942"):
    out = torch.empty_like(x)
    softmax_kernel[(16,)](x, out, 100, BLOCK=128)
print(torch.allclose(out, torch.softmax(x, -1), atol=1e-6))
#: True

# %% [markdown]
# ## Another GPU
#
# The name of the GPU is all that changes. RDNA4 has waves of 32 lanes, and other instructions.

# %%
with cklang.emulator.triton.device("gfx1201"):
    out = torch.empty_like(x)
    softmax_kernel[(16,)](x, out, 100, BLOCK=128)
print(torch.allclose(out, torch.softmax(x, -1), atol=1e-6))
#: True

# %% [markdown]
# ## The same as an op
#
# In cklang there are no program instances, masks or blocks: the row may have any length.

# %%
import cklang as ck

M, N = ck.dims("M N")


@ck.op
def softmax(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.softmax(x, axis=-1)


print(torch.allclose(softmax(x), out, atol=1e-6))
softmax
#: True
#: ![fusion graph of softmax](pictures/triton_kernels_1.svg)

# %% [markdown]
# A fault in a kernel is a `CkDeviceError` with the line of the Python source, and `CKLANG_SANITIZE` checks these kernels too (`docs/triton.md`).
