# SPDX-License-Identifier: MIT
"""What users see for the mistakes that they make most: golden texts of whole messages.

Mistakes in the text of an op have theirs in ``tests/frontend/golden/mistakes``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.errors.table import TABLE
from cklang.types import DTypeVar
from tests.support.algorithms import ATTENTION

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T + bias)


def half(*shape: int) -> Any:
    return np.ones(shape, np.float16)


X, W, BIAS = half(4, 8), half(6, 8), half(6)


def read_only() -> Any:
    out = half(4, 6)
    out.flags.writeable = False
    return out


def overlapping() -> Any:
    return np.lib.stride_tricks.as_strided(half(4, 6), (4, 6), (0, 2))


def strided_tensor() -> Any:
    import torch

    return torch.ones(8, 16, dtype=torch.float16)[::2, ::2]


def tensors(*shapes: tuple[int, ...]) -> Any:
    import torch

    return [torch.ones(shape, dtype=torch.float16) for shape in shapes]


B, H, S, D = ck.dims("B H S D")


@ck.op
def attend(q: ck.f16[B, H, S, D]) -> ck.f16[B, H, S, D]:
    return ck.attention(q, q, q)


TEXT = "@ck.op\ndef f(x: ck.f16[M]) -> ck.f16[M]:\n    return x\n"

MISTAKES: dict[str, Callable[[], Any]] = {
    "f64": lambda: ck.f64,
    "a dtype of torch": lambda: ck.bfloat16,
    "a misspelled function": lambda: ck.summ,
    "a function of another library": lambda: ck.matmul,
    "a misspelled argument": lambda: linear(X, W, bais=BIAS),
    "too many arguments": lambda: linear(X, W, BIAS, BIAS),
    "a missing argument": lambda: linear(X, W),
    "rank": lambda: linear(X[0], W, BIAS),
    "extents": lambda: linear(X, W.T, BIAS),
    "no contiguous axis": lambda: linear.problems(half(8, 16)[::2, ::2], W, BIAS),
    "negative stride": lambda: linear.problems(X[::-1], W, BIAS),
    "no contiguous axis, torch": lambda: linear.problems(strided_tensor(), *tensors((6, 8), (6,))),
    "out that is read-only": lambda: linear(X, W, BIAS, out=read_only()),
    "out whose elements overlap": lambda: linear(X, W, BIAS, out=overlapping()),
    "text that is not there": lambda: exec(TEXT, {"ck": ck, "M": M}),
    "a method of an op": lambda: ck.op(staticmethod(half)),
    "an algorithm that cannot read the heads": lambda: attend.using(ATTENTION).explain(
        half(1, 1, 64, 36), device="emu:gfx942"
    ),
    "library of check": lambda: ck.testing.check(linear, half, library="jax"),
}

GOLDEN = Path(__file__).parent / "golden" / "user_mistakes.txt"


def shown(call: Callable[[], Any]) -> str:
    with pytest.raises(CkError) as caught:
        call()
    return str(caught.value)


@pytest.mark.usefixtures("torch")
def test_what_users_see(request: pytest.FixtureRequest) -> None:
    text = "".join(f"# {name}\n{shown(call)}\n\n" for name, call in MISTAKES.items())
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_every_error_says_what_to_do() -> None:
    assert [rule.code for rule in TABLE if not rule.hint.strip()] == []


def test_what_modules_are_asked_for_is_no_mistake() -> None:
    assert not hasattr(ck, "f64")
    assert isinstance(ck.dtype_var("T", ck.f16), DTypeVar)
    with pytest.raises(AttributeError, match="module 'cklang' has no attribute '__wrapped__'"):
        ck.__wrapped__  # noqa: B018
    assert ck.testing.check is not None
    assert ck.emulator.disassemble is not None
