# SPDX-License-Identifier: MIT
"""The language page names every function of the language, with its meaning as the op table has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklang.frontend import functions

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()


@pytest.mark.parametrize("name", functions.__all__)
def test_every_function_is_on_the_language_page(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `ck.{name}(")]
    assert len(rows) == 1
    assert getattr(functions, name).doc.replace("|", "\\|") in rows[0]
