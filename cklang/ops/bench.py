# SPDX-License-Identifier: MIT
"""``ck.bench``: how long calls of an op take, with rates and the share of the roofline.

On a GPU, HIP events time launches. On an emulated one nothing runs as fast as on a GPU, so the time
is that of the clock (``docs/clock.md``), which is the same each time, and the result says so.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.device.device import Device, open_device
from cklang.device.device_array import to_device
from cklang.display import ShownAsText
from cklang.errors import error
from cklang.forks import cached_property
from cklang.ops.predict import predict
from cklang.runtime.op import Op
from cklang.toolchain.progress import Wait

CLOCK = "clock"
"""The time is the clock's: no GPU ran."""
EVENTS = "HIP events"
"""The time is that of launches between two events."""
_QUANTILES = (10, 50, 90, 99)
_MILLI = 1e3


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """The times of one call."""

    op: str
    call: str
    """Its arguments, as people write them."""
    device: str
    source: str
    """``CLOCK`` or ``EVENTS``."""
    samples: tuple[float, ...]
    """µs of one call: the mean of each round, of each iteration with cold caches."""
    flops: float | None
    """Floating-point operations of a call; None if nobody counted them."""
    bytes: int
    """Bytes of the arguments that kernels read and of the results, each counted once."""
    peak_flops: float | None
    """A second, of the units that the kernels use."""
    peak_bytes: float
    """A second, of the GPU's memory."""
    error: float | None
    """Median relative error of the clock on the GPU; None if unknown, or if a GPU ran."""

    @cached_property
    def mean(self) -> float:
        """µs."""
        return float(np.mean(self.samples))

    @cached_property
    def median(self) -> float:
        """µs."""
        return float(np.median(self.samples))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation in µs."""
        return float(np.std(self.samples))

    def percentile(self, share: float) -> float:
        """Return the µs that ``share`` per cent of the samples do not exceed."""
        return float(np.percentile(self.samples, share))

    @property
    def tflops(self) -> float | None:
        """10¹² operations a second, by the median."""
        return None if self.flops is None else self.flops / self.median / 1e6

    @property
    def gbps(self) -> float:
        """10⁹ bytes a second, by the median."""
        return self.bytes / self.median / 1e3

    @property
    def roofline_share(self) -> float:
        """The least time that units and memory allow, over the median."""
        seconds = self.bytes / self.peak_bytes
        if self.flops and self.peak_flops:
            seconds = max(seconds, self.flops / self.peak_flops)
        return seconds * 1e6 / self.median

    def record(self) -> dict[str, Any]:
        """Return the row as JSON's types."""
        return {
            "op": self.op,
            "call": self.call,
            "device": self.device,
            "source": self.source,
            "samples": len(self.samples),
            "mean_us": self.mean,
            "deviation_us": self.deviation,
            "min_us": min(self.samples),
            **{f"p{share}_us": self.percentile(share) for share in _QUANTILES},
            "max_us": max(self.samples),
            "flops": self.flops,
            "bytes": self.bytes,
            "tflops": self.tflops,
            "gbps": self.gbps,
            "roofline_share": self.roofline_share,
            "clock_error": self.error,
        }

    def __str__(self) -> str:
        rate = "" if self.tflops is None else f"{self.tflops:.4g} TFLOP/s, "
        return (
            f"{self.op}({self.call}) on {self.device}: median {self.median:.4g} µs by the "
            f"{self.source}, {rate}{self.gbps:.4g} GB/s, {self.roofline_share:.1%} of the roofline"
        )


@dataclass(frozen=True, slots=True)
class Benchmarks(ShownAsText):
    """The times of several calls."""

    rows: tuple[BenchRow, ...]

    def csv(self) -> str:
        """Return the rows as comma-separated text with a line of names."""
        text = io.StringIO()
        records = [row.record() for row in self.rows]
        table = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(records)
        return text.getvalue()

    def json(self) -> str:
        """Return the rows as JSON text."""
        return json.dumps([row.record() for row in self.rows], indent=1, ensure_ascii=False) + "\n"

    def markdown(self) -> str:
        """Return the rows as a table of Markdown."""
        head = ("call", "time by", "median µs", "mean µs", "σ µs", "TFLOP/s", "GB/s", "roofline")
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in self.rows:
            cells = (
                f"{row.op}({row.call})",
                row.source,
                *(f"{value:.4g}" for value in (row.median, row.mean, row.deviation)),
                "" if row.tflops is None else f"{row.tflops:.4g}",
                f"{row.gbps:.4g}",
                f"{row.roofline_share:.1%}",
            )
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def bench(
    op: Op,
    *args: Any,
    device: str | None = None,
    warmup: int = 3,
    rounds: int = 5,
    iterations: int = 20,
    rotate: int = 1,
    cold: bool = False,
    flops: float | None = None,
    **kwargs: Any,
) -> BenchRow:
    """Time calls of an op.

    Args:
        op: What is called.
        *args: Its arguments. Arrays in host memory are copied to the device first; they are not
            part of the time.
        device: As in a call. On an emulated one the clock says how long a call takes: it is called
            once, a few workgroups of each kernel run, and the next five arguments do nothing.
        warmup: Calls before the first one that counts.
        rounds: How often the calls are timed.
        iterations: Calls of a round, right after each other; a round is one sample, their mean.
        rotate: Copies of the arguments that calls take in turn, so that they do not find their
            operands in the caches.
        cold: Whether the caches are overwritten before each call. Each call is a sample then.
        flops: Floating-point operations of a call, if they are known; on an emulated device they
            are those that the kernels execute.
        **kwargs: Further arguments of the op.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
        >>> row = ck.bench(linear, x, w, device="emu:gfx942")  # doctest: +SKIP
        >>> row.source, row.bytes, row.flops  # doctest: +SKIP
        ('clock', 360448, ...)

    Raises:
        CkValueError: A132, a number of calls or copies is below 1.
        CkUnsupportedError: K050, the clock has no constants for the emulated GPU.
        CkError: As the call itself.
    """
    numbers = {"rounds": rounds, "iterations": iterations, "rotate": rotate}
    for name, value in numbers.items():
        if value < 1:
            raise error("A132", name=name, got=value, bound="1 or more")
    if warmup < 0:
        raise error("A132", name="warmup", got=warmup, bound="0 or more")
    opened = open_device(device)
    if opened.emulated:
        return _by_clock(op, args, kwargs, opened, flops, cold=cold)
    calls = _calls(op, args, kwargs, opened, rotate)
    schedule = Schedule(warmup=warmup, rounds=rounds, iterations=iterations, cold=cold)
    samples = event_samples(opened, calls, schedule)
    peak = opened.spec.memory_bytes_per_second
    summary = op.summary(*args, device=opened.name, **kwargs)
    return BenchRow(
        op=op.program.name,
        call=_call_text(args, kwargs),
        device=str(opened),
        source=EVENTS,
        samples=samples,
        flops=flops,
        bytes=summary.least_bytes,
        peak_flops=None,
        peak_bytes=peak,
        error=None,
    )


