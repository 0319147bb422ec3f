# SPDX-License-Identifier: MIT
"""A debugged program: its launches one after the other, breakpoints, and the wave that is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cklang.emulator.debugger.breakpoints import EVERY_WAVE, Breakpoint, Location, Waves, stops_of
from cklang.emulator.debugger.code import Code, read_fills
from cklang.emulator.debugger.program import DebuggedProgram
from cklang.emulator.debugger.wire import ControlledLaunch, Goal, Reason, Stop, Until, WaveState
from cklang.emulator.profiler.source import Place, is_users
from cklang.errors import error
from cklang.places import notes_of

_NAMED = 6
"""Kernels of a run that are named at most."""


@dataclass(frozen=True, slots=True)
class Focus:
    """The wave and lane that commands are about."""

    group: int
    wave: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where an argument of an op is in memory."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""


def tensors_of(socket: str) -> Path:
    """Return the file in which a debugged process names its tensors, as JSON.

    Example:
        >>> tensors_of("/tmp/debug/socket").name
        'socket.tensors'
    """
    return Path(f"{socket}.tensors")


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run of the program has come to so far."""

    kernels: tuple[str, ...] = ()
    """The launched kernels, each once."""
    placed: frozenset[int] = frozenset()
    """The breakpoints that were in the code of a launch."""
    reached: frozenset[int] = frozenset()


