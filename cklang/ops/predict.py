# SPDX-License-Identifier: MIT
"""How long a call takes on a GPU, by the clock: ``cklang.predict``."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from cklang.clock.constants import ClockConstants, constants_of
from cklang.clock.memory import chase_latency
from cklang.device.device import open_device
from cklang.errors import error
from cklang.runtime.charts import Mark, timeline
from cklang.runtime.op import Op

if TYPE_CHECKING:
    from cklang.clock.kernel import LaunchTime

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of a call, as far as compute units decide it."""

    us: float
    """Of all kernels together, without launch overhead, at the GPU's highest clock."""
    cycles: float
    error: float | None
    """Median relative error of the clock on the GPU, held out; None where silicon is silent.

    It is that of loops and issue times in instruction traces, and does not cover what the clock
    leaves out (``docs/clock.md``)."""
    kernels: tuple[LaunchTime, ...]

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


def _at_footprint(constants: ClockConstants, values: tuple[Any, ...]) -> ClockConstants:
    """Return the constants with the latency of memory for arguments that caches hold.

    The fitted latency is that of products which keep memory busy; a smaller one is assumed to be
    what a walk over as many bytes as the arguments have shows.
    """
    if "chase_l1" not in constants.numbers:
        return constants
    footprint = sum(int(getattr(value, "nbytes", 0)) for value in values)
    latency = min(constants["vmem_latency"], float(chase_latency(constants, footprint)))
    return constants.with_numbers({"vmem_latency": latency})


def predict(
    op: Op, *args: Any, device: str | None = None, workgroups: int = 1, **kwargs: Any
) -> Prediction:
    """Return how long a call takes on the GPU that ``device`` emulates.

    A few workgroups of each kernel are executed, and no others, so results of the call are
    incomplete and are dropped. A program that changes its arguments changes them.

    Args:
        op: What is called.
        *args: Its arguments.
        device: As in a call; it must be an emulated one.
        workgroups: How many of each launch are executed, evenly spaced over the grid.
        **kwargs: Further arguments of the op.

    Example:
        >>> @ck.op
        ... def product(x: ck.f16["M", "K"], w: ck.f16["N", "K"]) -> ck.f16["M", "N"]:
        ...     return x @ w.T
        >>> a = np.zeros((256, 256), np.float16)
        >>> ck.predict(product, a, a, device="emu:gfx942").kernels[0].workgroups  # doctest: +SKIP
        16

    Raises:
        CkUnsupportedError: K050, the clock has no constants for the GPU, or it is a real one.
        CkError: As the call itself.
    """
    from cklang import emulator
    from cklang.clock.kernel import launch_time

    opened = open_device(device)
    if not opened.emulated:
        raise error("K050", what="emulation", name=opened.name, known="emulated devices")
    constants = _at_footprint(constants_of(opened.spec.name), (*args, *kwargs.values()))
    with emulator.timing(workgroups, alone=True) as recording:
        op(*args, device=opened.name, **kwargs)
    kernels = tuple(launch_time(launch, opened.spec, constants)[0] for launch in recording.launches)
    validated = constants.numbers.get("validated_error")
    return Prediction(
        us=sum(kernel.us for kernel in kernels),
        cycles=sum(kernel.cycles for kernel in kernels),
        error=None if validated is None else validated.value,
        kernels=kernels,
    )
