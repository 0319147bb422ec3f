# SPDX-License-Identifier: MIT
"""Help for tests of ops: comparison with bounds, and hypothesis strategies.

``strategies`` (numbers, shapes, strides) and ``programs`` (functions of the mini-IR) need the
package ``hypothesis``; comparing does not.
"""

from __future__ import annotations

from cklang.testing.compare import assert_close, tolerance
from cklang.testing.report import Report, report, reports
from cklang.testing.selftest import SelfTest, plain_key, self_test

__all__ = [
    "Report",
    "SelfTest",
    "assert_close",
    "plain_key",
    "report",
    "reports",
    "self_test",
    "tolerance",
]
