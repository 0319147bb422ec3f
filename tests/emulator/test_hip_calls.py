# SPDX-License-Identifier: MIT
"""The list of HIP calls in the documentation is that of the library, and tests call each."""

import ast
import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

import pytest

from cklang import emulator
from cklang.elf import sections_of, symbols_of
from cklang.emulator.engine.build import exported_calls
from cklang.emulator.hip.headers import KERNELS, PROGRAMS
from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("emulator")

_DOCUMENT = Path(__file__).parents[2] / "docs" / "hip.md"
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM


def exported(image: bytes) -> set[str]:
    """Names that a shared library defines."""
    sections = sections_of(image)
    (table,) = (section for section in sections if section.kind == _DYNAMIC_SYMBOLS)
    return {symbol.name for symbol in symbols_of(table, sections) if symbol.section}


def documented() -> list[str]:
    section = _DOCUMENT.read_text().partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_every_call_is_documented() -> None:
    names = exported(emulator.library_path().read_bytes())
    calls = {name for name in names if re.match(r"(__)?hip(?!_\d)", name)}
    assert sorted([*documented(), *unsupported()]) == sorted(calls)


def unsupported() -> list[str]:
    """Calls that are listed as exported alone."""
    section = _DOCUMENT.read_text().partition("\n## Exported, not supported")[2]
    return re.findall(r"`((?:__)?hip\w+)`", section.partition("\n## ")[0].rpartition(".\n")[2])


def test_all_names_of_amds_library_have_its_versions() -> None:
    library = emulator.load()
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = (
        ctypes.c_void_p,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
    )
    calls = [(name, version) for version, names in exported_calls().items() for name in names]
    assert len(calls) == 502
    handle = library._handle
    assert not [pair for pair in calls if not find(handle, *(text.encode() for text in pair))]


_UNSUPPORTED = """
from cklang import emulator
from tests.support.assembly import call
print([call("hipMemcpyAtoA") for _ in range(2)], emulator.last_error())
"""


def test_what_is_not_supported_says_so_once() -> None:
    """In a process of its own: other tests may have called it in this one."""
    message = "hipMemcpyAtoA is not supported by the emulator"
    done = run_python("-c", _UNSUPPORTED)
    assert done.stdout == f"[801, 801] {message}\n"
    assert done.stderr.count(message) == 1


_PRIVATE = re.compile(r"__hip|.*_spt$|hipGetDevicePropertiesR\d+$")
"""Names that the headers give no one: those of clang, and of layouts of a structure."""


def test_every_call_is_declared() -> None:
    headers = [path for folder in (PROGRAMS, KERNELS) for path in (folder / "hip").glob("*.h")]
    text = "".join(path.read_text() for path in headers)
    public = [name for name in documented() if not _PRIVATE.match(name)]
    assert len(public) > 250
    assert not [name for name in public if not re.search(rf"\b{name}\s*\(", text)]


COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
CALL = re.compile(r"\b(\w+)\s*(?:<[^<>;(){}]*>)?\s*\(")
Functions = ast.FunctionDef | ast.AsyncFunctionDef


def called_in_cpp(text: str) -> set[str]:
    """Names that a program calls, outside comments and texts."""
    return set(CALL.findall(COMMENT.sub(" ", text)))


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def callers(functions: Sequence[Functions]) -> set[str]:
    """Functions that call what a parameter names: by getattr, or by another such function."""
    passing = [(each.name, callee) for each in functions for callee in receivers(each)]
    known, before = {"getattr"}, 0
    while len(known) > before:
        before = len(known)
        known |= {name for name, callee in passing if callee in known}
    return known


def receivers(function: Functions) -> set[str]:
    """What a function passes one of its parameters to."""
    parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return {
        name_of(call.func)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and any(isinstance(each, ast.Name) and each.id in parameters for each in call.args)
    }


def called_in_python(trees: Sequence[ast.Module]) -> set[str]:
    """Names that tests call or pass on as functions, also by text: ``call("hipInit", 0)``.

    A text counts where its function, with its decorators, calls something by a name. Programs in
    texts count by the calls that they hold. Comments and docstrings do not count.
    """
    nodes = [node for tree in trees for node in ast.walk(tree)]
    known = callers([node for node in nodes if isinstance(node, Functions)])
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    names: set[str] = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, Functions):
            inside = list(ast.walk(node))
            calls = {name_of(each.func) for each in inside if isinstance(each, ast.Call)}
            if calls & known:
                names |= {text_of(t) for t in inside if is_text(t) and id(t) not in statements}
        elif is_text(node) and id(node) not in statements:
            names |= called_in_cpp(text_of(node))
    return names


def text_of(node: ast.Constant) -> str:
    return str(node.value)


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_call_is_called() -> None:
    """In a test in Python, or in a program that a test builds."""
    root = Path(__file__).parents[1]
    sources = [path.read_text("utf-8") for end in ("cpp", "hip") for path in root.rglob(f"*.{end}")]
    calls = {name for source in sources for name in called_in_cpp(source)}
    tests = [path for path in root.rglob("*.py") if path != Path(__file__)]
    calls |= called_in_python([ast.parse(path.read_text("utf-8")) for path in tests])
    assert not sorted(set(documented()) - calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# hipInit(0)", False),
        ('"""hipInit(0)"""', False),
        ('NAMES = ["hipInit"]', False),
        ('def test():\n    print("hipInit")', False),
        ('SOURCE = "// hipInit(0);"', False),
        ('SOURCE = "/* hipInit(0); */ int x;"', False),
        ("ok(hip().hipInit(0))", True),
        ("run(api.hipInit)", True),
        ('SOURCE = "int main() { hipInit(0); }"', True),
        ('def call(name):\n    getattr(api, name)()\ndef test():\n    call("hipInit")', True),
        ('def test(name):\n    """hipInit"""\n    getattr(api, name)()', False),
    ],
)
def test_only_calls_count(text: str, expected: bool) -> None:
    assert ("hipInit" in called_in_python([ast.parse(text)])) == expected
