# SPDX-License-Identifier: MIT
"""What docstrings, messages and documents refer to exists: Sphinx roles, and names of ``ck``."""

import ast
import importlib
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cklang as ck
from cklang import knobs
from cklang.errors.table import RULES
from tests.support.optional import COMMANDS, needed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "cklang"
ROLE = re.compile(r":(mod|class|func|data|meth|attr|exc|obj):`~?([^`]+)`")
KINDS: dict[str, Callable[[Any], bool]] = {
    "mod": lambda value: isinstance(value, ModuleType),
    "class": lambda value: isinstance(value, type),
    "exc": lambda value: isinstance(value, type) and issubclass(value, BaseException),
    "func": callable,
    "meth": callable,
}
MISSING = object()


def strings(node: ast.AST, scope: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in a tree, with the classes around it: docstrings, also those of attributes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield scope, child.value
        inside = (*scope, child.name) if isinstance(child, ast.ClassDef) else scope
        yield from strings(child, inside)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return module if is_package else module.rpartition(".")[0]


def attribute(owner: Any, name: str) -> Any:
    """An attribute, also one that only instances have: a field that is declared."""
    value = getattr(owner, name, MISSING)
    if value is MISSING and isinstance(owner, type):
        annotated = (vars(each).get("__annotations__", {}) for each in owner.__mro__)
        return next((each[name] for each in annotated if name in each), MISSING)
    return value


def imported(dotted: str) -> Any:
    """The object of an absolute dotted name, or MISSING; cklang.torch has none without torch."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError as error:
            if error.name is not None and error.name in COMMANDS:
                needed(error.name)
            continue
        for name in parts[count:]:
            value = attribute(value, name)
        return value
    return MISSING


def resolve(role: str, target: str, module: str, scope: tuple[str, ...]) -> bool:
    """Whether a reference finds its object where Sphinx looks: the class, the module, absolute."""
    if target.startswith("."):
        places = [f"{package_of(module)}{target}"]
    else:
        places = [".".join((module, *scope[:n], target)) for n in range(len(scope), -1, -1)]
        places.append(target)
    values = [value for place in places if (value := imported(place)) is not MISSING]
    return any(KINDS.get(role, bool)(value) or role in ("data", "attr") for value in values)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_cross_references_resolve(path: Path) -> None:
    module = module_name(path)
    unresolved = [
        f":{role}:`{target}`"
        for scope, text in strings(ast.parse(path.read_text("utf-8")))
        for role, target in ROLE.findall(text)
        if not resolve(role, target, module, scope)
    ]
    assert not unresolved


def public(dotted: str) -> bool:
    """Whether a name such as ``ck.Op.using`` or ``emulator.stats`` is one that users may write."""
    short, _, rest = dotted.partition(".")
    at = f"{_IMPORTED_AS.get(short, short)}.{rest}"
    first = at.split(".")[1]
    return (first in ck.__all__ or first in PUBLIC_MODULES) and imported(at) is not MISSING


NAMES = re.compile(r"(?<![\w./@-])(?:ck|cklang|emulator)(?!\.(?:md|py)\b)(?:\.[A-Za-z_]\w*)+")
IMPORTS = re.compile(r"^from (cklang(?:\.\w+)*) import ([\w, ]+)$", re.MULTILINE)
_IMPORTED_AS = {"ck": "cklang", "emulator": "cklang.emulator"}
PUBLIC_MODULES = ("judge", "dispatch", "emulator", "errors", "families", "testing", "torch")
"""Packages that users may import besides ``cklang`` itself."""
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_names_in_documents_are_public(path: Path) -> None:
    names = set(NAMES.findall(path.read_text("utf-8")))
    assert not sorted(name for name in names if not public(name))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_imports_in_documents_work(path: Path) -> None:
    for module, names in IMPORTS.findall(path.read_text("utf-8")):
        for name in names.split(","):
            assert imported(f"{module}.{name.strip()}") is not MISSING


def test_names_in_messages_are_public() -> None:
    """Of all texts that are no docstrings, wherever a message gets its words from."""
    names = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for text in messages(ast.parse(path.read_text("utf-8")))
        for name in NAMES.findall(text)
    }
    assert not sorted(each for each in names if not public(each[1]))


def messages(tree: ast.AST) -> Iterator[str]:
    """Every text that is not a statement of its own."""
    bare = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


CODE = re.compile(r"(Ck\w+Error)|\b([A-Z]\d{3})\b")
KNOB = re.compile(r"\bCKLANG_[A-Z_]+\b")
EXTRA = re.compile(r"\bcklang\[(\w+)\]")


def wrong_codes(docstring: str) -> Iterator[str]:
    """Codes of a Raises section that the error table lacks, or has for another exception."""
    kinds: list[str] = []
    after_code = False
    for kind, code in CODE.findall(docstring.partition("Raises:")[2]):
        if kind:
            kinds = [kind] if after_code else [*kinds, kind]
        elif code not in RULES:
            yield f"{code}: no such error"
        elif kinds and RULES[code].kind.__name__ not in kinds:
            yield f"{code}: {RULES[code].kind.__name__}, not {' or '.join(kinds)}"
        after_code = bool(code)


def test_errors_that_docstrings_name_exist() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}: {problem}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for _, text in strings(ast.parse(path.read_text("utf-8")))
        for problem in wrong_codes(text)
    ]
    assert not wrong


def test_settings_that_messages_and_documents_name_exist() -> None:
    sources = [*DOCUMENTS, *(PACKAGE / "errors").glob("*.py")]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    assert set(KNOB.findall(text)) <= {knob.name for knob in knobs.ALL}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRA.findall(text)) <= set(extras["optional-dependencies"])
