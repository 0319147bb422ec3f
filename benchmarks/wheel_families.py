# SPDX-License-Identifier: MIT
"""The first calls of an op of each essential family, each checked beside NumPy.

``python benchmarks/wheel_families.py gfx942`` is for an environment with a wheel that has stencils
inside, and an empty cache (``CKLANG_CACHE_DIR``); ``benchmarks/first_result.py --wheel`` runs it
there. The extents and the functions are others than those that the stencils were compiled for. It
prints the seconds of each call and of its fills, and fails if anything but a fill was compiled: it
looks at each process that is started.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
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


@ck.op
def layer(x: T[M, K], gain: T[K], bias: T[K]) -> T[M, K]:
    """LayerNorm."""
    return ck.layer_norm(x, gain, bias)


@ck.op
def weights(x: T[M, K]) -> T[M, K]:
    """Softmax with a temperature."""
    return ck.softmax(x * 2.0)


@ck.op
def capped(q: T[B, H, S, D], k: T[B, H, S, D], v: T[B, H, S, D]) -> T[B, H, S, D]:
    """Attention to everything, with a soft cap."""
    return ck.attention(q, k, v, score=lambda s: ck.tanh(s * 0.1) * 10.0)


@ck.op
def blended(x: T[M, K], y: T[M, K], z: T[M, K]) -> T[M, K]:
    """A function of each element."""
    return ck.relu(x * 0.25 + y) - z


@ck.op
def turned(x: T[M, K]) -> T[K, M]:
    """A transpose."""
    return x.T * 2.0


@ck.op
def power(x: T[M, K]) -> T[M]:
    """Sums of squares."""
    return ck.sum(x * x, axis=1)


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


def _layer(x: F32, gain: F32, bias: F32) -> F32:
    centred = x - x.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return np.asarray(centred / spread * gain + bias)


def _weights(x: F32) -> F32:
    powers = np.exp(x * 2)
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _capped(q: F32, k: F32, v: F32) -> F32:
    powers = np.exp(np.tanh(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) * 0.1) * 10)
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


_SHAPES: dict[ck.Op, tuple[Callable[..., F32], tuple[tuple[int, ...], ...]]] = {
    gated: (_gated, ((200, 256), (320, 256), (320,), (200, 320))),
    filtered: (_filtered, ((1, 6, 6, 64), (64, 3, 3, 64))),
    sloped: (_sloped, ((1, 2, 70, 64),) * 3 + ((2,),)),
    capped: (_capped, ((1, 2, 70, 128),) * 3),
    normalised: (_normalised, ((33, 1024), (1024,))),
    layer: (_layer, ((33, 1024), (1024,), (1024,))),
    weights: (_weights, ((33, 1024),)),
    blended: (lambda x, y, z: np.maximum(x * 0.25 + y, 0) - z, ((60, 4096),) * 3),
    turned: (lambda x: x.T * 2, ((60, 4096),)),
    power: (lambda x: (x * x).sum(-1), ((1000, 3072),)),
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


_FILL_INPUTS = ("c", "ir")
"""What clang is given of a fill: its C, then that with the stencil's bitcode."""


def is_of_a_fill(command: Sequence[str]) -> bool:
    """Whether a process compiles or links the functions of a kernel.

    Example:
        >>> is_of_a_fill(["zig", "ld.lld", "-shared"]), is_of_a_fill(["clang", "-x", "hip"])
        (True, False)
    """
    words = list(command)
    inputs = [after for word, after in pairwise(words) if word == "-x"]
    return "ld.lld" in words or (bool(inputs) and set(inputs) <= set(_FILL_INPUTS))


def main(gpus: Sequence[str]) -> None:
    """Make each call on each GPU, and print what it took."""
    started: list[list[str]] = []

    def see(event: str, values: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            started.append(list(map(str, values[1])))

    sys.addaudithook(see)
    for gpu in gpus:
        for op, dtype, values, wanted in calls(gpu):
            started.clear()
            start = time.perf_counter()
            result = op(*values, device=f"emu:{gpu}")
            seconds = time.perf_counter() - start
            error = float(np.abs(result.astype(np.float32) - wanted).max() / np.abs(wanted).max())
            assert error < _TOLERANCE, f"{op.program.name} of {dtype} is wrong by {error}"
            assert op.last is not None
            steps = [launch.artifact.steps for launch in op.last.launches]
            fills = sum(float(step["fill"]["seconds"]) for step in steps if "fill" in step)
            print(f"{gpu} {op.program.name} {dtype}: {seconds:.2f} s, fill {fills:.2f}", end="")
            print(f" s, {len(started)} processes", flush=True)
            other = [" ".join(command) for command in started if not is_of_a_fill(command)]
            assert not other, f"more than a fill was compiled: {other}"


if __name__ == "__main__":
    main(sys.argv[1:])
