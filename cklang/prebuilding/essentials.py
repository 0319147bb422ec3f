# SPDX-License-Identifier: MIT
"""The calls whose kernels are compiled before anybody asks for them.

A stencil serves every function of operands of the same kinds, so a few programs stand for many: a
product, alone and with a row and a matrix in its epilogue, a convolution, attention with a mask,
and the kernels of rows that a transformer has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cklang as ck
from cklang.arch import ArchSpec
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.types import DType

__all__ = ["EssentialCall", "essential_calls"]

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
def causal_attention(q: X[B, S, H, D], k: X[B, S, H, D], v: X[B, S, H, D]) -> X[B, S, H, D]:
    """Attention to what came before."""
    return ck.attention(q, k, v, mask=ck.causal())


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
    return tuple(dict(zip(dims_of_them.split(), each, strict=True)) for each in values)


_PRODUCTS = _extents("M N K", (384, 512, 256), (4096, 4096, 4096), (33, 20, 20))
_ROWS = _extents("M K", (64, 1024), (2048, 4096))
_OF_EXTENTS: tuple[tuple[ck.Op, tuple[dict[str, int], ...]], ...] = (
    (linear_gelu, _PRODUCTS),
    (linear, _PRODUCTS),
    (convolution, _extents("B S W C E", (2, 8, 8, 64, 64), (2, 56, 56, 128, 128))),
    (causal_attention, _extents("B S H D", (2, 256, 8, 64), (2, 256, 8, 128))),
    (normalised, _ROWS),
    (layer_normalised, _ROWS),
    (probabilities, _ROWS),
)
"""Ops, and extents that differ in the kernels that are chosen for them."""

_FP8 = {"ocp": ck.fp8, "fnuz": ck.fp8_fnuz}
"""The 8-bit float of matrix instructions by the name of its encoding."""


def essential_calls(spec: ArchSpec) -> Iterator[EssentialCall]:
    """Yield the calls for a GPU: with f16, with bf16, and products with its 8-bit float.

    Example:
        >>> from cklang.arch import arch
        >>> calls = list(essential_calls(arch("gfx942")))
        >>> len({call.op.program.name for call in calls})
        8
    """
    for dtype in (ck.f16, ck.bf16):
        for each, extents in _OF_EXTENTS:
            yield from (EssentialCall(op=each, names={**some, "X": dtype}) for some in extents)
    if spec.fp8 in _FP8:
        for some in _PRODUCTS:
            yield EssentialCall(op=linear_of_8_bits, names={**some, "F8": _FP8[spec.fp8]})
