# SPDX-License-Identifier: MIT
"""What the cost model says of attention kernels for a problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.families.attention.cost import AttentionShape, attention_estimate
from cklang.families.attention.key import AttentionKey
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention_backward.cost import attention_grad_estimate
from cklang.families.attention_backward.key import AttentionGradKey

Times = npt.NDArray[np.float64]


def shape_of(case: AttentionCase) -> AttentionShape:
    """Return the extents of a problem as the cost model takes them.

    Packed sequences count as if all were as long as the longest, which is all that is known.
    """
    p = case.problem
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


def attention_times(keys: Sequence[AttentionKey], case: AttentionCase, spec: ArchSpec) -> Times:
    """Return the predicted time of each kernel for a problem, in µs.

    Raises:
        CkUnsupportedError: N002, the GPU has no matrix rate for the element type.
    """
    shape = shape_of(case)
    return np.array([attention_estimate(key, shape, spec).us for key in keys])


def attention_grad_times(
    keys: Sequence[AttentionGradKey], case: AttentionGradCase, spec: ArchSpec
) -> Times:
    """Return the same for kernels of gradients; without scores none is launched, and takes no time.

    Raises:
        CkUnsupportedError: N002, the GPU has no matrix rate for the element type.
    """
    p = case.forward.problem
    if not (p.seqlen_k and p.seqlen_q and p.batch and p.heads):
        return np.zeros(len(keys))
    shape = shape_of(case.forward)
    return np.array([attention_grad_estimate(key, shape, spec).us for key in keys])