def bench_calls(op: Op, calls: Sequence[Mapping[str, Any]], **settings: Any) -> Benchmarks:
    """Time several calls, given by the names of their arguments; settings are those of `bench`."""
    with Wait(f"timing calls of @{op.program.name}", len(calls)) as progress:
        named = progress.over(calls, lambda call: _call_text((), call))
        return Benchmarks(tuple(bench(op, **call, **settings) for call in named))


def _by_clock(
    op: Op,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: Device,
    flops: float | None,
    *,
    cold: bool,
) -> BenchRow:
    caches = "cold" if cold else None
    predicted = predict(op, *args, device=device.name, caches=caches, **kwargs)
    executed = sum(kernel.flops for kernel in predicted.kernels)
    return BenchRow(
        op=op.program.name,
        call=_call_text(args, kwargs),
        device=str(device),
        source=CLOCK,
        samples=(predicted.us,),
        flops=executed if flops is None else flops,
        bytes=op.summary(*args, device=device.name, **kwargs).least_bytes,
        peak_flops=max(kernel.peak_flops for kernel in predicted.kernels),
        peak_bytes=device.spec.memory_bytes_per_second,
        error=predicted.error,
    )


def _call_text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    texts = [_argument_text(value) for value in args]
    return ", ".join([*texts, *(f"{name}={_argument_text(v)}" for name, v in kwargs.items())])


def _argument_text(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value)
    dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _calls(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], device: Device, rotate: int
) -> list[Callable[[], Any]]:
    """Return calls on arrays of the device, each with a copy of the arguments."""

    def near(value: Any) -> Any:
        return to_device(value, device=device.name) if isinstance(value, np.ndarray) else value

    def call() -> Callable[[], Any]:
        positional = [near(value) for value in args]
        named = {name: near(value) for name, value in kwargs.items()}
        return lambda: op(*positional, device=device.name, **named)

    return [call() for _ in range(rotate)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How often calls are made."""

    warmup: int
    rounds: int
    iterations: int
    cold: bool


def event_samples(
    device: Device, calls: Sequence[Callable[[], Any]], schedule: Schedule
) -> tuple[float, ...]:
    """Return the µs of a call between two events: of each round, or of each cold call."""
    for number in range(schedule.warmup):
        calls[number % len(calls)]()
    device.synchronize()
    samples = []
    with _cache_eraser(device, schedule.cold) as erase:
        for _ in range(schedule.rounds):
            if schedule.cold:
                for number in range(schedule.iterations):
                    erase()
                    samples.append(_between(device, [calls[number % len(calls)]]))
            else:
                batch = [calls[number % len(calls)] for number in range(schedule.iterations)]
                samples.append(_between(device, batch))
    return tuple(samples)


def _between(device: Device, calls: Sequence[Callable[[], Any]]) -> float:
    """Return the mean µs of calls between two events."""
    begin, end = device.timer(), device.timer()
    device.record(begin, None)
    results = [call() for call in calls]
    device.record(end, None)
    us = device.elapsed(begin, end) * _MILLI / len(calls)
    del results  # freed after the last event, not between two
    return us


@contextmanager
def _cache_eraser(device: Device, cold: bool) -> Iterator[Callable[[], None]]:
    """Give a function that overwrites more memory than the caches hold."""
    if not cold:
        yield lambda: None
        return
    size = 2 * max(device.spec.last_level_cache_bytes, device.spec.l2_bytes)
    memory = device.allocate(size)
    try:
        yield lambda: device.clear(memory, size, None)
    finally:
        device.synchronize()
        device.free(memory)
