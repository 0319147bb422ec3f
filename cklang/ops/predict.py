# SPDX-License-Identifier: MIT
"""How long a call takes on a GPU, by the clock: ``cklang.predict``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from cklang.device.device import open_device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.sampling import recorded_with
from cklang.errors import error
from cklang.runtime.charts import Mark, timeline

if TYPE_CHECKING:
    from cklang.emulator.clock.kernel import LaunchTime
    from cklang.emulator.engine.recording import RecordedLaunch


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of a call, as far as compute units decide it."""

    us: float
    """Time of all kernels together, without launch overhead, at the GPU's highest clock."""
    cycles: float
    error: float | None
    """Median relative error of the clock on kernels of these classes (products, others), held out:
    the mean over the kernels, by their time. None if no hardware measurement exists."""
    kernels: tuple[LaunchTime, ...]
    us_under_load: float | None = None
    """At the clock that power leaves on a board, if many such calls follow each other; None where
    no board was asked for, or the power of a kernel's matrix instructions is not known."""

    def __str__(self) -> str:
        error = "not known there" if self.error is None else f"{self.error:.0%} for such kernels"
        lines = [f"by the clock: {self.us:.2f} µs ({self.cycles:.0f} cycles; its error: {error})"]
        if self.us_under_load is not None:
            lines.append(f"  under load: {self.us_under_load:.2f} µs")
        for kernel in self.kernels:
            stalls = list(kernel.stall.items())[:_STALLS]
            words = ", ".join(f"{share:.0%} at {op}" for op, share in stalls)
            lines.append(
                f"  {kernel.us:.2f} µs  {kernel.kernel}: {kernel.workgroups} workgroups, "
                f"{kernel.resident} a compute unit at a time; stalled {words or 'nowhere'}"
            )
        return "\n".join(lines)

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


_STALLS = 3


def predict(
    op: Callable[..., Any],
    *args: Any,
    device: str | None = None,
    workgroups: int | None = None,
    board: str | None = None,
    **kwargs: Any,
) -> Prediction:
    """Return how long a call takes on the GPU that ``device`` emulates.

    A few workgroups of each kernel are executed, and no others, so results of the call are
    incomplete and are dropped. A program that changes its arguments changes them, maybe twice.

    Args:
        op: What is called.
        *args: Its arguments.
        device: As in a call; it must be an emulated one.
        workgroups: How many of each launch are executed, evenly spaced over the grid, and timed.
            By default three or a few more; where they execute different numbers of instructions,
            as those of causal attention, the call is repeated with eleven, which are timed, else
            the first one is. A number that divides an extent of the grid meets the same places of
            an axis again and again.
        board: With the GPU: ``MI300X``, ``MI300A``, ``MI325X`` or ``MI355X``. It says how many
            compute units there are and how quick memory is, as far as that is known of it, and, but
            for the MI300A, :attr:`Prediction.us_under_load`.
        **kwargs: Further arguments of the op.

    Example:
        >>> @ck.op
        ... def product(x: ck.f16["M", "K"], w: ck.f16["N", "K"]) -> ck.f16["M", "N"]:
        ...     return x @ w.T
        >>> a = np.zeros((256, 256), np.float16)
        >>> ck.predict(product, a, a, device="emu:gfx942").kernels[0].workgroups  # doctest: +SKIP
        16

    Raises:
        CkUnsupportedError: K050, the clock has no constants for the GPU, or it is a real one, or
            nothing is known of the board.
        CkError: As the call itself.
    """
    from cklang import emulator
    from cklang.emulator.clock.kernel import launch_detail, time_of
    from cklang.emulator.clock.power import us_under_load

    opened = open_device(device)
    if not opened.emulated:
        raise error("K050", what="emulation", name=opened.name, known="emulated devices")
    constants = constants_of(opened.spec.name, board)
    spec = opened.spec if board is None else opened.spec.on_board(board)
    power = next((each for each in constants.boards if each.board == board), None)
    footprint = 0

    def record(count: int) -> Sequence[RecordedLaunch]:
        nonlocal footprint
        with emulator.timing(count, alone=True) as recording:
            result = op(*args, device=opened.name, **kwargs)
        results = result if isinstance(result, tuple) else (result,)
        operands = {id(value): value for value in (*args, *kwargs.values(), *results)}.values()
        footprint = sum(int(getattr(value, "nbytes", 0)) for value in operands)
        return recording.launches

    launches = recorded_with(record) if workgroups is None else record(workgroups)
    details = [launch_detail(launch, spec, constants, footprint) for launch in launches]
    kernels = tuple(time_of(detail) for detail in details)
    loaded = [] if power is None else [us_under_load(detail, power) for detail in details]
    return Prediction(
        us=sum(kernel.us for kernel in kernels),
        cycles=sum(kernel.cycles for kernel in kernels),
        error=_mean_error(kernels),
        kernels=kernels,
        us_under_load=_sum(loaded),
    )


def _sum(times: Sequence[float | None]) -> float | None:
    """Return the sum of some times; None if there is none, or one is not known."""
    known = [us for us in times if us is not None]
    return sum(known) if known and len(known) == len(times) else None


def _mean_error(kernels: Sequence[LaunchTime]) -> float | None:
    """Return the mean of the kernels' errors by their time; None if one's is not known."""
    known = [(kernel.error, kernel.us) for kernel in kernels if kernel.error is not None]
    if not known or len(known) < len(kernels):
        return None
    return sum(error * us for error, us in known) / sum(us for _, us in known)
