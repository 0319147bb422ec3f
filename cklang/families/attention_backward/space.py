# SPDX-License-Identifier: MIT
"""The algorithms of the gradients of attention: the tilings of a GPU's spec, and what varies."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from cklang.arch import ArchSpec, AttentionGradTile
from cklang.families.attention.key import AttentionSignature
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS
from cklang.families.attention.space import OCCUPANCIES, choices_of_tilings, vector_widths, widest
from cklang.families.attention_backward.key import (
    AttentionGradAlgorithm,
    AttentionGradSignature,
    GradPipeline,
)
from cklang.families.attention_backward.rules import RULES
from cklang.families.grid import Grid
from cklang.types import DType

_TILING = ("tile", "warps", "warp_tiles")


def attention_grad_algorithms(
    spec: ArchSpec, signature: AttentionSignature, hdim_q: int = 1, hdim_v: int = 1
) -> tuple[AttentionGradAlgorithm, ...]:
    """Return every backward algorithm that takes these head sizes, the smallest tiling first."""
    rows = [
        row
        for row in _tilings(spec, signature.dtype)
        if (hdim_q <= row.tile[7] and hdim_v <= row.tile[8]) or _walks_over_heads(row)
    ]
    return tuple(
        AttentionGradAlgorithm(
            tile=row.tile,
            warps=row.warps,
            warp_tiles=row.warp_tiles,
            pipeline=GradPipeline(pipeline),
            vector=widest(signature.dtype),
            block_per_cu=row.block_per_cu,
        )
        for row in rows
        for pipeline in row.pipelines
    )


def _walks_over_heads(row: AttentionGradTile) -> bool:
    return any(GRAD_PIPELINE_FACTS[GradPipeline(name)].any_head for name in row.pipelines)


def _tilings(spec: ArchSpec, dtype: DType) -> list[AttentionGradTile]:
    rows = [row for row in spec.attention_grad_tiles if dtype.name in row.dtypes]
    # What holds no head comes after all that do.
    return sorted(rows, key=lambda row: (_walks_over_heads(row), row.tile[7] + row.tile[8]))


def _values(name: str, signature: AttentionGradSignature, spec: ArchSpec) -> Sequence[Any]:
    if name in _TILING:
        place = _TILING.index(name)
        return tuple(dict.fromkeys(triple[place] for triple in _triples(signature, spec)))
    return {
        "pipeline": tuple(GradPipeline),
        "vector": vector_widths(signature.forward.dtype),
        "block_per_cu": OCCUPANCIES,
    }[name]


def _triples(signature: AttentionGradSignature, spec: ArchSpec) -> list[tuple[Any, ...]]:
    rows = _tilings(spec, signature.forward.dtype)
    return [(row.tile, row.warps, row.warp_tiles) for row in rows]


GRID: Grid[AttentionGradAlgorithm] = Grid(
    of=AttentionGradAlgorithm,
    order=("tiling", "pipeline", "vector", "block_per_cu"),
    joint={"tiling": _TILING},
    choices=partial(choices_of_tilings, _TILING, _triples, _values),
    values=_values,
    rules=RULES,
)
"""The algorithms of its gradients."""
