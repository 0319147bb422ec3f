# SPDX-License-Identifier: MIT
"""The calls whose kernels are compiled before anybody asks for them.

A stencil serves every function of operands of the same kinds, so a few programs stand for many: a
product, alone and with a row and a matrix in its epilogue, a convolution, attention with and
without a mask and with a score, the kernels of rows that a transformer has, functions of each
element, transposes and sums of rows. Which stencil is best depends on extents, so each program is
called with some.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cklang as ck
from cklang.arch import ArchSpec
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.types import DType

B, C, D, E, H, K, M, N, S, W = ck.dims("B C D E H K M N S W")
X: Any = ck.dtype_var("X", ck.f16, ck.bf16)
F8: Any = ck.dtype_var("F8", ck.fp8, ck.fp8_fnuz)


@ck.op
def linear(x: X[M, K], w: X[N, K]) -> X[M, N]:
    """A product."""
    return x @ w.T


@ck.op
def linear_of_8_bits(x: F8[M, K], w: F8[N, K]) -> ck.bf16[M, N]:
    """A product of 8-bit floats."""
    return x @ w.T


@ck.op
def linear_gelu(x: X[M, K], w: X[N, K], bias: X[N], res: X[M, N]) -> X[M, N]:
    """A product whose epilogue reads a row and a matrix."""
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def convolution(x: X[B, S, W, C], w: X[E, 3, 3, C]) -> X[B, S, W, E]:
    """A convolution of images that keeps their extents."""
    return ck.conv(x, w, padding=1)


@ck.op
def causal_attention(q: X[B, H, S, D], k: X[B, H, S, D], v: X[B, H, S, D]) -> X[B, H, S, D]:
    """Attention to what came before."""
    return ck.attention(q, k, v, mask=ck.causal())


@ck.op
def full_attention(q: X[B, H, S, D], k: X[B, H, S, D], v: X[B, H, S, D]) -> X[B, H, S, D]:
    """Attention to everything."""
    return ck.attention(q, k, v)


@ck.op
def biased_attention(
    q: X[B, H, S, D], k: X[B, H, S, D], v: X[B, H, S, D], slopes: ck.f32[H]
) -> X[B, H, S, D]:
    """Attention with a score of its own."""
    return ck.attention(q, k, v, score=lambda s, h, i, j: s + slopes[h] * (j - i))


@ck.op
def normalised(x: X[M, K], gain: X[K]) -> X[M, K]:
    """RMSNorm."""
    return ck.rms_norm(x, gain)


@ck.op
def layer_normalised(x: X[M, K], gain: X[K], bias: X[K]) -> X[M, K]:
    """LayerNorm."""
    return ck.layer_norm(x, gain, bias)


@ck.op
def probabilities(x: X[M, K]) -> X[M, K]:
    """Softmax of rows."""
    return ck.softmax(x)


@ck.op
def activated(x: X[M, K], gate: X[M, K]) -> X[M, K]:
    """A function of each element; its stencil serves any number of operands."""
    return ck.silu(x) * gate


@ck.op
def transposed(x: X[M, K]) -> X[K, M]:
    """A transpose."""
    return x.T


@ck.op
def summed(x: X[M, K]) -> X[M]:
    """Sums of rows."""
    return ck.sum(x, axis=1)


@ck.op
def biased_causal_attention(
    q: X[B, H, S, D], k: X[B, H, S, D], v: X[B, H, S, D], slopes: ck.f32[H]
) -> X[B, H, S, D]:
    """Attention to what came before, with a score of its own."""
    return ck.attention(q, k, v, mask=ck.causal(), score=lambda s, h, i, j: s + slopes[h] * (j - i))


@dataclass(frozen=True, slots=True, kw_only=True)
class EssentialCall:
    """A call of an op, whose kernels are compiled for a GPU."""

    op: ck.Op
    names: Mapping[str, int | DType]
    """The extent of each dim and the dtype of each dtype variable."""

    def arguments(self) -> dict[str, Any]:
        """Return arrays without contents for it."""
        return packed_arguments(self.op.program.signature, self.names)


def _extents(dims_of_them: str, *values: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(dims_of_them.split(), value, strict=True)) for value in values)


# Chosen so that calls of most other extents take the same stencils, on all GPUs together:
# `benchmarks/prebuilt_coverage.py --pick 6` says which extents add most.
_PRODUCTS = _extents(
    "M N K",
    *((384, 512, 256), (4096, 4096, 4096), (33, 20, 20), (1, 256, 256), (64, 256, 512)),
    *((64, 4096, 4096), (64, 8192, 256), (200, 2048, 512), (200, 2048, 2048), (200, 3072, 1024)),
    *((200, 8192, 256), (384, 8192, 2048)),
)
_IMAGES = _extents(
    "B S W C E",
    *((2, 8, 8, 64, 64), (2, 56, 56, 128, 128), (1, 7, 7, 256, 64), (1, 14, 14, 64, 64)),
    *((1, 14, 14, 64, 256), (1, 28, 28, 64, 512), (1, 32, 32, 256, 512), (2, 56, 56, 128, 256)),
)
_HEADS = _extents(
    "B H S D",
    *((2, 8, 256, 64), (2, 8, 256, 128), (1, 8, 1, 64), (1, 8, 1, 128)),
    *((1, 32, 4096, 64), (1, 32, 4096, 128)),
)
_ROWS = _extents(
    "M K", *((64, 1024), (2048, 4096), (1, 256), (200, 512), (200, 768), (200, 2048), (1, 8192))
)
_ELEMENTS = _extents("M K", (64, 4096), (4096, 1024), (1, 64), (1, 3072), (200, 64))
_TURNED = _extents("M K", (4096, 1024), (64, 4096), (1, 64), (64, 512), (1, 3072), (33, 4096))
_SUMS = _extents("M K", (1024, 3072), (1, 8192), (1, 768), (1, 64), (1024, 512), (200, 256))
_OF_EXTENTS: tuple[tuple[ck.Op, tuple[dict[str, int], ...]], ...] = (
    (linear_gelu, _PRODUCTS),
    (linear, _PRODUCTS),
    (convolution, _IMAGES),
    (causal_attention, _HEADS),
    (full_attention, _HEADS),
    (biased_attention, _HEADS),
    (biased_causal_attention, _HEADS),
    (normalised, _ROWS),
    (layer_normalised, _ROWS),
    (probabilities, _ROWS),
    (activated, _ELEMENTS),
    (transposed, _TURNED),
    (summed, _SUMS),
)
"""Ops, and extents that differ in the kernels that are chosen for them."""

FP8 = {"ocp": ck.fp8, "fnuz": ck.fp8_fnuz}
"""The 8-bit float of matrix instructions by the name of its encoding."""


def essential_calls(spec: ArchSpec) -> Iterator[EssentialCall]:
    """Yield the calls for a GPU: with f16, with bf16, and products with its 8-bit float.

    Example:
        >>> from cklang.arch import arch
        >>> calls = list(essential_calls(arch("gfx942")))
        >>> len({call.op.program.name for call in calls})
        14
    """
    for dtype in (ck.f16, ck.bf16):
        for op, extents in _OF_EXTENTS:
            yield from (EssentialCall(op=op, names={**some, "X": dtype}) for some in extents)
    if spec.fp8 in FP8:
        for some in _PRODUCTS:
            yield EssentialCall(op=linear_of_8_bits, names={**some, "F8": FP8[spec.fp8]})
