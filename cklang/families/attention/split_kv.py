# SPDX-License-Identifier: MIT
"""The number of workgroups that share the keys of a tile of queries."""

import math

from cklang.arch import ArchSpec
from cklang.families.attention.key import AttentionAlgorithm
from cklang.families.attention.problem import AttentionCase

_KEYS_OF_A_SPLIT = 512
"""Keys that are worth a workgroup of their own, which reads Q again and leaves a part."""

_MOST_SPLITS = 32

MIN_SPLIT_GAIN = 0.9
"""Splits must take at most this fraction of the unsplit time: they need memory and a second kernel,
and no time of attention was ever measured for the model."""


def _most(case: AttentionCase) -> int:
    """Return the most splits that are chosen where nobody asked for a number."""
    if case.signature.packed or case.signature.dropout:
        return 1
    return max(min(case.problem.seqlen_k // _KEYS_OF_A_SPLIT, _MOST_SPLITS), 1)


def split_counts(case: AttentionCase) -> tuple[int, ...]:
    """Return the numbers of splits that are worth comparing: 1, powers of two, and the most."""
    most = _most(case)
    powers = (2**power for power in range(most.bit_length()))
    return tuple(sorted({*powers, most}))


def splits_without_model(case: AttentionCase, spec: ArchSpec, algorithm: AttentionAlgorithm) -> int:
    """Return how many splits keep a GPU busy that the cost model cannot price.

    So many that every compute unit has a workgroup where batch, heads and queries alone leave half
    of them idle.
    """
    p = case.problem
    tiles = p.batch * p.heads * math.ceil(p.seqlen_q / algorithm.tile[0])
    return max(min(spec.compute_units // tiles, _most(case)), 1)


def clamp_splits(count: int, case: AttentionCase, algorithm: AttentionAlgorithm) -> int:
    """Return ``count``, or the number of key tiles if that is less: no split is without keys."""
    return min(count, max(math.ceil(case.problem.seqlen_k / algorithm.tile[1]), 1))
