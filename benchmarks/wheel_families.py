# SPDX-License-Identifier: MIT
"""The first calls of an op of each essential family, each checked beside NumPy.

``python benchmarks/wheel_families.py gfx942`` is for an environment with a wheel that has stencils
inside, and an empty cache (``CKLANG_CACHE_DIR``); ``benchmarks/first_result.py --wheel`` runs it
there. The extents and the functions are others than those that the stencils were compiled for. It
prints the seconds of each call, and those of its fill and of stencils that had to be compiled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import cklang as ck

B, C, D, E, H, K, M, N, P, Q, S = ck.dims("B C D E H K M N P Q S")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)
F8: Any = ck.dtype_var("F8", ck.fp8, ck.fp8_fnuz)
F32 = np.ndarray[Any, Any]

_TOLERANCE = 0.02
"""Of the greatest element: far below what a wrong element would be, above bf16's rounding."""


@ck.op
def gated(x: T[M, K], w: T[N, K], gate: T[N], skip: T[M, N]) -> T[M, N]:
    """A product with an epilogue of its own."""
    return ck.silu(x @ w.T + gate) * 0.5 + skip


@ck.op
def of_8_bits(x: F8[M, K], w: F8[N, K]) -> ck.bf16[M, N]:
    """A product of 8-bit floats."""
    return ck.clamp((x @ w.T) * 0.25, -8.0, 8.0)


@ck.op
def filtered(x: T[B, P, Q, C], w: T[E, 3, 3, C]) -> T[B, P, Q, E]:
    """A convolution."""
    return ck.relu(ck.conv(x, w, padding=1))


@ck.op
def sloped(q: T[B, H, S, D], k: T[B, H, S, D], v: T[B, H, S, D], by: ck.f32[H]) -> T[B, H, S, D]:
    """Causal attention with a score of its own."""
    return ck.attention(q, k, v, mask=ck.causal(), score=lambda s, h, i, j: s - by[h] * (i - j))


@ck.op
def normalised(x: T[M, K], gain: T[K]) -> T[M, K]:
    """RMSNorm and what follows it."""
    return ck.silu(ck.rms_norm(x, gain))


def _gated(x: F32, w: F32, gate: F32, skip: F32) -> F32:
    y = x @ w.T + gate
    return np.asarray(y / (1 + np.exp(-y)) * 0.5 + skip)


def _of_8_bits(x: F32, w: F32) -> F32:
    return np.asarray(np.clip(x @ w.T * 0.25, -8, 8))


def _filtered(x: F32, w: F32) -> F32:
    (_, height, width, _), padded = x.shape, np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    steps = [(i, j) for i in range(3) for j in range(3)]
    parts = [padded[:, i : i + height, j : j + width] @ w[:, i, j].T for i, j in steps]
    return np.asarray(np.maximum(sum(parts), 0))


def _sloped(q: F32, k: F32, v: F32, by: F32) -> F32:
    rows = np.arange(q.shape[2])
    far = rows[:, None] - rows
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) - by[:, None, None] * far
    weights = np.exp(np.where(far >= 0, scores, -np.inf))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)


def _normalised(x: F32, gain: F32) -> F32:
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain
    return np.asarray(y / (1 + np.exp(-y)))


_SHAPES: dict[ck.Op, tuple[Callable[..., F32], tuple[tuple[int, ...], ...]]] = {
    gated: (_gated, ((200, 256), (320, 256), (320,), (200, 320))),
    filtered: (_filtered, ((1, 6, 6, 64), (64, 3, 3, 64))),
    sloped: (_sloped, ((1, 2, 70, 64),) * 3 + ((2,),)),
    normalised: (_normalised, ((33, 1024), (1024,))),
}


def calls(gpu: str) -> Iterator[tuple[ck.Op, str, list[F32], F32]]:
    """Yield each op with the name of its dtype, its arguments and its result in f32."""
    from cklang.arch import arch
    from cklang.types import DTYPES

    rng = np.random.default_rng(0)

    def made(shape: tuple[int, ...], dtype: str) -> F32:
        return rng.uniform(-1, 1, shape).astype(np.float32).astype(DTYPES[dtype].numpy)

    kinds = [(op, dtype, *_SHAPES[op]) for dtype in ("f16", "bf16") for op in _SHAPES]
    eight = {"ocp": "fp8", "fnuz": "fp8_fnuz"}.get(arch(gpu).fp8)
    if eight is not None:
        kinds.append((of_8_bits, eight, _of_8_bits, ((200, 256), (320, 256))))
    for op, dtype, expected, shapes in kinds:
        slopes = op is sloped
        values = [made(shape, dtype) for shape in shapes[: -1 if slopes else None]]
        values += [np.array((0.1, 0.02), np.float32)] if slopes else []
        yield op, dtype, values, expected(*(value.astype(np.float32) for value in values))


def main(gpu: str) -> None:
    """Make each call, and print what it took."""
    for op, dtype, values, wanted in calls(gpu):
        start = time.perf_counter()
        result = op(*values, device=f"emu:{gpu}")
        seconds = time.perf_counter() - start
        error = float(np.abs(result.astype(np.float32) - wanted).max() / np.abs(wanted).max())
        assert error < _TOLERANCE, f"{op.program.name} of {dtype} is wrong by {error}"
        assert op.last is not None
        steps = [launch.artifact.steps for launch in op.last.launches]
        fills, stencils = (sum(_seconds(each, kind) for each in steps) for kind in _STEPS)
        print(f"{gpu} {op.program.name} {dtype}: {seconds:.2f} s, of which", end=" ")
        print(f"{fills:.2f} s fill, {stencils:.2f} s stencil", flush=True)


_STEPS = ("fill", "stencil")


def _seconds(steps: Mapping[str, Any], kind: str) -> float:
    step = steps.get(kind, {"cached": True})
    return 0.0 if step["cached"] else float(step["seconds"])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
