# SPDX-License-Identifier: MIT
"""The site in a real browser, light and dark: every page, the search, and its versions.

It needs MkDocs and mike (``pip install '.[docs]'``) and a browser (``tests.support.browser``).
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import SCHEMES, viewed

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]

UNLOADED = (
    "() => [...document.images].filter(image => image.complete && !image.naturalWidth)"
    ".map(image => image.src)"
)
OVERFLOWS = "() => document.documentElement.scrollWidth > innerWidth + 2"


class Quiet(SimpleHTTPRequestHandler):
    """A server that prints nothing for a request."""

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


@pytest.fixture(scope="module")
def folder(mkdocs: Any, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    return built


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder, and give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_loads_without_errors(
    folder: Path, address: str, browser: Any, scheme: str
) -> None:
    pages = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html"))
    assert "profile.html" in pages
    with viewed(browser, scheme) as view:
        for page in pages:
            view.page.goto(address + page)
            assert view.page.evaluate(UNLOADED) == [], page
            assert not view.page.evaluate(OVERFLOWS), f"{page} is wider than the window"
            assert min(view.contrasts("article p, article li")[:40], default=9) >= 4.5, page
        assert view.errors == []
        assert [url for url in view.requests if not url.startswith(address)] == []


def test_search_finds_a_term(address: str, browser: Any) -> None:
    with viewed(browser, "light") as view:
        view.page.goto(f"{address}index.html")
        view.page.locator("input.md-search__input").first.click()
        view.page.keyboard.type("occupancy", delay=20)
        first = view.page.locator(".md-search-result__item").first
        first.wait_for(timeout=20_000)
        assert "occupancy" in first.inner_text().lower()
        assert view.errors == []


def test_a_reader_chooses_a_version(mike: Any, browser: Any, tmp_path: Path) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    for name in ("docs", "tests/support/pages", "benchmarks/data/plots"):
        shutil.copytree(ROOT / name, project / name)
    shutil.copy(ROOT / "mkdocs.yml", project)

    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def execute(*words: str) -> None:
        environment = {**os.environ, "PATH": programs}
        subprocess.run(
            words, cwd=project, env=environment, check=True, timeout=300, capture_output=True
        )

    execute("git", "init", "-q")
    execute("git", "config", "user.name", "Test")
    execute("git", "config", "user.email", "test@example.org")
    execute("git", "commit", "-q", "--allow-empty", "-m", "Begin")
    for version in ("0.1", "0.2"):
        execute("mike", "deploy", "--update-aliases", version, "latest")
    execute("git", "worktree", "add", "-q", str(site), "gh-pages")

    versions = json.loads((site / "versions.json").read_text())
    assert [each["version"] for each in versions] == ["0.2", "0.1"]
    assert [each["aliases"] for each in versions] == [["latest"], []]
    with served(site) as address, viewed(browser, "light") as view:
        view.page.goto(f"{address}0.1/glossary.html")
        view.page.locator(".md-version__current").focus()
        view.page.locator(".md-version__link", has_text="0.2").click()
        view.page.wait_for_url(f"{address}0.2/")
        assert view.errors == []
