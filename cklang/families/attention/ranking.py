# SPDX-License-Identifier: MIT
"""What the cost model says of attention kernels for a problem."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.families.attention.cost import AttentionEstimate, AttentionShape, attention_table
from cklang.families.attention.key import AttentionAlgorithm
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.keys import AnyKey

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


AnyCase: TypeAlias = AttentionCase | AttentionGradCase
Times = npt.NDArray[np.float64]


def shape_of(case: AnyCase) -> AttentionShape:
    """Return the extents of a problem, or of the forward one of gradients, for the cost model.

    Packed sequences count as if all were as long as the longest, which is all that is known.
    """
    p = (case.forward if isinstance(case, AttentionGradCase) else case).problem
    return AttentionShape(
        batch=p.batch,
        heads=p.heads,
        kv_heads=p.kv_heads,
        queries=p.seqlen_q,
        keys=p.seqlen_k,
        head=p.hdim_q,
        head_v=p.hdim_v,
        left=p.left,
        right=p.right,
        from_bottom_right=p.from_bottom_right,
        sink=p.sink,
        splits=p.splits,
    )


class AttentionCost:
    """The cost model of kernels of attention or of its gradients, by the estimate of one."""

    def __init__(
        self, keys: Sequence[AnyKey], spec: ArchSpec, estimate: Callable[..., AttentionEstimate]
    ) -> None:
        self._keys, self._spec, self._estimate = tuple(keys), spec, estimate

    def times(self, problem: AnyCase) -> Times:
        """Return the predicted time of each kernel in µs.

        Without scores no kernel of gradients is launched, and takes no time.
        """
        if isinstance(problem, AttentionGradCase) and not problem.forward.has_scores:
            return np.zeros(len(self._keys))
        return np.array([estimate.us for estimate in self._estimates(self._keys, problem)])

    def table(self, places: Sequence[int], problem: AnyCase) -> list[str]:
        """Return the terms of one or two kernels as lines of text."""
        keys = [self._keys[place] for place in places]
        return attention_table([key.label for key in keys], self._estimates(keys, problem))

    def terms(self, place: int, problem: AnyCase) -> Mapping[str, float]:
        """Return what makes up the time of a kernel, in µs."""
        return self._estimates([self._keys[place]], problem)[0].terms

    def _estimates(self, keys: Sequence[AnyKey], problem: AnyCase) -> list[AttentionEstimate]:
        shape = shape_of(problem)
        return [self._estimate(key, shape, self._spec) for key in keys]
