# SPDX-License-Identifier: MIT
"""Which headers a kernel depends on: an edit of another one compiles nothing again."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cklang.build import steps
from cklang.lowering import headers
from cklang.toolchain.compilers import find_ck_tree, find_toolchain

GEMM, APPEND = '#include "cklang/gemm.hpp"\n', '#include "cklang/attention_append.hpp"\n'
DEEP = "narrow.hpp"
"""Included by both, through others."""


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the headers, which a test may edit."""
    folder = tmp_path / "include"
    for original in headers.folders():
        shutil.copytree(original, folder, dirs_exist_ok=True)
    monkeypatch.setattr(headers, "folders", lambda: (folder,))
    yield folder
    monkeypatch.undo()
    forget()


def forget() -> None:
    headers._digest.cache_clear()
    headers._closure.cache_clear()


def identities() -> tuple[str, str, str]:
    forget()
    return headers.identity(GEMM), headers.identity(APPEND), headers.identity_of_all()


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("cklang/gemm.hpp", (True, False, True)),
        ("cklang/attention_append.hpp", (False, True, True)),
        (f"cklang/{DEEP}", (True, True, True)),
        ("hip/hip_fp8.h", (True, True, True)),
        ("cklang/attention_hole.h", (False, False, True)),
    ],
)
def test_an_edit_changes_what_includes_it(
    copied: Path, edited: str, changed: tuple[bool, bool, bool]
) -> None:
    before = identities()
    file = copied / edited
    file.write_text(file.read_text() + "// edited\n")
    assert tuple(a != b for a, b in zip(before, identities(), strict=True)) == changed


@pytest.mark.parametrize("name", headers._SAME_CODE)
def test_an_edit_that_leaves_code_alone_counts_for_precompiled_headers(
    copied: Path, name: str
) -> None:
    before, written = identities(), headers.identity(GEMM, as_written=True)
    now, was = headers._SAME_CODE[name]
    assert now in (copied / name).read_bytes()
    (copied / name).write_bytes((copied / name).read_bytes().replace(now, was))
    assert identities() == before
    assert headers.identity(GEMM, as_written=True) != written


def test_names_are_part_of_the_identity(copied: Path) -> None:
    before = identities()
    (copied / "cklang" / DEEP).rename(copied / "cklang" / "renamed.hpp")
    for file in copied.rglob("*.h*"):
        file.write_text(file.read_text().replace(f"cklang/{DEEP}", "cklang/renamed.hpp"))
    assert not set(before) & set(identities())


@pytest.mark.parametrize("name", [headers.PRECOMPILED, headers.PRECOMPILED_ATTENTION])
@pytest.mark.usefixtures("compiler")
def test_the_compiler_reads_no_other_header(name: str, tmp_path: Path) -> None:
    source, output = headers.precompiled(name), tmp_path / "preprocessed.txt"
    toolchain = find_toolchain()
    command = steps._half_command("gfx942", tmp_path, toolchain, find_ck_tree())
    steps._run([[*command, "-E", str(source), "-o", str(output)]], output, toolchain)
    read = set(
        re.findall(
            r'^# \d+ ".*/(?:include|kernels)/(cklang/[^"]+)"', output.read_text(), re.MULTILINE
        )
    )
    assert "cklang/core.hpp" in read
    (included,) = re.findall(r'"(cklang/.+)"', headers.precompiled(name).read_text())
    names = (included, *headers._names("hip"))
    known = frozenset[str]().union(*map(headers._closure, names))
    assert read == {name for name in known if name.startswith("cklang/")}
