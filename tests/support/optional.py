# SPDX-License-Identifier: MIT
"""Packages that not every machine has: a test asks for one by the fixture of its name.

Without the package the test is skipped, and the reason is the command that installs it. A module
all of whose tests need a package may import it at its head, if it asks for it there::

    pytestmark = pytest.mark.usefixtures("torch")

A test that imports one without asking fails on the machines that lack it, where CI begins.
"""

import ast
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest


def _extra(name: str) -> str:
    return f"pip install '.[emu,dev,{name}]'"


COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "diffusers": _extra("torch,models"),
        "flydsl": _extra("torch,flydsl"),
        "jax": "pip install jax",
        "mike": _extra("docs"),
        "mkdocs": _extra("docs"),
        "nbclient": _extra("docs"),
        "torch": _extra("torch"),
        "torchvision": "pip install torchvision",
        "transformers": _extra("torch,models"),
        "triton": _extra("torch,triton"),
    }
)
"""What installs each package."""


@cache
def missing(packages: frozenset[str]) -> str:
    """Return why tests that need some packages cannot run, and the command; empty if they can."""
    absent = next((each for each in sorted(packages) if find_spec(each) is None), None)
    return f"{absent} is not installed: {COMMANDS[absent]}" if absent else ""


def needed(package: str) -> Any:
    """Return a package; skip the test where it is not installed."""
    _skip_without(frozenset([package]))
    return importlib.import_module(package)


def _skip_without(packages: frozenset[str]) -> None:
    if reason := missing(packages):
        pytest.skip(reason)


def imported_by(source: str) -> frozenset[str]:
    """Return the packages that some Python code imports.

    >>> sorted(imported_by("import numpy, torch.fx\\ndef f():\\n    from triton import jit"))
    ['torch', 'triton']
    """
    return frozenset(_imports(ast.parse(source))).intersection(COMMANDS)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def asked_by(module: str) -> frozenset[str]:
    """Return the packages that the text of a module of tests asks for, for all its tests.

    >>> sorted(asked_by('pytestmark = pytest.mark.usefixtures("emulator", "torch")'))
    ['torch']
    """
    marks = (
        node.value
        for node in ast.parse(module).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    )
    constants = (
        each.value for mark in marks for each in ast.walk(mark) if isinstance(each, ast.Constant)
    )
    words = frozenset(constants)
    return frozenset(each for each in COMMANDS if each in words)


class _Unimported(pytest.Module):
    """A module of tests whose head would fail: all its tests are skipped."""

    def collect(self) -> Any:
        _skip_without(asked_by(self.path.read_text()))
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Do not import a module that asks for a package which is not installed."""
    text = module_path.read_text()
    mentioned = frozenset(each for each in COMMANDS if f'"{each}"' in text)
    if missing(mentioned) and missing(asked_by(text)):
        module: pytest.Module = _Unimported.from_parent(parent, path=module_path)
        return module
    return None


def _fixture(package: str) -> Any:
    @pytest.fixture(scope="session", name=package)
    def fixture() -> Any:
        return needed(package)

    return fixture


diffusers, transformers, torchvision = map(_fixture, ("diffusers", "transformers", "torchvision"))
flydsl, jax, torch, triton = map(_fixture, ("flydsl", "jax", "torch", "triton"))
mike, mkdocs, nbclient = map(_fixture, ("mike", "mkdocs", "nbclient"))
