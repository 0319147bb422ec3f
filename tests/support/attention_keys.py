# SPDX-License-Identifier: MIT
"""Attention ops, keys and a registry for the tests of registries and selection."""

from dataclasses import replace
from typing import Any

import numpy as np

import cklang as ck
from cklang.families.attention.helper_keys import Rotary, append_key, combine_key, reduce_key
from cklang.families.attention.key import AttentionKey, AttentionSignature, MaskKind, ScoreKind
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.selection.registry import Registry
from cklang.selection.space import enumerate_legal
from cklang.types import f16

B, H, G, S, T, D, N, M, P = ck.dims("B H G S T D N M P")
PLAIN = AttentionSignature(dtype=f16, dtype_o=f16, dtype_bias=f16)


@ck.op
def capped(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], far: ck.f32[H]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, h: ck.tanh(s) + far[h],
        mask=lambda i, j: i + j > 3,
        return_lse=True,
    )


@ck.op
def plain(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v)


@ck.op
def biased(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], bias: ck.f16[B, H, S, T]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[b, h, i, j])


@ck.op
def packed(
    q: ck.f16[N, H, D], k: ck.f16[M, G, D], v: ck.f16[M, G, D], mine: ck.i32[P], theirs: ck.i32[P]
) -> ck.f16[N, H, D]:
    return ck.attention(q, k, v, cu_seqlens_q=mine, cu_seqlens_k=theirs)


def arrays(queries: int = 40, keys: int = 48, head: int = 64, heads: int = 2) -> list[Any]:
    q = np.zeros((1, heads, queries, head), np.float16)
    k = np.zeros((1, heads, keys, head), np.float16)
    return [q, k, k.copy()]


def functions() -> Functions:
    (kernel,) = capped.fusion(*arrays(), np.zeros(2, np.float32)).kernels
    return kernel.functions


def key(gpu: str = "gfx942", **changes: Any) -> AttentionKey:
    algorithm = next(enumerate_legal(PLAIN, gpu))
    return AttentionKey(PLAIN, replace(algorithm, **changes), gpu)


def filled() -> Registry:
    """A kernel of each kind; one of products is in the tests of products."""
    registry = Registry("attention")
    registry.declare(PLAIN, NO_FUNCTIONS, "gfx942", priority=1)
    open_ = functions()
    signature = replace(
        PLAIN, score=ScoreKind.FUNCTION, mask=MaskKind.FUNCTION, functions=open_.digest
    )
    registry.declare(signature, open_, "gfx950")
    back = ck.dispatch.attention_grad_problem(ck.dispatch.attention_problem(1, 1, 8, 8, 64))
    registry.declare(back.signature, NO_FUNCTIONS, "gfx942", priority=-1)
    registry.add(combine_key("gfx942", f16, lse=True), NO_FUNCTIONS)
    registry.add(append_key("gfx942", f16, Rotary.HALF, paged=True), NO_FUNCTIONS)
    registry.add(reduce_key("gfx942", f16, dot=True), NO_FUNCTIONS)
    return registry


HELPERS = ("combine", "append", "reduce")

PROBLEM = ck.dispatch.attention_problem(2, 8, 512, 512, 64)


def attention_keys(registry: Registry) -> list[AttentionKey]:
    return [kernel.key for kernel in registry if kernel.key.family == "attention"]
