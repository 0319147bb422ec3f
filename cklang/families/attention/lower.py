# SPDX-License-Identifier: MIT
"""Attention: a kernel key becomes CK Tile C++ with the user's score and mask functions open."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.arch import arch
from cklang.families.attention.buffers import own_buffer_order
from cklang.families.attention.functions import attention_fill
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionKey,
    AttentionPipeline,
    AttentionSignature,
    MaskKind,
    ScoreKind,
)
from cklang.families.attention.pipelines import PIPELINE_FACTS, is_scored
from cklang.families.closed_source import flag
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource
from cklang.types import f32

SCORE_HOLE = "ck_score"
"""The symbol that a stencil with a score function leaves open."""

MASK_HOLE = "ck_mask"
"""The same for a mask function."""

OUTPUT_HOLE = "ck_output"
"""The same for what is stored of o."""

BLOCK_HOLES = ("ck_block", "ck_inside")
"""The same for what a mask shows of a block, and of one that it shows in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRow:
    """A pipeline in CK Tile's words."""

    ck: str
    header: str
    adapter: str = ""
    """Ours that gives a pipeline with another interface that of most."""
    long_head: bool = False
    """Whether it is ours for heads of any size."""


_PIPELINES: Mapping[AttentionPipeline, PipelineRow] = MappingProxyType(
    {
        AttentionPipeline.QR: PipelineRow(
            ck="BlockFmhaPipelineQRKSVS", header="block_fmha_pipeline_qr_ks_vs.hpp"
        ),
        AttentionPipeline.QR_ASYNC: PipelineRow(
            ck="BlockFmhaPipelineQRKSVSAsync", header="block_fmha_pipeline_qr_ks_vs_async.hpp"
        ),
        AttentionPipeline.QS: PipelineRow(
            ck="BlockFmhaPipelineQSKSVS", header="block_fmha_pipeline_qs_ks_vs.hpp"
        ),
        AttentionPipeline.QR_ASYNC_TRLOAD: PipelineRow(
            ck="BlockFmhaPipelineQRKSVSAsyncTrload",
            header="block_fmha_pipeline_qr_ks_vs_async_trload.hpp",
            adapter="TransposedLoads",
        ),
        AttentionPipeline.V3: PipelineRow(
            ck="BlockFmhaFwdV3Pipeline",
            header="block_fmha_fwd_v3_pipeline.hpp",
            adapter="WaveGroups",
        ),
        AttentionPipeline.LONG_HEAD: PipelineRow(ck="LongHeads", header="", long_head=True),
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


def lower_attention(key: AttentionKey, functions: Functions) -> KernelSource:
    """Return the source of an attention kernel."""
    kernel = _kernel_name(key)
    text = template("attention.hip.j2").render(_context(key, kernel))
    return KernelSource(
        stencil=text,
        fill=attention_fill(functions),
        hole=", ".join(holes(key.signature)),
        kernel=kernel,
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )


def holes(signature: AttentionSignature) -> tuple[str, ...]:
    """Return the symbols that a stencil leaves open."""
    s = signature
    score = (SCORE_HOLE,) if s.score is ScoreKind.FUNCTION else ()
    mask = (MASK_HOLE,) if s.mask is MaskKind.FUNCTION else ()
    output = (OUTPUT_HOLE,) if s.output else ()
    return score + mask + output + (BLOCK_HOLES if s.blocks else ())


def _kernel_name(key: AttentionKey) -> str:
    s, a = key.signature, key.algorithm
    return f"ck_attention_{s.dtype}_{s.dtype_o}_{'x'.join(map(str, a.tile))}"


def shared_context(key: AnyKey, signature: AttentionSignature, kernel: str) -> dict[str, object]:
    """Return what the templates of both directions say alike."""
    s, a = signature, key.algorithm
    return {
        "key_json": key_json(key),
        "kernel": kernel,
        "type": s.dtype.ck,
        "type_bias": s.dtype_bias.ck,
        "bytes": s.dtype.bytes,
        "bytes_bias": s.dtype_bias.bytes,
        "score": s.score.value,
        "mask": s.mask.value,
        "bias": _BIAS[s.score],
        "dropout": flag(s.dropout),
        "packed": flag(s.packed),
        "vector": a.vector,
        "block_per_cu": a.block_per_cu,
        "repeats_rows": arch(key.arch).repeats_rows,
        "holes": " and ".join(holes(s)),
    }


def _describe(row: PipelineRow, signature: AttentionSignature) -> str:
    """Return the class that answers for the host shim, or nothing for that of most kernels."""
    base = "cklang::DescribeLongHeads" if row.long_head else "cklang::DescribeAttention"
    if signature.transposed_v:
        return f"cklang::DescribeTransposedV<{base}>"
    return base if row.long_head else ""


def _policy(algorithm: AttentionAlgorithm) -> str:
    """Return a pipeline's second template argument, or nothing for CK Tile's policy."""
    order = own_buffer_order(algorithm) if PIPELINE_FACTS[algorithm.pipeline].buffers else ()
    return f", cklang::BufferOrder<{', '.join(map(str, order))}>" if order else ""


def _sparse(signature: AttentionSignature) -> tuple[str, str]:
    """Return what stands around a pipeline that skips blocks."""
    if signature.blocks is None:
        return "", ""
    return "cklang::BlockSparse<", f", {', '.join(map(str, signature.blocks))}>"


_SWIZZLED = (32, 32)
"""The warp tiles whose A is swizzled where weights are dropped."""


def _context(key: AttentionKey, kernel: str) -> dict[str, object]:
    s, a = key.signature, key.algorithm
    row, scored = _PIPELINES[a.pipeline], is_scored(a, s)
    stored = f32 if s.split else s.dtype_o
    flags = {name: getattr(a, name) for name in ("pad_q", "pad_k", "pad_d", "pad_dv")}
    flags |= {
        "split": s.split,
        "paged": s.paged,
        "output": s.output,
        "lse": s.lse or s.split,
        "soft_cap": s.score is ScoreKind.SOFT_CAP and not scored,
        "static_scales": s.dtype.bytes == 1,
        "transposed_loads": bool(row.adapter),
    }
    is_wide = a.warp_tile[:2] == _SWIZZLED
    return {
        **shared_context(key, key.signature, kernel),
        "type_o": stored.ck,
        "bytes_o": stored.bytes,
        "tile": a.tile,
        "warps": a.warps,
        "warp_tile": a.warp_tile,
        "threads": arch(key.arch).wave_size * math.prod(a.warps),
        "pipeline": row.ck,
        "policy": _policy(a),
        "header": row.header,
        "adapter": row.adapter,
        "wave_groups": PIPELINE_FACTS[a.pipeline].wave_groups,
        "long_head": row.long_head,
        "transposed_v": s.transposed_v,
        "describe": _describe(row, s),
        "blocks": s.blocks,
        "listed": ", ".join(map(str, (*a.tile[:2], *(s.blocks or ())))),
        "sparse": _sparse(s),
        "scored": scored,
        **({"bias": _BIAS[ScoreKind.NONE]} if scored else {}),
        "bf8": s.dtype.family == "bf8",
        "borrows_places": s.dropout and s.dtype.bytes == 1 and is_wide,
        **{name: flag(value) for name, value in flags.items()},
    }
