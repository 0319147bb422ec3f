# SPDX-License-Identifier: MIT
"""Errors of single values have rows of their own: the call that breaks a rule, and what is said."""

import ast
import pickle
import string
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.cli import plot, target
from cklang.cli import registry as registry_command
from cklang.cli.main import main
from cklang.errors import CkError, CkValueError, Rule, error
from cklang.errors.table import RULES
from cklang.families.attention_backward.key import AttentionGradAlgorithm
from cklang.families.gemm import spelling
from cklang.families.presets import profile_row
from cklang.source import Source, Span
from cklang.tune.bench import Bench
from cklang.tune.session import seconds_of
from tests.support.algorithms import narrow
from tests.support.errors import expect_error

ROOT = Path(__file__).parents[2]
M, N, K = ck.dims("M N K")


def rows(*shape: int, dtype: Any = np.float16) -> Any:
    return np.zeros(shape, dtype)


def append(**change: Any) -> Any:
    arguments = {
        "k_cache": rows(2, 3, 8, 16),
        "v_cache": rows(2, 3, 8, 16),
        "k": rows(2, 3, 1, 16),
        "v": rows(2, 3, 1, 16),
        "seqlens_k": np.zeros(2, np.int32),
    }
    return ck.append_kv(**(arguments | change), device="emu:gfx942")


def paged(k_pages: int, v_pages: int) -> Any:
    table = np.zeros((2, 1), np.int32)
    caches = {"k_cache": rows(k_pages, 3, 8, 16), "v_cache": rows(v_pages, 3, 8, 16)}
    return append(block_table=table, **caches)


def read_only(*shape: int) -> Any:
    array = rows(*shape)
    array.flags.writeable = False
    return array


def gradient(**change: Any) -> AttentionGradAlgorithm:
    triples = ((1, 4, 1), (4, 1, 1), (1, 4, 1))
    arguments: dict[str, Any] = {
        "tile": (16, 64, 64, 16, 64, 16, 32, 64, 64),
        "warps": triples,
        "warp_tiles": ((16, 16, 32),) * 3,
        "vector": 8,
    }
    return AttentionGradAlgorithm(**(arguments | change))


NOTHING = Bench(rows=(), verdicts=(), device="emu:gfx942")

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "K011": (lambda: ck.dispatch.problem(0, 4, 4), "m must be an integer of 1 or more, not 0"),
    "K012": (
        lambda: gradient(tile=(16, 64)),
        r"tile must be a tuple of 9 integers of 1 or more, not \(16, 64\)",
    ),
    "K013": (
        lambda: narrow(1, warps=(2, 2)),
        r"warps must be a triple of integers \(m, n, k\), not \(2, 2\)",
    ),
    "K014": (lambda: gradient(warps=()), r"warps must be three triples .*, not \(\)"),
    "K015": (lambda: ck.dims("M-1"), "'M-1' cannot be the name of a dim"),
    "K016": (lambda: K / 8 / 4, r"K/8 counts blocks .*\n.*: K / size"),
    "K017": (lambda: ck.f16[ck.dims("M"), 3], r"not \(M,\)[\s\S]*M, = ck\.dims"),
    "K018": (lambda: ck.const[bytes], "not <class 'bytes'>\n.* bool, int, float, str in"),
    "K020": (lambda: ck.parse(b"func"), "not b'func'"),  # type: ignore[arg-type]
    "K024": (lambda: ck.dispatch.pattern(tile=[]), r"leaves tile no value: \[\]"),
    "K027": (lambda: profile_row({"pads": ["ttxt"]}), "'ttxt'"),
    "K030": (
        lambda: ck.dispatch.attention_problem(1, 4, 8, 16, 64, page_size=7),
        "page_size=7 does not divide the 16 keys",
    ),
    "K031": (
        lambda: ck.dispatch.problem(4, 4, 4, layouts="rc"),
        "layouts='rc' .*\n.* 'rcr': r, c, p",
    ),
    "K032": (lambda: ck.dispatch.problem(4, 4, 4, layouts="rpr"), "None does not fit .* 'rpr'"),
    "K033": (lambda: seconds_of("soon"), "'soon' is not a budget"),
    "K042": (lambda: plot.draw(NOTHING, Path("a/x.gif")), r"a/x\.gif .*\n.* name it x\.svg"),
    "K043": (lambda: spelling.spelled("f16"), "'f16' is neither TYPES:LAYOUTS"),
    "K044": (lambda: spelling.spelled("f16,f32:rcr"), "2 element types, 'f16,f32'"),
    "K045": (lambda: spelling.spelled("f16:rcr:c.row"), "'c.row' .* is of 'c'"),
    "K046": (lambda: spelling.spelled("f16:rcr:row=e8m0"), "is of e8m0.*\n.* bf16, .* i8"),
    "K047": (
        lambda: target.calls_named(Namespace(dtype=["f16"], sizes=[], problems=None)),
        "a dtype is given as NAME=VALUE, not as 'f16'",
    ),
    "K049": (lambda: registry_command.read(Path("none.json")), r"none\.json is no registry"),
    "A062": (lambda: append(v=rows(2, 3, 2, 16)), r"v must be f16 \[2, 3, 1, any\], not f16"),
    "A063": (lambda: append(k=rows(2, 3, 16)), r"of f16, bf16, f32, not f16 \[2, 3, 16\]"),
    "A064": (lambda: paged(4, 5), r"v_cache \(5, 3, 8, 16\) .* k_cache \(4, 3, 8, 16\)"),
    "A065": (lambda: append(v_cache=read_only(2, 3, 8, 16)), "v_cache is read-only"),
    "A066": (lambda: append(cos=rows(8, 4)), "sin is missing"),
    "A067": (lambda: append(cos=rows(8, 9), sin=rows(8, 9)), r"up to 8\].* not \(8, 9\)"),
    "A068": (
        lambda: append(cos=rows(8, 8)[:, :4], sin=rows(8, 4)),
        r"cos is not row-major \(shape \(8, 4\), strides \(8, 1\)",
    ),
    "A069": (
        lambda: append(k=rows(2, 3, 1, 32)[..., ::2]),
        r"the last axis of k .* strides \(96, 32, 32, 2\)",
    ),
    "A070": (
        lambda: append(k=rows(2, 3, 9, 16), v=rows(2, 3, 9, 16)),
        "9 rows, and there is room for 8: the caches have 8 rows, and k adds 9",
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_wrong_value_is_named_with_what_is_legal(code: str) -> None:
    call, words = REFUSED[code]
    with expect_error(code, match=words, kind=CkValueError) as caught:
        call()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["build"], ("CK-K040", "--bundle with --signature")),
        (["tune"], ("CK-K040", "--export, --import or --merge")),
        (["build", "--bundle", "x.ckb"], ("CK-K041", "--profile")),
    ],
)
def test_a_command_without_an_op_names_what_else_it_takes(
    command: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 1
    text = capsys.readouterr().err
    assert all(word in text for word in words)


def codes_raised(path: Path) -> set[str]:
    """Return the codes that ``error`` is called with in a file."""
    return {
        str(node.args[0].value)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "error"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def test_only_records_are_refused_by_the_general_row() -> None:
    """K002 takes its words from the caller; every other rule has a sentence of its own."""
    general = [path for path in (ROOT / "cklang").rglob("*.py") if "K002" in codes_raised(path)]
    assert [path.name for path in general] == ["codec.py"]


# --- the table

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
