# SPDX-License-Identifier: MIT
"""Attention: a kernel key becomes CK Tile C++ with the user's score and mask functions open."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cklang.arch import arch
from cklang.attention_keys import (
    AnyAttentionKey,
    AppendKey,
    AttentionGradKey,
    AttentionKey,
    AttentionPipeline,
    CombineKey,
    GradPipeline,
    MaskKind,
    ReduceKey,
    ScoreKind,
)
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS
from cklang.families.gemm.lower import KernelSource
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.render import template
from cklang.types import f32

__all__ = [
    "MASK_HOLE",
    "OUTPUT_HOLE",
    "SCORE_HOLE",
    "lower_any",
    "lower_append",
    "lower_attention",
    "lower_combine",
    "lower_grad",
    "lower_reduce",
]

SCORE_HOLE = "ck_score"
"""The symbol that a stencil with a score function leaves open."""

MASK_HOLE = "ck_mask"
"""The same for a mask function."""

OUTPUT_HOLE = "ck_output"
"""The same for what is stored of o."""


_Helper = CombineKey | AppendKey | ReduceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class _PipelineRow:
    """A pipeline in CK Tile's words."""

    ck: str
    header: str
    adapter: str = ""
    """Ours that gives a pipeline with another interface that of most."""


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
        AttentionPipeline.QR_ASYNC_TRLOAD: _PipelineRow(
            ck="BlockFmhaPipelineQRKSVSAsyncTrload",
            header="block_fmha_pipeline_qr_ks_vs_async_trload.hpp",
            adapter="TransposedLoads",
        ),
        AttentionPipeline.V3: _PipelineRow(
            ck="BlockFmhaFwdV3Pipeline",
            header="block_fmha_fwd_v3_pipeline.hpp",
            adapter="WaveGroups",
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


def lower_any(key: AnyAttentionKey, fill: str) -> KernelSource:
    """Return the source of any kernel around attention.

    Args:
        key: Its identity.
        fill: C that defines the functions that ``key`` says are the user's; empty if none is.
    """
    match key:
        case AttentionKey():
            return lower_attention(key, fill)
        case AttentionGradKey():
            return lower_grad(key, fill)
        case CombineKey():
            return lower_combine(key, fill)
        case AppendKey():
            return lower_append(key)
        case ReduceKey():
            return lower_reduce(key)


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
        host_headers=False,
    )


_GRAD_PIPELINES: Mapping[GradPipeline, _PipelineRow] = MappingProxyType(
    {
        GradPipeline.KR_KTR_VR: _PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineKRKTRVR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr.hpp",
        ),
        GradPipeline.KR_KTR_VR_IGLP: _PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineKRKTRVRIGLP",
            header="block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr_iglp.hpp",
        ),
        GradPipeline.TRLOAD_KR_KTR_VR: _PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineTrLoadKRKTRVR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_trload_kr_ktr_vr.hpp",
        ),
        GradPipeline.TRLOAD_QR_QTR_DOR: _PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineTrLoadQRQTRDOR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_trload_qr_qtr_dor.hpp",
        ),
    }
)

# What the backward traits take for a head that is padded and read in vectors.
_GRAD_VECTORS = 8

# The warp tiles whose A is swizzled where weights are dropped.
_SWIZZLED = (32, 32)

# Which of the algorithm's three kinds each of the five products is.
_GRAD_PRODUCTS = (0, 1, 0, 1, 2)


def lower_grad(key: AttentionGradKey, fill: str) -> KernelSource:
    """Return the source of a kernel that gives the gradients of q, k and v.

    Args:
        key: What to compute, how, and for which GPU.
        fill: C that defines the functions of the forward kernel. That of the score must be the
            score plus something that does not depend on it: its derivative is taken to be 1.
    """
    s, a = key.signature, key.algorithm
    row, facts = _GRAD_PIPELINES[a.pipeline], GRAD_PIPELINE_FACTS[a.pipeline]
    kernel = f"ck_attention_grad_{s.dtype}_{s.dtype_o}_{'x'.join(map(str, a.tile))}"
    text = template("attention_grad.hip.j2").render(
        **_shared(key, kernel),
        type_o=s.dtype_o.ck,
        bytes_o=s.dtype_o.bytes,
        bias_grad=_flag(key.bias_grad),
        deterministic=_flag(key.deterministic),
        tile=a.tile,
        warps=a.warps,
        warp_tiles=a.warp_tiles,
        gemms=_GRAD_PRODUCTS,
        # CK Tile's word for vectors along a padded head, whatever their width.
        pad=_GRAD_VECTORS if a.vector > 1 else 1,
        whole=_flag(facts.whole),
        most_queries=a.tile[0] if facts.whole else 0,
        transposed_loads=_flag(facts.transposed_loads),
        threads=arch(key.arch).wave_size * math.prod(a.warps[0]),
        pipeline=row.ck,
        header=row.header,
    )
    return KernelSource(
        stencil=text,
        fill=fill,
        hole=", ".join(_holes(key)),
        kernel=kernel,
        halves=False,
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )


