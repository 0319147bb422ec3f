# SPDX-License-Identifier: MIT
"""The table of aten ops that programs compute: each with the function that appends it to the IR."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cklang.torch.backend.attention import ATTENTION
from cklang.torch.backend.call import Emission
from cklang.torch.backend.movement import MOVEMENT, VIEWS
from cklang.torch.backend.pointwise import POINTWISE
from cklang.torch.backend.products import PRODUCTS
from cklang.torch.backend.reductions import REDUCTIONS

__all__ = ["EMISSIONS", "FREE", "ITEM"]

EMISSIONS: Mapping[Any, Emission] = MappingProxyType(
    {**POINTWISE, **MOVEMENT, **REDUCTIONS, **PRODUCTS, **ATTENTION}
)
"""The emission of each op."""

ITEM = operator.getitem
"""Takes one result of an op that has several."""

FREE = frozenset({*VIEWS, ITEM})
"""Ops that compute nothing: a program has those between its other nodes, and torch makes those
around it."""
