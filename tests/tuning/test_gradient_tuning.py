# SPDX-License-Identifier: MIT
"""Gradients of attention are measured too: plain data, checked, stored, and chosen afterwards."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import cklang as ck
from cklang.cli.main import main
from cklang.errors import CkError
from cklang.families.attention_backward.key import AttentionGradKey
from cklang.families.attention_backward.stages import GradientKind
from cklang.ops.attention_backward import prepare_gradients
from cklang.runtime.placeholder_arguments import packed_arguments
from cklang.selection.registry import Registry
from cklang.tune import measure as measuring
from cklang.tune.database import Status
from cklang.tune.gradient import gradient_of_o
from cklang.tune.measure import measure
from cklang.tune.on_device import Costs
from cklang.tune.strategies import Autotune
from cklang.tune.task import TuningTask, problem_text, tasks_of
from tests.support.attention_keys import packed
from tests.support.attention_ops import distant, relative
from tests.support.typed import instance

B, H, G, S, T, D, N, M, P = ck.dims("B H G S T D N M P")
ARCH = "gfx942"


@ck.op
def capped(q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D]) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, k, score=lambda s: 3.0 * ck.tanh(s / 3.0))


SMALL: dict[str, int | str] = {"B": 1, "H": 2, "G": 1, "S": 33, "T": 70, "D": 64, "F": "f16"}
RELATIVE: dict[str, int | str] = SMALL | {"X": 2, "Y": 33}
PACKED = {"N": 50, "M": 70, "H": 2, "G": 1, "D": 64, "P": 4}


def call_of(name: str, dims: dict[str, int | str]) -> list[str]:
    """Return the words of a command line that call an op of this file."""
    sizes = (f"{dim}={extent}" for dim, extent in dims.items() if dim != "F")
    return [f"{__file__}:{name}", *sizes, "--dtype", f"F={dims['F']}"]


def gradient_tasks(op: Any, **dims: int | str) -> list[TuningTask]:
    """Return the tasks of the gradients of a call: in any order, and in one."""
    tasks = [
        each
        for deterministic in (False, True)
        for each in tasks_of(op, dims, GradientKind(deterministic=deterministic))
    ]
    assert all(each.gradient is not None for each in tasks)
    return tasks


def kind_of(task: TuningTask) -> GradientKind:
    return instance(GradientKind, task.gradient)


@pytest.mark.parametrize(
    ("op", "dims", "shape"), [(distant, SMALL, (1, 2, 33, 64)), (packed, PACKED, (50, 2, 64))]
)
def test_tasks_are_plain_data(op: Any, dims: dict[str, int], shape: tuple[int, ...]) -> None:
    tasks = gradient_tasks(op, **dims)
    assert [kind_of(task).deterministic for task in tasks] == [False, True]
    for task in tasks:
        again = TuningTask.from_json(json.loads(json.dumps(task.to_json())))
        assert again == task
        assert again.problem == task.problem
        assert task.problem.deterministic == kind_of(task).deterministic
        assert gradient_of_o(task).shape == shape
    assert len({problem_text(task.problem) for task in tasks}) == 2


def test_a_question_is_that_of_a_call_and_has_no_names() -> None:
    @ck.op
    def other(
        a: ck.f16[N, H, D], b: ck.f16[M, G, D], c: ck.f16[M, G, D], x: ck.i32[P], y: ck.i32[P]
    ) -> ck.f16[N, H, D]:
        return ck.attention(a, b, c, cu_seqlens_q=x, cu_seqlens_k=y)

    texts = {problem_text(gradient_tasks(op, **PACKED)[0].problem) for op in (packed, other)}
    assert len(texts) == 1
    texts.add(problem_text(gradient_tasks(packed, **{**PACKED, "M": 71})[0].problem))
    assert len(texts) == 2


def test_the_gradient_of_a_bias_is_another_question() -> None:
    kinds = [GradientKind(bias=bias) for bias in (False, True)]
    plain, biased = (tasks_of(relative, RELATIVE, kind)[0] for kind in kinds)
    assert kind_of(biased).bias
    assert TuningTask.from_json(json.loads(json.dumps(biased.to_json()))) == biased
    assert str(biased.problem) == f"{plain.problem}, with that of what the score reads"
    assert "score" not in biased.functions
    assert "score" in plain.functions
    assert problem_text(plain.problem) != problem_text(biased.problem)
    with pytest.raises(CkError, match="CK-G008"):
        tasks_of(distant, SMALL, GradientKind(bias=True))


def test_the_derivative_of_a_score_is_a_part_of_the_question() -> None:
    (task, _) = gradient_tasks(capped, B=1, H=2, S=3, T=4, D=64)
    assert sorted(task.functions) == ["derivative", "score"]
    assert task.problem.signature.derivative
    assert '"derivative":true' in problem_text(task.problem).replace(" ", "")


def test_what_has_no_score_is_not_measured() -> None:
    assert gradient_tasks(distant, **{**SMALL, "T": 0}) == []


def registered(**dims: int | str) -> tuple[Registry, AttentionGradKey]:
    """Return a registry with one kernel of gradients, in any order, and its key."""
    mine = Registry("mine")
    (task, _) = gradient_tasks(distant, **dims)
    one = ck.dispatch.attention_pattern(
        gradient=True,
        tile=(32, 128, 64, 32, 64, 32, 32, 64, 64),
        pipeline="kr_ktr_vr_iglp",
        block_per_cu=1,
    )
    assert mine.declare(task.problem.signature, task.functions, ARCH, one) == 1
    (kernel,) = mine
    assert kernel.key.family == "attention_backward"
    return mine, kernel.key


@pytest.mark.usefixtures("compiler")
def test_a_session_measures_and_a_call_takes_the_best(tmp_path: Path) -> None:
    mine, key = registered(**SMALL)
    op, path = distant.using(registry=mine), tmp_path / "tuning.sqlite"
    report = ck.autotune(
        op, [SMALL], gradient=True, database=path, device=f"emu:{ARCH}", budget="10m", limit=1
    )
    (tuned,) = report.problems
    assert tuned.best is not None
    assert (tuned.best.key, tuned.best.status) == (key, Status.RIGHT)
    assert "µs by the clock" in tuned.best.unit
    assert tuned.best.counters["instructions"] > 1000
    assert tuned.best.counters["error_ratio"] <= 1
    chosen = ck.dispatch.select(
        tuned.problem, registry=mine, arch=ARCH, strategy=ck.dispatch.Tuned(path)
    )
    assert "the best of 1 measured kernels in the database" in chosen.reason


@pytest.mark.usefixtures("compiler")
def test_kernels_with_the_gradient_of_a_bias_are_tuned(tmp_path: Path) -> None:
    path, dims = tmp_path / "tuning.sqlite", {**RELATIVE, "B": 2}
    report = ck.autotune(
        relative, [dims], gradient=True, bias=True, database=path, device=f"emu:{ARCH}", limit=1
    )
    (tuned,) = report.problems
    assert tuned.best is not None
    assert tuned.best.status is Status.RIGHT
    assert tuned.best.key.family == "attention_backward"
    assert tuned.best.key.signature.bias_grad
    assert tuned.best.counters["error_ratio"] <= 1
    args = packed_arguments(relative.program.signature, dims)
    prepared = prepare_gradients(
        relative.using(strategy=ck.dispatch.Tuned(path)),
        (),
        args,
        grad=args["q"],
        kind=GradientKind(bias=True),
        device=f"emu:{ARCH}",
    )
    assert "the best of 1 measured kernels in the database" in str(prepared.selection)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("kind", [GradientKind(), GradientKind(deterministic=True, bias=True)])
def test_autotune_measures_on_the_device(kind: GradientKind) -> None:
    """Another order of summation leaves a part of dq for each tile of keys."""
    dims = {**RELATIVE, "T": 300}
    (task,) = tasks_of(relative, dims, kind)
    one = ck.dispatch.select(
        task.problem, arch=ARCH, strategy=Autotune(limit=1), functions=task.functions
    )
    assert "µs by the clock (the GPU is emulated), the least of 1 measured" in one.reason
    assert float(one.reason.split()[0]) > 1
    costs = iter([3.0, 2.0, 5.0])

    def measure(keys: Any, functions: Any, problem: Any, spec: Any) -> Costs:
        assert problem == task.problem
        return Costs(values=tuple(next(costs) for _ in keys), unit="µs", device="a test")

    few = Autotune(limit=3, measure=measure)
    chosen = ck.dispatch.select(task.problem, arch=ARCH, strategy=few, functions=task.functions)
    assert chosen.reason == "2 µs, the least of 3 measured on a test"
    assert chosen.key != one.key


@pytest.mark.usefixtures("emulator")
def test_a_wrong_kernel_never_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    _, key = registered(**SMALL)
    (task, _) = gradient_tasks(distant, **SMALL)
    monkeypatch.setattr(measuring, "gradient_error_ratio", lambda *_: 1.5)
    measurement = measure(task.to_json(), key.to_json(), {"CKLANG_DEVICE": f"emu:{ARCH}"})
    assert measurement["status"] == "wrong"
    assert "1.5 times its bound" in measurement["note"]


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("command", ["tune", "bench"])
@pytest.mark.parametrize(
    ("option", "said"), [("--gradient", ""), ("--deterministic", ", added in one order")]
)
def test_the_commands_ask_for_gradients(
    command: str,
    option: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CKLANG_DEVICE", f"emu:{ARCH}")
    words = call_of("distant", SMALL)
    words += [option, "--budget", "0s", "--database", str(tmp_path / "tuning.sqlite")]
    assert main([command, *words]) == 0
    text = capsys.readouterr().out
    assert "the gradient of attention of 1 x 2 heads on 1, 33 queries, 70 keys" in text
    if command == "bench":
        assert f"f16 to f16{said}: best of 0 -; heuristic no right result" in text
    else:
        assert f"f16 to f16{said}: 0 of " in text
        assert "the budget is used up" in text


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("command", ["tune", "bench"])
def test_the_commands_ask_for_the_gradient_of_a_bias(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = call_of("distant", SMALL)
    words += ["--bias", "--budget", "0s", "--database", str(tmp_path / "tuning.sqlite")]
    assert main([command, *words]) == 1
    assert "CK-G008" in capsys.readouterr().err


@pytest.mark.usefixtures("compiler")
def test_gradients_are_benchmarked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_DEVICE", f"emu:{ARCH}")
    table = tmp_path / "table.csv"
    words = call_of("relative", RELATIVE)
    words += ["--bias", "--limit", "1", "--database", str(tmp_path / "tuning.sqlite")]
    assert main(["bench", *words, "--csv", str(table)]) == 0
    (row,) = csv.DictReader(table.read_text().splitlines())
    assert row["problem"].startswith("the gradient of attention of 1 x 2 heads on 1")
    assert (row["status"], row["best"], row["heuristic"]) == ("right", "True", "True")
    assert float(row["instructions"]) > 1000
