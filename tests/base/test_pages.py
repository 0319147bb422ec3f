# SPDX-License-Identifier: MIT
"""Generated pages are up to date; links resolve; the navigation of the site has every page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cklang as ck
from cklang.arch import arch
from cklang.emulator import MEMORY_LINE
from cklang.errors.table import TABLE
from cklang.families import FAMILIES
from cklang.families.protocol import Family
from cklang.families.records import AxisOrders, Spelling, Supply, Tuning, Variants
from cklang.fusion.passes import Fusion
from tests.base.test_docs_code import PAGES
from tests.support import code_size
from tests.support.layouts import DATA, instructions, layout
from tests.support.pages import DOCS, GENERATED
from tests.support.pages.charts import TIMELINE
from tests.support.pages.errors import PARTS
from tests.support.pages.llms import LARGEST, RULES
from tests.support.pages.reference import DTYPES, GROUPS, LANGUAGE, example, signature
from tests.support.pages.screenshots import SHOTS
from tests.support.pages.site import with_links
from tests.support.pages.tutorials import ORDER, TUTORIALS

ROOT = DOCS.parent
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: its headings, as MkDocs names them, and explicit ids."""
    prose = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    heads = re.findall(r"(?m)^#+ (.*)$", prose)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in heads}
    return slugs | set(re.findall(r'id="([^"]+)"', prose))


def links(text: str) -> Iterator[str]:
    """Yield the targets of the links and pictures of a page that are in this project."""
    prose = re.sub(r"(?ms)^ *```.*?^ *```|`[^`\n]*`", "", text)
    for target in _LINK.findall(prose):
        if not re.match(r"[a-z]+:", target):
            yield target


def broken(path: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    wrong = []
    for target in links(path.read_text()):
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        if not page.is_file() or (anchor and anchor not in anchors(page.read_text())):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_file_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == GENERATED[name](), "run python -m tests.support.pages"


def test_no_other_file_is_among_the_pictures() -> None:
    files = {f"pictures/{path.name}" for path in (DOCS / "pictures").iterdir()}
    generated = {name for name in GENERATED if name.startswith("pictures/")}
    photographed = {f"pictures/{shot.picture}.webp" for shot in SHOTS}
    assert files == generated | photographed | {f"pictures/{TIMELINE.name}"}


def test_screenshots_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (DOCS / "pictures").glob("*.webp")}
    assert len(sizes) == len(SHOTS)
    assert all(size <= 150_000 for size in sizes.values()), sizes


@pytest.mark.parametrize(
    "path", [*PAGES, *sorted(TUTORIALS.glob("*.md"))], ids=lambda path: path.name
)
def test_the_links_of_a_page_resolve(path: Path) -> None:
    assert broken(path) == []


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    config = (ROOT / "mkdocs.yml").read_text()
    pages = re.findall(r"(?m)^ +- [^:]+: (\S+\.md)$", config[config.index("\nnav:") :])
    assert sorted(pages) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_the_site_links_pages_that_others_name() -> None:
    text = "See `docs/hip.md` and `docs/none.md`, ![x](../benchmarks/data/plots/a.png)."
    assert with_links(text, {"hip.md"}) == (
        "See [`docs/hip.md`](hip.md) and `docs/none.md`, ![x](plots/a.png)."
    )


def test_links_of_a_page_in_a_folder_lead_up() -> None:
    assert with_links("`docs/hip.md`", {"hip.md"}, "../") == "[`docs/hip.md`](../hip.md)"


