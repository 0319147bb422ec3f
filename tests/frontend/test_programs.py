# SPDX-License-Identifier: MIT
"""Programs and the IR they become: a golden file holds both."""

from pathlib import Path

import pytest

from cklang.ir.parser import parse
from cklang.ir.verifier import verify

FILES = sorted((Path(__file__).parent / "golden" / "programs").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_program(path, check_golden, specialised):
    def ir(text: str, name: str) -> str:
        functions = specialised(text, name)
        for function in functions:
            verify(function)
            assert parse(str(function)).functions == (function,)
        return "\n".join(str(function) for function in functions)

    check_golden(path, ir)
