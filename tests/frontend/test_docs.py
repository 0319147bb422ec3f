# SPDX-License-Identifier: MIT
"""The language page names every function of the language, with its meaning in the op table."""

from __future__ import annotations

from pathlib import Path

import pytest

import cklang as ck
from cklang.frontend import composites, functions

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()


@pytest.mark.parametrize("name", [*composites.__all__, *functions.__all__])
def test_every_function_is_on_the_language_page(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `ck.{name}(")]
    assert len(rows) == 1
    assert getattr(ck, name).doc.replace("|", "\\|") in rows[0]
