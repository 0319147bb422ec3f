# SPDX-License-Identifier: MIT
"""One op for several element types: a type variable, bf16, f32, 8-bit floats and integers.

python examples/gemm/element_types.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16, ck.f32)


@ck.op
def fused(x: T[M, K], w: T[N, K], bias: T[N], res: T[M, N]) -> T[M, N]:
    """Return gelu(x @ w.T + bias) + res in the type of the arguments."""
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def eight(
    x: ck.fp8_fnuz[M, K], w: ck.fp8_fnuz[N, K], scale_x: ck.f32[M], scale_w: ck.f32[N]
) -> ck.bf16[M, N]:
    """Return x @ w.T with scales of rows; gfx942 has this encoding, gfx950 and gfx1201 ck.fp8."""
    return (x @ w.T) * scale_x[:, None] * scale_w


@ck.op
def integers(x: ck.i8[M, K], w: ck.i8[N, K], bias: ck.i32[N]) -> ck.i32[M, N]:
    """Return x @ w.T + bias, which is exact."""
    return x @ w.T + bias


NARROW = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=1, vector_b=1, vector_e=1
)
NARROW = replace(NARROW, vector_d=(1, 1))
F32 = replace(NARROW, tile=(64, 64, 16), warp_tile=(16, 16, 16))


def main() -> None:
    """Run every type and print its error."""
    rng = np.random.default_rng(0)
    m, n, k = 64, 80, 128
    shapes = (m, k), (n, k), (n,), (m, n)
    values = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    print("type      result  largest error  kernel")
    calls: list[tuple[Any, Any, list[Any]]] = [
        (dtype, fused.using(how), [each.astype(dtype.numpy) for each in values])
        for dtype, how in ((ck.f16, NARROW), (ck.bf16, NARROW), (ck.f32, F32))
    ]
    x, w, bias, _ = values
    x8, w8 = (each.astype(ck.fp8_fnuz.numpy) for each in (x, w))
    calls.append((ck.fp8_fnuz, eight, [x8, w8, np.abs(values[3][:, 0]), np.abs(bias)]))
    whole = [(100 * each).astype(kind) for each, kind in ((x, "i1"), (w, "i1"), (bias, "i4"))]
    calls.append((ck.i8, integers, whole))
    for dtype, op, args in calls:
        y = op(*args, device="emu:gfx942")
        result = report(op, args, y)
        result.check()
        distance = np.abs(y.astype(np.float64) - result.expected.astype(np.float64)).max()
        assert op is not integers or distance == 0
        label = op.last.launches[0].key.label
        print(f"{dtype.name:8}  {y.dtype!s:8}  {distance:12.3g}  {label}")


if __name__ == "__main__":
    main()
