# SPDX-License-Identifier: MIT
"""``cklang judge``: is a kernel right, safe, honest and quick, asked without a GPU."""

from cklang.judge.judging import Limits, judge
from cklang.judge.verdict import Finding, Verdict

__all__ = ["Finding", "Limits", "Verdict", "judge"]
