# SPDX-License-Identifier: MIT
"""Write the generated pages: ``python -m tests.support.pages``."""

from __future__ import annotations

from tests.support.pages import DOCS, GENERATED

for name, text in GENERATED.items():
    path = DOCS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text(), encoding="utf-8")
