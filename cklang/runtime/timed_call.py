# SPDX-License-Identifier: MIT
"""How long the launches of a call take: by the events of a GPU, or the clock of an emulated one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cklang.device.device import Device
from cklang.emulator.clock.kernel import time_of
from cklang.emulator.clock.sequence import launch_details
from cklang.emulator.engine.recording import Recording, is_recording, timing

T = TypeVar("T")
_TO_MS = 1e-3


@dataclass(slots=True)
class CallTimer:
    """Measures the launches of a call, and says what it measured when asked."""

    device: Device
    stream: int | None
    events: tuple[Any, Any] | None = None
    recording: Recording = field(default_factory=Recording)

    def around(self, launch: Callable[[], T]) -> T:
        """Run the launches of a call, and measure them."""
        if self.device.emulated:
            if is_recording():  # by a profile around the call, which keeps its launches
                return launch()
            with timing(1) as self.recording:
                result = launch()
                self.device.synchronize()
            return result
        begin, end = self.device.timer(), self.device.timer()
        self.device.record(begin, self.stream)
        result = launch()
        self.device.record(end, self.stream)
        self.events = begin, end
        return result

    def ms(self) -> float | None:
        """Return the milliseconds; None for a call inside of a profile."""
        if self.events is not None:
            return self.device.elapsed(*self.events)
        launches = self.recording.launches
        if not launches:
            return None
        times = map(time_of, launch_details(launches))
        return sum(time.us for time in times) * _TO_MS
