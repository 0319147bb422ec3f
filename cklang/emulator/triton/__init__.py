# SPDX-License-Identifier: MIT
"""Triton kernels on emulated GPUs.

Triton's own compiler makes the code object, for the GPU that is named; the emulator runs it on
tensors of torch in host memory, or on NumPy arrays.

Example::

    import torch
    import triton
    import triton.language as tl
    import cklang.emulator.triton

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)

    with cklang.emulator.triton.device("gfx950"):
        x, y = torch.rand(1000), torch.rand(1000)
        out = torch.empty(1000)
        add[(4,)](x, y, out, 1000, BLOCK=256)
"""

from cklang.emulator.triton.driver import EmulatedDriver, device
from cklang.emulator.triton.memory import HostArray

__all__ = ["EmulatedDriver", "HostArray", "device"]
