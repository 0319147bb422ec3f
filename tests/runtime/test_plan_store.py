# SPDX-License-Identifier: MIT
"""Launches of calls kept on disk: the same as planned, looked for only where they may be used."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import knobs, places
from cklang.build.builder import shared_builder
from cklang.codec import canonical_digest
from cklang.runtime import plan_store, planned_op, planner
from cklang.runtime.op import Op
from cklang.runtime.results import targets_of
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import drawn
from tests.support.errors import expect_error
from tests.support.kept_plans import as_in_a_new_process, kept_plans, run_kept
from tests.support.processes import run_python
from tests.support.typed import last

B, M, N, K = ck.dims("B M N K")
GPU, OLD = "emu:gfx942", "emu:gfx90a"
PLAIN = narrow(0, warp_tile=DEEP)


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def eighths(x: ck.fp8[M, K], w: ck.fp8[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def mean_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> tuple[ck.f16[M, K], ck.f32[M]]:
    return ck.rms_norm(x, gain), ck.sum(x, axis=-1) / K


@ck.op
def two_products(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[K, N]) -> ck.f16[M, K]:
    hidden = (x @ w.T).to(ck.f16)
    return hidden @ v.T


@ck.op
def updated(table: ck.inout[ck.f16[M, K]], rows: ck.i32[B], x: ck.f16[B, K]) -> ck.f16[M, K]:
    return ck.scatter(table, rows, x)


@ck.op
def picked(table: ck.f16[M, K], rows: ck.i32[B]) -> ck.f16[B, K]:
    return ck.take(table, rows) * 2.0


@ck.op
def twice_picked(
    table: ck.f16[M, K], rows: ck.i32[B], others: ck.i32[B]
) -> tuple[ck.f16[B, K], ck.f32[B]]:
    return ck.take(table, rows) * 2.0, ck.sum(ck.take(table, others), axis=-1)


SIZES = {"B": 5, "M": 70, "N": 64, "K": 64}


def values(op: Op, **sizes: int) -> list[Any]:
    return drawn(op, {**SIZES, **sizes})


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [linear, mean_norm, two_products], ids=lambda op: op.program.name)
def test_launches_that_are_found_do_what_planned_ones_do(op: Op) -> None:
    args = values(op)
    want = op(*args, device=GPU)
    got, plans = run_kept(op, args, GPU)
    assert plans.kept == 1
    assert len(plans.read) == 1
    for one, other in zip(results(got), results(want), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.usefixtures("compiler")
def test_a_found_call_plans_nothing_and_says_the_same_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = values(mean_norm)
    with kept_plans():
        planned = as_in_a_new_process(mean_norm)
        planned(*args, device=GPU)

        def refuse(*args: Any) -> Any:
            pytest.fail("it plans")

        for module, name in ((planned_op, "plan_of"), (planner, "find"), (planner, "plan_of")):
            monkeypatch.setattr(module, name, refuse)
        again = as_in_a_new_process(mean_norm)
        again(*args, device=GPU)
        for _ in range(3):  # the third call makes one sequence of the launches
            again(*args, device=GPU)
        monkeypatch.undo()
        described = [[str(each) for each in last(op).launches] for op in (again, planned)]
        assert described[0] == described[1]
        pairs = zip(last(again).launches, last(planned).launches, strict=True)
        assert all(one.problem == other.problem for one, other in pairs)


@pytest.mark.usefixtures("compiler")
def test_messages_name_the_lines_of_the_user() -> None:
    op = mean_norm
    args = values(op)

    @ck.op
    def mean_norm_elsewhere(x: ck.f16[M, K], gain: ck.f16[K]) -> tuple[ck.f16[M, K], ck.f32[M]]:
        return ck.rms_norm(x, gain), ck.sum(x, axis=-1) / K

    mean_norm_elsewhere(*args, device=GPU)
    with kept_plans() as plans:
        as_in_a_new_process(op)(*args, device=GPU)
        noted = dict(places._known)
        places._known.clear()
        as_in_a_new_process(op)(*args, device=GPU)
        assert len(plans.read) == 1
        fills = [launch.places for launch in plans.read[0].plan.launches]
    written = Path(__file__).read_text().splitlines()
    line = 1 + next(n for n, text in enumerate(written) if "axis=-1) / K" in text)
    assert any(place == f"{__file__}:{line}" for _, lines in fills for place in lines)
    assert all(places.latest(name) == lines for name, lines in fills)
    places._known.update(noted)


def address(op: Op, args: list[Any], out: Any = None, device: str = GPU) -> Any:
    binding = op._bound(args, {})
    outs = None if out is None else targets_of(binding, out)
    function = op.program.specialise(binding.dtypes, binding.consts, binding.dims)
    return plan_store.address_of(function, binding, outs, device, op.request)


def test_what_a_plan_depends_on_is_in_its_address() -> None:
    args = values(linear)
    odd = np.empty(args[0].size + 1, np.float16)[1:].reshape(args[0].shape)
    out = np.empty((70, 64), np.float16)
    with kept_plans():
        first = address(linear, args)
        others = [
            address(two_products, values(two_products)),
            address(linear, values(linear, M=71)),
            address(linear, [odd, args[1]]),
            address(linear, [np.asfortranarray(args[0]), args[1]]),
            address(linear, args, device="emu:gfx950"),
            address(linear, args, out),
            address(linear, args, np.empty((140, 64), np.float16)[::2]),
        ]
        with ck.using(preset="catalogue"):
            others.append(address(linear, args))
        assert first == address(linear, [args[0].copy(), args[1]])
        digests = {canonical_digest(each) for each in (first, *others)}
    assert len(digests) == len(others) + 1


@pytest.mark.usefixtures("compiler")
def test_who_asks_for_something_or_updates_arguments_is_planned_each_time() -> None:
    mine = ck.dispatch.Registry("mine")
    linear.declare(
        *values(linear), registry=mine, among=ck.dispatch.pattern(**asdict(PLAIN)), device=GPU
    )
    asking = [linear.using(PLAIN), linear.using(strategy="first_fit"), linear.using(registry=mine)]
    with kept_plans() as plans:
        for op in (*asking, updated):
            args = values(op)
            if op is updated:
                args[1] = np.arange(5, dtype=np.int32)
            for _ in range(2):
                as_in_a_new_process(op)(*args, device=GPU)
        assert plans.kept == 0
        assert not plans.read


@pytest.mark.usefixtures("compiler")
def test_indices_on_the_host_are_checked_whatever_ran_on_a_device() -> None:
    table, rows = np.ones((70, 64), np.float16), np.arange(5, dtype=np.int32)
    with kept_plans() as plans:
        near = [ck.to_device(each, device=GPU) for each in (table, rows)]
        as_in_a_new_process(picked)(*near, device=GPU)  # nothing checks a device's indices
        assert plans.kept == 1
        with expect_error("A056"):
            as_in_a_new_process(picked)(table, rows + 70, device=GPU)
        assert plans.kept == 1, "a call that is refused is not kept"


@pytest.mark.usefixtures("compiler")
def test_calls_of_a_kept_plan_check_their_indices() -> None:
    table, rows = np.ones((70, 64), np.float16), np.arange(5, dtype=np.int32)
    with kept_plans() as plans:
        planned = as_in_a_new_process(twice_picked)(table, rows, rows + 1, device=GPU)
        assert plans.kept == 1
        found = as_in_a_new_process(twice_picked)
        again = found(table, rows, rows + 1, device=GPU)
        assert all(map(np.array_equal, results(again), results(planned)))
        assert plans.read
        for op in (found, as_in_a_new_process(twice_picked)):
            for wrong in ((rows + 70, rows), (rows, rows - 1)):
                with expect_error("A056"):
                    op(table, *wrong, device=GPU)


@pytest.mark.usefixtures("compiler")
def test_a_plan_whose_kernel_is_gone_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    args = values(linear)
    with kept_plans() as plans:
        want = as_in_a_new_process(linear)(*args, device=GPU)
        monkeypatch.setattr(shared_builder(), "at", lambda address: None)
        got = as_in_a_new_process(linear)(*args, device=GPU)
        assert not plans.read
    assert np.array_equal(got, want)


@pytest.mark.usefixtures("compiler")
def test_a_damaged_plan_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    args = values(linear)
    with kept_plans() as plans:
        as_in_a_new_process(linear)(*args, device=GPU)
        store = shared_builder().store
        (entry,) = store.entries(plan_store._KIND)
        entry.file("plan.pickle").write_bytes(b"")
        as_in_a_new_process(linear)(*args, device=GPU)
        assert not plans.read


@pytest.mark.usefixtures("compiler")
def test_a_cache_that_cannot_be_written_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    args = values(linear)
    with kept_plans() as plans:
        store = shared_builder().store

        def full(*args: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(type(store), "get_or_build", full)
        as_in_a_new_process(linear)(*args, device=GPU)
        monkeypatch.undo()
        as_in_a_new_process(linear)(*args, device=GPU)
        assert not plans.read


def test_a_check_that_found_no_mistake_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, wide = ck.f16[70, 64], ck.f16[64, 64], ck.f16[71, 64]
    real = np.ones((70, 64), np.float16)

    def forbidden(*_: Any) -> Any:
        raise AssertionError("it is planned again")

    def ok(op: Op, *args: Any, device: str = GPU) -> bool:
        return as_in_a_new_process(op).check(*args, device=device).ok

    with kept_plans():
        assert ok(linear, x, w)
        assert ok(linear, wide, w), "other sizes are checked"
        monkeypatch.setattr(Op, "_planned", forbidden)
        assert ok(linear, x, w)
        for op, args, device in (
            (linear, (x, w), "emu:gfx950"),
            (linear, (real, w), GPU),
            (linear.using(PLAIN), (x, w), GPU),
            (linear, (x, ((64, 64), "f16", (1, 64))), GPU),
        ):
            with pytest.raises(AssertionError, match="planned again"):
                ok(op, *args, device=device)


def test_a_check_that_found_a_mistake_is_made_again() -> None:
    # No kernel of this GPU multiplies 8-bit floats.
    args = ck.fp8[70, 64], ck.fp8[64, 64]
    with kept_plans():
        reports = [as_in_a_new_process(eighths).check(*args, device=OLD) for _ in range(2)]
        assert [[each.code for each in report.mistakes] for report in reports] == [["K102"]] * 2


NEW_PROCESS = """
import sys
import numpy as np
import cklang as ck
M, N, K = ck.dims("M N K")

@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T

linear(np.ones((70, 64), np.float16), np.ones((64, 64), np.float16), device="emu:gfx942")
print(*sys.modules)
"""
PLANNING = (
    *("networkx", "jinja2", "rocm.bindings.hip", "subprocess", "shutil"),
    *("cklang.fusion.partition", "cklang.fusion.plan", "cklang.families.gemm.family"),
    *("cklang.families.protocol", "cklang.runtime.planner", "cklang.selection.select"),
    *("cklang.frontend.eager_attention", "cklang.emulator.engine.recording"),
)
"""What only planning, building and other ops need: imports are most of a new process."""


@pytest.mark.usefixtures("compiler")
def test_a_new_process_imports_nothing_that_plans(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(NEW_PROCESS))
    with knobs.scope(CKLANG_PLANS="1"):
        environment = knobs.tool_environment(CKLANG_PLANS="1", CKLANG_VERIFY="0")
    outputs = [run_python(script, env=environment).stdout.split() for _ in range(2)]
    assert "cklang.runtime.plan_store" in outputs[-1]
    assert set(PLANNING).isdisjoint(outputs[-1])
