# SPDX-License-Identifier: MIT
"""Tests of torch begin with nothing traced, and where they want it without kernels."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.by_reference import replace_kernels


@pytest.fixture
def fresh(torch: Any) -> Iterator[None]:
    """Torch has traced nothing, and the backend has reported nothing."""
    import cklang.torch

    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def no_kernels(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls return what the reference says."""
    replace_kernels(monkeypatch)
