# SPDX-License-Identifier: MIT
"""Tiers of tests by what a test needs, derived from the fixtures that it asks for.

=======  =================  ====================================================================
tier     asks for           needs
=======  =================  ====================================================================
pure     nothing            Python
isa      ``emulator``       the emulator's library, and clang for small programs
fill     ``stencils``       kernels of the catalogue (`tests.support.stencils`): once they are in
                            the kernel cache, only what users write is compiled
compile  ``compiler``       further kernels, or whole programs, compiled for this test alone
full     the mark ``full``  cases of kinds that other cases cover: hours together
=======  =================  ====================================================================

A module asks with ``pytestmark = pytest.mark.usefixtures("stencils")``, a test with a parameter or
a decorator. A test that uses more than it asks for fails and says what to ask for.
"""

from collections.abc import Generator

import pytest

from tests.support import usage

TIERS = ("pure", "isa", "fill", "compile", "full")
"""From the cheapest to the dearest."""

_NEEDS = {"emulator": "isa", "stencils": "fill", "compiler": "compile"}
_FULL = "full"


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: that of the dearest thing it asks for."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    tiers = {_NEEDS[name] for name in fixtures if name in _NEEDS}
    if item.get_closest_marker(_FULL) is not None:
        tiers.add(_FULL)
    return max(tiers, key=TIERS.index, default="pure")


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers, and begin to watch what tests use."""
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier}: a tier of tests, see tests/support/tiers.py")
    config.addinivalue_line("markers", "sanitize(*checks): what the emulator checks meanwhile")
    usage.watch()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its tier, so that ``-m "pure or isa"`` selects."""
    for item in items:
        tier = tier_of(item)
        if tier != _FULL:
            item.add_marker(tier)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let each test's account begin before its fixtures are set up."""
    usage.begin()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed but used what its tier does not have."""
    result = yield
    tier = tier_of(item)
    if tier == "pure" and usage.current().emulator:
        pytest.fail('uses the emulator: ask for the fixture "emulator"', pytrace=False)
    if tier in ("pure", "isa") and usage.current().stencils:
        pytest.fail('builds a kernel: ask for the fixture "stencils"', pytrace=False)
    return result


@pytest.fixture(scope="session")
def emulator() -> None:
    """Let a test use the emulator, whose library is compiled once for this machine's CPU."""


@pytest.fixture(scope="session")
def stencils(emulator: None) -> None:
    """Let a test run kernels whose stencils are in the catalogue."""


@pytest.fixture(scope="session")
def compiler(stencils: None) -> None:
    """Let a test compile any kernel or program."""
