# SPDX-License-Identifier: MIT
"""Attention: a kernel key becomes CK Tile C++ with the user's score and mask functions open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.arch import arch
from cklang.attention_keys import (
    AppendKey,
    AttentionKey,
    AttentionPipeline,
    CombineKey,
    MaskKind,
    ScoreKind,
)
from cklang.lowering.gemm import KernelSource
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.render import template
from cklang.types import f32

__all__ = ["MASK_HOLE", "SCORE_HOLE", "lower_append", "lower_attention", "lower_combine"]

SCORE_HOLE = "ck_score"
"""The symbol that a stencil with a score function leaves open."""

MASK_HOLE = "ck_mask"
"""The same for a mask function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PipelineRow:
    """A pipeline in CK Tile's words."""

    ck: str
    header: str


_PIPELINES: Mapping[AttentionPipeline, _PipelineRow] = MappingProxyType(
    {
        AttentionPipeline.QR: _PipelineRow(
            ck="BlockFmhaPipelineQRKSVS", header="block_fmha_pipeline_qr_ks_vs.hpp"
        ),
        AttentionPipeline.QR_ASYNC: _PipelineRow(
            ck="BlockFmhaPipelineQRKSVSAsync", header="block_fmha_pipeline_qr_ks_vs_async.hpp"
        ),
        AttentionPipeline.QS: _PipelineRow(
            ck="BlockFmhaPipelineQSKSVS", header="block_fmha_pipeline_qs_ks_vs.hpp"
        ),
    }
)

# Where CK Tile's pipelines let scores be changed; the user's function takes the place of ALiBi.
_BIAS = {
    ScoreKind.NONE: "NO_BIAS",
    ScoreKind.SOFT_CAP: "NO_BIAS",
    ScoreKind.ALIBI: "ALIBI",
    ScoreKind.BIAS: "ELEMENTWISE_BIAS",
    ScoreKind.FUNCTION: "ALIBI",
}


def lower_attention(key: AttentionKey, fill: str) -> KernelSource:
    """Return the source of an attention kernel.

    Args:
        key: What to compute, how, and for which GPU.
        fill: C that defines the functions that ``key`` says are the user's; empty if none is.
    """
    kernel = _kernel_name(key)
    text = template("attention.hip.j2").render(_context(key, kernel))
    return KernelSource(
        stencil=text,
        fill=fill,
        hole=", ".join(_holes(key)),
        kernel=kernel,
        halves=False,
        precompiled=PRECOMPILED_ATTENTION,
    )


def lower_combine(key: CombineKey) -> KernelSource:
    """Return the source of a kernel that combines what splits of the keys gave."""
    return _whole(
        key,
        "attention_combine.hip.j2",
        f"ck_attention_combine_{key.dtype_o}",
        type_o=key.dtype_o.ck,
        bytes_o=key.dtype_o.bytes,
        lse=_flag(key.lse),
    )


def lower_append(key: AppendKey) -> KernelSource:
    """Return the source of a kernel that writes rows behind those of a cache."""
    return _whole(
        key,
        "attention_append.hip.j2",
        f"ck_attention_append_{key.dtype}",
        type=key.dtype.ck,
        rotary=key.rotary.value,
        paged=_flag(key.paged),
    )


def _whole(key: CombineKey | AppendKey, name: str, kernel: str, **context: object) -> KernelSource:
    """Return a source in which nothing is open."""
    text = template(name).render(key_json=_json(key), kernel=kernel, **context)
    return KernelSource(
        stencil=text,
        fill="",
        hole="",
        kernel=kernel,
        halves=False,
        precompiled=PRECOMPILED_ATTENTION,
    )


def _json(key: AttentionKey | CombineKey | AppendKey) -> str:
    return json.dumps(key.stencil.to_json(), sort_keys=True)


def _flag(value: bool) -> str:
    return str(value).lower()


def _holes(key: AttentionKey) -> tuple[str, ...]:
    s = key.signature
    score = (SCORE_HOLE,) if s.score is ScoreKind.FUNCTION else ()
    mask = (MASK_HOLE,) if s.mask is MaskKind.FUNCTION else ()
    return score + mask


def _kernel_name(key: AttentionKey) -> str:
    s, a = key.signature, key.algorithm
    return f"ck_attention_{s.dtype}_{s.dtype_o}_{'x'.join(map(str, a.tile))}"


def _context(key: AttentionKey, kernel: str) -> dict[str, object]:
    s, a = key.signature, key.algorithm
    row = _PIPELINES[a.pipeline]
    stored = f32 if s.split else s.dtype_o
    flags = {name: getattr(a, name) for name in ("pad_q", "pad_k", "pad_d", "pad_dv")}
    flags |= {name: getattr(s, name) for name in ("dropout", "packed", "split", "paged")}
    flags |= {
        "lse": s.lse or s.split,
        "soft_cap": s.score is ScoreKind.SOFT_CAP,
        "static_scales": s.dtype.bytes == 1,
        "transposed_loads": False,
    }
    return {
        "key_json": _json(key),
        "type": s.dtype.ck,
        "type_o": stored.ck,
        "type_bias": s.dtype_bias.ck,
        "bytes": s.dtype.bytes,
        "bytes_o": stored.bytes,
        "bytes_bias": s.dtype_bias.bytes,
        "score": s.score.value,
        "mask": s.mask.value,
        "bias": _BIAS[s.score],
        "tile": a.tile,
        "warps": a.warps,
        "warp_tile": a.warp_tile,
        "vector": a.vector,
        "threads": arch(key.arch).wave_size * a.warps[0] * a.warps[1] * a.warps[2],
        "block_per_cu": a.block_per_cu,
        "pipeline": row.ck,
        "header": row.header,
        "holes": " and ".join(_holes(key)),
        "kernel": kernel,
        **{name: _flag(value) for name, value in flags.items()},
    }
