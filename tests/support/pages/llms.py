# SPDX-License-Identifier: MIT
"""``docs/llms.txt``: the language on one page for coding agents.

``llms_rules.md`` beside this module has the rules; the functions and the errors of programs are
those of the package.
"""

from pathlib import Path

import cklang as ck
from cklang.errors.table import TABLE
from tests.support.pages.errors import pattern
from tests.support.pages.reference import LANGUAGE, signature

__all__ = ["LARGEST", "RULES", "llms_text"]

LARGEST = 30_000
"""Bytes that the file has at most."""

RULES = Path(__file__).with_name("llms_rules.md")
_LETTERS = "FX"


def _functions() -> str:
    lines = [
        f"- {name}{signature(getattr(ck, name))}: {getattr(ck, name).doc}" for name in LANGUAGE
    ]
    return "## Functions of ck\n\n" + "\n".join(lines) + "\n"


def _errors() -> str:
    lines = [
        f"- {rule.code}: {pattern(rule.message)}"
        + "".join(f" => {'; '.join(pattern(rule.hint).splitlines())}" for _ in rule.hint[:1])
        for letter in _LETTERS
        for rule in TABLE
        if rule.code[0] == letter
    ]
    return (
        "## Errors of programs (CK-...; message => fix; the words in ‹› are filled in)\n\n"
        + "\n".join(lines)
        + "\n"
    )


def llms_text() -> str:
    """Return the text of ``docs/llms.txt``."""
    return "\n".join([RULES.read_text(encoding="utf-8"), _functions(), _errors()])
