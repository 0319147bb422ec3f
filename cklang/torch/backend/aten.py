# SPDX-License-Identifier: MIT
"""The table of aten ops that programs compute: each with the function that appends it to the IR."""

import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch

from cklang.torch.backend.attention import ATTENTION
from cklang.torch.backend.call import Emission
from cklang.torch.backend.indexing import INDEXING
from cklang.torch.backend.movement import MOVEMENT, REORDERED, VIEWS
from cklang.torch.backend.ordering import ORDERING
from cklang.torch.backend.pointwise import POINTWISE
from cklang.torch.backend.pooling import POOLING
from cklang.torch.backend.products import PRODUCTS
from cklang.torch.backend.reductions import REDUCTIONS

EMISSIONS: Mapping[Any, Emission] = MappingProxyType(
    {
        **POINTWISE, **MOVEMENT, **INDEXING, **REDUCTIONS, **ORDERING, **POOLING, **PRODUCTS,
        **ATTENTION,
    }
)  # fmt: skip
"""The emission of each op."""

KEEP_ORDER = frozenset(
    {*POINTWISE, *POOLING, *REORDERED, torch.ops.aten._native_batch_norm_legit_no_training.default}
)
"""Ops whose emissions take tensors with axes in another order than torch's."""

ITEM = operator.getitem
"""Takes one result of an op that has several."""

FREE = frozenset({*VIEWS, ITEM})
"""Ops that compute nothing: a program has those between its other nodes, and torch makes those
around it."""
