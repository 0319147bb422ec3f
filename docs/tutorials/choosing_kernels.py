# SPDX-License-Identifier: MIT

# %% [markdown]
# # Choosing kernels
#
# Which kernel runs, why, what the cost model predicts for others, and how to name a kernel yourself.
#
# A call states a *problem*: extents, strides, dtypes. Rules say which *algorithms* (tile, warps, pipeline, vector widths) are legal for it, and a strategy ranks them. You can do every step by hand,
# without arrays and without a GPU.

# %%
from dataclasses import replace

import cklang as ck

problem = ck.dispatch.problem(4096, 4096, 4096, a=ck.f16)
chosen = ck.dispatch.select(problem, arch="gfx942")
a = chosen.key.algorithm
print("tile", a.tile, "warps", a.warps, "warp tile", a.warp_tile, a.pipeline.value)
#: tile (256, 256, 64) warps (2, 2, 1) warp tile (32, 32, 16) compv3

# %% [markdown]
# ## It depends on the problem
#
# A product with few rows has few tiles. Small tiles make more workgroups, which keep more compute units busy.

# %%
for m in (1, 16, 256, 4096):
    key = ck.dispatch.select(ck.dispatch.problem(m, 4096, 4096, a=ck.f16), arch="gfx942").key
    print(f"M = {m:4}: tile {key.algorithm.tile}")
#: M =    1: tile (16, 64, 128)
#: M =   16: tile (16, 64, 128)
#: M =  256: tile (64, 64, 128)
#: M = 4096: tile (256, 256, 64)

# %% [markdown]
# Alignment counts as well. With an odd K no row of A begins at an address that a wide load takes, so loads are narrow.

# %%
for k in (4096, 4092, 4095):
    algorithm = ck.dispatch.select(ck.dispatch.problem(256, 4096, k, a=ck.f16), arch="gfx942").key.algorithm
    print(f"K = {k}: {algorithm.vector_a} elements of A in a load")
#: K = 4096: 8 elements of A in a load
#: K = 4092: 2 elements of A in a load
#: K = 4095: 1 elements of A in a load

# %% [markdown]
# ## Legal and illegal
#
# `ck.dispatch.advise` lists the rules that an algorithm breaks, with values and what would be legal. `ck.dispatch.fix` proposes the nearest legal algorithm.

# %%
small = ck.dispatch.problem(512, 512, 512, a=ck.f16)
mine = ck.dispatch.Algorithm(
    tile=(96, 128, 32), warps=(4, 1, 1), warp_tile=(32, 32, 16), vector_a=8, vector_b=8, vector_e=8
)
for violation in ck.dispatch.advise(mine, small.signature, "gfx942", small):
    print(violation)
fixed = ck.dispatch.fix(mine, small.signature, "gfx942", small)
print("proposed:", "; ".join(map(str, fixed.changes)))
#: tile-m: the tile along M is 96, must be a multiple of 128 (the block tile is whole warp tiles along M)
#:   legal: tile = 128x128x32 or 128x192x32 or 256x128x32
#:   legal: warps = 1x1x1 or 1x2x1 or 1x1x2
#:   legal: warp_tile = 4x64x16
#: load-a: the tile of A is 96 rows of 32 in accesses of 8 by 256 threads, must be dealt out evenly (every wave takes whole rows of the tile and every thread equally many accesses)
#:   legal: tile = 128x128x32 or 64x128x32 or 192x128x32
#:   legal: warps = 2x1x1 or 1x1x1 or 1x2x1
#:   legal: vector_a = 2 or 1
#: proposed: tile: 96x128x32 -> 128x128x32

# %% [markdown]
# ## In an op
#
# `op.using(algorithm)` is the op with this algorithm for its product. An algorithm that is not legal for a call is an error; no similar kernel runs instead.

# %%
import numpy as np

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


x, w = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
legal = replace(mine, tile=(64, 64, 32), warps=(2, 2, 1))
text = linear.using(legal).explain(x, w, device="emu:gfx942")
print("tile 64x64x32" in text or "64x64x32" in text)
try:
    linear.using(mine).explain(x, w, device="emu:gfx942")
except ck.CkError as mistake:
    print(mistake.code)
#: True
#: K101

# %% [markdown]
# ## Look, then measure
#
# `op.explain(...)` prints the terms of the cost model for the chosen kernel and the runner-up. In a notebook it shows them as a chart.

# %%
large = np.empty((4096, 4096), np.float16)
linear.explain(large, large, device="emu:gfx942")
#: ![linear on AMD Instinct MI300X](pictures/choosing_kernels_1.svg)

# %% [markdown]
# The model is fitted to published times; on a GPU of your own `ck.autotune` measures instead ([Tuning](../tuning.md)). [Choosing kernels](../dispatch.md) has strategies,
# registries and presets.
