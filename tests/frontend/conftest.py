# SPDX-License-Identifier: MIT
"""Golden files of the frontend, and program texts run as if they were modules."""

import linecache
import types
from collections.abc import Callable
from pathlib import Path

import pytest

import cklang.in_place
import cklang.types
from cklang.frontend import composites, functions
from cklang.frontend.helper import fn
from cklang.frontend.program import Program
from cklang.ir.nodes import Function

MARK = "\n======\n"


@pytest.fixture(scope="session")
def ck() -> types.ModuleType:
    """The public names as ``import cklang as ck`` gives them; ck.op makes a bare Program."""
    module = types.ModuleType("cklang")
    for part in (cklang.types, cklang.in_place, functions, composites):
        vars(module).update({name: value for name, value in vars(part).items() if name[0] != "_"})
    vars(module).update(op=Program.from_function, fn=fn)
    return module


@pytest.fixture(scope="session")
def run_text(ck: types.ModuleType) -> Callable[[str, str], dict[str, object]]:
    """Execute a text as a module whose source can be found; ck and the dims M, N, K are there."""

    def run(text: str, name: str) -> dict[str, object]:
        dims = dict(zip("MNK", ck.dims("M N K"), strict=True))
        namespace = {"ck": ck, "__name__": name, **dims}
        file = f"{name}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec", dont_inherit=True), namespace)
        return namespace

    return run


@pytest.fixture(scope="session")
def specialised(run_text) -> Callable[[str, str], list[Function]]:
    """Run a text; return the IR of its ops, for its DTYPES and CONSTS if it has any."""

    def run(text: str, name: str) -> list[Function]:
        namespace = run_text(text, name)
        return [
            value.specialise(namespace.get("DTYPES"), namespace.get("CONSTS"))
            for value in namespace.values()
            if isinstance(value, Program)
        ]

    return run


@pytest.fixture
def check_golden(
    request: pytest.FixtureRequest,
) -> Callable[[Path, Callable[[str, str], str]], None]:
    """Compare what a function makes of a golden file's first part with its second part."""

    def check(path: Path, make: Callable[[str, str], str]) -> None:
        program, _, want = path.read_text().partition(MARK)
        program = program.rstrip() + "\n"
        got = make(program, path.stem).rstrip() + "\n"
        if request.config.getoption("--update-golden"):
            path.write_text(program + MARK + got)
        else:
            assert got == want

    return check
