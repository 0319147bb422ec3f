# SPDX-License-Identifier: MIT
"""Facts about CK Tile's attention pipelines that rules ask for, from the pinned tree's headers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    ScoreKind,
)
from cklang.families.attention_backward.key import AttentionGradKey, GradPipeline

MOST_HEAD = 256
"""The longest head that a tile of one of CK Tile's holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFacts:
    """What one pipeline asks of an algorithm."""

    least_steps: int
    """Steps along the head size that it loads ahead."""
    padded: tuple[str, ...] = ()
    """The pads without which it does not compile."""
    paged: bool = False
    """Whether its loads of K and V can look a page up."""
    buffers: int = 0
    """Tiles of K or V that are in LDS at once, where loads go straight there."""
    query_in_lds: bool = False
    looks_for_keys: bool = True
    """Whether without a mask it ends early where a sequence has no keys: else o is NaN there."""
    transposed: bool = False
    """Whether it loads all of K and V straight into LDS and reads V from there transposed; such
    a pipeline has no hooks for scores and weights, and asks no variant: ours is in its mask
    (``attention_scored.hpp``)."""
    transposed_v: bool = False
    """Whether it takes a v whose keys lie side by side in memory."""
    scaled_lse: bool = True
    """Whether the scale of scores is in the lse that it stores."""
    heads: tuple[tuple[int, int], ...] = ()
    """The head sizes of q and v that CK Tile makes kernels of it for; empty for all."""
    any_head: bool = False
    """Whether it walks over heads in steps, so that its tile limits none."""
    wave_groups: int = 0
    """Groups of four waves that take turns at multiplying and loading."""
    drops: bool = False
    """Whether it applies dropout; the others take the argument and ignore it."""


PIPELINE_FACTS: Mapping[AttentionPipeline, PipelineFacts] = MappingProxyType(
    {
        AttentionPipeline.QR: PipelineFacts(
            least_steps=2, paged=True, transposed_v=True, drops=True
        ),
        AttentionPipeline.QR_ASYNC: PipelineFacts(
            least_steps=1,
            padded=("pad_q", "pad_d", "pad_dv"),
            buffers=3,
            transposed_v=True,
            drops=True,
        ),
        AttentionPipeline.QS: PipelineFacts(
            least_steps=2, query_in_lds=True, looks_for_keys=False, transposed_v=True
        ),
        AttentionPipeline.QR_ASYNC_TRLOAD: PipelineFacts(
            least_steps=1, transposed=True, heads=((64, 64), (128, 128))
        ),
        AttentionPipeline.V3: PipelineFacts(
            least_steps=1, transposed=True, scaled_lse=False, heads=((128, 128),), wave_groups=2
        ),
        AttentionPipeline.LONG_HEAD: PipelineFacts(
            least_steps=1, padded=("pad_d", "pad_dv"), paged=True, any_head=True, transposed_v=True
        ),
    }
)


def is_scored(algorithm: AttentionAlgorithm, signature: AttentionSignature) -> bool:
    """Whether a pipeline that reads V transposed needs our hook for scores.

    It does for a soft cap or a function, and where the scale would be missing in the lse.
    """
    facts = PIPELINE_FACTS[algorithm.pipeline]
    lacks_scale = (signature.lse or signature.split) and not facts.scaled_lse
    return facts.transposed and (signature.score is not ScoreKind.NONE or lacks_scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradPipelineFacts:
    """What one backward pipeline does, and so asks of a problem."""

    transposed_loads: bool = False
    """Whether it loads straight into LDS, 16 bytes at a time, and transposes as it reads there."""
    all_queries: bool = False
    """Whether a workgroup has all queries of a head: one tile of them. It is launched once a head,
    walks over all keys and stores dq alone, whatever order is asked for. It does not move along a
    bias, and leaves the gradients of keys that a window hides unwritten."""
    any_head: bool = False
    """Whether it walks over heads in steps, so that its tile limits none."""


GRAD_PIPELINE_FACTS: Mapping[GradPipeline, GradPipelineFacts] = MappingProxyType(
    {
        GradPipeline.KR_KTR_VR: GradPipelineFacts(),
        GradPipeline.KR_KTR_VR_IGLP: GradPipelineFacts(),
        GradPipeline.TRLOAD_KR_KTR_VR: GradPipelineFacts(transposed_loads=True),
        GradPipeline.TRLOAD_QR_QTR_DOR: GradPipelineFacts(transposed_loads=True, all_queries=True),
        GradPipeline.LONG_HEAD: GradPipelineFacts(any_head=True),
    }
)


def parts_of_dq(key: AttentionGradKey, keys: int) -> int:
    """Return how many parts of dq a kernel leaves apart for a sequence of ``keys``.

    One, to which all workgroups add or which one stores, or one for each tile of keys.
    """
    apart = (
        key.signature.deterministic and not GRAD_PIPELINE_FACTS[key.algorithm.pipeline].all_queries
    )
    return math.ceil(keys / key.algorithm.tile[1]) if apart else 1