def lower_reduce(key: ReduceKey) -> KernelSource:
    """Return the source of a kernel around the gradient of attention."""
    name = f"ck_attention_{'dot' if key.dot else 'sum'}_{key.dtype}"
    return _whole(
        key,
        "attention_reduce.hip.j2",
        name,
        type=key.dtype.ck,
        type_parts=key.parts.ck,
        dot=key.dot,
    )


def lower_combine(key: CombineKey, fill: str) -> KernelSource:
    """Return the source of a kernel that combines what splits of the keys gave.

    Args:
        key: Its identity.
        fill: C that defines what is stored of o if ``key`` says that a function makes it.
    """
    whole = _whole(
        key,
        "attention_combine.hip.j2",
        f"ck_attention_combine_{key.dtype_o}",
        type_o=key.dtype_o.ck,
        bytes_o=key.dtype_o.bytes,
        lse=_flag(key.lse),
        output=_flag(key.output),
    )
    return replace(whole, fill=fill, hole=OUTPUT_HOLE if key.output else "")


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


def _whole(key: _Helper, name: str, kernel: str, **context: object) -> KernelSource:
    """Return a source in which nothing is open."""
    text = template(name).render(key_json=_json(key), kernel=kernel, **context)
    return KernelSource(
        stencil=text,
        fill="",
        hole="",
        kernel=kernel,
        halves=False,
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )


def _json(key: AttentionKey | AttentionGradKey | _Helper) -> str:
    return json.dumps(key.stencil.to_json(), sort_keys=True)


def _flag(value: bool) -> str:
    return str(value).lower()


def _holes(key: AttentionKey | AttentionGradKey) -> tuple[str, ...]:
    s = key.signature
    score = (SCORE_HOLE,) if s.score is ScoreKind.FUNCTION else ()
    mask = (MASK_HOLE,) if s.mask is MaskKind.FUNCTION else ()
    output = (OUTPUT_HOLE,) if s.output else ()
    return score + mask + output


def _kernel_name(key: AttentionKey) -> str:
    s, a = key.signature, key.algorithm
    return f"ck_attention_{s.dtype}_{s.dtype_o}_{'x'.join(map(str, a.tile))}"


def _shared(key: AttentionKey | AttentionGradKey, kernel: str) -> dict[str, object]:
    """Return what both directions say alike."""
    s, a = key.signature, key.algorithm
    return {
        "key_json": _json(key),
        "kernel": kernel,
        "type": s.dtype.ck,
        "type_bias": s.dtype_bias.ck,
        "bytes": s.dtype.bytes,
        "bytes_bias": s.dtype_bias.bytes,
        "score": s.score.value,
        "mask": s.mask.value,
        "bias": _BIAS[s.score],
        "dropout": _flag(s.dropout),
        "packed": _flag(s.packed),
        "vector": a.vector,
        "block_per_cu": a.block_per_cu,
        "holes": " and ".join(_holes(key)),
    }


def _context(key: AttentionKey, kernel: str) -> dict[str, object]:
    s, a = key.signature, key.algorithm
    row = _PIPELINES[a.pipeline]
    stored = f32 if s.split else s.dtype_o
    flags = {name: getattr(a, name) for name in ("pad_q", "pad_k", "pad_d", "pad_dv")}
    flags |= {
        "split": s.split,
        "paged": s.paged,
        "output": s.output,
        "lse": s.lse or s.split,
        "soft_cap": s.score is ScoreKind.SOFT_CAP,
        "static_scales": s.dtype.bytes == 1,
        "transposed_loads": bool(row.adapter),
    }
    is_wide = a.warp_tile[:2] == _SWIZZLED
    return {
        **_shared(key, kernel),
        "type_o": stored.ck,
        "bytes_o": stored.bytes,
        "tile": a.tile,
        "warps": a.warps,
        "warp_tile": a.warp_tile,
        "threads": arch(key.arch).wave_size * math.prod(a.warps),
        "pipeline": row.ck,
        "header": row.header,
        "adapter": row.adapter,
        "borrows_places": s.dropout and s.dtype.bytes == 1 and is_wide,
        **{name: _flag(value) for name, value in flags.items()},
    }
