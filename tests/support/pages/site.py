# SPDX-License-Identifier: MIT
"""What MkDocs does with the pages beside its own work; ``mkdocs.yml`` names this file."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

__all__ = ["VERSION", "on_config", "on_files", "on_page_markdown", "with_links"]

VERSION = "MIKE_DOCS_VERSION"
"""The environment variable in which mike says that it builds one version among several."""

_PLOTS = Path(__file__).parents[3] / "benchmarks" / "data" / "plots"
_FROM_DOCS = "../benchmarks/data/plots/"


def with_links(text: str, pages: Collection[str], folder: str = "") -> str:
    """Return a page on which ``docs/page.md`` in backticks is a link and plots are the site's.

    ``folder`` is the way from the page's folder to ``docs``.
    """

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({folder}{match[1]})" if match[1] in pages else match[0]

    return re.sub(r"`docs/([\w/-]+\.\w+)`", link, text).replace(_FROM_DOCS, "plots/")


def on_config(config: Any) -> Any:
    """Show a selector of versions on pages that mike builds."""
    if VERSION in os.environ:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the plots of the benchmarks, which pages show, to the site."""
    from mkdocs.structure.files import File

    for path in sorted(_PLOTS.glob("*.png")):
        name = f"plots/{path.name}"
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Link the pages that a page names."""
    del config
    folder = "../" * page.file.src_uri.count("/")
    return with_links(markdown, {file.src_uri for file in files}, folder)
