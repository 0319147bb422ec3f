# SPDX-License-Identifier: MIT
"""Shared limits and the extents of shapes are each defined once."""

import ast
from pathlib import Path

import pytest

import cklang as ck
from cklang import widths
from cklang.types import TensorType, by_name, extents_of

ROOT = Path(__file__).parents[2] / "cklang"
SHIFTED = ("1 << 31", "2 ** 31", "2147483648", "2147483647")


def test_extents_are_the_shape_in_numbers() -> None:
    m, k = ck.dims("M K")
    extents = by_name({m: 3, k / 2: 4})
    assert TensorType(ck.f16, (m, 7, k / 2)).extents(extents) == (3, 7, 4)
    assert TensorType(ck.f16).extents({}) == ()
    assert extents_of((k / 2, m), extents) == (4, 3)
    with pytest.raises(KeyError, match="K"):
        TensorType(ck.f16, (k,)).extents(extents)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_limits_of_memory_accesses_are_spelled_in_one_module(path: Path) -> None:
    if path == Path(widths.__file__):
        return
    tree = ast.parse(path.read_text("utf-8"))
    numbers = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.BinOp | ast.Constant)]
    assert not set(SHIFTED) & set(numbers)
    assigned = [
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
    ]
    assert not [name for name in assigned if "DWORD" in name or "ACCESS_BYTES" in name]
