# SPDX-License-Identifier: MIT
"""The table of all errors, which is read when the first one is made."""

from collections.abc import Mapping
from types import MappingProxyType

from cklang.errors import arrays, building, choosing, frontend, general, ir, values
from cklang.errors.kinds import Rule

_PARTS = (arrays, building, frontend, ir, choosing, values, general)
TABLE: tuple[Rule, ...] = tuple(rule for part in _PARTS for rule in part.TABLE)
"""Every row, part by part."""

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in TABLE})
"""All rules by code."""
