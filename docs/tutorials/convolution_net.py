# SPDX-License-Identifier: MIT

# %% [markdown]
# # A convolution network
#
# A small residual network for images: convolutions with bias, activation and residual in their epilogues, pooling, and a classifier, as one op.
#
# Arrays have their channels last, `[N, H, W, C]`: then the channels of a pixel are contiguous, and the kernel loads them as it loads rows of a product. A convolution is a product whose rows of A
# are patches of the image, which no kernel ever stores.

# %%
import numpy as np

import cklang as ck

N, H, W, C, F, L = ck.dims("N H W C F L")


@ck.fn
def unit(x, w, bias, stride=1):
    """Convolve 3×3, add the bias, and keep what is above 0."""
    return ck.relu(ck.conv(x, w, stride=stride, padding=1) + bias).to(ck.f16)


@ck.op
def block(
    x: ck.f16[N, H, W, C],
    w1: ck.f16[C, 3, 3, C],
    b1: ck.f16[C],
    w2: ck.f16[C, 3, 3, C],
    b2: ck.f16[C],
) -> ck.f16[N, H, W, C]:
    y = unit(x, w1, b1)
    return ck.relu(ck.conv(y, w2, padding=1) + b2 + x)


rng = np.random.default_rng(0)


def weight(*shape):
    """Return random weights that keep the size of what they multiply."""
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float16)


x = rng.standard_normal((2, 14, 14, 32)).astype(np.float16)
b = np.zeros(32, np.float16)
args = (x, weight(32, 3, 3, 32), b, weight(32, 3, 3, 32), b)
y = block(*args)
print(y.shape, len(block.fusion(*args).kernels), "kernels")
#: (2, 14, 14, 32) 2 kernels

# %% [markdown]
# Two convolutions, two kernels: bias, ReLU and the residual are in epilogues. `unit` is a helper (`@ck.fn`), which is inlined where it is called; `stride=1` is a number of the program.
#
# ## The whole network
#
# A stem with stride 2, two blocks, the mean over all pixels, and a classifier. The mean is a kernel of rows.

# %%
@ck.op
def network(
    x: ck.f16[N, H, W, 8],
    stem: ck.f16[C, 3, 3, 8],
    w1: ck.f16[C, 3, 3, C],
    w2: ck.f16[C, 3, 3, C],
    w3: ck.f16[C, 3, 3, C],
    w4: ck.f16[C, 3, 3, C],
    bias: ck.f16[C],
    head: ck.f16[L, C],
) -> ck.f32[N, L]:
    y = unit(x, stem, bias, stride=2)
    y = ck.relu(ck.conv(unit(y, w1, bias), w2, padding=1) + bias + y).to(ck.f16)
    y = ck.relu(ck.conv(unit(y, w3, bias), w4, padding=1) + bias + y).to(ck.f16)
    pooled = ck.mean(y, axis=(1, 2)).to(ck.f16)
    return pooled @ head.T


image = rng.standard_normal((2, 28, 28, 8)).astype(np.float16)
weights = [weight(32, 3, 3, 32) for _ in range(4)]
args = (image, weight(32, 3, 3, 8), *weights, b, weight(10, 32))
scores = network(*args)
plan = network.fusion(*args)
print(scores.shape, len(plan.kernels), "kernels")
for kernel in plan.kernels:
    print(" ", type(kernel).__name__)
plan
#: (2, 10) 7 kernels
#:   FusedConv
#:   FusedConv
#:   FusedConv
#:   FusedConv
#:   FusedConv
#:   FusedRows
#:   FusedGemm
#: ![fusion graph of network](pictures/convolution_net_1.svg)

# %% [markdown]
# ## Images with channels first
#
# torch's images are `[N, C, H, W]`. A tensor with `memory_format=torch.channels_last` has its channels last in memory already, and `x.permute(0, 2, 3, 1)` is a view that the op
# reads in place. For arrays that are really channels first write `layout="nchw"`: a kernel copies them at each call.
#
# ## Gradients
#
# `ck.conv_grad_input` and `ck.conv_grad_weight` are convolutions as well. `ck.vjp` writes them for you.

# %%
backward = ck.vjp(block, wrt=("w1", "w2"))
args = (x, weight(32, 3, 3, 32), b, weight(32, 3, 3, 32), b)
dw1, dw2 = backward(*args, y)
print(dw1.shape, dw2.shape, len(backward.fusion(*args, y).kernels), "kernels")
#: (32, 3, 3, 32) (32, 3, 3, 32) 6 kernels
