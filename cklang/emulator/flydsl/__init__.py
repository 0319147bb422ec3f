# SPDX-License-Identifier: MIT
"""FlyDSL kernels on emulated GPUs.

FlyDSL's own compiler makes the code object and its own runtime launches it; what it asks of HIP is
answered by the emulator.

Example::

    import flydsl.compiler as flyc
    import flydsl.expr as fx
    import torch
    import cklang.emulator.flydsl

    @flyc.kernel
    def double(x: fx.Tensor, out: fx.Tensor):
        at = fx.block_idx.x * 64 + fx.thread_idx.x
        fx.memref_store(fx.memref_load(x, at) * 2.0, out, at)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor, groups: fx.Constexpr[int]):
        double(x, out).launch(grid=(groups, 1, 1), block=(64, 1, 1))

    with cklang.emulator.flydsl.device("gfx950"):
        x, out = torch.rand(256), torch.empty(256)
        launch(x, out, 4)
"""

from cklang.emulator.flydsl.device import device

__all__ = ["device"]
