# SPDX-License-Identifier: MIT
"""Attention is measured as products are: as plain data, checked, stored, and chosen afterwards."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families.attention.key import AttentionKey
from cklang.selection.registry import Registry
from cklang.tune import called
from cklang.tune.bench import bench
from cklang.tune.by_clock import CLOCKED
from cklang.tune.called import operands_of, part_of_task
from cklang.tune.database import Database, Status
from cklang.tune.measure import measure
from cklang.tune.strategies import Autotune
from cklang.tune.task import TuningTask, problem_text, tasks_of
from tests.support.arrays import Array
from tests.support.attention_keys import packed, plain

B, H, G, S, T, D, P = ck.dims("B H G S T D P")
ARCH = "gfx942"


@ck.op
def cached(
    q: ck.f16[B, H, S, D],
    k: ck.f16[T, G, 16, D],
    v: ck.f16[T, G, 16, D],
    lengths: ck.i32[B],
    table: ck.i32[B, P],
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, seqlens_k=lengths, block_table=table, return_lse=True)


def task_of(op: Any, **dims: int) -> TuningTask:
    (task,) = tasks_of(op, dims)
    assert task.fused.family == "attention"
    return task


PLAIN = {"B": 3, "H": 4, "G": 2, "S": 40, "T": 350, "D": 64}
PACKED = {"N": 50, "M": 70, "H": 2, "G": 1, "D": 64, "P": 4}
PAGED = {"B": 2, "H": 2, "G": 1, "S": 3, "T": 9, "D": 64, "P": 4}


@pytest.mark.parametrize(("op", "dims"), [(plain, PLAIN), (packed, PACKED), (cached, PAGED)])
def test_tasks_are_plain_data(op: Any, dims: dict[str, int]) -> None:
    task = task_of(op, **dims)
    again = TuningTask.from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    assert again.problem == task.problem
    json.loads(problem_text(task.problem))
    split = task.in_splits(2)
    assert split.problem.problem.splits == 2
    assert problem_text(split.problem) != problem_text(task.problem)


def test_names_are_no_part_of_a_question() -> None:
    @ck.op
    def other(
        a: ck.f16[B, H, S, D], b: ck.f16[B, G, T, D], c: ck.f16[B, G, T, D]
    ) -> ck.f16[B, H, S, D]:
        return ck.attention(a, b, c)

    texts = {problem_text(task_of(op, **PLAIN).problem) for op in (plain, other)}
    assert len(texts) == 1
    texts.add(problem_text(task_of(plain, **{**PLAIN, "T": 351}).problem))
    assert len(texts) == 2


def filled_with_99(task: TuningTask) -> list[Array]:
    inputs = task.layouts[: len(task.fused.inputs)]
    return [np.full(each.shape, 99, each.dtype.numpy) for each in inputs]


def test_lists_are_legal() -> None:
    task = task_of(packed, **PACKED)
    *_, mine, theirs = operands_of(task, filled_with_99(task))
    assert (mine[0], mine[-1], theirs[0], theirs[-1]) == (0, 50, 0, 70)
    assert (np.diff(mine) > 0).all()
    task = task_of(cached, **PAGED)
    *_, lengths, table = operands_of(task, filled_with_99(task))
    assert (lengths == 64).all()
    assert set(table.ravel()) == set(range(8))


def test_a_part_has_the_strides_of_the_whole() -> None:
    task = task_of(plain, **{**PLAIN, "S": 1000, "T": 2000})
    part = part_of_task(task)
    assert dict(part.dims) == {**dict(task.dims), "B": 2, "S": 300, "T": 300}
    assert [each.strides for each in part.layouts] == [each.strides for each in task.layouts]
    assert part.layouts[0].shape == (2, 4, 300, 64)
    assert part_of_task(task_of(packed, **PACKED)) == task_of(packed, **PACKED)


def declared(mine: Registry, among: Any, **dims: int) -> AttentionKey:
    """Declare the one kernel that other tests build too, and return its key."""
    shapes = [(dims["B"], dims["H"], dims["S"], 64), (dims["B"], dims["G"], dims["T"], 64)]
    q, k = (np.zeros(shape, np.float16) for shape in shapes)
    assert plain.declare(q, k, k, among=among, device=f"emu:{ARCH}", registry=mine) == 1
    (kernel,) = mine
    assert kernel.key.family == "attention"
    return kernel.key


SOME = ck.dispatch.attention_pattern(
    tile=(128, 64, 32, 64, 32, 64), pipeline="qr_async", block_per_cu=2
)
SMALL = {"B": 1, "H": 2, "G": 1, "S": 33, "T": 70, "D": 64}


@pytest.mark.usefixtures("compiler")
def test_a_session_measures_and_a_call_takes_the_best(tmp_path: Path) -> None:
    mine = Registry("mine")
    key = declared(mine, SOME, **SMALL)
    op = plain.using(registry=mine)
    path = tmp_path / "tuning.sqlite"
    report = ck.autotune(op, [SMALL], database=path, device=f"emu:{ARCH}", budget="10m")
    (tuned,) = report.problems
    assert tuned.best is not None
    assert (tuned.best.key, tuned.best.status) == (key, Status.RIGHT)
    assert tuned.best.unit == CLOCKED
    assert tuned.best.counters["predicted_us"] > 0
    assert tuned.best.counters["instructions"] > 1000
    assert tuned.best.counters["error_ratio"] <= 1
    assert tuned.favourite == key
    with Database(path) as database:
        (again,) = database.measurements(tuned.query)
        assert again.key == key
    chosen = ck.dispatch.select(
        tuned.problem, registry=mine, arch=ARCH, strategy=ck.dispatch.Tuned(path)
    )
    assert "the best of 1 measured kernels in the database" in chosen.reason
    table = bench(op, [SMALL], database=path, device=f"emu:{ARCH}")
    assert [(row.kernel, row.best, row.heuristic) for row in table.rows] == [
        (key.label, True, True)
    ]
    assert "1.000 of the best" in table.oracle()


@pytest.mark.usefixtures("compiler")
def test_the_strategy_times_kernels_on_the_device() -> None:
    mine = Registry("mine")
    key = declared(mine, SOME, **SMALL)
    task = task_of(plain, **SMALL)
    chosen = ck.dispatch.select(task.problem, registry=mine, arch=ARCH, strategy=Autotune(limit=1))
    assert chosen.key == key
    assert "by the clock" in chosen.reason
    assert "the least of 1 measured on emulated gfx942" in chosen.reason
    empty = Registry("empty")
    with pytest.raises(CkError, match="CK-K010"):
        ck.dispatch.select(task.problem, registry=empty, arch=ARCH, strategy="autotune")


@pytest.mark.usefixtures("compiler")
def test_a_wrong_kernel_never_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Registry("mine")
    key = declared(mine, SOME, **SMALL)
    task = task_of(plain, **SMALL)
    right = called.called

    def wrong(*args: Any) -> Any:
        results, count = right(*args)
        results[0][0, 0, 5, 7] += np.float16(0.5)
        return results, count

    monkeypatch.setattr(called, "called", wrong)
    environment = {"CKLANG_DEVICE": f"emu:{ARCH}"}
    measurement = measure(task.to_json(), key.to_json(), environment)
    assert measurement["status"] == "wrong"
    assert "times its bound" in measurement["note"]
