# SPDX-License-Identifier: MIT
"""The error table, and how an error looks."""

from __future__ import annotations

import pickle
import string

import pytest

from cklang.errors import CkError, CkValueError, Rule, error
from cklang.errors.table import RULES
from cklang.source import Source, Span

SOURCE = Source(name="model.py", text="def f(x):\n    return x +  y\n", first_line=10)
SPAN = Span(source=SOURCE, line=11, column=16, end_line=11, end_column=17)


def fields(rule: Rule) -> dict[str, str]:
    names = {
        name.split(".")[0].split("[")[0]
        for text in (rule.message, rule.hint)
        for _, name, _, _ in string.Formatter().parse(text)
        if name
    }
    return {name: f"<{name}>" for name in names}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_row_renders_and_pickles(rule: Rule) -> None:
    raised = error(rule.code, at=SPAN, notes=["a note"], **fields(rule))
    assert type(raised) is rule.kind
    assert f"CK-{rule.code}" in str(raised)
    copy = pickle.loads(pickle.dumps(raised))
    assert (type(copy), str(copy)) == (type(raised), str(raised))


def test_codes_are_unique_and_well_formed() -> None:
    from cklang.errors import table

    codes = [rule.code for rule in table.TABLE]
    assert len(codes) == len(set(codes))
    assert all(len(c) == 4 and c[0].isupper() and c[1:].isdigit() for c in codes)


def test_an_error_points_with_a_caret() -> None:
    raised = error("K002", at=SPAN, what="y", want="a number", got="z")
    assert isinstance(raised, CkError)
    assert isinstance(raised, ValueError)
    assert str(raised) == (
        "CK-K002 y must be a number, not 'z'\n"
        "  --> model.py:11:17\n"
        "   |\n"
        "11 |     return x +  y\n"
        "   |                 ^\n"
        "   = correct the value, or write the record again with the to_json of this version"
    )


def test_a_missing_value_is_not_hidden() -> None:
    with pytest.raises(KeyError):
        error("K002", what="y")


def test_to_json_holds_the_place() -> None:
    raised = error("K002", at=SPAN, what="y", want="a number", got="z")
    assert isinstance(raised, CkValueError)
    assert raised.to_json()["at"] == "model.py:11:17"
