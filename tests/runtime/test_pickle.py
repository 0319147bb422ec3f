# SPDX-License-Identifier: MIT
"""Ops and helpers are copied and sent to other processes: by reference or by their text."""

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import cklang as ck
from cklang.frontend.program import Program
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.ir_text import op_from_ir
from tests.support.algorithms import BASE
from tests.support.errors import expect_error
from tests.support.typed import instance

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)
X, W = np.ones((4, 8), np.float16), np.ones((6, 8), np.float16)
SLOPE = 0.25


@ck.fn
def bent(x: Any, slope: Any = SLOPE) -> Any:
    return ck.leaky_relu(x, slope) * math.sqrt(4.0)


@ck.op
def linear(x: T[M, K], w: T[N, K], cap: ck.const[float] = 2.0) -> T[M, N]:
    return bent(x @ w.T) * cap


class Layer:
    @ck.op
    def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:  # noqa: N805 - static
        return ck.relu(x @ w.T)

    @staticmethod
    @ck.op
    def plain(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return x @ w.T


def local_op(scale: float) -> ck.Op:
    """An op that no other process can import."""

    @ck.fn
    def scaled(x: Any) -> Any:
        return x * scale

    @ck.op
    def local(
        x: T[M, K], w: T[N, K], *, cap: ck.const[float] = 2.0, name: ck.const[str] = "relu"
    ) -> T[M, N]:
        y = scaled(bent(x @ w.T)) + cap
        return ck.relu(y) if name == "relu" else ck.minimum(abs(y), max(1.0, 2.0))

    return local


ROUND_TRIPS = {
    "pickle": lambda op: pickle.loads(pickle.dumps(op)),
    "cloudpickle": lambda op: pickle.loads(cloudpickle.dumps(op)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", ROUND_TRIPS)
@pytest.mark.parametrize("op", [linear, local_op(3.0), Layer.linear, Layer.plain], ids=repr)
def test_a_copy_has_the_same_ir_and_choices(op: ck.Op, way: str) -> None:
    trip: Callable[[ck.Op], ck.Op] = ROUND_TRIPS[way]
    splits: Any = np.int64(2)
    pinned = trip(op.using(BASE, strategy="heuristic", splits=splits))
    copies: tuple[Any, ...] = (trip(op), pinned)
    for other in copies:
        assert str(op.ir(X, W)) == str(other.ir(X, W))
        assert other.__name__ == op.program.name
    assert trip(op).request == op.request
    assert pinned.request.algorithm == BASE
    assert pinned.request.splits == 2
    assert pinned.request.strategy == op.using(strategy="heuristic").request.strategy


def test_options_and_errors_of_a_copy_are_those_of_the_op() -> None:
    op = local_op(3.0)
    other = pickle.loads(pickle.dumps(op))
    assert str(other.ir(X, W, cap=4.0, name="other")) == str(op.ir(X, W, cap=4.0, name="other"))
    with pytest.raises(ck.CkError) as caught:
        other.program.specialise({"T": ck.f16}, {"name": 3})
    assert "test_pickle.py" in str(caught.value)
    np.testing.assert_array_equal(
        other.program.function(X, W, name="other"),
        instance(Program, op.program).function(X, W, name="other"),
    )


def test_an_importable_op_is_itself() -> None:
    assert pickle.loads(pickle.dumps(linear)) is linear
    assert pickle.loads(pickle.dumps(Layer.linear)) is Layer.linear
    assert pickle.loads(pickle.dumps(bent)) is bent


def test_an_op_of_ir_and_one_with_a_registry() -> None:
    op = op_from_ir(linear.ir(X, W)).using(registry=ck.dispatch.Registry("mine"))
    other = pickle.loads(pickle.dumps(op))
    assert str(other.program.ir) == str(instance(IrProgram, op.program).ir)
    assert other.request.registry.same_as(op.request.registry)


def test_a_copy_keeps_the_value_of_a_global_that_changes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @ck.op
    def sloped(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return (x @ w.T) * SLOPE

    other = pickle.loads(pickle.dumps(sloped))
    before = str(other.ir(X, W))
    monkeypatch.setitem(globals(), "SLOPE", 8.0)
    assert str(other.ir(X, W)) == before


def test_an_op_of_a_script_reaches_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, sys\nimport cklang as ck\nM, N, K = ck.dims('M N K')\nSCALE = 3.0\n\n"
        "@ck.op\ndef f(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:\n"
        "    return ck.relu(x @ w.T) * SCALE\n\n"
        "sys.stdout.buffer.write(pickle.dumps(f))\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    script.unlink()
    op = pickle.loads(done.stdout)
    assert "value = 3.0" in str(op.ir(X, W))


def test_ops_in_classes_are_static_functions() -> None:
    assert Layer().linear is Layer.linear
    assert "relu" in str(Layer().linear.ir(X, W))
    assert "gemm" in str(Layer.plain.ir(X, W))
    with expect_error("F018"):

        class Wrong:
            @ck.op
            def linear(self, x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
                return x @ w.T
