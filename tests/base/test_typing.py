# SPDX-License-Identifier: MIT
"""Type checkers accept user code that annotates ck.f16[M, K], without comments for them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.base import typing_programs

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "base" / "typing_programs.py"


def mypy(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)]
    options = ["--follow-imports=silent", "--ignore-missing-imports"]
    return subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.mark.usefixtures("compiler")
def test_mypy_accepts_programs() -> None:
    assert "ignore" not in PROGRAMS.read_text().partition('"""\n')[2]
    done = mypy(PROGRAMS)
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("compiler")
def test_mypy_still_finds_mistakes_beside_annotations(tmp_path: Path) -> None:
    text = PROGRAMS.read_text()
    assert "splits=2" in text
    file = tmp_path / "wrong.py"
    file.write_text(text.replace("splits=2", "splitz=2"))
    done = mypy(file)
    assert 'Unexpected keyword argument "splitz"' in done.stdout


def test_the_programs_are_legal() -> None:
    x = np.ones((4, 8), np.float16)
    ir = typing_programs.linear.ir(x, x, np.ones(4, np.float32), 1.0, name="none")
    assert str(ir).count("gemm(") == 1
    assert "gemm(" in str(typing_programs.Layer.product.ir(x, x))
    q = np.ones((1, 2, 4, 8), np.float16)
    assert "attention_lse" in str(typing_programs.attend.ir(q, q, q, np.ones(2, np.float32)))
    args = (x, np.ones((4, 8), np.int8), np.ones((4, 1), np.float32), np.ones((8, 8), "bfloat16"))
    assert len(typing_programs.several.ir(*args).results) == 2


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "fp8_fnuz", "i4", "bool_", "e8m0"])
def test_every_public_dtype_is_declared_to_checkers(name: str) -> None:
    lines = (ROOT / "cklang" / "__init__.py").read_text().splitlines()
    assert f"        {name}: Any" in lines
    assert f"        {name} = Tensor" in lines
