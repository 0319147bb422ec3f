# SPDX-License-Identifier: MIT
"""Gradients on the emulated GPU, beside the reference with its bounds."""

from __future__ import annotations

import cklang as ck

M, N, K, H = ck.dims("M N K H")


@ck.op
def linear_gelu(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


@ck.op
def mlp(x: ck.f16[M, K], up: ck.f16[H, K], down: ck.f16[N, H]) -> ck.f16[M, N]:
    return ck.relu(x @ up.T) @ down.T


@ck.op
def softmax(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.softmax(x)


@ck.op
def norm(x: ck.f32[M, N], gain: ck.f32[N], bias: ck.f32[N]) -> ck.f32[M, N]:
    return ck.layer_norm(x, gain, bias)


@ck.op
def halves(x: ck.f32[M, 8], y: ck.f32[M, 8]) -> ck.f32[M, 8]:
    return ck.concat([x[:, 4:] * y[:, :4], y[:, 4:]], axis=1) + x


@ck.op
def distance(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[()]:
    return ck.mean(ck.square(x - y))


@ck.op
def added(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[M, N]:
    return x + y
