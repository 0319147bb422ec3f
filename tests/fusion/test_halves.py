# SPDX-License-Identifier: MIT
"""Two parts of the columns of one product are a pair of products where one value needs both."""

from __future__ import annotations

import numpy as np
import pytest

from cklang.families import plan_of
from cklang.families.gemm.fuse.halves import with_halves
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.written_ops import written_op

TOGETHER = {
    "halves": "y = x @ w.T\n    return ck.silu(y[:, :N // 2]) * y[:, N // 2:]",
    "every other": "y = x @ w.T\n    return ck.silu(y[:, ::2]) * y[:, 1::2]",
    "with a bias": "y = x @ w.T + b\n    return ck.gelu(y[:, :N // 2]) + y[:, N // 2:]",
    "rounded before": "y = (x @ w.T + b).to(ck.f16)\n    return y[:, ::2] * ck.sigmoid(y[:, 1::2])",
    "with a number for each row": (
        "y = ck.relu((x @ w.T) * s[:, None])\n    return y[:, :N // 2] - y[:, N // 2:]"
    ),
    "by split": "g, u = ck.split(x @ w.T, 2, axis=1)\n    return ck.silu(g) * u",
}
APART = {
    "one part": "y = x @ w.T\n    return y[:, :N // 2] * 2.0",
    "parts that do not meet": (
        "y = x @ w.T\n    return ck.softmax(y[:, :N // 2]) + ck.softmax(y[:, N // 2:])"
    ),
    "three readers": "y = x @ w.T\n    return y[:, ::2] * y[:, 1::2] + ck.sum(y, axis=1)[:, None]",
    "rows": "y = x @ w.T\n    return (y[:M // 2] * y[M // 2:]).reshape(M, N // 2)",
}


def op_of(body: str) -> Op:
    return written_op(
        "@ck.op\ndef f(x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f16[N], s: ck.f32[M])"
        f" -> ck.f32[M, N // 2]:\n    {body}\n",
        "M N K",
    )


def families(op: Op) -> list[str]:
    return [kernel.family for kernel in plan_of(op.program.specialise()).kernels]


@pytest.mark.parametrize("name", TOGETHER)
def test_parts_that_meet_are_one_kernel(name: str) -> None:
    op = op_of(TOGETHER[name])
    assert families(op) == ["gemm"]
    function = op.program.specialise()
    halved = verify(with_halves(function))
    assert [each.op for each in halved.body].count("gemm") == 2
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float16) for s in ((4, 6), (8, 6), (8,)))
    arrays = [x, w, b, rng.standard_normal(4).astype(np.float32)]
    got, want = (evaluate(each, arrays)[0] for each in (halved, function))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", APART)
def test_other_parts_are_read_from_memory(name: str) -> None:
    function = op_of(APART[name]).program.specialise()
    assert with_halves(function) is function
