# SPDX-License-Identifier: MIT
"""Screenshots of the HTML pages in a real browser, for the documentation.

python -m tests.support.pages.screenshots

It needs a browser (``tests.support.browser``) and a few minutes at most: it compiles and runs
``tests/emulator/profiler/transpose.hip``, and builds the kernel of a linear layer.
"""

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cklang.cli.main import main as command
from tests.emulator.profiler.conftest import HERE, profiled
from tests.support.browser import launched, missing, viewed
from tests.support.hip_programs import built

__all__ = ["SHOTS", "Shot", "main"]

_ROOT = Path(__file__).parents[3]
_PICTURES = _ROOT / "docs/pictures"
_EXAMPLE = """\
import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear_gelu(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> ck.f16[M, N]:
    y = x @ w.T
    z = y + bias
    a = ck.gelu(z)
    return a + res
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A picture of a page."""

    picture: str
    page: str
    scheme: str
    size: tuple[int, int]
    look: Callable[[Any], None]
    """What is done to the page before."""


def _stages(page: Any) -> None:
    page.evaluate("""() => [...document.querySelectorAll('h3')]
      .find(each => each.innerText === 'Stages of the pipeline').scrollIntoView()""")


def _tiles(page: Any) -> None:
    slider = page.locator(".tiles input")
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    page.evaluate("""() => [...document.querySelectorAll('h3')]
      .find(each => each.innerText === 'Who holds what').scrollIntoView()""")


def _pick(page: Any) -> None:
    page.locator(".row", has_text="ck.gelu(").first.click()
    page.mouse.move(5, 5)


SHOTS = (
    Shot(
        picture="profile_report",
        page="report.html",
        scheme="light",
        size=(1200, 1000),
        look=lambda page: page.wait_for_load_state(),
    ),
    Shot(
        picture="profile_listing", page="report.html", scheme="dark", size=(1200, 900), look=_stages
    ),
    Shot(picture="profile_tiles", page="report.html", scheme="light", size=(920, 640), look=_tiles),
    Shot(picture="inspect", page="inspect.html", scheme="dark", size=(1400, 700), look=_pick),
)


def _pages(folder: Path) -> None:
    program = built(HERE / "transpose.hip", "gfx942", "gfx90a")
    profiled(program, folder / "records", "gfx942", "256").save(folder / "report.html")
    sizes = ["M=384", "N=512", "K=256", "--device", "emu:gfx942"]
    page = ["--html", str(folder / "inspect.html")]
    example = folder / "model.py"
    example.write_text(_EXAMPLE)
    command(["inspect", f"{example}:linear_gelu", *sizes, *page])


def main() -> int:
    reason = missing()
    if reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    from PIL import Image

    with tempfile.TemporaryDirectory() as name, launched() as chromium:
        folder = Path(name)
        _pages(folder)
        for shot in SHOTS:
            with viewed(chromium, shot.scheme, *shot.size) as view:
                view.page.goto((folder / shot.page).as_uri())
                shot.look(view.page)
                image = Image.open(io.BytesIO(view.page.screenshot()))
                image.save(_PICTURES / f"{shot.picture}.webp", quality=80, method=6)
    return 0


if __name__ == "__main__":
    sys.exit(main())
