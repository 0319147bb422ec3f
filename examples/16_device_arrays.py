# SPDX-License-Identifier: MIT
"""A script on a GPU without torch: arrays in its memory, two ops, and the result back.

python examples/16_device_arrays.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def layer(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias)."""
    return ck.gelu(x @ w.T + bias)


def main() -> None:
    """Run two layers without leaving the device, and check the second."""
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-1, 1, (rows, 64)).astype(np.float16) for rows in (96, 64))
    bias = rng.uniform(-1, 1, 64).astype(np.float32)

    near_x, near_w, near_bias = map(ck.to_device, (x, w, bias))
    hidden = layer(near_x, near_w, near_bias)  # an array of the device: nothing is copied
    y = ck.empty(hidden.shape, ck.f16)
    layer(hidden, near_w, near_bias, out=y)

    # Memory that another library has allocated: its address, extents and type are enough.
    borrowed = ck.DeviceArray(y.pointer, y.shape, ck.f16, owner=y)
    ck.synchronize()
    compared = report(layer, (ck.to_host(hidden), w, bias), ck.to_host(borrowed))
    compared.check()
    print(f"{hidden}\n{compared}")


if __name__ == "__main__":
    main()
