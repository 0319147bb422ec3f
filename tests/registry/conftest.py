# SPDX-License-Identifier: MIT
"""What tests of bundles have in common."""

import pytest

from cklang.errors import error
from cklang.toolchain import compilers


@pytest.fixture
def no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers of CK Tile are not found."""

    def refuse() -> None:
        raise error("B004", get="pip install headers")

    monkeypatch.setattr(compilers, "find_ck_tree", refuse)
