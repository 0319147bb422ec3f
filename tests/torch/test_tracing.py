# SPDX-License-Identifier: MIT
"""Ops as custom ops of torch, their kernels replaced by the reference: no graph breaks anywhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from tests.support.by_reference import replace_kernels
from tests.support.torch_ops import CASES, linear, normed, scaled

torch: Any = pytest.importorskip("torch", reason="pip install torch")
dynamo_testing: Any = pytest.importorskip("torch._dynamo.testing")

M, N, K = ck.dims("M N K")


@pytest.fixture(autouse=True)
def _no_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    replace_kernels(monkeypatch)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def half(*shape: int) -> Any:
    return torch.randn(shape).half()


def all_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def same(one: Any, other: Any) -> bool:
    pairs = list(zip(all_of(one), all_of(other), strict=True))
    return all(torch.equal(a, b) and a.stride() == b.stride() for a, b in pairs)


@pytest.mark.parametrize("name", CASES)
def test_torch_finds_nothing_wrong(name: str) -> None:
    from cklang.torch import custom_op_of

    op, values = CASES[name]
    if not isinstance(op, ck.Op):
        pytest.skip("called with keywords: see test_one_node_whatever_the_sizes")
    args = list(values(5))
    missing = [None] * (len(op.program.parameters) - len(args))
    defaults = [each.default for each in op.program.parameters[len(args) :]]
    assert len(missing) == len(defaults)
    pairs = zip(op.program.parameters, args, strict=False)
    tensors = [each.name for each, x in pairs if torch.is_tensor(x) and not each.type.shape]
    custom = custom_op_of(op, tensors=tensors)
    results = torch.library.opcheck(custom, (*args, *defaults))
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"numbers"}))
def test_one_graph_serves_all_sizes(name: str) -> None:
    op, values = CASES[name]
    counter = dynamo_testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda *args: op(*args), backend=counter, fullgraph=True, dynamic=True)
    for size in (5, 7, 8):
        args = values(size)
        assert same(compiled(*args), op(*args))
    assert counter.frame_count == 1
