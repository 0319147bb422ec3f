# SPDX-License-Identifier: MIT
"""Published data that tests read and the repository does not hold."""

from pathlib import Path

import pytest
from data import published


def required(name: str) -> Path:
    """Return where a file of published data is; skip the test, or its module, where it is not."""
    problem = published.missing(name)
    if problem is not None:
        pytest.skip(problem, allow_module_level=True)
    return published.locate(name)
