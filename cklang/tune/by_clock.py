# SPDX-License-Identifier: MIT
"""What launches on an emulated GPU would take on a real one, by the clock (``docs/clock.md``)."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cklang.arch import ArchSpec, timing_file
from cklang.device.device import Device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.sampling import SAMPLES, representative
from cklang.emulator.engine.recording import Recording, is_recording, timing
from cklang.errors import CkUnsupportedError

CLOCKED = "µs by the clock (the GPU is emulated)"


@dataclass(slots=True)
class Clocked:
    """The launches of a ``with clocked(...)`` statement."""

    device: Device
    footprint: int
    recording: Recording = field(default_factory=Recording)

    def us(self) -> float | None:
        """Return the µs of all launches; None if the clock cannot tell."""
        from cklang.emulator.clock.kernel import launch_time

        if not self.recording.launches:
            return None
        spec = self.device.spec
        try:
            constants = constants_of(spec.name)
        except CkUnsupportedError:
            return None
        times = (
            launch_time(representative(launch), spec, constants, self.footprint)[0]
            for launch in self.recording.launches
        )
        return sum(time.us for time in times)


@contextmanager
def clocked(device: Device, footprint: int) -> Iterator[Clocked]:
    """Let the clock time the launches of a ``with`` statement, if the device is emulated.

    What runs on the ``device`` must have ended when the statement does. ``footprint`` is the bytes
    of its operands.
    """
    result = Clocked(device, footprint)
    if not device.emulated or is_recording():
        yield result
        return
    with timing(SAMPLES) as result.recording:
        yield result


def clocked_device(spec: ArchSpec) -> str:
    """Return what a database calls the device of times by the clock."""
    clock = clock_identity(spec.name)
    return f"emulated {spec.name}/{spec.compute_units}, clock {clock}"


def clock_identity(gpu: str) -> str:
    """Return the first digits of the digest of the clock's numbers for a GPU; '' without any."""
    path = timing_file(gpu)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.is_file() else ""
