# SPDX-License-Identifier: MIT
"""How long launches take on a GPU, by the clock, where a few workgroups of each are executed."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from cklang.arch import ArchSpec
from cklang.charts import Mark, timeline
from cklang.emulator.clock.constants import Overhead
from cklang.emulator.clock.kernel import LaunchTime, time_of
from cklang.emulator.clock.sampling import recorded_with
from cklang.emulator.clock.sequence import launch_details
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.profiler.model import launch_profile
from cklang.emulator.profiler.text import table as columns
from cklang.errors import error

_STALLS = 3
_PRODUCER = re.compile(rb"(?:\A|\0)(?:AMD )?(clang) version ([\d.]+)")
"""What clang writes into the strings of debug information (DWARF 5, DW_AT_producer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLaunch(LaunchTime):
    """How long one launch takes, and why."""

    us_under_load: float | None
    """At the clock that power leaves on the board, if many such launches follow each other; None
    where the power of its instructions is not known."""
    bound: str
    """What limits it: the busiest unit, or else what its waves wait for."""
    flops: float
    """Floating-point operations of all lanes."""
    peak_flops: float
    """A second, of the units that it uses."""
    compiler: str = ""
    """What compiled it, by its debug information: ``clang 22.1.8``. Another compiler's code takes
    another time: ROCm 7's is made from clang 20. Empty if the code object does not say."""

    def __str__(self) -> str:
        stalls = list(self.stall.items())[:_STALLS]
        words = ", ".join(f"{share:.0%} at {op}" for op, share in stalls)
        loaded = "" if self.us_under_load is None else f" ({self.us_under_load:.2f} µs under load)"
        return (
            f"{self.us:.2f} µs{loaded}  {self.kernel}: {self.workgroups} workgroups, "
            f"{self.resident} a compute unit at a time; bound by {self.bound}; "
            f"stalled {words or 'nowhere'}"
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of a call, as far as compute units decide it."""

    us: float
    """Time of all kernels together, without launch overhead, at the GPU's highest clock."""
    cycles: float
    error: float | None
    """Median relative error of the clock on kernels of these classes (products, others), held out:
    the mean over the kernels, by their time. None if no hardware measurement exists."""
    kernels: tuple[PredictedLaunch, ...]
    us_under_load: float | None = None
    """At the clock that power leaves on the board, if many such calls follow each other; None where
    the power of a kernel's instructions is not known."""
    overhead_us: float | None = None
    """What the call takes beside its kernels: ``call_us`` and, for each launch, ``launch_us`` of
    the board (``arch_specs/timing``); None where they are not known."""

    def __str__(self) -> str:
        error = "not known there" if self.error is None else f"{self.error:.0%} for such kernels"
        lines = [f"by the clock: {self.us:.2f} µs ({self.cycles:.0f} cycles; its error: {error})"]
        if self.us_under_load is not None:
            lines.append(f"  under load: {self.us_under_load:.2f} µs")
        if self.overhead_us is not None:
            lines.append(f"  launching takes {self.overhead_us:.1f} µs beside that")
        compilers = dict.fromkeys(kernel.compiler for kernel in self.kernels if kernel.compiler)
        if compilers:
            lines.append(f"  compiled by {', '.join(compilers)}")
        return "\n".join([*lines, *(f"  {kernel}" for kernel in self.kernels)])

    def table(self, name: str = "") -> str:
        """Return the launches as text, those of one kernel and grid that one thing bounds in a row.

        Args:
            name: A part of the names of the kernels that are asked for.
        """
        rows: dict[tuple[str, int, str], list[PredictedLaunch]] = {}
        for launch in self.kernels:
            if name in launch.kernel:
                bound = launch.bound.partition(" (")[0]
                rows.setdefault((launch.kernel, launch.workgroups, bound), []).append(launch)
        head = ("kernel", "workgroups", "launches", "µs a launch", "under load", "bound by")
        lines = columns(head, [_row(launches) for launches in rows.values()])
        if self.overhead_us is not None:
            lines.append(f"launching them takes {self.overhead_us:.1f} µs beside that")
        error = "not known" if self.error is None else f"{self.error:.0%}"
        return "\n".join([*lines, f"error of the clock on such kernels: {error}"])

    def timeline(self, kernel: int = 0) -> str:
        """Return what each wave of a kernel's first workgroup does, as an SVG picture.

        Args:
            kernel: The number of a kernel in :attr:`kernels`.
        """
        launch = self.kernels[kernel]
        lanes = [
            (f"wave {number}", [Mark(start=s.start, stop=s.stop, kind=s.kind) for s in spans])
            for number, spans in enumerate(launch.spans)
        ]
        return timeline(launch.kernel, lanes)

    def _repr_html_(self) -> str:
        charts = "".join(self.timeline(number) for number in range(len(self.kernels)))
        return f"{charts}<pre>{escape(str(self))}</pre>"


def predict(
    call: Callable[[], Any],
    operands: Iterable[Any] = (),
    *,
    board: str | None = None,
    caches: str | None = None,
    workgroups: int | None = None,
    spec: ArchSpec | None = None,
) -> Prediction:
    """Return how long the launches of a function take on a GPU.

    A few workgroups of each launch are executed, and no others, so what they compute is incomplete.
    The function may be called twice or more.

    Args:
        call: Launches kernels on emulated GPUs, with hip-python, Triton or ops, and waits for them.
        operands: Arrays whose ``nbytes`` together are the memory that each launch touches. Without,
            it is what its workgroups touch of each allocation.
        board: With the GPU, as :func:`cklang.predict` takes it.
        caches: What launches find in the caches: ``warm``, what another such launch leaves there;
            ``cold``, nothing; ``as in the call``, what the launches before leave, where the call is
            repeated. By default a single launch is warm and several are as in the call.
        workgroups: How many of each launch are executed, as :func:`cklang.predict` takes it.
        spec: The GPU, which may have other compute units than the emulated one.

    Raises:
        CkUnsupportedError: K050, the clock has no constants for the GPU or the board.
        CkValueError: A133, ``caches`` is another word; A134, nothing was launched.
    """

    def record(count: int) -> Sequence[RecordedLaunch]:
        with timing(count, alone=True) as recording:
            call()
        return recording.launches

    launches = recorded_with(record) if workgroups is None else record(workgroups)
    footprint = sum(int(operand.nbytes) for operand in operands) or None
    return predicted(launches, board=board, caches=caches, spec=spec, footprint=footprint)


def predicted(
    launches: Sequence[RecordedLaunch],
    *,
    board: str | None = None,
    caches: str | None = None,
    spec: ArchSpec | None = None,
    footprint: int | None = None,
) -> Prediction:
    """Return how long recorded launches take; the arguments are those of ``launch_details``."""
    if not launches:
        raise error("A134")
    details = launch_details(launches, caches=caches, board=board, spec=spec, footprint=footprint)
    kernels = []
    for number, detail in enumerate(details):
        profile, time = launch_profile(number, detail, board), time_of(detail)
        load = profile.under_load
        kernels.append(
            PredictedLaunch(
                **{
                    **{name: getattr(time, name) for name in LaunchTime.__slots__},
                    "kernel": profile.kernel,
                },
                us_under_load=None if load is None else load.us,
                bound=profile.bound,
                flops=profile.roofline.flops,
                peak_flops=profile.roofline.peak_flops,
                compiler=_compiler(detail.launch.debug),
            )
        )
    return Prediction(
        us=sum(kernel.us for kernel in kernels),
        cycles=sum(kernel.cycles for kernel in kernels),
        error=_mean_error(kernels),
        kernels=tuple(kernels),
        us_under_load=_sum([kernel.us_under_load for kernel in kernels]),
        overhead_us=_overhead_us([detail.prog.constants.overhead for detail in details]),
    )


def _compiler(debug: Mapping[str, bytes]) -> str:
    """Return what compiled a code object, by the sections of its debug information."""
    producer = _PRODUCER.search(debug.get(".debug_str", b""))
    return "" if producer is None else b" ".join(producer.groups()).decode()


def _row(launches: Sequence[PredictedLaunch]) -> Sequence[str]:
    """Return what a table has of launches that are alike; times are means."""
    first = launches[0]
    us = sum(launch.us for launch in launches) / len(launches)
    loaded = _sum([launch.us_under_load for launch in launches])
    under_load = "not known" if loaded is None else f"{loaded / len(launches):.2f}"
    numbers = (str(first.workgroups), str(len(launches)), f"{us:.2f}")
    return (first.kernel, *numbers, under_load, first.bound)


def _sum(times: Sequence[float | None]) -> float | None:
    """Return the sum of some times; None if there is none, or one is not known."""
    known = [us for us in times if us is not None]
    return sum(known) if known and len(known) == len(times) else None


def _overhead_us(launches: Sequence[Overhead | None]) -> float | None:
    """Return the µs that a call with some launches takes beside them."""
    of_launches = _sum([None if launch is None else launch.launch_us for launch in launches])
    first = launches[0] if launches else None
    return None if of_launches is None or first is None else first.call_us + of_launches


def _mean_error(kernels: Sequence[LaunchTime]) -> float | None:
    """Return the mean of the kernels' errors by their time; None if one's is not known."""
    known = [(kernel.error, kernel.us) for kernel in kernels if kernel.error is not None]
    if not known or len(known) < len(kernels):
        return None
    return sum(error * us for error, us in known) / sum(us for _, us in known)
