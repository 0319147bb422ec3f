# SPDX-License-Identifier: MIT
"""Host time of a repeated call: everything but the emulated kernels, in microseconds.

``python benchmarks/host_overhead.py [rounds]`` prints two tables. The first has NumPy arrays and
torch tensors, an op of one kernel and one of three, with and without ``out=``, and what the parts
of a call take. The second has arrays in device memory: how long the host takes to launch a call,
and to replay it as a graph (``op.captured``).
Medians of the rounds, and from the least to the greatest. Machines differ between hours by more
than most changes: compare two versions by runs in turn.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from programs import arguments, half, linear_gelu

import cklang as ck

SHAPE = (64, 64, 32)
CALLS = 300
ROUNDS = 7
M, N, K, P, Q = ck.dims("M N K P Q")


@ck.op
def three(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[P, N], u: ck.f16[Q, P]) -> ck.f16[M, Q]:
    """Three products, two of whose results only the call has."""
    hidden = ((x @ w.T).to(ck.f16) @ v.T).to(ck.f16)
    return hidden @ u.T


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way to call an op again."""

    library: str
    kernels: int
    out: bool

    def __str__(self) -> str:
        return f"{self.library:5} | {self.kernels} | {'out=' if self.out else 'new'}"

    @property
    def op(self) -> Any:
        """What is called."""
        return linear_gelu if self.kernels == 1 else three

    def values(self) -> tuple[Sequence[Any], Any]:
        """Return the arguments, and the array for the result or None."""
        rng = np.random.default_rng(0)
        m, n, k = SHAPE
        args = arguments(m, n, k) if self.kernels == 1 else [half(rng, m, k), half(rng, n, k)]
        if self.kernels == 3:
            args = [*args, half(rng, m, n), half(rng, n, m)]
        out: Any = np.empty((m, n), np.float16)
        if self.library == "torch":
            import torch

            args, out = [torch.from_numpy(each) for each in args], torch.from_numpy(out)
        return args, out if self.out else None


CASES = tuple(
    Case(library=library, kernels=kernels, out=out)
    for library, kernels, out in product(("NumPy", "torch"), (1, 3), (True, False))
)


def call_times(op: Any, args: Sequence[Any], out: Any, calls: int) -> list[float]:
    """Return the host time of each of some calls, in microseconds.

    The time that the engine reports for the kernels is taken out.
    """
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        op(*args, out=out)
        spent = time.perf_counter_ns() - start
        times.append((spent - (op.last.engine_ns or 0)) / 1000)
    return times


def measure(case: Case, rounds: int = ROUNDS, calls: int = CALLS) -> list[float]:
    """Return the median host time of a call in each round, in microseconds."""
    args, out = case.values()
    call_times(case.op, args, out, 20)
    return [statistics.median(call_times(case.op, args, out, calls)) for _ in range(rounds)]


def parts(case: Case, rounds: int = ROUNDS, calls: int = CALLS) -> dict[str, list[float]]:
    """Return what the parts of a call take: the median of each round, in microseconds.

    A call is made step by step, as an op makes it, with the kernels between the calls: caches are
    as cold for each part as they are in a call.
    """
    args, out = case.values()
    case.op(*args, out=out)
    rows = [[_taken(case.op, args, out) for _ in range(calls)] for _ in range(rounds)]
    names = ("key", "memo", "result", "addresses", "HIP calls")
    return {
        name: [statistics.median(row[place] for row in each) for each in rows]
        for place, name in enumerate(names)
    }


def _taken(op: Any, args: Sequence[Any], out: Any) -> list[float]:
    from cklang.runtime import call_key

    # The first reading of the clock after a kernel takes longer than the others.
    time.perf_counter_ns()
    at = [time.perf_counter_ns()]
    _, about = op._about(None, None)
    call = call_key.of_call(op._parameters, op._values(args, {}), out, about)
    at.append(time.perf_counter_ns())
    ready = op._memo.get(call.key)
    at.append(time.perf_counter_ns())
    results = [make() for make in ready.result_makers] if out is None else []
    call.addresses += map(call_key.address, results)
    at.append(time.perf_counter_ns())
    plan = ready.plan
    own = [0] * len(plan.workspace.offsets)
    for step in plan.steps:
        step.put([*call.addresses, *own])
    at.append(time.perf_counter_ns())
    plan.run(call.addresses, None)
    at.append(time.perf_counter_ns())
    key, memo, allocation, words, run = (b - a for a, b in pairwise(at))
    counters = plan.counters(None)
    engine = counters.engine_ns if counters else 0
    return [each / 1000 for each in (key, memo, allocation, words, run - words - engine)]


def launch_times(op: Any, rounds: int, calls: int = CALLS) -> dict[str, list[float]]:
    """Return how long the host takes to launch a call on device memory, and to replay it.

    The median of each round, in microseconds. Each launch is waited for before the next.
    """
    kernels = 1 if op is linear_gelu else 3
    args, out = Case(library="NumPy", kernels=kernels, out=True).values()
    near, result = [ck.to_device(each) for each in args], ck.to_device(out)
    replay = op.captured(*near, out=result)
    return {
        "call, µs": [_issued(lambda: op(*near, out=result), calls) for _ in range(rounds)],
        "replay, µs": [_issued(replay, calls) for _ in range(rounds)],
    }


def _issued(launch: Callable[[], Any], calls: int) -> float:
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        launch()
        times.append((time.perf_counter_ns() - start) / 1000)
        ck.synchronize()
    return statistics.median(times)


def shown(microseconds: Sequence[float]) -> str:
    """Return the median and the range."""
    least, most = min(microseconds), max(microseconds)
    return f"{statistics.median(microseconds):5.1f} ({least:.1f}-{most:.1f})"


def lines(rounds: int, measured: Callable[[Case, int], dict[str, list[float]]]) -> Iterator[str]:
    """Yield a table, in Markdown."""
    for index, case in enumerate(CASES):
        columns = measured(case, rounds)
        if not index:
            yield f"| arguments | kernels | result | {' | '.join(columns)} |"
            yield f"|---|---|---|{'---|' * len(columns)}"
        yield f"| {case} | {' | '.join(map(shown, columns.values()))} |"


if __name__ == "__main__":
    round_count = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    for line in lines(
        round_count, lambda case, n: {"one call, µs": measure(case, n), **parts(case, n)}
    ):
        print(line)
    print()
    for op in (linear_gelu, three):
        columns = launch_times(op, round_count)
        if op is linear_gelu:
            print(f"| op | {' | '.join(columns)} |\n|---|---|---|")
        print(f"| {op.program.name} | {' | '.join(map(shown, columns.values()))} |")
