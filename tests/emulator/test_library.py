# SPDX-License-Identifier: MIT
"""The emulator's library is compared with what was built before a process loads it.

A library that is cut short ends the process that loads it with a bus error; tests damage copies.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cklang import emulator
from cklang.emulator.engine import build as emulator_build
from cklang.emulator.engine.build import LIBRARY, kept_object
from cklang.toolchain.built_library import intact, problem_of_library, seal
from cklang.toolchain.integrity import file_digest
from tests.support.processes import run_python


def cut(folder: Path) -> None:
    os.truncate(folder / LIBRARY, 1_000_000)


def flip(folder: Path) -> None:
    content = bytearray((folder / LIBRARY).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / LIBRARY).write_bytes(content)


def take(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut_record(folder: Path) -> None:
    os.truncate(folder / "record.json", 60)


def alter_record(folder: Path) -> None:
    record = folder / "record.json"
    record.write_text(record.read_text().replace('"sha256": "', '"sha256": "0'))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut short": (cut, "has 1000000 bytes, not"),
    "one bit": (flip, "has other contents than were built"),
    "no library": (take(LIBRARY), "is missing"),
    "no record": (take("record.json"), "record.json cannot be read"),
    "a record cut short": (cut_record, "record.json is not whole"),
    "another record": (alter_record, "record.json was altered"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "emulator" / emulator.library_path().parent.name
    shutil.copytree(emulator.library_path().parent, folder)
    return folder


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_library_is_built_again(
    name: str, copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By a builder that copies the library of this machine."""
    damage, words = DAMAGES[name]
    assert problem_of_library(copy) is None
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        shutil.copy(emulator.library_path(), folder / LIBRARY)
        seal(folder, LIBRARY)

    assert intact(copy, build) == copy
    assert not built
    damage(copy)
    with caplog.at_level(logging.WARNING, "cklang.emulator"):
        intact(copy, build)
        intact(copy, build)
    assert built == [copy], "once"
    (said,) = (record.getMessage() for record in caplog.records)
    assert words in said
    assert problem_of_library(copy) is None


def test_the_first_build_is_no_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def build(folder: Path) -> None:
        folder.mkdir()
        (folder / LIBRARY).write_bytes(b"a library")
        seal(folder, LIBRARY)

    with caplog.at_level(logging.WARNING, "cklang.emulator"):
        folder = intact(tmp_path / "emulator" / "key", build)
    assert problem_of_library(folder) is None
    assert not caplog.records


def test_a_process_with_a_damaged_library_goes_on(copy: Path) -> None:
    """It links the library again, of the objects that this machine has."""
    cut(copy)
    objects = emulator.library_path().parents[1] / "objects"
    shutil.copytree(objects, copy.parent / "objects")
    code = "from cklang import emulator; print(emulator.disassemble('gfx942', b'\\0\\0\\x81\\xbf'))"
    done = run_python("-c", code, env={**os.environ, "CKLANG_CACHE_DIR": str(copy.parents[1])})
    assert "s_endpgm" in done.stdout
    assert "has 1000000 bytes, not" in done.stderr
    assert problem_of_library(copy) is None


def test_damaged_objects_are_not_linked(tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.write_bytes(b"an object")
    path = written.rename(tmp_path / f"flat-key-{file_digest(written)[:32]}.o")
    assert kept_object(tmp_path, "flat-key") == path
    assert kept_object(tmp_path, "flat-other") is None
    path.write_bytes(b"an obj")
    assert kept_object(tmp_path, "flat-key") is None
    assert not path.exists()


def test_each_source_is_in_one_unit() -> None:
    units = emulator_build._units()
    together = [source for unit in units for source in unit.sources]
    assert sorted(together) == emulator_build._sources()
    names = [unit.name for unit in units]
    assert len(names) == len(set(names))
    assert names[: len(emulator_build._SLOW_FIRST)] == list(emulator_build._SLOW_FIRST)
    assert names[0] == emulator_build._WITHOUT_PRECOMPILED


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(("text", "waits"), [(None, 0), ("0", 0), ("1", 1)])
def test_launches_wait_where_rocms_variable_says_so(text: str | None, waits: int) -> None:
    others = {key: value for key, value in os.environ.items() if key != "HIP_LAUNCH_BLOCKING"}
    own = {} if text is None else {"HIP_LAUNCH_BLOCKING": text}
    asked = "from cklang import emulator; print(emulator.load().ckemu_let_launches_wait(0))"
    assert run_python("-c", asked, env=others | own).stdout.split() == [str(waits)]


@pytest.mark.usefixtures("emulator")
def test_blocking_launches_end_with_their_block() -> None:
    library = emulator.load()
    before = library.ckemu_let_launches_wait(0)
    try:
        with emulator.blocking_launches():
            assert library.ckemu_let_launches_wait(1) == 1
        assert library.ckemu_let_launches_wait(0) == 0
    finally:
        library.ckemu_let_launches_wait(before)
