# SPDX-License-Identifier: MIT
"""The stencils that tests use: a catalogue that they share, a budget, and each one read back once.

A stencil, CK Tile's kernel with the user's functions left open, takes ten processor seconds and
more to compile; shapes, strides, values and functions are free. So the tests of tier *fill* share
the stencils of ``catalogue.json``, which ``--write-catalogue`` writes from what they use, and the
number of all stencils has a limit.
"""

import json
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cklang.build.store import Store, digest_of
from cklang.emulator.engine.build import library_path
from tests.support import usage
from tests.support.read_back import read_back
from tests.support.tiers import tier_of

BUDGET = {"fill": 55, "compile": 980}
"""How many stencils the tests of a tier may use; those of *compile* beside the catalogue's."""

CATALOGUE = Path(__file__).with_name("catalogue.json")
_DEAREST = 10
_WRITE = "--write-catalogue"

_used: dict[str, dict[str, str]] = {tier: {} for tier in BUDGET}
"""By tier: identity and label of each stencil that a test of it used, in all processes."""
_compiled: list[usage.Compiled] = []


@cache
def catalogue() -> dict[str, str]:
    """Return identity and label of the stencils that tests of tier *fill* may use."""
    stencils: dict[str, str] = json.loads(CATALOGUE.read_text())
    return stencils


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the catalogue."""
    parser.addoption(
        _WRITE, action="store_true", help=f"write {CATALOGUE.name} from what tests of *fill* use"
    )


def pytest_configure() -> None:
    """Read the catalogue before a test may forbid that files are opened."""
    catalogue()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count the stencils of a test, and check that its tier has them."""
    result = yield
    tier, stencils = tier_of(item), usage.current().stencils
    if tier in _used:
        _used[tier] |= stencils
    if tier == "fill" and not item.config.getoption(_WRITE):
        others = [label for identity, label in stencils.items() if identity not in catalogue()]
        if others:
            pytest.fail(_OTHERS.format(others="\n  ".join(others)), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Read the kernels of a test back, when what the test has patched is as it was."""
    result = yield
    for gpu, code in usage.current().loaded:
        _read_back_once(gpu, code)
    return result


_OTHERS = """\
builds stencils that are not in tests/support/catalogue.json:
  {others}
Use an algorithm of tests/support, or ask for the fixture "compiler", which puts the test into the
tier *compile*. To change the catalogue itself, run pytest --write-catalogue -m fill."""


def _read_back_once(gpu: str, code: bytes) -> None:
    """Hold the decoder against clang's assembler, on one kernel of each stencil and decoder."""
    kernel = usage.kernel_of(code)
    if kernel is None:
        read_back(code, gpu)
        return
    inputs = json.loads((kernel.folder / "record.json").read_text())["inputs"]
    own = ("fill", "fill_headers", "key")
    stencil = {name: value for name, value in inputs.items() if name not in own}
    address = {"stencil": digest_of("stencil", stencil), "decoder": library_path().parent.name}

    def check(_: Path) -> dict[str, Any]:
        read_back(code, gpu)
        return {"label": kernel.key.stencil.label}

    Store().get_or_build("read-back", address, check)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker counted to the session; there, compare it with the budget."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["stencils"] = {
            "used": _used,
            "compiled": [(each.label, each.seconds) for each in usage.compiled],
        }
        return
    _compiled.extend(usage.compiled)
    if session.config.getoption(_WRITE):
        _write(_used["fill"])
    elif _beyond_budget() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take in what a worker counted."""
    counts = getattr(node, "workeroutput", {}).get("stencils")
    if counts is not None:
        for tier, stencils in counts["used"].items():
            _used[tier] |= stencils
        _compiled.extend(usage.Compiled(*each) for each in counts["compiled"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many stencils were used and compiled, and which were the dearest."""
    if not any(_used.values()):
        return
    terminalreporter.section("stencils")
    for tier, count in _counts().items():
        terminalreporter.write_line(f"{tier}: {count} used, budget {BUDGET[tier]}")
    seconds = sum(each.seconds for each in _compiled)
    dearest = "; the dearest:" if _compiled else ""
    terminalreporter.write_line(f"{len(_compiled)} compiled in {seconds:.0f} s{dearest}")
    for each in sorted(_compiled, key=lambda each: -each.seconds)[:_DEAREST]:
        terminalreporter.write_line(f"{each.seconds:8.1f} s  {each.label}")
    for tier in _beyond_budget():
        terminalreporter.write_line(
            f"FAILED: tier {tier} uses more stencils than BUDGET allows (tests/support/stencils.py)"
        )


def _counts() -> dict[str, int]:
    """Return how many stencils each tier used; a stencil counts for the first tier that has it."""
    known = catalogue()
    others = _used["compile"].keys() - _used["fill"].keys() - known.keys()
    return {"fill": len(_used["fill"]), "compile": len(others)}


def _beyond_budget() -> list[str]:
    return [tier for tier, count in _counts().items() if count > BUDGET[tier]]


def _write(stencils: Iterable[tuple[str, str]] | dict[str, str]) -> None:
    ordered = dict(sorted(dict(stencils).items(), key=lambda each: each[1]))
    CATALOGUE.write_text(json.dumps(ordered, indent=1) + "\n")
