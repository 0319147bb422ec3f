# SPDX-License-Identifier: MIT
"""Sessions of ``ck.autotune``: what is measured, what wins, what is stored, what a crash does."""

import csv
import io
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.cli.main import main
from cklang.errors import CkInternalError, CkUnsupportedError, CkValueError
from cklang.families import key_from_json
from cklang.families.gemm.family import GEMM
from cklang.families.gemm.key import GemmKey
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.sampled_rows import sampled
from cklang.runtime.op import Op
from cklang.selection.select import select
from cklang.tune.bench import bench
from cklang.tune.by_clock import CLOCKED
from cklang.tune.database import Database, Measurement, Status
from cklang.tune.session import autotune, seconds_of
from cklang.tune.task import TuningTask, problem_text, tasks_of
from cklang.tune.worker import Worker
from tests.support.errors import expect_error
from tests.support.processes import run_python
from tests.support.typed import instance

M, N, K = ck.dims("M N K")
DEVICE = "emu:gfx942"


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T + bias)


SHAPE = {"M": 70, "N": 40, "K": 33}
LARGE = {"M": 700, "N": 400, "K": 330}

Verdict = tuple[str, float | None]


class Pretending(Executor):
    """Measures nothing: the cost of a kernel is what ``verdict`` says."""

    def __init__(self, verdict: Callable[[GemmKey], Verdict]) -> None:
        self.verdict = verdict
        self.requested: list[GemmKey] = []

    def submit(self, call: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        _, data, settings = arguments
        assert settings["CKLANG_DEVICE"] == DEVICE
        json.dumps(arguments)
        key: GemmKey = key_from_json(data)
        self.requested.append(key)
        status, cost = self.verdict(key)
        at = f"2026-01-01T00:00:{len(self.requested):03}"
        done: Future[Any] = Future()
        measurement = Measurement(
            key=key, status=Status(status), cost=cost, unit="µs", note="as told", measured_at=at
        )
        done.set_result(measurement.to_json())
        return done


def narrow(key: GemmKey) -> Verdict:
    """The narrower its stores, the cheaper a kernel is: the model's favourite is the worst."""
    return "right", float(key.algorithm.vector_e) * key.algorithm.tile[0]


def tune(path: Path, executor: Executor, op: Op = linear, **more: Any) -> Any:
    problems = more.pop("problems", [SHAPE])
    return autotune(
        op, problems, device=DEVICE, database=path / "t.sqlite", executor=executor, **more
    )


@pytest.mark.usefixtures("emulator")
def test_the_least_cost_wins_and_calls_use_it(tmp_path: Path) -> None:
    report = tune(tmp_path, Pretending(narrow), patience=99)
    (tuned,) = report.problems
    costs = [m.cost for m in tuned.measurements]
    assert len(costs) == tuned.candidates == tuned.fresh > 3
    assert costs == sorted(costs)
    assert tuned.best.key != tuned.favourite
    assert "all were measured" in str(report)
    strategy = ck.dispatch.Tuned(tmp_path / "t.sqlite")
    (task,) = tasks_of(linear, SHAPE)
    chosen = select(task.problem, arch="gfx942", strategy=strategy)
    assert chosen.key == tuned.best.key
    assert f"the best of {len(costs)} measured kernels" in chosen.reason
    other = select(tasks_of(linear, LARGE)[0].problem, arch="gfx942", strategy=strategy)
    assert "nothing of it is in the tuning database" in other.reason


@pytest.mark.usefixtures("emulator")
def test_a_strategy_made_later_sees_what_was_measured_later(tmp_path: Path) -> None:
    (task,) = tasks_of(linear, SHAPE)
    path = tmp_path / "t.sqlite"
    before = select(task.problem, arch="gfx942", strategy=ck.dispatch.Tuned(path))
    assert "nothing of it" in before.reason
    assert not path.exists()
    tuned = tune(tmp_path, Pretending(narrow), patience=99).problems[0]
    after = select(task.problem, arch="gfx942", strategy=ck.dispatch.Tuned(path))
    assert after.key == tuned.best.key != before.key


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("status", ["wrong", "failed", "crashed", "slow"])
def test_what_is_not_right_never_wins(tmp_path: Path, status: str) -> None:
    def verdict(key: GemmKey) -> Verdict:
        return (status, None) if key.algorithm.vector_e == 1 else narrow(key)

    (tuned,) = tune(tmp_path, Pretending(verdict), patience=99).problems
    assert tuned.best.key.algorithm.vector_e > 1
    assert f"{status}: " in str(tuned)
    assert "as told" in str(tuned)


@pytest.mark.usefixtures("emulator")
def test_no_right_kernel_is_said_and_the_heuristic_stays(tmp_path: Path) -> None:
    (tuned,) = tune(tmp_path, Pretending(lambda _: ("wrong", None)), patience=99).problems
    assert tuned.best is None
    assert "no kernel gave a right result" in str(tuned)
    strategy = ck.dispatch.Tuned(tmp_path / "t.sqlite")
    chosen = select(tuned.problem, arch="gfx942", strategy=strategy)
    assert chosen.key == select(tuned.problem, arch="gfx942").key


@pytest.mark.usefixtures("emulator")
def test_a_session_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    first, second = Pretending(narrow), Pretending(narrow)
    assert "the limit is reached" in str(tune(tmp_path, first, limit=2, patience=99))
    report = tune(tmp_path, second, patience=99)
    assert len(first.requested) == 2
    assert not set(first.requested) & set(second.requested)
    assert len(report.problems[0].measurements) == len(first.requested) + len(second.requested)
    third = Pretending(narrow)
    assert tune(tmp_path, third, patience=99).problems[0].fresh == 0
    assert third.requested == []


@pytest.mark.usefixtures("emulator")
def test_it_stops_when_nothing_gets_better(tmp_path: Path) -> None:
    rising = Pretending(lambda _: ("right", float(len(rising.requested))))
    (tuned,) = tune(tmp_path, rising, patience=2, problems=[LARGE]).problems
    assert len(rising.requested) == 3
    assert tuned.ended == "none of the last 2 was better"


@pytest.mark.usefixtures("emulator")
def test_problems_take_turns_and_a_budget_ends_all(tmp_path: Path) -> None:
    slow = Pretending(narrow)
    report = tune(tmp_path, slow, problems=[SHAPE, LARGE], budget=0)
    assert slow.requested == []
    assert [tuned.ended for tuned in report.problems] == ["the budget is used up"] * 2
    turns = Pretending(narrow)
    tune(tmp_path, turns, problems=[SHAPE, LARGE], limit=2)
    firsts = [select(tasks_of(linear, s)[0].problem, arch="gfx942").key for s in (SHAPE, LARGE)]
    assert turns.requested[:2] == firsts


@pytest.mark.usefixtures("emulator")
def test_the_budget_ends_a_session_in_the_midst_of_many_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def verdict(key: GemmKey) -> Verdict:
        clock[0] += 1.0
        return narrow(key)

    monkeypatch.setattr("cklang.tune.session._AT_ONCE", 2)
    monkeypatch.setattr("cklang.tune.session.time", SimpleNamespace(monotonic=lambda: clock[0]))
    slow = Pretending(verdict)
    many = [{"M": 8 * m, "N": 40, "K": 33} for m in range(1, 9)]
    report = tune(tmp_path, slow, problems=many, budget=3)
    assert len(slow.requested) == 4
    assert [each.fresh for each in report.problems] == [1] * 4 + [0] * 4
    assert {each.ended for each in report.problems} == {"the budget is used up"}


@pytest.mark.usefixtures("emulator")
def test_a_broken_executor_loses_nothing_that_was_measured(tmp_path: Path) -> None:
    class Breaking(Pretending):
        def submit(self, call: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
            if len(self.requested) == 2:
                raise RuntimeError("the cluster is gone")
            return super().submit(call, *arguments, **more)

    with pytest.raises(RuntimeError, match="cluster"):
        tune(tmp_path, Breaking(narrow))
    with Database(tmp_path / "t.sqlite") as database:
        assert len(database) == 2


@pytest.mark.usefixtures("emulator")
def test_a_task_that_kills_or_occupies_its_workers_has_no_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed.scheduler import KilledWorker

    class Failing(Pretending):
        def submit(self, call: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
            done = super().submit(call, *arguments, **more)
            if len(self.requested) > 2:
                return done
            bad: Future[Any] = Future()
            if len(self.requested) == 1:
                bad.set_exception(KilledWorker("measure", None, 3))  # type: ignore[arg-type]
            return bad

    monkeypatch.setattr("cklang.tune.session._LIMIT_SECONDS", 0.01)
    (tuned,) = tune(tmp_path, Failing(narrow), limit=3).problems
    right, *bad = tuned.measurements
    assert right.cost is not None
    assert {m.status for m in bad} == {Status.CRASHED, Status.SLOW}
    assert any("every worker" in m.note for m in bad)


@pytest.mark.usefixtures("emulator")
def test_arguments_may_be_arrays(tmp_path: Path) -> None:
    x, w = np.ones((66, 70), np.float16)[:, :33].T[:33], np.ones((40, 66), np.float16)
    bias = np.ones(40, np.float16)
    (tuned,) = tune(tmp_path, Pretending(narrow), problems=[(x, w, bias)], limit=1).problems
    assert tuned.problem.a.layout is not None
    assert "c" in tuned.problem.signature.layouts


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"problems": []}, "N007"),
        ({"budget": "soon"}, "K033"),
        ({"budget": -1}, "K033"),
        ({"problems": [{"M": 1, "N": 2}]}, "K019"),
        ({"problems": [{"M": 1, "N": 2, "K": 3, "L": 4}]}, "K001"),
    ],
)
def test_bad_input(tmp_path: Path, more: Mapping[str, Any], code: str) -> None:
    with expect_error(code):
        tune(tmp_path, Pretending(narrow), **more)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("1.5m", 90), ("1h", 3600), ("7", 7), (2.5, 2.5)]
)
def test_budgets(text: str | float, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_a_task_is_plain_data() -> None:
    (task,) = tasks_of(linear, SHAPE)
    again = TuningTask.from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    assert again.problem == task.problem
    text = problem_text(task.problem)
    assert "bias" not in text
    assert text != problem_text(tasks_of(linear, {**SHAPE, "K": 34})[0].problem)


def test_a_result_without_elements_is_no_task() -> None:
    assert tasks_of(linear, {**SHAPE, "M": 0}) == ()


class TestChecking:
    """A wrong element is found, whether all or some rows are looked at."""

    def values(self, m: int, n: int, k: int) -> tuple[list[Any], Any]:
        rng = np.random.default_rng(1)
        shapes = ((m, k), (n, k), (n,))
        inputs = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
        x, w, bias = (each.astype(np.float64) for each in inputs)
        return inputs, np.maximum(x @ w.T + bias, 0).astype(np.float16)

    @pytest.mark.parametrize("shape", [(70, 40, 33), (1000, 400, 400)])
    def test_right_and_wrong(self, shape: tuple[int, int, int]) -> None:
        m, n, k = shape
        (task,) = tasks_of(linear, {"M": m, "N": n, "K": k})
        kernel = instance(FusedGemm, task.fused)
        inputs, result = self.values(*shape)
        assert (sampled(kernel, inputs, [result]) is not None) == (m == 1000)
        assert GEMM.tuning.error_ratio(kernel, inputs, [result]) <= 1
        result[m - 1, n - 1] += np.float16(4)
        assert GEMM.tuning.error_ratio(kernel, inputs, [result]) > 1

    def test_an_input_used_twice_is_compared_whole(self) -> None:
        @ck.op
        def gram(x: ck.f16[M, K]) -> ck.f32[M, M]:
            return x @ x.T

        (task,) = tasks_of(gram, {"M": 700, "K": 300})
        x = np.random.default_rng(1).uniform(-1, 1, (700, 300)).astype(np.float16)
        wide = x.astype(np.float64)
        assert (
            GEMM.tuning.error_ratio(
                instance(FusedGemm, task.fused), [x], [(wide @ wide.T).astype(np.float32)]
            )
            <= 1
        )


@pytest.mark.usefixtures("emulator")
def test_the_table_and_the_report(tmp_path: Path) -> None:
    benchmark = bench(
        linear,
        [SHAPE, LARGE],
        device=DEVICE,
        database=tmp_path / "t.sqlite",
        executor=Pretending(narrow),
        limit=5,
    )
    table = list(csv.DictReader(io.StringIO(benchmark.csv())))
    assert len(table) == len(benchmark.rows) == 10
    assert sum(row["best"] == "True" for row in table) == 2
    data = json.loads(benchmark.json())
    assert len(data["oracle"]) == 2
    assert all(verdict["ratio"] >= 1 for verdict in data["oracle"])
    assert max(v.ratio or 0 for v in benchmark.verdicts) > 1
    assert "geometric mean" in benchmark.oracle()


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_picture(tmp_path: Path, suffix: str) -> None:
    from cklang.cli.plot import draw

    path = tmp_path / "t.sqlite"
    benchmark = bench(linear, [SHAPE], device=DEVICE, database=path, executor=Pretending(narrow))
    draw(benchmark, tmp_path / f"picture{suffix}")
    head = (tmp_path / f"picture{suffix}").read_bytes()[:60]
    assert head[1:4] == b"PNG" if suffix == ".png" else b"<?xml" in head
    with pytest.raises(CkValueError, match=r"picture\.gif is not .*\n.* name it picture\.svg"):
        draw(benchmark, tmp_path / "picture.gif")


@pytest.mark.usefixtures("emulator")
def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    from cklang.cli.plot import draw

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    path = tmp_path / "t.sqlite"
    benchmark = bench(linear, [SHAPE], device=DEVICE, database=path, executor=Pretending(narrow))
    with expect_error("N010", kind=CkUnsupportedError):
        draw(benchmark, tmp_path / "picture.png")


def program(folder: Path) -> str:
    path = folder / "program_for_tune.py"
    path.write_text(
        "import cklang as ck\n"
        'M, N, K = ck.dims("M N K")\n\n\n'
        "@ck.op\n"
        "def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:\n"
        "    return x @ w.T\n"
    )
    return f"{path}:linear"


@pytest.mark.usefixtures("compiler")
def test_a_worker_measures_and_a_dead_one_is_replaced() -> None:
    (task,) = tasks_of(linear, SHAPE)
    key: GemmKey = select(task.problem, arch="gfx942").key
    with Worker({"CKLANG_DEVICE": DEVICE}, 300.0) as worker:
        first = worker.measure(task, key)
        assert first.status is Status.RIGHT
        assert first.cost is not None
        assert first.unit == CLOCKED
        assert first.counters["predicted_us"] > 0
        assert first.counters["mfma"] > 0
        assert first.counters["error_ratio"] <= 1
        process = worker._process
        assert process is not None
        process.kill()
        process.wait()
        dead = worker.measure(task, key)
        assert dead.status is Status.CRASHED
        assert "signal 9" in dead.note
        again = worker.measure(task, key)
        assert again.cost == first.cost
        assert again.counters["mfma"] == first.counters["mfma"]
        worker._limit = 0.0
        assert worker.measure(task, key).status is Status.SLOW
    elsewhere = GemmKey(key.signature, key.algorithm, "gfx90a")
    with Worker({"CKLANG_DEVICE": "emu:nothing"}, 300.0) as worker:
        refused = worker.measure(task, elsewhere)
    assert refused.status is Status.FAILED
    assert refused.note.startswith("CK-")


@pytest.mark.usefixtures("emulator")
def test_a_worker_that_fails_by_itself_is_no_crash_of_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (task,) = tasks_of(linear, SHAPE)
    key: GemmKey = select(task.problem, arch="gfx942").key
    with Worker({"CKLANG_DEVICE": DEVICE}, 300.0) as worker:
        with monkeypatch.context() as patch:
            patch.setattr(TuningTask, "to_json", lambda _: 7)
            with pytest.raises(CkInternalError, match="TypeError") as raised:
                worker.measure(task, key)
        assert raised.value.code == "N013"
        assert any("tune/task.py" in note for note in raised.value.notes)
        monkeypatch.setattr("cklang.tune.worker._PROGRAM", "import no_such_module # %d")
        with pytest.raises(CkInternalError, match="exit status 1: ModuleNotFoundError"):
            worker.measure(task, key)


@pytest.mark.usefixtures("compiler")
def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    lines = Path(program(tmp_path).partition(":")[0]).read_text().splitlines()
    call = f"ck.autotune(linear, [{SHAPE}], limit=1, device={DEVICE!r}, database='t.sqlite')"
    script = tmp_path / "unguarded.py"
    script.write_text("\n".join([*lines, f"print({call})"]))
    run_python(script, cwd=tmp_path)
    with Database(tmp_path / "t.sqlite") as database:
        (stored,) = database.export()["measurements"]
    assert stored["measurement"]["status"] == "right"


@pytest.mark.usefixtures("compiler")
def test_a_cluster_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import distributed

    monkeypatch.delattr("cklang.tune.worker.Worker.measure")
    words = [program(tmp_path), "M=70", "N=40", "K=33", "--device", DEVICE, "--limit", "1"]
    words += ["--database", str(tmp_path / "t.sqlite")]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        assert main(["tune", *words, "--scheduler", address]) == 0
        assert "(1 new)" in capsys.readouterr().out
        assert main(["bench", *words, "--scheduler", address]) == 0
    assert "oracle against heuristic" in capsys.readouterr().out
    with Database(tmp_path / "t.sqlite") as database:
        (stored,) = database.export()["measurements"]
    assert stored["measurement"]["status"] == "right"


@pytest.mark.usefixtures("compiler")
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, base = program(tmp_path), str(tmp_path / "t.sqlite")
    problems = tmp_path / "problems.csv"
    problems.write_text("M, N\n70,40\n72,40\n")
    words = [name, "K=33", "--problems", str(problems), "--device", DEVICE, "--database", base]
    assert main(["tune", *words, "--limit", "1"]) == 0
    assert capsys.readouterr().out.count("(1 new)") == 2
    exported = str(tmp_path / "e.json")
    assert main(["tune", "--database", base, "--export", exported]) == 0
    assert "2 measurements" in capsys.readouterr().out
    other = str(tmp_path / "other.sqlite")
    assert main(["tune", "--database", other, "--import", exported]) == 0
    assert "2 measurements added" in capsys.readouterr().out
    assert main(["tune", "--database", other, "--merge", base]) == 0
    assert "0 measurements added" in capsys.readouterr().out
    table = tmp_path / "t.csv"
    assert main(["bench", *words, "--limit", "1", "--csv", str(table)]) == 0
    assert "oracle against heuristic on emulated gfx942" in capsys.readouterr().out
    assert len(table.read_text().splitlines()) == 3
    assert main(["tune"]) == 1
    problems.write_text("M,N\n70\n")
    assert main(["tune", *words]) == 1
    assert "line 2" in capsys.readouterr().err
