# SPDX-License-Identifier: MIT
"""arch_specs: valid, complete, and the only place where a GPU's name is compared."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from cklang.arch import all_archs, arch, base_name
from cklang.errors import CkValueError
from tests.support.errors import expect_error

ROOT = Path(__file__).parents[2]
FILES = sorted(p for p in (ROOT / "arch_specs").glob("gfx*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_spec_fits_the_schema(path: Path) -> None:
    schema = json.loads((ROOT / "arch_specs" / "schema.json").read_text())
    data = json.loads(path.read_text())
    jsonschema.validate(data, schema)
    assert data["name"] == path.stem


def test_every_file_is_loaded_in_emulated_order() -> None:
    assert {spec.name for spec in all_archs()} == {path.stem for path in FILES}
    orders = [spec.emulated_order for spec in all_archs()]
    assert orders == sorted(set(orders))


def test_feature_suffixes_are_cut_and_unknown_names_refused() -> None:
    assert arch("gfx942:sramecc+:xnack-").name == "gfx942"
    with expect_error("K004", match="gfx942", kind=CkValueError):
        arch("gfx9")


def test_a_version_is_what_llvm_calls_it() -> None:
    versions = {"gfx90a": (9, 0, 10), "gfx942": (9, 4, 2), "gfx1201": (12, 0, 1)}
    assert {name: arch(name).version for name in versions} == versions
    assert base_name("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-") == "gfx942"


GPU_NAME = re.compile(r"gfx[0-9a-f]{2,}")
FAMILY_NAME = re.compile(r"[cr]dna[0-9]*")
VARIABLES = {"arch", "gpu", "gfx", "arch_name", "gpu_name", "target", "isa"}
"""What code calls a GPU's name; of a record it is ``spec.name``."""
PARSING = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "split", "rsplit", "partition"),
    *("rpartition", "strip", "lstrip", "rstrip", "index", "find", "isdigit"),
}
WORDS_FOR_PEOPLE = {"metavar", "help", "doc"}
# The emulator's instruction tables are named by family: these modules make and read them.
TABLES = ROOT / "cklang" / "emulator" / "engine" / "isa"


def is_gpu_name(node: ast.expr) -> bool:
    """Whether an expression is a GPU's name, by what code calls it."""
    if isinstance(node, ast.Attribute) and node.attr in ("name", "family"):
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        return name in {"spec", "gpu"}
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name in VARIABLES


def parses(node: ast.AST) -> bool:
    """Whether it takes a GPU's name apart, or compares a part of it."""
    if isinstance(node, ast.Subscript):
        return is_gpu_name(node.value)
    if not isinstance(node, ast.Call):
        return False
    callee = node.func
    if isinstance(callee, ast.Attribute) and callee.attr in PARSING:
        texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
        named = any(isinstance(t, str) and t.startswith(("gfx", "cdna", "rdna")) for t in texts)
        return named or is_gpu_name(callee.value)
    module = callee.value if isinstance(callee, ast.Attribute) else None
    if isinstance(module, ast.Name) and module.id == "re":
        return any(is_gpu_name(argument) for argument in node.args)
    return isinstance(callee, ast.Name) and callee.id == "int" and any(map(is_gpu_name, node.args))


def names_a_gpu(tree: ast.AST) -> Iterator[ast.AST]:
    """Texts that are the name of a GPU, other than in help for people."""
    for_people = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in WORDS_FOR_PEOPLE
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and GPU_NAME.fullmatch(text) and id(node) not in for_people:
            yield node


def compares_a_family(node: ast.AST) -> bool:
    """Whether it compares the name of an instruction set."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [n for side in (node.left, *node.comparators) for n in ast.walk(side)]
    texts = [n.value for n in sides if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    families = any(isinstance(n, ast.Attribute) and n.attr == "family" for n in sides)
    return families and any(FAMILY_NAME.fullmatch(text) for text in texts)


def ways_around(text: str) -> list[int]:
    """Lines of a module that ask a GPU's name what they should ask its record."""
    tree = ast.parse(text)
    nodes = [n for n in ast.walk(tree) if parses(n) or compares_a_family(n)]
    return sorted({n.lineno for n in (*nodes, *names_a_gpu(tree)) if isinstance(n, ast.expr)})


@pytest.mark.parametrize(
    "text",
    [
        'key.arch == "gfx942"',
        'name in ("gfx90a", "gfx950")',
        'RATES = {"gfx942": 304}',
        'key.arch.removeprefix("gfx")[:-2]',
        "int(spec.name[3:-2])",
        'arch.startswith("gfx9")',
        'text.startswith("gfx12")',
        'spec.family.startswith("cdna")',
        'spec.family == "cdna4"',
        'spec.family in {"rdna3", "rdna4"}',
        're.match("gfx(9)", gpu)',
        'gpu.split(":")[0]',
        "match arch:\n    case 'gfx950':\n        pass",
    ],
)
def test_ways_around_a_capability_are_seen(text: str) -> None:
    assert ways_around(text)


def test_no_code_compares_or_parses_arch_names() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "cklang").rglob("*.py"))
        if path.name != "arch.py" and TABLES not in path.parents
        for line in ways_around(path.read_text("utf-8"))
    ]
    assert offences == []
