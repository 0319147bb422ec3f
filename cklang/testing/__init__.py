# SPDX-License-Identifier: MIT
"""Help for tests of ops: drawn calls, comparison with bounds, and hypothesis strategies.

:func:`check`, :func:`check_call`, :func:`calls`, :func:`arrays`, :func:`ops` and ``strategies``
(numbers, shapes, strides) need the package ``hypothesis``; comparing does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cklang.ops.self_test import SelfTest, plain_key, self_test
from cklang.testing.compare import assert_close, tolerance
from cklang.testing.report import Report, report, reports

if TYPE_CHECKING:
    from cklang.testing.drawn_calls import Call, calls
    from cklang.testing.strategies import arrays
    from cklang.testing.trial import check, check_call
    from cklang.testing.whole_programs import ops

__all__ = [
    "Call", "Report", "SelfTest", "arrays", "assert_close", "calls", "check", "check_call", "ops",
    "plain_key", "report", "reports", "self_test", "tolerance",
]  # fmt: skip

_WITH_HYPOTHESIS = {
    "Call": "drawn_calls",
    "arrays": "strategies",
    "calls": "drawn_calls",
    "check": "trial",
    "check_call": "trial",
    "ops": "whole_programs",
}
"""The module of each name that needs hypothesis, which is imported when the name is used."""


def __getattr__(name: str) -> Any:
    if name not in _WITH_HYPOTHESIS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_HYPOTHESIS[name]}"), name)