class Session:
    """A program under control.

    Example:
        >>> session = Session(["true"])
        >>> session.run() is None, session.status
        (True, 0)
        >>> session.close()
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        started: Callable[[DebuggedProgram], None] | None = None,
        **options: Any,
    ) -> None:
        """Prepare it; nothing is started yet.

        Args:
            words: The program and its arguments.
            started: Called with the program each time that it is started.
            **options: The other arguments of :class:`DebuggedProgram`.
        """
        self._started = started
        self.words, self._options = tuple(words), options
        self.program: DebuggedProgram | None = None
        self.launch: ControlledLaunch | None = None
        self.code: Code | None = None
        self.number = 0
        """The number of the launch, from 1."""
        self.stop: Stop | None = None
        self.focus: Focus | None = None
        self._last: Focus | None = None
        """The wave that was shown before all ended."""
        self.breakpoints: dict[int, Breakpoint] = {}
        self.status: int | None = None
        self.catches_faults = False
        """Whether every launch is under control, so that a fault of any stops."""
        self._next = 1
        self._stops_at_launch = False
        self._run = _Run()

    # The program

    def start(self) -> None:
        """Start the program, again if it runs."""
        if not self.words:
            raise error("D039", command="run", problem="the program is this process")
        self.close()
        self.number, self.status, self._run = 0, None, _Run()
        self.program = DebuggedProgram(self.words, **self._options)
        if self._started is not None:
            self._started(self.program)

    def close(self) -> None:
        """End the program, if it runs."""
        self.forget()
        if self.program is not None:
            self.program.close()
            self.program = None

    def interrupt(self) -> None:
        """Stop the launch that runs; any thread may call it."""
        if self.program is not None:
            self.program.interrupt()

    def forget(self) -> None:
        """Show no launch any more."""
        self.launch = self.code = self.stop = self.focus = None

    # Breakpoints

    def add_breakpoint(
        self, location: Location, waves: Waves = EVERY_WAVE, *, temporary: bool = False
    ) -> Breakpoint:
        """Add a breakpoint; those of the present launch follow."""
        new = Breakpoint(self._next, location, waves, temporary)
        self._next += 1
        self.breakpoints[new.number] = new
        self._place_breakpoints()
        return new

    def delete_breakpoint(self, number: int) -> bool:
        """Remove a breakpoint; return whether there was one."""
        known = self.breakpoints.pop(number, None) is not None
        self._place_breakpoints()
        return known

    def is_placed(self, breakpoint_: Breakpoint) -> bool:
        """Return whether a breakpoint is somewhere in the code of the present launch."""
        return self.code is not None and bool(stops_of(breakpoint_, self.code))

    def _place_breakpoints(self) -> bool:
        """Tell the emulator; return whether any breakpoint is in the present launch."""
        if self.launch is None or self.code is None:
            return False
        stops = [
            stop
            for breakpoint_ in self.breakpoints.values()
            for stop in stops_of(breakpoint_, self.code)
        ]
        placed = self._run.placed | {stop.number for stop in stops}
        self._run = replace(self._run, placed=placed)
        self.launch.set_breakpoints(stops)
        return bool(stops)

    def unreached(self) -> list[str]:
        """Return a line for each breakpoint at which this run of the program has not stopped."""
        run = self._run
        names = ", ".join(run.kernels[:_NAMED]) + ", ..." * (len(run.kernels) > _NAMED)
        kernels = f"in none of the kernels that were launched: {names}"
        elsewhere = kernels if run.kernels else "not reached: the program has launched no kernel"
        return [
            f"{breakpoint_} is {'not reached' if number in run.placed else elsewhere}"
            for number, breakpoint_ in self.breakpoints.items()
            if number not in run.reached
        ]

    # Running

    def run(self, *, to_launch: bool = False) -> Stop | None:
        """Start the program and run to the first stop; None: it has ended.

        Args:
            to_launch: Stop at the beginning of the first launch in any case.
        """
        self.start()
        self._stops_at_launch = to_launch
        return self._to_next_launch()

    def resume(self) -> Stop | None:
        """Run to the next stop; None: the program has ended."""
        if self.program is None and self.launch is None:
            return self.run()
        if self.stop is not None and self.stop.reason is Reason.FAULT:
            self._release()  # it cannot go on
        if self.launch is None:
            return self._to_next_launch()
        return self._after(self.launch.run(Goal(Until.BREAKPOINT)))

    def next_launch(self) -> Stop | None:
        """Run to the beginning of the next launch, whatever breakpoints say."""
        if self.program is None and self.launch is None:
            return self.run(to_launch=True)
        self._stops_at_launch = True
        self._release()
        return self._to_next_launch()

    def to_stop(self) -> Stop:
        """Run the launch to its next breakpoint, or its end."""
        return self.run_goal(Goal(Until.BREAKPOINT))

    def run_goal(self, goal: Goal) -> Stop:
        """Run the launch until something holds, forward or back."""
        return self._stopped(self.controlled().run(goal))

    def step(self, until: Until, count: int = 0) -> Stop:
        """Run the wave that is shown.

        Raises:
            CkValueError: D033, there is no launch; D035, no wave is shown.
        """
        self.controlled()
        focus = self.focus or (self._last if until is Until.COUNT else None) or self.focused()
        return self.run_goal(Goal(until, focus.group, focus.wave, count))

    def step_instructions(self, count: int) -> Stop:
        """Let the wave that is shown execute some instructions, or take some back."""
        target = max(0, self.wave().executed + count)
        stop = self.step(Until.COUNT, target)
        at_start = target == 0 and count < 0 and stop.reason is Reason.STEP
        return self._stopped(replace(stop, reason=Reason.START)) if at_start else stop

    def _release(self) -> None:
        if self.launch is not None:
            self.launch.release()
        self.forget()

    def _after(self, stop: Stop) -> Stop | None:
        """Go on to the next launch where one has ended."""
        if stop.reason is Reason.ENDED:
            self._release()
            return self._to_next_launch()
        return self._stopped(stop)

    def _to_next_launch(self) -> Stop | None:
        program = self.program
        while program is not None and (launch := program.next_launch()) is not None:
            placed = self.adopt(launch, read_fills(notes_of(str(program.socket_path))))
            if self._stops_at_launch:
                self._stops_at_launch = False
                return self._stopped(launch.run(Goal(Until.STEP)))
            if placed or self.catches_faults:
                stop = launch.run(Goal(Until.BREAKPOINT))
                if stop.reason is not Reason.ENDED:
                    return self._stopped(stop)
            self._release()
        status = None if program is None else program.status
        self.close()
        self.status = status
        return None

    def adopt(self, launch: ControlledLaunch, fills: Mapping[str, tuple[str, ...]]) -> bool:
        """Take over a launch that has not begun; return whether a breakpoint is in it.

        ``fills`` has the user's places of the lines of fills.
        """
        self.number += 1
        self.launch, self.code = launch, Code.of(launch, fills)
        launch.set_lines(self.code.lines)
        kernels = dict.fromkeys((*self._run.kernels, self.code.name))
        self._run = replace(self._run, kernels=tuple(kernels))
        return self._place_breakpoints()

    def _stopped(self, stop: Stop) -> Stop:
        """Take over where the launch has stopped."""
        self.stop = stop
        self._last = self.focus or self._last
        lane = self._last.lane if self._last is not None else 0
        self.focus = None
        if stop.group is not None and stop.wave is not None:
            self.focus = Focus(stop.group, stop.wave, lane)
        known = self.breakpoints.get(stop.breakpoint)
        if stop.reason is Reason.BREAKPOINT and known is not None:
            self.breakpoints[known.number] = known.hit()
            self._run = replace(self._run, reached=self._run.reached | {known.number})
            if known.temporary:
                self.delete_breakpoint(known.number)
        return stop

    # What is shown

    def controlled(self) -> ControlledLaunch:
        """Return the launch."""
        if self.launch is None:
            raise error("D033")
        return self.launch

    def listing(self) -> Code:
        """Return the code of the launch.

        Raises:
            CkValueError: D033, there is none.
        """
        if self.code is None:
            raise error("D033")
        return self.code

    def focused(self) -> Focus:
        """Return the wave that is shown."""
        self.controlled()
        if self.focus is None:
            raise error("D035", got="")
        return self.focus

    def waves(self) -> list[WaveState]:
        """Return the waves that have begun."""
        return self.controlled().waves()

    def wave(self) -> WaveState:
        """Return the state of the wave that is shown."""
        focus = self.focused()
        same = [e for e in self.waves() if (e.group, e.wave) == (focus.group, focus.wave)]
        if not same:
            raise error("D035", got=f"{focus.wave} of workgroup {focus.group}")
        return same[0]

    def look_at(
        self, group: int | None = None, wave: int | None = None, lane: int | None = None
    ) -> Focus:
        """Choose the wave and lane that commands are about."""
        focus = self.focus or Focus(0, 0)
        chosen = Focus(
            focus.group if group is None else group,
            focus.wave if wave is None else wave,
            focus.lane if lane is None else lane,
        )
        running = {(active.group, active.wave) for active in self.waves()}
        if (chosen.group, chosen.wave) not in running:
            raise error("D035", got=f"{chosen.wave} of workgroup {chosen.group}")
        lanes = self.controlled().facts.lanes
        if not 0 <= chosen.lane < lanes:
            raise error("D039", command="lane", problem=f"a wave has lanes 0 to {lanes - 1}")
        self.focus = chosen
        return chosen

    def place(self) -> Place | None:
        """Return the source line of the wave that is shown."""
        if self.code is None or self.focus is None:
            return None
        return self.code.place(self.wave().dword)

    def users_place(self) -> Place | None:
        """Return a place in the file that line numbers without one mean.

        That is the file that is shown, or the first of the user's where that is a header of ours.
        """
        shown = self.place()
        if self.code is None or (shown is not None and is_users(shown.file)):
            return shown
        return next((place for place in self.code.places if is_users(place.file)), shown)

    def tensors(self) -> dict[str, TensorPlace]:
        """Return the tensors that the program has named."""
        if self.program is None:
            return {}
        path = tensors_of(str(self.program.socket_path))
        if not path.exists():
            return {}
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: TensorPlace(row[0], row[1], tuple(row[2]), tuple(row[3]))
            for name, row in rows.items()
        }

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
