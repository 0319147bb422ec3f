# SPDX-License-Identifier: MIT
"""Tensors that no kernel reads: an error with the argument and what to write, on every way in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import cklang as ck
import cklang.torch
from cklang.errors import CkError
from cklang.torch import custom_op_of
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("torch", "no_kernels")

M, N, K, B, H, S, P = ck.dims("M N K B H S P")


@ck.op
def scaled(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[M, N]:
    return x * y


@ck.op
def pruned(a: ck.f16[M, K], b: ck.f16[K, N]) -> ck.f16[M, N]:
    return ck.gemm(a, b, sparse="a")


@ck.op
def paged(
    q: ck.f16[S, H, 8],
    k: ck.f16[P, H, 4, 8],
    starts: ck.i32[K],
    n: ck.i32[B],
    table: ck.i32[M],
    at: ck.i32[K],
) -> ck.f16[S, H, 8]:
    return ck.attention(
        q, k, k, cu_seqlens_q=starts, seqlens_k=n, block_table=table, page_starts=at
    )


def ones(**options: Any) -> torch.Tensor:
    return torch.ones(2, 2, **options)


KINDS: dict[str, tuple[Callable[[], torch.Tensor], str, str]] = {
    "complex": (lambda: ones(dtype=torch.complex64), "A083", "view_as_real"),
    "sparse": (lambda: ones().to_sparse(), "A084", "to_dense"),
    "sparse rows": (lambda: ones().to_sparse_csr(), "A084", "to_dense"),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "A084",
        "to_padded_tensor",
    ),
    "quantised": (
        lambda: torch.quantize_per_tensor(ones(), 0.5, 0, torch.qint8),
        "A085",
        "int_repr",
    ),
    "meta": (lambda: ones(device="meta"), "A082", "FakeTensorMode"),
    "negated when read": (lambda: ones(dtype=torch.complex64).conj().imag, "A006", "resolve"),
    "another dtype": (lambda: ones(dtype=torch.float64), "A020", "y.to(torch.float32)"),
    "no dtype of kernels": (lambda: ones(dtype=torch.int16), "A002", "dtypes: f16"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", KINDS)
def test_a_call_names_the_argument_and_what_to_write(name: str) -> None:
    make, code, fix = KINDS[name]
    with expect_error(code) as caught:
        scaled(ones(), make())
    text = str(caught.value)
    assert "y " in text.splitlines()[0]
    assert "the op scaled" in text
    assert fix in text


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["complex", "another dtype", "no dtype of kernels"])
def test_a_traced_call_is_the_same_error(name: str) -> None:
    make, code, _ = KINDS[name]
    y = make()
    compiled = torch.compile(lambda x, y: scaled(x, y), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match=code):
        compiled(ones(), y)


def test_a_device_without_kernels_is_an_error() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        x, y = ones(), torch.empty(2, 2, device="xpu")
        with pytest.raises(CkError, match="A086") as caught:
            custom_op_of(scaled)(y, y)
        assert "y.cpu()" in str(caught.value) or "x.cpu()" in str(caught.value)
        with pytest.raises(CkError, match=r"A026|A086"):
            custom_op_of(scaled)(x, y)


def test_results_may_not_overlap_what_is_read_or_themselves() -> None:
    x = torch.ones(4, 4)
    with pytest.raises(CkError, match="A043"):
        scaled(x[:2], x[2:], out=x[1:3])
    with pytest.raises(CkError, match="A045"):
        scaled(x, x, out=torch.empty(4).expand(4, 4))
    # What is only read may overlap.
    row = torch.ones(1, 4).expand(4, 4)
    assert torch.equal(scaled(row, row), torch.ones(4, 4))


WITHOUT_RULES: dict[str, tuple[Any, Callable[[], tuple[torch.Tensor, ...]], str]] = {
    "sparse product": (
        pruned,
        lambda: (
            torch.from_numpy(ck.sparse24.prune(np.ones((64, 64), np.float16))),
            torch.ones(64, 32).half(),
        ),
        "G020",
    ),
    "pages of all sequences in one list": (
        paged,
        lambda: (
            torch.ones(4, 2, 8).half(),
            torch.ones(4, 2, 4, 8).half(),
            torch.tensor([0, 4], dtype=torch.int32),
            torch.ones(1, dtype=torch.int32),
            torch.zeros(4, dtype=torch.int32),
            torch.tensor([0, 4], dtype=torch.int32),
        ),
        "G025",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_RULES)
@pytest.mark.parametrize("place", [0, 1])
def test_a_gradient_without_a_rule_is_an_error(name: str, place: int) -> None:
    op, make, code = WITHOUT_RULES[name]
    args = make()
    args[place].requires_grad_()
    result = op(*args)
    with pytest.raises(CkError, match=code) as caught:
        result.sum().backward()
    assert op.program.name in str(caught.value)
    assert args[place].grad is None


def test_an_op_of_more_arguments_than_a_schema_has_is_not_traced() -> None:
    names = [f"x{index}" for index in range(64)]
    params = ", ".join(f"{name}: ck.f32[M]" for name in names)
    op = expression_op(params, "ck.f32[M]", "x0 + x63")
    with FakeTensorMode(), pytest.raises(CkError, match=r"A151 .*f\w*, which has 64 arguments"):
        op(*(torch.ones(2) for _ in names))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_backend_leaves_to_torch_what_no_kernel_reads() -> None:
    cklang.torch.report(clear=True)
    run = torch.compile(lambda x: (x * x).abs() + 1, backend="cklang", options={"reference": True})
    x = torch.tensor([1 + 1j, 2 - 1j])
    with torch.no_grad():
        torch.testing.assert_close(run(x), (x * x).abs() + 1)
    (graph,) = cklang.torch.report().graphs
    assert "complex64" in " ".join(node.reason for node in graph.eager)
