# SPDX-License-Identifier: MIT
"""Each kind of mistake has its message: a golden file holds a program and what is said about it."""

import re
from pathlib import Path

import pytest

from cklang.errors import CkError
from cklang.errors.table import RULES
from tests.support.optional import needed

FILES = sorted((Path(__file__).parent / "golden" / "mistakes").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_mistake(path, check_golden, specialised):
    if "torch" in path.read_text():
        needed("torch")

    def mistake(text: str, name: str) -> str:
        with pytest.raises(CkError) as caught:
            specialised(text, name)
        return str(caught.value)

    check_golden(path, mistake)


def test_every_rule_has_a_mistake():
    texts = [path.read_text() for path in FILES]
    shown = {code for text in texts for code in re.findall(r"^CK-(F\d+)", text, re.MULTILINE)}
    assert shown == {code for code in RULES if code.startswith("F")}
