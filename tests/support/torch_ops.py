# SPDX-License-Identifier: MIT
"""Ops of every kind with tensors for them, in sizes that follow from one number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import cklang as ck
from tests.support.gemm_ops import fused, many_reads
from tests.support.modules import EXAMPLES, module_of

M, N, K, B, H, S, T, D, C, P, L, Q, R, X, Y = ck.dims("M N K B H S T D C P L Q R X Y")
F: Any = ck.dtype_var("F", ck.f16, ck.bf16)

Values: TypeAlias = Sequence[Any]
Case: TypeAlias = tuple[Any, Callable[[int], Values]]


@ck.op
def linear(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N] | None = None, *, cap: ck.const[float] = 4.0
) -> ck.f16[M, N]:
    y = x @ w.T
    if bias is not None:
        y = y + bias
    return ck.minimum(y, cap)


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K], scale: ck.f32, shift: ck.i32) -> ck.f16[M, N]:
    return (x @ w.T) * scale + shift.to(ck.f32)


@ck.op
def convolved(x: ck.f16[B, X, Y, C], w: ck.f16[K, R, Q, C]) -> ck.f16[B, P, L, K]:
    return ck.relu(ck.conv(x, w, stride=2, padding=1))


@ck.op
def pictures(x: ck.f16[B, C, X, Y], w: ck.f16[K, C, R, Q]) -> ck.f16[B, K, P, L]:
    return ck.relu(ck.conv(x, w, padding=1, layout="nchw"))


@ck.op
def attend(
    q: F[B, H, S, D], k: F[B, H, T, D], v: F[B, H, T, D], slopes: ck.f32[H]
) -> tuple[F[B, H, S, D], ck.f32[B, H, S]]:
    o, lse = ck.attention(
        q,
        k,
        v,
        score=lambda s, h, i, j: s + slopes[h] * (j - i).to(ck.f32),
        mask=ck.causal(),
        return_lse=True,
    )
    return o, lse


@ck.op
def normed(x: ck.f16[M, N], gain: ck.f32[N]) -> tuple[ck.f16[M, N], ck.f32[M, N], ck.i32[M]]:
    y = ck.rms_norm(x, gain)
    return y, ck.softmax(x), ck.argmax(x, axis=-1)


@ck.op
def gathered(
    table: ck.f16[N, D], ids: ck.i32[B, S]
) -> tuple[ck.f16[B, S, D // 2], ck.f16[B * S, D]]:
    rows = table[ids]
    return rows[:, :, : D // 2], rows.reshape(B * S, D)


def _half(*shape: int) -> Any:
    import torch

    return torch.randn(shape).half()


def _llama(n: int) -> Values:
    import torch

    b, s, e, h, kv, d, f = n, n + 1, 8 * n, 2, 1, 4 * n, 8 * n + 8
    angles = torch.randn(s, d // 2)
    weights = _half(f, e), _half(f, e), _half(e, f)
    qkv, wo = _half(h + 2 * kv, d, e), _half(e, h, d)
    gain = torch.ones(e)
    return [_half(b, s, e), gain, qkv, angles, angles, wo, gain, *weights, kv]


@dataclass(frozen=True, slots=True)
class Layer:
    """An op whose last parameter is passed by name."""

    op: Any

    def __call__(self, *values: Any) -> Any:
        return self.op(*values[:-1], kv=values[-1])


def _attended(n: int) -> Values:
    import torch

    heads = [torch.randn(2, n, n + extra, 16).bfloat16() for extra in (1, 3, 3)]
    return [*heads, torch.rand(n)]


def _many(n: int) -> Values:
    import torch

    m, k, columns = n, n + 2, n + 1
    return [
        *(
            _half(m, k),
            _half(columns, k),
            torch.randn(columns),
            torch.randn(m).bfloat16(),
            torch.tensor(0.5),
        ),
        *(torch.rand(m, columns) > 0.5, _half(columns, m), torch.randn(m, columns).bfloat16()),
    ]


def _scalars(n: int) -> Values:
    import torch

    return [_half(n, 9), _half(n + 1, 9), torch.tensor(0.5 * n), torch.tensor(n).int()]


def _ids(n: int) -> Values:
    import torch

    return [_half(n + 1, 2 * n), torch.randint(0, n, (n, n + 2)).int()]


def _channels_last(n: int) -> Values:
    import torch

    x = _half(n, 6, n + 4, n + 5).contiguous(memory_format=torch.channels_last)
    return [x, _half(4, 6, 3, 3)]


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "product": (fused, lambda n: [_half(n, 6), _half(n + 2, 6), _half(n + 2), _half(n, n + 2)]),
        "many_reads": (many_reads, _many),
        "optional": (linear, lambda n: [_half(n, 9), _half(n + 1, 9)]),
        "not_left_out": (linear, lambda n: [_half(n, 9), _half(n + 1, 9), _half(n + 1)]),
        "numbers": (scaled, lambda n: [_half(n, 9), _half(n + 1, 9), 0.5, 3]),
        "scalars": (scaled, _scalars),
        "convolution": (convolved, lambda n: [_half(n, n + 4, n + 6, 4), _half(8, 3, 3, 4)]),
        "nchw": (pictures, lambda n: [_half(n, 6, n + 4, n + 5), _half(4, 6, 3, 3)]),
        "channels_last": (pictures, _channels_last),
        "attention": (attend, _attended),
        "rows": (normed, lambda n: [_half(n, n + 3), _half(n + 3).float()]),
        "gathered": (gathered, _ids),
        "layer": (Layer(module_of(EXAMPLES / "15_llama_block.py").llama_block), _llama),
    }
)
"""An op, and arguments for it of each size. With 5 no two extents are equal that may differ."""
