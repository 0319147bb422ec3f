# SPDX-License-Identifier: MIT
"""A GPT-2 block written in torch, compiled as it is: ``torch.compile(model, backend="cklang")``.

Its graph becomes one program of seven kernels: two norms, the attention, and four products with
what follows them. Other batches run the same program.

python examples/21_torch_backend.py
"""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

import cklang.torch


class Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, size: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.o = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x [batch, rows, size] after attention and MLP."""
        batch, rows, size = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, rows, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        o = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(o.transpose(1, 2).reshape(batch, rows, size))
        return torch.add(x, self.down(gelu(self.up(self.norm2(x)), approximate="tanh")))


def main() -> None:
    """Run two batches, check them, and print what became of the model."""
    torch.manual_seed(0)
    model = Block().half().eval()
    compiled = torch.compile(model, backend="cklang")
    for batch in (2, 3):
        x = torch.randn(batch, 16, 64, dtype=torch.float16)
        torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad():
            y, exact = compiled(x), copy.deepcopy(model).double()(x.double())
        print(f"batch {batch}: largest error {(y - exact).abs().max():.4f}")
        assert (y - exact).abs().max() < 0.01
    report = cklang.torch.report()
    print(report)
    assert (len(report.graphs), report.kernels, report.share) == (1, 7, 1.0)
    print("PASS")


if __name__ == "__main__":
    main()
