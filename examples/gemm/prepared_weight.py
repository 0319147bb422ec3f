# SPDX-License-Identifier: MIT
"""A weight put once into the order in which the kernel's lanes read it, saved and loaded.

python examples/gemm/prepared_weight.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res."""
    return ck.gelu(x @ w.T + bias) + res


def main() -> None:
    """Prepare a weight, use it for two batch sizes, and take it to another process."""
    rng = np.random.default_rng(0)
    n, k = 136, 208
    w = rng.uniform(-1, 1, (n, k)).astype(np.float16)
    bias = rng.uniform(-1, 1, n).astype(np.float32)
    weight = ck.prepare(w, linear)
    print(f"prepared for {weight.arch}: {weight.arrangement}")

    print("rows  pipeline        error / bound")
    for m in (8, 72):
        x, res = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (m, n)))
        y = linear(x, weight, bias, res)  # it stands where the weight stands
        result = report(linear, (x, w, bias, res), y)
        result.check()
        assert linear.last is not None
        pipeline = linear.last.launches[0].key.algorithm.pipeline
        print(f"{m:4}  {pipeline:14}  {result.ratio:13.2f}")

    with tempfile.TemporaryDirectory() as folder:
        weight.save(Path(folder) / "w.npz")
        again = ck.PreparedWeight.load(Path(folder) / "w.npz")
    assert (again.unpack() == w).all()
    np.testing.assert_array_equal(linear(x, again, bias, res), y)
    print("saved, loaded: the same bits")


if __name__ == "__main__":
    main()
