# SPDX-License-Identifier: MIT
"""The loss of a language model's last layer without its logits in memory.

Three kernels. The product's kernel stores the log-sum-exp of each 64 logits of a token and no
logit. A kernel of rows multiplies each token by the row of its target, and another one joins the
log-sum-exps.

python examples/26_linear_cross_entropy.py
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
    """Return the loss of each token: the log-sum-exp of its logits minus that of its target."""
    own = ck.sum(x * ck.take(w, targets, axis=0), axis=-1)
    return ck.logsumexp(x @ w.T, axis=-1) - own


@ck.op
def stored(x: ck.f16[M, E], w: ck.f16[V, E], targets: ck.i32[M]) -> ck.f32[M]:
    """The same loss by logits that a kernel writes and another one reads."""
    return ck.cross_entropy(x @ w.T, targets)


def arrays(m: int, v: int, e: int) -> tuple[np.ndarray, ...]:
    """Return ``m`` tokens, a head of ``v`` words, and targets."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((m, e), (v, e)))
    return (x / 4).astype(np.float16), w.astype(np.float16), rng.integers(0, v, m, np.int32)


def by_torch(*args: np.ndarray) -> Any:
    """Return the loss by torch on the CPU, in f64."""
    import torch
    from torch.nn.functional import cross_entropy

    x, w, targets = (torch.tensor(each) for each in args)
    return cross_entropy(x.double() @ w.double().T, targets.long(), reduction="none").numpy()


def main() -> None:
    """Run a small head, check it, and compare the bytes of the one of Llama 3."""
    args = arrays(100, 1000, 64)
    y = loss(*args)
    result = report(loss, args, y)
    print(result)
    result.check()
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y - by_torch(*args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 1e-4
    assert loss.last is not None
    assert sorted(each.key.family for each in loss.last.launches) == ["gemm", "rowwise", "rowwise"]
    print("Llama 3 8B, 2048 tokens, 128,256 words:")
    head = [np.empty((2048, 4096), np.float16), np.empty((128_256, 4096), np.float16)]
    fused, two = (op.summary(*head, np.empty(2048, np.int32), device="emu:gfx942")
                  for op in (loss, stored))  # fmt: skip
    print(f"{fused}\nwith logits in memory:\n{two}")
    assert fused.bytes < two.bytes - 2048 * 128_256 * 4
    print("PASS")


if __name__ == "__main__":
    main()
