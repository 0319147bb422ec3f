# SPDX-License-Identifier: MIT
"""Pages of ``docs/`` that are written from tables and docstrings of the package.

``python -m tests.support.pages`` writes them; ``tests/base/test_pages.py`` compares.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.pages.charts import fusion, kernel_choice, roofline_of_products
from tests.support.pages.cli import cli_page
from tests.support.pages.errors import errors_page
from tests.support.pages.house import house
from tests.support.pages.llms import llms_text
from tests.support.pages.pictures import lanes_of_mfma, lanes_of_wmma, tiles_of_a_product
from tests.support.pages.reference import reference_page
from tests.support.pages.tutorials import generated

__all__ = ["DOCS", "GENERATED"]

DOCS = Path(__file__).parents[3] / "docs"

GENERATED: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "llms.txt": llms_text,
    "reference.md": reference_page,
    "pictures/fusion.svg": lambda: f"{fusion()}\n",
    "pictures/house.svg": house,
    "pictures/kernel_choice.svg": lambda: f"{kernel_choice()}\n",
    "pictures/mfma_32x32x8.svg": lanes_of_mfma,
    "pictures/roofline.svg": lambda: f"{roofline_of_products()}\n",
    "pictures/tiles.svg": tiles_of_a_product,
    "pictures/wmma_16x16x16.svg": lanes_of_wmma,
    **generated(),
}
"""The generated files below ``docs/`` and the function that returns the text of each."""
