# SPDX-License-Identifier: MIT
"""Collect which operations the tests check, and against what, for the fidelity report.

``test_fidelity.py`` compares it with ``cklang/emulator/engine/isa/verification.json``, and writes
that file with ``--update-golden``. An operation counts for a test module if
its name occurs in the module's text or in a string that the module's constants hold (the texts of
generated kernels), and for a foreign kernel if its code object holds it.
"""

import dataclasses
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cklang import emulator
from cklang.emulator.engine.isa import schema

HERE = Path(__file__).parent
TABLE = Path(schema.__file__).with_name("verification.json")
COMMENT = "Made by tests/emulator/test_fidelity.py with --update-golden."
KINDS = {
    "numpy": "NumPy",
    "ml_dtypes": "ml_dtypes and NumPy, every value",
    "model": "published bit model, in rational arithmetic",
    "pseudocode": "the manual's pseudocode",
    "foreign": "kernels that Triton compiled, against NumPy",
}
#: Test modules that compare results with an oracle, by kind.
MODULES = {
    "numpy": (
        *("test_alu", "test_atomics", "test_buffer_formats", "test_clamp", "test_convert_scaled"),
        *("test_gfx950", "test_half_flush", "test_known_mistakes", "test_lds_transpose"),
        *("test_matrix", "test_matrix_blocks", "test_matrix_f8f6f4", "test_memory_operations"),
        *(
            "test_rare_alu",
            "test_rare_memory",
            "test_rdna_alu",
            "test_rdna_matrix",
            "test_rdna_scalar",
        ),
        *("test_rdna_block", "test_rdna_kernels", "test_rdna_memory", "test_smfmac"),
        "test_scalar_operations",
    ),
    "ml_dtypes": ("test_convert_exhaustive",),
    "model": ("test_numerics",),
}
_TOKEN = re.compile(r"\b[a-z]+_[a-z0-9_]+\b")
_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp)$")


def known() -> set[str]:
    """The operations of all families."""
    return {row.name for family in schema.FAMILIES for row in schema.load(family).rows}


def strings(value: object, depth: int = 0) -> Iterator[str]:
    """The strings that a constant holds."""
    if isinstance(value, str):
        yield value
    elif depth > 5 or isinstance(value, (bytes, type)) or callable(value):
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings(key, depth + 1)
            yield from strings(item, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from strings(item, depth + 1)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from strings(getattr(value, field.name), depth + 1)


def named(texts: Iterable[str], operations: set[str]) -> set[str]:
    """The operations whose names occur, with or without an encoding's suffix."""
    tokens = {token for text in texts for token in _TOKEN.findall(text)}
    return {_SUFFIX.sub("", token) for token in tokens} & operations


def in_module(name: str, operations: set[str]) -> set[str]:
    """What a test module checks."""
    module = importlib.import_module(f"tests.emulator.{name}")
    constants = (value for key, value in vars(module).items() if not key.startswith("__"))
    texts = [text for value in constants for text in strings(value)]
    return named([*texts, (HERE / f"{name}.py").read_text("utf-8")], operations)


def in_foreign_kernels() -> set[str]:
    """What the code objects that Triton made hold."""
    names: set[str] = set()
    for path in (HERE / "data" / "triton").glob("*/*.hsaco"):
        names |= set(emulator.instruction_census(path.parent.name, path.read_bytes()).emulated)
    return names


def in_pseudocode() -> set[str]:
    """What is compared with the evaluated pseudocode of the manuals."""
    return set().union(
        *importlib.import_module("tests.emulator.test_pseudocode").OPERATIONS.values()
    )


def collect() -> dict[str, list[str]]:
    """Operation to the kinds of checks it passes."""
    operations, by_kind = known(), dict[str, set[str]]()
    for kind, modules in MODULES.items():
        by_kind[kind] = {name for module in modules for name in in_module(module, operations)}
    by_kind["foreign"], by_kind["pseudocode"] = in_foreign_kernels(), in_pseudocode()
    return {
        name: [kind for kind in KINDS if name in by_kind[kind]]
        for name in sorted(set().union(*by_kind.values()))
    }


def text() -> str:
    """The text of the table."""
    rows = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in collect().items())
    head = json.dumps({"comment": COMMENT, "kinds": KINDS}, indent=2).removesuffix("\n}")
    return f'{head},\n  "operations": {{\n{rows}\n  }}\n}}\n'
