# SPDX-License-Identifier: MIT
"""The loss of a language model's last layer without its logits in memory.

The product's kernel stores the log-sum-exp of each 64 logits of a token and no logit. A kernel of
rows multiplies each token by the row of its target and joins the log-sum-exps.

python examples/25_linear_cross_entropy.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

M, V, E = ck.dims("M V E")


@ck.op
def loss(x: ck.f16[M, E], w: ck.f16[V, E], targets: ck.i32[M]) -> ck.f32[M]:
    """Return the loss of each token."""
    return ck.cross_entropy(x @ w.T, targets)


def by_torch(*args: np.ndarray) -> Any:
    """Return the loss by torch on the CPU, in f64."""
    import torch
    from torch.nn.functional import cross_entropy

    x, w, targets = (torch.tensor(each) for each in args)
    return cross_entropy(x.double() @ w.double().T, targets.long(), reduction="none").numpy()


def main() -> None:
    """Run a small head, check it, and price the one of Llama 3."""
    rng, m, v, e = np.random.default_rng(0), 100, 1000, 64
    x, w = (rng.standard_normal(shape, np.float32) / 2 for shape in ((m, e), (v, e)))
    args = x.astype(np.float16), w.astype(np.float16), rng.integers(0, v, m, np.int32)
    y = loss(*args)
    report(loss, args, y).check()
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y - by_torch(*args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 1e-4
    assert loss.last is not None
    assert {each.key.family for each in loss.last.launches} == {"gemm", "rowwise"}
    assert loss.last.workspace_bytes < m * v, "the logits have four times as many bytes"
    print("Llama 3 8B, 2048 tokens, 128,256 words:")
    head = [np.empty((2048, 4096), np.float16), np.empty((128_256, 4096), np.float16)]
    print(loss.summary(*head, np.empty(2048, np.int32), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
