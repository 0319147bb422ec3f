# SPDX-License-Identifier: MIT
"""The family of rows appended to a KV cache."""

from __future__ import annotations

from typing import Any

from cklang.families.append.key import AppendSignature
from cklang.families.append.lower import lower_append
from cklang.families.protocol import HelperFamily

APPEND: HelperFamily[AppendSignature, Any] = HelperFamily("append", AppendSignature, lower_append)
