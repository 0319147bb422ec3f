# SPDX-License-Identifier: MIT
"""The family of sums around gradients."""

from __future__ import annotations

from typing import Any

from cklang.families.protocol import HelperFamily
from cklang.families.reduce.key import ReduceSignature
from cklang.families.reduce.lower import lower_reduce

REDUCE: HelperFamily[ReduceSignature, Any] = HelperFamily("reduce", ReduceSignature, lower_reduce)
