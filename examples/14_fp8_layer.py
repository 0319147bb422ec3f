# SPDX-License-Identifier: MIT
"""An MLP in fp8 whose activations are quantised on the way: one scale for each token.

Between the products a kernel of rows finds the largest magnitude of each token, divides by it and
stores fp8 beside the scales; the epilogue of the next product multiplies by them. So every operand
of a product is 8 bits wide, and the op is four kernels.

python examples/14_fp8_layer.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

S, E, F = ck.dims("S E F")
LARGEST = 240.0
"""Of ``fp8_fnuz``."""


@ck.fn
def scale_of(x: Any) -> Any:
    """Return what divides each row, so that its largest element is the largest of fp8."""
    return ck.maximum(ck.max(ck.abs(x), axis=-1, keepdims=True), 1e-6) / LARGEST


@ck.op
def fp8_mlp(
    x: ck.f16[S, E],
    gain: ck.f32[E],
    up: ck.fp8_fnuz[F, E],
    up_scale: ck.f32[F],
    down: ck.fp8_fnuz[E, F],
    down_scale: ck.f32[E],
) -> ck.f16[S, E]:
    """Return x plus the MLP of its norm; weights have a scale for each of their rows."""
    h = ck.rms_norm(x, gain)
    a = scale_of(h)
    hidden = ck.silu(((h / a).to(ck.fp8_fnuz) @ up.T) * a * up_scale).to(ck.f16)
    b = scale_of(hidden)
    return ((hidden / b).to(ck.fp8_fnuz) @ down.T) * b * down_scale + x


def quantised(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a weight in fp8 and the scale of each of its rows."""
    scale = np.abs(weight).max(axis=1) / LARGEST
    return (weight / scale[:, None]).astype(ck.fp8_fnuz.numpy), scale.astype(np.float32)


def arrays(s: int, e: int, f: int) -> tuple[np.ndarray, ...]:
    """Make random operands for ``s`` tokens."""
    rng = np.random.default_rng(0)
    up, down = (rng.standard_normal(shape) / shape[1] ** 0.5 for shape in ((f, e), (e, f)))
    x = rng.standard_normal((s, e)).astype(np.float16)
    return x, np.ones(e, np.float32), *quantised(up), *quantised(down)


def main() -> None:
    """Run a small layer, compare it with floats, and price a larger one."""
    args = arrays(50, 128, 256)
    y = fp8_mlp(*args)
    assert fp8_mlp.last is not None
    families = [launch.key.family for launch in fp8_mlp.last.launches]
    assert families == ["rowwise", "gemm", "rowwise", "gemm"], families
    reference = report(fp8_mlp, args, y).expected
    distance = np.abs(y.astype(np.float64) - reference)
    # A value between two of fp8 may be rounded to either.
    print(f"difference to the reference: mean {distance.mean():.2g}, largest {distance.max():.2g}")
    assert distance.mean() < 3e-3
    assert distance.max() < 0.1
    x, gain, up, up_scale, down, down_scale = (each.astype(np.float64) for each in args)
    h = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * gain
    h = h @ (up * up_scale[:, None]).T
    floats = (h / (1 + np.exp(-h))) @ (down * down_scale[:, None]).T + x
    error = np.abs(y - floats).mean() / np.abs(floats - x).mean()
    print(f"difference to activations in floats: {error:.1%} of what the layer adds")
    assert error < 0.06
    print(fp8_mlp.summary(*arrays(512, 1024, 3584), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
