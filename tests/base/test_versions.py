# SPDX-License-Identifier: MIT
"""Versions of other packages: what is promised, and what a version outside of that raises."""

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cklang.errors import CkUnsupportedError
from cklang.versions import KNOWN, check_version
from tests.support.errors import expect_error

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("package", KNOWN)
def test_the_extra_has_the_versions_that_are_known(package: str) -> None:
    (major, first), (last_major, last) = KNOWN[package]
    assert major == last_major
    wanted = f"{package}>={major}.{first},<{major}.{last + 1}"
    assert PROJECT["optional-dependencies"][package] == [wanted]


@pytest.mark.parametrize("package", KNOWN)
def test_versions_beside_the_range_are_refused(package: str) -> None:
    (major, first), (_, last) = KNOWN[package]
    for minor in (first, last):
        check_version(package, f"{major}.{minor}.1+cpu")
    for version in (f"{major}.{first - 1}.9", f"{major}.{last + 1}.0a0", f"{major + 1}.0"):
        with expect_error(
            "E009", match=f"{first} to {major}.{last}", kind=CkUnsupportedError
        ) as caught:
            check_version(package, version)
        assert f"{package} {version}" in caught.value.message


def test_torch_is_refused_before_its_insides_are_used(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = importlib.import_module("cklang.torch")
    monkeypatch.setattr(torch, "__version__", "2.6.0")
    with pytest.raises(CkUnsupportedError, match=r"CK-E009 torch 2\.6\.0"):
        importlib.reload(package)


def test_triton_is_refused_before_its_driver_is_changed(
    triton: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cklang.emulator.triton import device

    before = triton.runtime.driver._active
    monkeypatch.setattr(triton, "__version__", "3.2.0")
    with pytest.raises(CkUnsupportedError, match=r"CK-E009 triton 3\.2\.0"), device("gfx942"):
        pass
    assert triton.runtime.driver._active is before
