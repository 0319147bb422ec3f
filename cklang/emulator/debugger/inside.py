# SPDX-License-Identifier: MIT
"""Launches of this process under control: a terminal in a script, and callbacks of plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import IO

from cklang import places
from cklang.emulator.debugger.breakpoints import EVERY_WAVE, Location, Waves, is_kernel
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from cklang.emulator.debugger.wire import ControlledLaunch, Reason
from cklang.emulator.engine.library import debug_request, launches_under_control


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A function, and the instructions before which waves call it.

    Example:
        >>> each = Callback(call=print, operation="v_mfma*", kernel="gemm*", waves=Waves(wave=0))
        >>> each.location
        Location(file='', line=0, pc=None, operation='v_mfma*', kernel='', memory=None, reads=False)
    """

    call: Callable[[Observation], None]
    kernel: str = "*"
    """A pattern of the names of kernels."""
    pc: int | None = None
    """Bytes from the kernel's start."""
    operation: str = ""
    """A pattern of mnemonics."""
    addresses: tuple[int, int] | None = None
    """Global memory, from the first byte to behind the last, that is read or changed."""
    line: tuple[str, int] | None = None
    """The end of a file's path, and a line of it."""
    waves: Waves = EVERY_WAVE

    @property
    def location(self) -> Location:
        """Where it is; the beginning of each launch if nothing else is said."""
        if self.addresses is not None:
            return Location(memory=self.addresses, reads=True)
        if self.line is not None:
            return Location(file=self.line[0], line=self.line[1])
        if self.pc is not None or self.operation:
            return Location(pc=self.pc, operation=self.operation)
        return Location(kernel=self.kernel)


@dataclass(frozen=True, slots=True)
class Observation:
    """A wave before one of the instructions that a callback is about."""

    session: Session
    """The wave is the one that it shows: its registers, memory and place."""

    @property
    def pc(self) -> int:
        """The instruction's offset in bytes from the kernel's start."""
        return self.session.listing().pc(self.session.wave().dword)

    @property
    def instruction(self) -> str:
        """Its text."""
        return self.session.listing().instructions[self.session.wave().dword]


@contextmanager
def _controlled(on_launch: Callable[[ControlledLaunch], None]) -> Iterator[None]:
    """Call a function with each launch; what it raises is raised when the statement ends."""
    problems: list[BaseException] = []

    def launched() -> None:
        if problems:
            return
        try:
            on_launch(ControlledLaunch(debug_request))
        except BaseException as problem:  # C code calls this: nothing may pass
            problems.append(problem)

    with launches_under_control(launched):
        yield
    if problems:
        raise problems[0]


@contextmanager
def callbacks(*plugins: Callback) -> Iterator[None]:
    """Call functions while launches of this process execute what they are about.

    Launches in which no callback has a place run as ever; others in the interpreter, on one thread.
    A function sees each instruction before it is executed. The first exception that one raises is
    raised when the ``with`` statement ends; no function is called after it.

    Example:
        >>> loads = []
        >>> plugin = Callback(operation="global_load*", call=lambda at: loads.append(at.pc))
        >>> with callbacks(plugin):  # doctest: +SKIP
        ...     pass  # calls of ops on an emulated GPU
    """

    def on_launch(launch: ControlledLaunch) -> None:
        session = Session([])
        by_number = {
            session.add_breakpoint(plugin.location, plugin.waves).number: plugin
            for plugin in plugins
        }
        session.adopt(launch, places.known())
        for number, tile in by_number.items():
            if not is_kernel(tile.kernel, session.listing()):
                session.delete_breakpoint(number)
        if not any(map(session.is_placed, session.breakpoints.values())):
            return
        while (stop := session.to_stop()).reason is Reason.BREAKPOINT:
            by_number[stop.breakpoint].call(Observation(session))

    with _controlled(on_launch):
        yield


@contextmanager
def debug(
    kernel: str = "*", *, commands: Sequence[str] = (), screen: IO[str] | None = None
) -> Iterator[None]:
    """Open the debugger's terminal at each launch of this process on an emulated GPU.

    ``continue`` goes on with the program. With ``pytest``, use ``-s``.

    Args:
        kernel: A pattern of the names of kernels.
        commands: Run at the beginning of each launch; if there are some, the keyboard is not read.
        screen: Where the terminal writes; stdout by default.

    Example:
        >>> with ck.debug("*gemm*"):  # doctest: +SKIP
        ...     pass  # calls of ops on an emulated GPU
    """
    session = Session([])
    terminal = Terminal(session, screen)

    def on_launch(launch: ControlledLaunch) -> None:
        session.adopt(launch, places.known())
        code = session.listing()
        if fnmatchcase(code.name, kernel) or fnmatchcase(code.launch.kernel, kernel):
            terminal.at_launch(commands)
        session.forget()

    with _controlled(on_launch):
        yield
