# SPDX-License-Identifier: MIT
"""A program whose launches are under control: its process, and the sockets of those it starts."""

import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cklang import knobs
from cklang.emulator.debugger.wire import ControlledLaunch, Request, request_bytes
from cklang.errors import error

_SIZE = struct.Struct("<Q")
_POLL_SECONDS = 0.1
_BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a program."""


class _Connection:
    """The socket of one process, whose messages are a size and bytes."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def fileno(self) -> int:
        return self.end.fileno()

    def receive(self) -> bytes | None:
        """Return a message; None if the process is gone."""
        head = self._exactly(_SIZE.size)
        return None if head is None else self._exactly(_SIZE.unpack(head)[0])

    def _exactly(self, size: int) -> bytes | None:
        pieces = bytearray()
        while len(pieces) < size:
            try:
                piece = self.end.recv(min(size - len(pieces), 1 << 20))
            except ConnectionError:
                return None
            if not piece:
                return None
            pieces += piece
        return bytes(pieces)

    def ask(self, request: bytes) -> bytes:
        """Send a request and return its answer; Ctrl-C meanwhile stops the launch."""
        try:
            self.send(request)
            while True:
                try:
                    answer = self.receive()
                    break
                except KeyboardInterrupt:
                    self.interrupt()
        except ConnectionError:
            answer = None
        if answer is None:
            raise error("D030", what="the program has ended while it was asked for something")
        return answer

    def send(self, request: bytes) -> None:
        self.end.sendall(_SIZE.pack(len(request)) + request)

    def interrupt(self) -> None:
        self.send(request_bytes(Request.INTERRUPT))


class DebuggedProgram:
    """A process that asks at each launch what to do.

    Example:
        >>> program = DebuggedProgram(["true"])
        >>> program.next_launch() is None, program.status
        (True, 0)
        >>> program.close()
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path | None = None,
        settings: Mapping[str, str] | None = None,
        output: int | None = None,
    ) -> None:
        """Start it.

        Args:
            words: The program and its arguments.
            folder: In which it runs; this process's by default.
            settings: Of its environment.
            output: What becomes of what it prints, as in ``subprocess.Popen``.

        Raises:
            CkValueError: Z010, the program cannot be run.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="cklang-debug-")
        self.socket_path = Path(self._folder.name) / "socket"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.socket_path))
        self._listener.listen()
        self._connections: list[_Connection] = []
        self._current: _Connection | None = None
        named = {knobs.DEBUGGER.name: str(self.socket_path), **(settings or {})}
        try:
            self.process: subprocess.Popen[Any] = _start(
                words, cwd=folder, env=knobs.tool_environment(**named), stdout=output, stderr=output
            )
        except OSError as problem:
            self._close_sockets()
            raise error("Z010", name=words[0], problem=str(problem)) from problem

    @property
    def status(self) -> int | None:
        """Its exit status as a shell gives it; None while it runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else _BY_SIGNAL - code

    def next_launch(self) -> ControlledLaunch | None:
        """Wait until it launches a kernel; None if it ends before."""
        while True:
            ended = self.process.poll() is not None
            waiting = [
                self._listener.fileno(),
                *(connection.fileno() for connection in self._connections),
            ]
            ready, _, _ = select.select(waiting, [], [], 0 if ended else _POLL_SECONDS)
            if self._listener.fileno() in ready:
                self._connections.append(_Connection(self._listener.accept()[0]))
            for caller in [
                connection for connection in self._connections if connection.fileno() in ready
            ]:
                if caller.receive() is None:
                    caller.end.close()
                    self._connections.remove(caller)
                    continue
                self._current = caller
                return ControlledLaunch(caller.ask)
            if ended and not ready:
                self.process.wait()
                return None

    def interrupt(self) -> None:
        """Stop the launch that runs, if one does; any thread may call it."""
        if self._current is not None:
            with suppress(OSError):  # it has ended meanwhile
                self._current.interrupt()

    def close(self) -> None:
        """End the program, if it has not ended."""
        self._close_sockets()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _close_sockets(self) -> None:
        for connection in self._connections:
            connection.end.close()
        self._connections.clear()
        self._listener.close()
        self._folder.cleanup()


def _start(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process that Ctrl-C does not reach: it is for the debugger."""
    if threading.current_thread() is not threading.main_thread():
        return subprocess.Popen(words, **options)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(words, **options)
    finally:
        signal.signal(signal.SIGINT, before)
