# SPDX-License-Identifier: MIT
# needs: torch

# %% [markdown]
# # Gradients and torch
#
# The gradient of an op as an op, a training loop in NumPy, and the same op in a torch module, with autograd and `torch.compile`.
#
# ## A gradient is an op
#
# `ck.vjp(op)` returns the op that computes the gradients of `op`. It is planned, fused, explained and tested like any other.

# %%
import numpy as np
import torch

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear_gelu(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


rng = np.random.default_rng(0)
x, w, bias = (rng.standard_normal(s).astype(np.float16) for s in ((64, 32), (48, 32), (48,)))
dy = np.ones((64, 48), np.float16)
backward = ck.vjp(linear_gelu)
dx, dw, dbias = backward(x, w, bias, dy)
print(dx.shape, dw.shape, dbias.shape)
plan = backward.fusion(x, w, bias, dy)
print(len(plan.kernels), "kernels")
plan
#: (64, 32) (48, 32) (48,)
#: 4 kernels
#: ![fusion graph of linear_gelu_vjp](pictures/gradients_and_torch_1.svg)

# %% [markdown]
# The forward product is computed again, with the derivative of GELU and `dy` in its epilogue: no value of the forward call is kept. Then come a product for `dx`, one for `dw`, and the sum for `dbias`.
#
# ## A training loop
#
# `ck.grad(op)` is for a loss, an op whose result is one number.

# %%
@ck.op
def loss(x: ck.f32[M, K], w: ck.f32[N, K], target: ck.f32[M, N]) -> ck.f32[()]:
    return ck.mean(ck.square(ck.tanh(x @ w.T) - target))


gradient = ck.grad(loss, wrt="w")
points = rng.standard_normal((128, 16)).astype(np.float32)
hidden = rng.standard_normal((4, 16)).astype(np.float32) / 4
target = np.tanh(points @ hidden.T)
weight = np.zeros((4, 16), np.float32)
for step in range(31):
    if step % 10 == 0:
        print(f"step {step:2}: loss {float(loss(points, weight, target)):.4f}")
    weight -= 4.0 * gradient(points, weight, target)
#: step  0: loss 0.4355
#: step 10: loss 0.0003
#: step 20: loss 0.0000
#: step 30: loss 0.0000

# %% [markdown]
# ## In a torch module
#
# An op takes tensors, reads them in place and returns tensors. Autograd calls the gradient of the op. Nothing has to be registered.

# %%
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.w = torch.nn.Parameter((torch.randn(48, 32, generator=generator) / 6).half())
        self.bias = torch.nn.Parameter(torch.zeros(48).half())

    def forward(self, x):
        return linear_gelu(x, self.w, self.bias)


layer = Layer()
tensor = torch.from_numpy(x)
layer(tensor).float().square().mean().backward()
plain = torch.nn.functional.gelu(tensor.float() @ layer.w.detach().float().T)
print(torch.allclose(layer(tensor).float(), plain, atol=0.01), layer.w.grad.shape)
#: True torch.Size([48, 32])

# %% [markdown]
# While torch traces, a call is one node of the graph, a custom op under `torch.ops.cklang`. So `torch.compile` makes no graph break. `aot_eager` traces forward and backward and compiles
# no C++.

# %%
compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
print(torch.equal(compiled(tensor), layer(tensor)))
#: True

# %% [markdown]
# `torch.compile(model, backend="cklang")` goes the other way: it compiles a model that is written in torch to kernels of cklang. `docs/torch_backend.md` has an example.
