# SPDX-License-Identifier: MIT
"""Facts about CK Tile's attention pipelines that rules ask for, from the pinned tree's headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.attention_keys import AttentionPipeline

__all__ = ["MOST_HEAD", "PIPELINE_FACTS", "PipelineFacts"]

MOST_HEAD = 256
"""The longest head that any of them holds."""


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


PIPELINE_FACTS: Mapping[AttentionPipeline, PipelineFacts] = MappingProxyType(
    {
        AttentionPipeline.QR: PipelineFacts(least_steps=2, paged=True),
        AttentionPipeline.QR_ASYNC: PipelineFacts(
            least_steps=1, padded=("pad_q", "pad_d", "pad_dv"), buffers=3
        ),
        AttentionPipeline.QS: PipelineFacts(least_steps=2, query_in_lds=True),
    }
)
