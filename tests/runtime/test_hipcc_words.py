# SPDX-License-Identifier: MIT
"""``cklang hipcc`` before any compiler runs: its command line and the fat binaries it writes."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.emulator.hipcc import driver, fat_binary
from cklang.emulator.hipcc.options import Language, Side, Source, Stage, read
from cklang.errors import CkError
from tests.support.errors import expect_error

NAMES = st.sampled_from(["gfx90a", "gfx942", "gfx950:sramecc+:xnack-", "gfx1201"])


@given(st.dictionaries(NAMES, st.binary(max_size=9000)))
def test_a_bundle_gives_its_code_objects_back(images: dict[str, bytes]) -> None:
    data = fat_binary.bundle(images)
    assert fat_binary.entries(data) == images
    count = struct.unpack_from("<Q", data, 24)[0]
    assert count == len(images) + 1
    assert len(data) % fat_binary.ALIGNMENT == 0


@given(st.dictionaries(NAMES, st.binary(min_size=1, max_size=99), min_size=1), st.data())
def test_what_is_cut_off_is_refused(images: dict[str, bytes], data: st.DataObject) -> None:
    whole = fat_binary.bundle(images)
    # Nothing but padding may follow the last byte of the last entry.
    used = len(whole) - fat_binary.ALIGNMENT + len(list(images.values())[-1])
    cut = data.draw(st.integers(0, used - 1))
    with pytest.raises(ValueError, match=r"begin|cut off|ends at|decode"):
        assert fat_binary.entries(whole[:cut]) == images


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.cpp", "b.hip", "c.c", "d.o", "e.so.1", "f.txt"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("old", ["c++11", "gnu++14", "c++0x"])
def test_older_standards_are_the_one_of_the_headers(old: str) -> None:
    line = read([f"-std={old}", "a.cpp"])
    newer = "-std=gnu++17" if old.startswith("gnu") else "-std=c++17"
    assert line.flags[0] == newer
    assert line.notes == [f"-std={old} is read as {newer}, which HIP's headers need here"]
    assert read(["-std=c++20", "-std=c11", "a.cpp"]).flags == ["-std=c++20", "-std=c11"]


@pytest.mark.usefixtures("files")
def test_words_without_an_effect_are_named() -> None:
    line = read(["-save-temps=obj", "-parallel-jobs=4", "-Xoffload-linker", "-x", "a.cpp"])
    assert [note.partition(":")[0] for note in line.notes] == [
        "-save-temps=obj has no effect",
        "-parallel-jobs=4 has no effect",
    ]
    assert line.flags == ["-Xoffload-linker", "-x"]
    with pytest.raises(CkError, match=r"B032 .*-print-search-dirs cannot be honoured: it asks"):
        read(["-print-search-dirs"])


@pytest.mark.usefixtures("files")
def test_words_go_to_whom_they_are_for() -> None:
    words = (
        "-O2 -I inc -DX=1 a.cpp -L lib d.o -lfoo b.hip c.c -Wl,-z,lazy -MD -MF deps "
        "-mllvm -x=1 --offload-arch=gfx90a,gfx942 --offload-arch=gfx942 -v -o out"
    )
    line = read(words.split())
    a, b = (Source(path=Path(n), language=Language.HIP) for n in ("a.cpp", "b.hip"))
    c = Source(path=Path("c.c"), language=Language.C)
    assert line.sources == [a, b, c]
    assert line.flags == ["-O2", "-I", "inc", "-DX=1", "-mllvm", "-x=1"]
    assert line.host_flags == ["-MD", "-MF", "deps"]
    assert line.link == [a, "-L", "lib", "d.o", "-lfoo", b, c, "-Wl,-z,lazy"]
    assert line.archs == ["gfx90a", "gfx942"]
    joined = read(["-xc++", "a.cpp", "-xnone", "b.hip", "-oout"])
    assert [source.language for source in joined.sources] == [Language.CXX, Language.HIP]
    assert joined.output == line.output
    assert (line.output, line.verbose) == (Path("out"), True)
    assert (line.stage, line.side) == (Stage.PROGRAM, Side.BOTH)


@pytest.mark.usefixtures("files")
def test_x_names_the_language_of_what_follows() -> None:
    words = "-x c++ a.cpp f.txt -x none b.hip -x hip c.c -x none e.so.1"
    line = read(words.split())
    languages = [source.language for source in line.sources]
    assert languages == [Language.CXX, Language.CXX, Language.HIP, Language.HIP]
    assert line.link[-1] == "e.so.1"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ("g.cpp", "B031", "no such file"),
        ("f.txt", "B031", "ends in none of"),
        ("-x rust a.cpp", "B031", "languages are"),
        ("a.cpp -o", "B031", "last word"),
        ("a.cpp -static", "B032", "when the program starts"),
        ("-O2", "B033", "no source"),
        ("-c d.o", "B033", "no source"),
        ("-c a.cpp b.hip -o x.o", "B034", "2 sources"),
        ("-S a.cpp", "B035", "which of the passes"),
        ("-S --offload-device-only --offload-arch=gfx90a,gfx942 a.cpp", "B035", "which GPU"),
    ],
)
def test_what_cannot_be_honoured_is_refused(words: str, code: str, part: str) -> None:
    with expect_error(code, match=part):
        driver.build(words.split(), lambda _: None)


@pytest.mark.usefixtures("files")
def test_words_without_effect_are_said() -> None:
    said: list[str] = []
    with pytest.raises(CkError, match="no source"):
        driver.build(["--offload-compress"], said.append)
    assert "stored as they are" in said[0]
