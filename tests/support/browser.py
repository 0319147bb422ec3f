# SPDX-License-Identifier: MIT
"""A real browser for the HTML pages: Chromium, driven by Playwright.

``pip install '.[browser]'`` and Debian's package ``chromium``, or ``CHROMIUM`` with the path
of another Chromium. Tests that ask for :func:`browser` are skipped without, and say what lacks.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SCHEMES = ("light", "dark")
"""The colour schemes that pages have."""
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ("--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none")
"""A sandbox needs privileges that containers lack; the pages are our own."""


class Viewed:
    """A page in the browser, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text))
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        page.on("request", lambda request: self.requests.append(request.url))

    def contrasts(self, selector: str) -> list[float]:
        """Return the WCAG contrast of the text of elements to the page behind it."""
        ratios: list[float] = self.page.evaluate(_CONTRASTS, selector)
        return ratios

    def outside(self) -> list[str]:
        """Return the text labels of SVG pictures that are cut off by their picture."""
        labels: list[str] = self.page.evaluate(_OUTSIDE)
        return labels


_CONTRASTS = """selector => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = element => {
    const [r, g, b, alpha = 1] = numbers(getComputedStyle(element).backgroundColor);
    if (alpha === 1 || !element.parentElement) return alpha ? [r, g, b] : [255, 255, 255];
    const below = behind(element.parentElement);
    return [r, g, b].map((c, at) => alpha * c + (1 - alpha) * below[at]);
  };
  return [...document.querySelectorAll(selector)].map(element => {
    const style = getComputedStyle(element);
    const text = numbers(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(text), light(behind(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""

_OUTSIDE = """() => [...document.querySelectorAll('svg text')].filter(text => {
  const picture = text.ownerSVGElement.getBoundingClientRect();
  const box = text.getBoundingClientRect();
  if (picture.width === 0) return false;  // not shown
  return box.width === 0 || box.left < picture.left - 1 || box.right > picture.right + 1
    || box.top < picture.top - 1 || box.bottom > picture.bottom + 1;
}).map(text => text.textContent)"""


def missing() -> str:
    """Return why no browser can be driven here; empty if one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed: pip install '.[browser]'"
    if _program() is None:
        return "no Chromium on the path: apt-get install chromium, or set CHROMIUM"
    return ""


def _program() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=_program(), args=list(_FLAGS))
        yield chromium
        chromium.close()


@contextmanager
def viewed(chromium: Any, scheme: str, width: int = 1280, height: int = 800) -> Iterator[Viewed]:
    """Open an empty page in a colour scheme."""
    page = chromium.new_page(
        color_scheme=scheme, viewport={"width": width, "height": height}, device_scale_factor=1
    )
    yield Viewed(page)
    page.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Give the browser to a test; skip the test where there is none."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with launched() as chromium:
        yield chromium