@pytest.mark.parametrize("path", sorted(DOCS.glob("language*.md")), ids=lambda path: path.name)
def test_a_page_of_the_language_is_read_in_one_go(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 250
    prose = re.sub(r"(?ms)^ *```.*?^ *```|^ *<!--.*?-->", "", text)
    bullets = re.findall(r"(?m)^- .*(?:\n  \S.*)*", prose)
    assert [bullet for bullet in bullets if len(bullet.split()) > 41] == []


def test_every_tutorial_is_in_the_gallery() -> None:
    assert sorted(ORDER) == sorted(path.stem for path in TUTORIALS.glob("*.py"))
    assert {path.stem for path in TUTORIALS.glob("*.ipynb")} == set(ORDER)


def test_broken_links_are_reported(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    (tmp_path / "b.md").write_text('# The `b` of *all*\n<a id="K1"></a>\n```\n# no head\n```\n')
    good = "[b](b.md) [b](b.md#the-b-of-all) [b](b.md#K1) [out](https://x.org) `[code](z)`"
    page.write_text(f"{good}\n[c](c.md) [b](b.md#no-head) [me](#nothing)\n![](p.svg)\n")
    assert broken(page) == ["c.md", "b.md#no-head", "#nothing", "p.svg"]


def test_every_error_is_in_a_part_of_the_catalogue() -> None:
    assert {rule.code[0] for rule in TABLE} == PARTS.keys()
    text = (DOCS / "errors.md").read_text()
    for rule in TABLE:
        assert text.count(f'<a id="{rule.code}"></a>') == 1


def test_the_internals_name_every_member_of_a_family() -> None:
    text = (DOCS / "internals.md").read_text()
    begin = text.index("## The family protocol")
    words = set(re.findall(r"`([a-z_]+)`", text[begin : text.index("`HelperFamily` is")]))
    classes = (Family, Fusion, Supply, Variants, AxisOrders, Tuning, Spelling)
    members = {
        name for each in classes for name in (*vars(each), *each.__annotations__) if name[0] != "_"
    }
    others = {"times", "table", "explain", "enumerate_legal", "key_from_json"}
    assert words == members | others


def test_every_public_name_is_in_the_reference() -> None:
    names = [*DTYPES, *LANGUAGE, *(name for group in GROUPS.values() for name in group)]
    assert sorted(names) == sorted(ck.__all__)


def test_signatures_and_examples_of_the_reference() -> None:
    def function(x, *rest, axis=(1, 2), find=len, **words):  # type: ignore[no-untyped-def]
        """Do something.

        Example:
            >>> function(1)  # doctest: +SKIP
            2

        Raises:
            Nothing.
        """

    assert signature(function) == "(x, *rest, axis=(1, 2), find=len, **words)"
    assert signature(ck.softmax) == "(x, axis=-1)"
    assert example(function) == ">>> function(1)\n2"
    assert example(links) == ""
    text = (DOCS / "reference.md").read_text()
    assert f"\n### `cklang.emulator.MEMORY_LINE`\n\n{MEMORY_LINE} bytes in a line" in text


def test_the_gpus_of_the_concepts_are_those_of_arch_specs() -> None:
    text = (DOCS / "concepts.md").read_text()
    lines = re.findall(r"(?m)^\| (gfx.*) \|$", text)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert len(rows) == len({row[0] for row in rows}) == 5
    for name, product, *cells in rows:
        spec = arch(name)
        assert product.split(",")[0].split()[-1] in spec.product
        lds = f"{spec.lds_bytes // 1024} KiB"
        facts = (spec.compute_units, spec.simds_per_cu, spec.wave_size, lds)
        assert cells == [str(fact) for fact in (*facts, spec.max_waves_per_simd)]


def test_llms_txt_is_short_and_its_code_is_python() -> None:
    size = (DOCS / "llms.txt").stat().st_size
    assert size <= LARGEST, f"shorten {RULES}, or the lines that functions and errors have there"
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```", RULES.read_text())
    ast.parse(code)


def test_the_architecture_shows_the_size_of_the_code() -> None:
    now, then = code_size.table(), code_size.shown()
    assert [row.split("|")[1] for row in now.splitlines()] == [
        row.split("|")[1] for row in then.splitlines()
    ]
    pairs = zip(code_size.numbers(now), code_size.numbers(then), strict=True)
    wrong = [(a, b) for a, b in pairs if abs(a - b) > max(2 if a < 50 else 10, 0.05 * a)]
    assert not wrong, "run python -m tests.support.code_size --write"


def test_the_architecture_lists_every_family() -> None:
    section = (DOCS / "architecture.md").read_text().partition("\n## Kernel families\n")[2]
    rows = section.partition("| family |")[2].partition("\n\n")[0].splitlines()
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(names) == sorted(FAMILIES), "the table in docs/architecture.md has other families"


def test_prose_counts_what_there_is() -> None:
    last = max(path.name[:2] for path in (DOCS.parent / "examples").glob("[0-9]*.py"))
    assert f"`01_*.py` to `{last}_*.py`" in (DOCS.parent / "examples/README.md").read_text()


def test_pictures_show_a_layout_on_which_the_packages_agree() -> None:
    drawn = (("gfx942", "v_mfma_f32_32x32x8_f16"), ("gfx1201", "v_wmma_f32_16x16x16_f16"))
    for op in (op for op in instructions() if (op.arch, op.name) in drawn):
        triton, iree = (layout(package, op) for package in DATA)
        assert triton is not None
        assert iree is not None
        assert (triton.d == iree.d).all()
        assert (triton.a == iree.a).all()
