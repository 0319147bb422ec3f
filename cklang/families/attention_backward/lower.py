# SPDX-License-Identifier: MIT
"""The gradients of attention: a kernel key becomes CK Tile C++ with score and mask open."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from cklang.arch import arch
from cklang.families.attention.functions import attention_fill
from cklang.families.attention.lower import PipelineRow, holes, shared_context
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS
from cklang.families.attention_backward.key import AttentionGradKey, GradPipeline
from cklang.families.closed_source import flag
from cklang.fusion.functions import Functions
from cklang.lowering.headers import PRECOMPILED_ATTENTION
from cklang.lowering.render import template
from cklang.lowering.source import KernelSource

DERIVATIVE_HOLE = "ck_derivative"
"""The symbol that a stencil leaves open whose score has a derivative."""

_PIPELINES: Mapping[GradPipeline, PipelineRow] = MappingProxyType(
    {
        GradPipeline.KR_KTR_VR: PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineKRKTRVR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr.hpp",
        ),
        GradPipeline.KR_KTR_VR_IGLP: PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineKRKTRVRIGLP",
            header="block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr_iglp.hpp",
        ),
        GradPipeline.TRLOAD_KR_KTR_VR: PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineTrLoadKRKTRVR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_trload_kr_ktr_vr.hpp",
        ),
        GradPipeline.TRLOAD_QR_QTR_DOR: PipelineRow(
            ck="BlockFmhaBwdDQDKDVPipelineTrLoadQRQTRDOR",
            header="block_fmha_bwd_dq_dk_dv_pipeline_trload_qr_qtr_dor.hpp",
        ),
        GradPipeline.LONG_HEAD: PipelineRow(ck="LongHeadsGrad", header="", long_head=True),
    }
)

# CK Tile's own policies, by whether loads transpose.
_POLICIES = {
    False: "BlockFmhaBwdPipelineDefaultPolicy",
    True: "BlockFmhaBwdPipelineTrLoadDefaultPolicy",
}

# What the backward traits take for a head that is padded and read in vectors.
_GRAD_VECTORS = 8

# Which of the algorithm's three kinds each of the five products is.
_GRAD_PRODUCTS = (0, 1, 0, 1, 2)


def lower_grad(key: AttentionGradKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that gives the gradients of q, k and v.

    ``functions`` are ``score`` and ``mask`` of the forward kernel and the ``derivative`` of the
    score; without one it is taken to be 1.
    """
    s, a = key.signature.forward, key.algorithm
    row, facts = _PIPELINES[a.pipeline], GRAD_PIPELINE_FACTS[a.pipeline]
    kernel = f"ck_attention_grad_{s.dtype}_{s.dtype_o}_{'x'.join(map(str, a.tile))}"
    text = template("attention_grad.hip.j2").render(
        **{**shared_context(key, s, kernel), "holes": " and ".join(_holes(key))},
        type_o=s.dtype_o.ck,
        bytes_o=s.dtype_o.bytes,
        bias_grad=flag(key.signature.bias_grad),
        deterministic=flag(key.signature.deterministic),
        tile=a.tile,
        # Of heads of any size, what a step takes of them stands for a head.
        blocks=(*a.tile[:7], a.tile[2], a.tile[4]) if row.long_head else a.tile,
        long_head=row.long_head,
        warps=a.warps,
        warp_tiles=a.warp_tiles,
        gemms=_GRAD_PRODUCTS,
        # CK Tile's word for vectors along a padded head, whatever their width.
        pad=_GRAD_VECTORS if a.vector > 1 else 1,
        whole=flag(facts.all_queries),
        most_queries=a.tile[0] if facts.all_queries else 0,
        transposed_loads=flag(facts.transposed_loads),
        threads=arch(key.arch).wave_size * math.prod(a.warps[0]),
        pipeline=_pipeline(key),
        header=row.header,
        derivative=key.signature.derivative,
        lengths=key.signature.lengths,
    )
    return KernelSource(
        stencil=text,
        fill=attention_fill(functions),
        hole=", ".join(_holes(key)),
        kernel=kernel,
        precompiled=PRECOMPILED_ATTENTION,
        host_headers=False,
    )


def _holes(key: AttentionGradKey) -> tuple[str, ...]:
    """Return the symbols that a stencil leaves open."""
    own = (DERIVATIVE_HOLE,) if key.signature.derivative else ()
    return (*holes(key.signature.forward), *own)


def _pipeline(key: AttentionGradKey) -> str:
    """Return the pipeline of a kernel's problem, within what of ours goes around it."""
    row, facts = _PIPELINES[key.algorithm.pipeline], GRAD_PIPELINE_FACTS[key.algorithm.pipeline]
    name, arguments = f"ck_tile::{row.ck}", ["Problem"]
    if row.long_head:
        name, arguments = f"cklang::{row.ck}", ["Problem", str(key.algorithm.tile[7])]
    if key.signature.derivative:
        arguments.append(f"cklang::DerivedPolicy<ck_tile::{_POLICIES[facts.transposed_loads]}>")
    text = f"{name}<{', '.join(arguments)}>"
    if key.signature.derivative:
        text = f"cklang::DerivedScores<{text}>"
    return f"cklang::PaddedQueries<{text}>" if arch(key.arch).repeats_rows else text
