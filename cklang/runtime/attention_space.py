# SPDX-License-Identifier: MIT
"""The algorithms that an attention problem has on a GPU: the tilings of its spec that hold it."""

from __future__ import annotations

from cklang.arch import ArchSpec, AttentionTile
from cklang.attention_keys import AttentionAlgorithm, AttentionPipeline, AttentionSignature

__all__ = ["attention_algorithms"]

_ACCESS_BYTES = 16


def attention_algorithms(
    spec: ArchSpec, signature: AttentionSignature, hdim_q: int, hdim_v: int
) -> tuple[AttentionAlgorithm, ...]:
    """Return every algorithm that takes these head sizes, the smallest tiling first.

    All pad lengths and head sizes, so that they run for any. Of one tiling the pipelines stand in
    the order of the spec. An 8-bit type is looked up as ``fp8`` whatever its encoding is; that the
    GPU has it is a rule of its own.
    """
    name = signature.dtype.name.removesuffix("_fnuz")
    rows = [
        row
        for row in spec.attention_tiles
        if name in row.dtypes and hdim_q <= row.hdim_q and hdim_v <= row.hdim_v
    ]
    rows.sort(key=lambda row: row.hdim_q + row.hdim_v)
    vector = min(_ACCESS_BYTES // signature.dtype.bytes, 8)
    return tuple(
        _algorithm(row, AttentionPipeline(pipeline), vector)
        for row in rows
        for pipeline in row.pipelines
    )


def _algorithm(row: AttentionTile, pipeline: AttentionPipeline, vector: int) -> AttentionAlgorithm:
    return AttentionAlgorithm(
        tile=row.tile,
        warps=(row.warps, 1, 1),
        warp_tile=row.warp_tile,
        pipeline=pipeline,
        vector=vector,
        block_per_cu=row.block_per_cu,
    )
