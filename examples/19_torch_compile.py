# SPDX-License-Identifier: MIT
"""An op inside a torch module: compiled without a graph break, for any batch, and exported.

python examples/19_torch_compile.py
"""

from __future__ import annotations

import torch
from torch._dynamo.testing import CompileCounterWithBackend

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear_gelu(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    """Return gelu(x w^T + bias), in one kernel."""
    return ck.gelu(x @ w.T + bias)


class Layer(torch.nn.Module):
    """torch's norm before the op, torch's scale behind it."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width, dtype=torch.float16)
        self.w = torch.nn.Parameter(torch.randn(hidden, width).half() / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(hidden).half())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer of x."""
        y: torch.Tensor = linear_gelu(self.norm(x), self.w, self.bias)
        return y * 2.0

    def in_torch(self, x: torch.Tensor) -> torch.Tensor:
        """Return the same without the op, in float32."""
        y = torch.nn.functional.linear(self.norm(x).float(), self.w.float(), self.bias.float())
        return torch.nn.functional.gelu(y, approximate="tanh").half() * 2.0


def main() -> None:
    """Compare the layer, eager, compiled and exported, with torch's own functions."""
    layer = Layer(64, 96).requires_grad_(False)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, backend=counter, fullgraph=True)
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(layer, (torch.randn(8, 64).half(),), dynamic_shapes=({0: rows},))
    for count in (33, 100):
        x = torch.randn(count, 64).half()
        torch._dynamo.mark_dynamic(x, 0)
        for run in (layer, compiled, program.module()):
            torch.testing.assert_close(run(x), layer.in_torch(x), rtol=2e-3, atol=4e-3)
    assert counter.frame_count == 1, "one graph serves all batches"
    print("PASS")


if __name__ == "__main__":
    main()
