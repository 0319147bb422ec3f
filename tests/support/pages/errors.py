# SPDX-License-Identifier: MIT
"""``docs/errors.md``: a row for each error of the table in ``cklang/errors``."""

import string
from collections.abc import Mapping

from cklang.errors import Rule
from cklang.errors.table import TABLE

__all__ = ["PARTS", "errors_page", "pattern"]

PARTS: Mapping[str, str] = {
    "A": "Arguments and arrays", "B": "Compilers and builds", "C": "The kernel cache",
    "D": "Devices and launches", "E": "The emulator", "F": "Python functions that become ops",
    "G": "Groups of calls, and gradients", "I": "Text and types of the IR",
    "K": "Kernels, rules, registries and selection", "L": "Lowering to C++", "N": "Tuning",
    "T": "Tests of ops", "X": "Fusion: how a program becomes kernels",
    "Z": "Environment variables and internal errors",
}  # fmt: skip
"""What the errors of each letter are about."""

_HEAD = """\
# Errors

Every error of cklang is a `ck.CkError` with a stable code, a message, the place in your program
where there is one, and what to write instead. The codes are grouped by their first letter. Each
class of the column *raised as* is a `ck.CkError` and one of Python's exceptions, so `except
ValueError` catches a `CkValueError`. `CkError.to_json()` gives an error as plain data.

Words in `‹›` are filled in when the error is raised. A fix that is only `‹advice›` or the like
depends on the place; the error has it. Notes that an error adds, such as the rules that rejected
each kernel, are not listed.

`python -m tests.support.pages` writes this page from the table in `cklang/errors`.
"""

_COLUMNS = "| code | message | what to do | raised as |\n|---|---|---|---|\n"


def pattern(text: str) -> str:
    """Return a template with its fields as ``‹name›``."""
    parts = []
    for literal, field, _, _ in string.Formatter().parse(text):
        parts.append(literal)
        if field:
            parts.append(f"‹{field.split('.')[0].split('[')[0]}›")
    return "".join(parts)


def _code(text: str) -> str:
    """Return text as Markdown code in a cell of a table."""
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`"


def _row(rule: Rule) -> str:
    hint = "<br>".join(_code(line) for line in pattern(rule.hint).splitlines())
    return (
        f'| <a id="{rule.code}"></a>CK-{rule.code} | {_code(pattern(rule.message))} '
        f"| {hint} | `{rule.kind.__name__}` |"
    )


def errors_page() -> str:
    """Return the text of ``docs/errors.md``."""
    parts = [_HEAD]
    for letter, title in PARTS.items():
        rows = sorted((rule for rule in TABLE if rule.code[0] == letter), key=lambda r: r.code)
        parts.append(f"\n## {letter}: {title}\n\n{_COLUMNS}")
        parts.extend(f"{_row(rule)}\n" for rule in rows)
    return "".join(parts)
