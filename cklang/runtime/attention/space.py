# SPDX-License-Identifier: MIT
"""The algorithms that an attention problem has on a GPU: the tilings of its spec that hold it."""

from __future__ import annotations

from cklang.arch import ArchSpec, AttentionTile
from cklang.attention_keys import (
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    GradPipeline,
    MaskKind,
    ScoreKind,
)

__all__ = ["attention_algorithms", "attention_grad_algorithms"]

_ACCESS_BYTES = 16
_SMALL = 64


def attention_algorithms(
    spec: ArchSpec, signature: AttentionSignature, hdim_q: int, hdim_v: int
) -> tuple[AttentionAlgorithm, ...]:
    """Return every algorithm that takes these head sizes, the smallest tiling first.

    All pad lengths and head sizes, so that they run for any. Of one tiling the pipelines stand in
    the order of the spec; only ``qr`` takes keys in pages. An 8-bit type is looked up as ``fp8``
    whatever its encoding is; that the GPU has it is a rule of its own.
    """
    name = signature.dtype.name.removesuffix("_fnuz")
    rows = [
        row
        for row in spec.attention_tiles
        if name in row.dtypes and hdim_q <= row.hdim_q and hdim_v <= row.hdim_v
    ]
    rows.sort(key=lambda row: row.hdim_q + row.hdim_v)
    vector = min(_ACCESS_BYTES // signature.dtype.bytes, 8)
    functions = ScoreKind.FUNCTION is signature.score or MaskKind.FUNCTION is signature.mask
    return tuple(
        _algorithm(row, AttentionPipeline(pipeline), vector, functions=functions)
        for row in rows
        for pipeline in row.pipelines
        if pipeline == "qr" or not signature.paged
    )


def attention_grad_algorithms(
    spec: ArchSpec, signature: AttentionSignature, hdim_q: int, hdim_v: int
) -> tuple[AttentionGradAlgorithm, ...]:
    """Return every backward algorithm that takes these head sizes, the smallest tiling first."""
    rows = [
        row
        for row in spec.attention_grad_tiles
        if signature.dtype.name in row.dtypes and hdim_q <= row.tile[7] and hdim_v <= row.tile[8]
    ]
    rows.sort(key=lambda row: row.tile[7] + row.tile[8])
    return tuple(
        AttentionGradAlgorithm(
            tile=row.tile,
            warps=row.warps,
            warp_tiles=row.warp_tiles,
            pipeline=GradPipeline(pipeline),
            vector=min(_ACCESS_BYTES // signature.dtype.bytes, 8),
            block_per_cu=row.block_per_cu,
        )
        for row in rows
        for pipeline in row.pipelines
    )


def _algorithm(
    row: AttentionTile, pipeline: AttentionPipeline, vector: int, *, functions: bool
) -> AttentionAlgorithm:
    # A user's function needs registers of its own: two large tiles on a compute unit would spill.
    alone = functions and row.hdim_q > _SMALL
    return AttentionAlgorithm(
        tile=row.tile,
        warps=(row.warps, 1, 1),
        warp_tile=row.warp_tile,
        pipeline=pipeline,
        vector=vector,
        block_per_cu=1 if alone else row.block_per_cu,
    )
