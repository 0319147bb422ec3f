# SPDX-License-Identifier: MIT
"""The C++ sources of the emulator stand in folders, and include headers by their folder."""

import re
from collections import Counter
from pathlib import Path

from cklang.emulator.engine.isa import tables

SOURCES = Path(tables.__file__).parents[1] / "src"
FOLDERS = {"checks", "core", "debug", "decode", "hip", "kfd", "ops", "translate"}
#: Written by ``isa/tables.py`` and ``build.py`` when the library is compiled.
GENERATED = {"devices.inc", "gpus.inc", "isa_tables.h", "isa_tables.inc"}


def test_each_source_is_in_a_folder() -> None:
    assert {path.name for path in SOURCES.iterdir()} == FOLDERS
    assert {path.suffix for path in SOURCES.glob("*/*")} == {".cpp", ".h"}


def test_no_two_folders_have_a_source_of_one_name() -> None:
    """Objects and the compiler's logs are named after the source without its folder."""
    names = Counter(path.name for path in SOURCES.rglob("*.cpp"))
    assert names
    assert [name for name, count in names.items() if count > 1] == []


def test_headers_are_included_by_their_folder() -> None:
    headers = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.h")}
    included = {
        name
        for path in SOURCES.glob("*/*")
        for name in re.findall(r'^#include "([^"]+)"', path.read_text("utf-8"), re.MULTILINE)
    }
    # build.py includes the precompiled header in each source.
    assert included == headers - {"core/common.h"} | GENERATED
