# SPDX-License-Identifier: MIT
"""The emulator's tests notice when it is broken: the list of mutants fits, and some of it runs.

All of it runs with ``python benchmarks/mutations.py``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mutants import MUTANTS
from mutations import ROOT, judge, scratch_cache

pytestmark = pytest.mark.usefixtures("compiler")

#: One of matrix products, one of masks, one of memory.
SAMPLE = (
    "columns of D in the wrong lanes",
    "cmpx clears exec",
    "loads to LDS touch disabled lanes",
)


def test_each_mutant_changes_one_place_and_names_tests() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
    for mutant in MUTANTS:
        text = (ROOT / "cklang" / "emulator" / "engine" / "src" / mutant.file).read_text("utf-8")
        assert text.count(mutant.old) == 1, mutant.name
        assert all((ROOT / test).is_file() for test in mutant.tests), mutant.name


@pytest.fixture(scope="module")
def cache() -> Iterator[Path]:
    with scratch_cache() as folder:
        yield folder


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_caught(name: str, cache: Path) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    assert judge(mutant, cache).caught
