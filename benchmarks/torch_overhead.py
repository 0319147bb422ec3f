# SPDX-License-Identifier: MIT
"""Host time of ops in torch, in microseconds: eager, compiled, and while torch traces.

``python benchmarks/torch_overhead.py [rounds] [backend]`` prints a table. Calls are of a product of
64x64x32, without the time that the emulator's engine reports for its kernel; those "without a
launch" have none, as their result has no rows. "A custom op without cklang" computes nothing: its
times, compiled and not, are what torch takes, and so is "an empty function, compiled". Fake calls
launch nothing: an op of one product, one of four parameters, and a block of Llama of eleven, with
sizes that are numbers and with symbolic ones. The last row is the first call of a Llama block
through ``torch.compile(backend="cklang")`` less the second: torch's tracing, the backend, and
kernels, which are read from the cache if the script ran before. Another model was compiled before
it, so that torch is imported.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from programs import linear, linear_gelu
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from cklang.runtime.op import Op
from cklang.torch import custom_op_of
from cklang.torch.fake import fake_results
from tests.support.torch_models import MODELS

LIBRARIES: list[Any] = []
"""Registrations last as long as these."""
CALLS = 300
ROUNDS = 7
ASKED = {
    "eager call": 15.0,
    "node of a graph, above the bound plan": 10.0,
    "fake call": 200.0,
    "compilation": 5e6,
}
"""The limits of these times, in microseconds."""


def spent(
    run: Callable[[], object],
    op: Op | None,
    calls: int = CALLS,
    before: Callable[[], object] = lambda: None,
) -> float:
    """Return the median host time of a call, without that of kernels of ``op``.

    Args:
        run: The call.
        op: The op whose kernels it launches.
        calls: How many.
        before: Is called before each, and not timed.
    """
    times = []
    for _ in range(calls):
        before()
        start = time.perf_counter_ns()
        run()
        taken = time.perf_counter_ns() - start
        engine = 0 if op is None or op.last is None else op.last.engine_ns or 0
        times.append((taken - engine) / 1000)
    return statistics.median(times)


def rounds_of(
    run: Callable[[], object],
    op: Op | None,
    rounds: int,
    before: Callable[[], object] = lambda: None,
) -> list[float]:
    """Return the median of each round, after calls that fill every memo."""
    spent(run, op, 20)
    return [spent(run, op, before=before) for _ in range(rounds)]


def calls_of(op: Op, backend: str) -> dict[str, Callable[[], object]]:
    """Return the ways to call an op with two tensors, by what they are called."""
    x, w = torch.randn(64, 32).half(), torch.randn(64, 32).half()
    custom = custom_op_of(op)
    compiled = torch.compile(lambda a, b: op(a, b), backend=backend, fullgraph=True)
    graph = torch.fx.symbolic_trace(lambda a, b: custom(a, b))
    return {
        "bound plan": lambda: op._called((x, w), None, None),
        "eager call": lambda: op(x, w),
        "custom op": lambda: custom(x, w),
        "node of a graph": lambda: graph.forward(x, w),
        "compiled": lambda: compiled(x, w),
    }


def without_launch(op: Op) -> dict[str, Callable[[], object]]:
    """Return ways to call an op whose result has no rows: all that the host does but launch.

    After an emulated kernel the caches of the CPU are cold, which a GPU's kernel does not do.
    """
    x, w = torch.empty(0, 32).half(), torch.randn(64, 32).half()
    plain = plain_custom_op()

    def nothing(graph: Any, examples: Any) -> Callable[..., Any]:
        del graph, examples
        return lambda *_: (w,)

    unguarded = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
    compiled: dict[str, tuple[Any, ...]] = {
        "an empty function, compiled": (lambda a, b: a @ b.T, nothing),
        "an empty function, compiled without guards": (lambda a, b: a @ b.T, nothing, unguarded),
        "a custom op that computes nothing, compiled (aot_eager)": (plain, "aot_eager"),
        "compiled (aot_eager)": (op, "aot_eager"),
        "compiled (inductor)": (op, "inductor"),
        "compiled (cklang)": (op, "cklang"),
    }

    def bind(
        function: Callable[..., Any], backend: Any, options: dict[str, Any] | None = None
    ) -> Callable[[], object]:
        run = torch.compile(
            lambda a, b: function(a, b), backend=backend, fullgraph=True, options=options
        )
        return lambda: run(x, w)

    ways: dict[str, Callable[[], object]] = {
        "bound plan": lambda: op._called((x, w), None, None),
        "eager call": lambda: op(x, w),
    }
    return ways | {name: bind(*pair) for name, pair in compiled.items()}


def fakes_of(symbolic: bool) -> dict[str, Callable[[], object]]:
    """Return fake calls by the ops that they are of."""
    mode = FakeTensorMode(shape_env=ShapeEnv() if symbolic else None)

    def fake(*shape: int, dtype: torch.dtype = torch.float16) -> Any:
        return mode.from_tensor(torch.empty(shape, dtype=dtype), static_shapes=not symbolic)

    block, values = llama_block(fake)
    x, w, bias, res = fake(64, 32), fake(48, 32), fake(48), fake(64, 48)
    pairs: dict[str, tuple[Op, tuple[Any, ...]]] = {
        "linear": (linear, (x, w)),
        "linear_gelu": (linear_gelu, (x, w, bias, res)),
        "llama_block": (block, values),
    }

    def call(op: Op, arguments: tuple[Any, ...]) -> object:
        with mode:
            return custom_op_of(op)(*arguments)

    def bind(op: Op, arguments: tuple[Any, ...]) -> Callable[[], object]:
        return lambda: call(op, arguments)

    def product() -> object:
        with mode:
            return torch.mm(x, w.T)

    def own() -> object:
        with mode:
            return fake_results(linear, (x, w))

    custom = plain_custom_op()

    def plain() -> object:
        with mode:
            return custom(x, w)

    others = {"torch's own": product, "a custom op without cklang": plain}
    ours = {"linear, the part that is cklang's": own}
    return others | {name: bind(*pair) for name, pair in pairs.items()} | ours


@cache
def plain_custom_op() -> Any:
    """Return a custom op registered as torch's documentation says, which computes nothing."""
    library: Any = torch.library.Library("benchmark", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("linear(Tensor x, Tensor w, *, str? device=None) -> Tensor")

    def empty(x: torch.Tensor, w: torch.Tensor, device: str | None = None) -> torch.Tensor:
        return x.new_empty((x.shape[0], w.shape[0]))

    torch.library.register_fake("benchmark::linear", empty, lib=library)
    library.impl("linear", empty, "CPU")
    LIBRARIES.append(library)
    return torch.ops.benchmark.linear.default


def llama_block(fake: Callable[..., Any]) -> tuple[Op, tuple[Any, ...]]:
    """Return the op of the example, and fake tensors for it."""
    path = Path(__file__).parents[1] / "examples" / "15_llama_block.py"
    spec = importlib.util.spec_from_file_location("llama_block", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    b, s, e, h, kv, d, f = 2, 48, 256, 8, 3, 32, 512
    gain, angles = fake(e, dtype=torch.float32), fake(s, d // 2, dtype=torch.float32)
    weights = fake(f, e), fake(f, e), fake(e, f)
    arguments = (fake(b, s, e), gain, fake(h + 2 * kv, d, e), angles, angles, fake(e, h, d), gain)
    return module.llama_block, (*arguments, *weights, kv)


def backend_compilation() -> float:
    """Return the time in which the backend compiles a Llama block, in microseconds."""
    times = []
    for name in ("mlp", "llama"):
        module, args = MODELS[name].call(torch.float16)
        options: dict[str, Any] = {"device": "emu:gfx942"}
        run = torch.compile(module.eval(), backend="cklang", options=options, fullgraph=True)
        ends = [time.perf_counter_ns()]
        for _ in range(2):
            run(*args)
            ends.append(time.perf_counter_ns())
        first, second = ends[1] - ends[0], ends[2] - ends[1]
        times.append((first - second) / 1000)
    return times[-1]


def shown(times: list[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(times):7.1f} ({min(times):.1f}-{max(times):.1f})"


def lines(rounds: int, backend: str) -> Iterator[str]:
    """Yield a table, in Markdown."""
    yield "| what | µs | asked |"
    yield "|---|---|---|"
    ways = calls_of(linear, backend)
    times = {name: rounds_of(run, linear, rounds) for name, run in ways.items()}
    # An emulated kernel leaves the caches of the CPU cold: it runs before these calls too.
    plain, (x, w) = plain_custom_op(), (torch.ones(64, 32).half(), torch.ones(64, 32).half())
    compiled = torch.compile(lambda a, b: plain(a, b), backend=backend, fullgraph=True)
    for name, run in (("", lambda: plain(x, w)), (", compiled", lambda: compiled(x, w))):
        each = rounds_of(run, None, rounds, before=ways["bound plan"])
        times[f"a custom op without cklang{name}"] = each
    bound = statistics.median(times["bound plan"])
    for name in ("node of a graph", "compiled"):
        times[f"{name}, above the bound plan"] = [each - bound for each in times[name]]
    for name, each in times.items():
        yield f"| {name} | {shown(each)} | {ASKED.get(name, '')} |"
    still = without_launch(linear)
    for name, run in still.items():
        each = rounds_of(run, None, rounds)
        yield f"| without a launch: {name} | {shown(each)} | |"
    for symbolic in (False, True):
        for name, run in fakes_of(symbolic).items():
            words = "symbolic sizes" if symbolic else "numbers"
            each = rounds_of(run, None, rounds)
            yield f"| fake call of {name}, {words} | {shown(each)} | {ASKED['fake call']} |"
    taken = backend_compilation()
    yield f"| a Llama block compiled by the backend | {taken:.0f} | {ASKED['compilation']:.0f} |"


if __name__ == "__main__":
    round_count = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with torch.no_grad():
        for line in lines(round_count, sys.argv[2] if len(sys.argv) > 2 else "aot_eager"):
            print(line)
