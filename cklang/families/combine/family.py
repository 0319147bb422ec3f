# SPDX-License-Identifier: MIT
"""The family of sums over splits of the keys."""

from __future__ import annotations

from typing import Any

from cklang.families.combine.key import CombineSignature
from cklang.families.combine.lower import lower_combine
from cklang.families.protocol import HelperFamily

COMBINE: HelperFamily[CombineSignature, Any] = HelperFamily(
    "combine", CombineSignature, lower_combine
)
