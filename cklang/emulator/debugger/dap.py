# SPDX-License-Identifier: MIT
"""The Debug Adapter Protocol: editors control launches as they control host programs.

A thread of the editor is a wave, and its one stack frame the wave's source line.
"""

import base64
import io
import json
import queue
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from cklang.emulator.debugger import views
from cklang.emulator.debugger.breakpoints import Location, Waves, parse_breakpoint
from cklang.emulator.debugger.code import Code
from cklang.emulator.debugger.program import DebuggedProgram
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.terminal import Terminal
from cklang.emulator.debugger.variables import Variables
from cklang.emulator.debugger.wire import Goal, Reason, Stop, Until, WaveState
from cklang.errors import CkError

Message = dict[str, Any]
Body = Mapping[str, Any]

_CAPABILITIES = (
    "supportsConfigurationDoneRequest",
    "supportsConditionalBreakpoints",
    "supportsDisassembleRequest",
    "supportsEvaluateForHovers",
    "supportsFunctionBreakpoints",
    "supportsInstructionBreakpoints",
    "supportsReadMemoryRequest",
    "supportsStepBack",
    "supportsSteppingGranularity",
    "supportsTerminateRequest",
)
_REASONS = {
    Reason.START: "entry",
    Reason.BREAKPOINT: "breakpoint",
    Reason.STEP: "step",
    Reason.INTERRUPT: "pause",
    Reason.WAVE_ENDED: "step",
    Reason.ENDED: "step",
    Reason.FAULT: "exception",
    Reason.STUCK: "pause",
}
_FAULTS = "faults"
_WAVES = 64
"""More than a workgroup has."""
_LAST_OUTPUT = 2.0
"""Seconds for what a program that has ended printed last."""
_NO_WAVE = 1 << 52
"""The thread that stands for a launch none of whose waves runs."""


def thread_id(group: int, wave: int) -> int:
    """Return the number of a wave as a thread.

    Example:
        >>> thread_id(2, 3)
        132
    """
    return 1 + group * _WAVES + wave


def read_message(stream: IO[bytes]) -> Message | None:
    r"""Read one message; None at the end.

    Example:
        >>> read_message(io.BytesIO(b'Content-Length: 9\r\n\r\n{"seq":1}'))
        {'seq': 1}
    """
    size = 0
    while line := stream.readline():
        if not line.strip():
            data = stream.read(size)
            return dict(json.loads(data)) if len(data) == size and size else None
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            size = int(value)
    return None


class Adapter:
    """One conversation with an editor."""

    def __init__(
        self, source: IO[bytes], sink: IO[bytes], words_of: Callable[[Sequence[str]], list[str]]
    ) -> None:
        """Prepare it."""
        self._source, self._sink, self._words_of = source, sink, words_of
        self._requests: queue.Queue[Message | None] = queue.Queue()
        self._writing = threading.Lock()
        self._number = 0
        self._session: Session | None = None
        self._pending: list[tuple[Location, Waves]] = []
        self._placed: dict[str, list[int]] = {}
        """The numbers of breakpoints, by the file or the kind that the editor replaces them by."""
        self._wanted: Body | None = None
        """The arguments of a launch that has not begun."""
        self._pumps: list[threading.Thread] = []
        """What brings the program's output to the editor."""
        self._configured = self._over = self._catches = False
        self._variables: Variables | None = None

    def run(self) -> None:
        """Answer requests until the editor goes."""
        threading.Thread(target=self._read, daemon=True).start()
        while not self._over and (request := self._requests.get()) is not None:
            self._answer(request)
        if self._session is not None:
            self._session.close()

    def _read(self) -> None:
        """Take requests while the program runs: one to pause cannot wait for its end."""
        while (message := read_message(self._source)) is not None:
            if message.get("command") == "pause" and self._session is not None:
                self._session.interrupt()
            self._requests.put(message)
        if self._session is not None:
            self._session.interrupt()
        self._requests.put(None)

    def _send(self, message: Message) -> None:
        with self._writing:
            self._number += 1
            data = json.dumps({"seq": self._number, **message}).encode()
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
            self._sink.flush()

    def _event(self, name: str, **body: Any) -> None:
        self._send({"type": "event", "event": name, "body": body})

    def _answer(self, request: Message) -> None:
        command = str(request.get("command"))
        reply: Message = {
            "type": "response",
            "request_seq": request.get("seq", 0),
            "command": command,
        }
        handler = getattr(self, f"on_{command}", self._unknown)
        after: Callable[[], None] | None = None
        try:
            answer = handler(request.get("arguments") or {})
            body, after = answer if isinstance(answer, tuple) else (answer, None)
            self._send({**reply, "success": True, "body": body or {}})
        except (CkError, LookupError, ValueError) as problem:
            self._send({**reply, "success": False, "message": str(problem)})
            return
        if after is not None:
            after()

    def _unknown(self, arguments: Body) -> Any:
        raise LookupError("the adapter has no such request")

    # The program

    @property
    def session(self) -> Session:
        """The program that is debugged."""
        if self._session is None:
            raise LookupError("nothing has been launched")
        return self._session

    def on_initialize(self, arguments: Body) -> Any:
        """Say what the adapter can do."""
        faults = {"filter": _FAULTS, "label": "Faults of kernels", "default": True}
        answer = {**dict.fromkeys(_CAPABILITIES, True), "exceptionBreakpointFilters": [faults]}
        return answer, lambda: self._event("initialized")

    def on_launch(self, arguments: Body) -> Any:
        """Prepare a program; it starts once the editor has set its breakpoints."""
        program = [str(arguments["program"]), *map(str, arguments.get("args", ()))]
        folder = arguments.get("cwd")
        self._session = Session(
            self._words_of(program),
            folder=Path(folder) if folder else None,
            settings={str(k): str(v) for k, v in (arguments.get("env") or {}).items()},
            output=subprocess.PIPE,
            started=self._show_output,
        )
        self._variables = Variables(self._session)
        self._session.catches_faults = self._catches
        for where in self._pending:
            self._session.add_breakpoint(*where)
        self._wanted = arguments
        return {}, self._begin

    def on_configurationDone(self, arguments: Body) -> Any:  # noqa: N802
        """Start what is to be launched."""
        self._configured = True
        return {}, self._begin

    def _begin(self) -> None:
        if not self._configured or self._wanted is None:
            return
        to_launch = bool(self._wanted.get("stopOnEntry"))
        self._wanted = None
        self._run(lambda: self.session.run(to_launch=to_launch))

    def _show_output(self, program: DebuggedProgram) -> None:
        streams = {"stdout": program.process.stdout, "stderr": program.process.stderr}
        for category, stream in streams.items():
            if stream is not None:
                pump = threading.Thread(target=self._pump, args=(category, stream), daemon=True)
                self._pumps.append(pump)
                pump.start()

    def _pump(self, category: str, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._event("output", category=category, output=line.decode(errors="replace"))

    def _run(self, action: Callable[[], Stop | None]) -> None:
        """Run the program, and tell the editor where it has stopped."""
        try:
            stop = action()
        except CkError as problem:
            self._event("output", category="console", output=f"{problem}\n")
            stop = self._session.stop if self._session is not None else None
        self._report(stop)

    def _report(self, stop: Stop | None) -> None:
        if self._variables is not None:
            self._variables.forget()
        if stop is None:
            # An editor drops what comes behind the end. A process of the program's own may hold the
            # pipe for longer than the program.
            while self._pumps:
                self._pumps.pop().join(_LAST_OUTPUT)
            if self.session.status is not None:
                self._event("exited", exitCode=self.session.status)
            self._event("terminated")
            return
        focus = self.session.focus
        self._event(
            "stopped",
            reason=_REASONS[stop.reason],
            description=views.stop_text(self.session, stop).partition("\n")[0],
            text=stop.message,
            threadId=_NO_WAVE if focus is None else thread_id(focus.group, focus.wave),
            allThreadsStopped=True,
            hitBreakpointIds=[stop.breakpoint] if stop.reason is Reason.BREAKPOINT else [],
        )

    def on_disconnect(self, arguments: Body) -> Any:
        """End the program and the conversation."""
        self._over = True
        return {}

    def on_terminate(self, arguments: Body) -> Any:
        """End the program."""
        self.session.close()
        return {}, lambda: self._event("terminated")

    # Breakpoints

    def _replace(self, key: str, wanted: list[tuple[Location, Waves]]) -> Body:
        """Set the breakpoints of a file or a kind, in the place of those it had."""
        if self._session is None:
            self._pending += wanted
            return {"breakpoints": [{"verified": False} for _ in wanted]}
        for number in self._placed.get(key, ()):
            self._session.delete_breakpoint(number)
        added = [self._session.add_breakpoint(*where) for where in wanted]
        self._placed[key] = [point.number for point in added]
        placed = [self._session.code is None or self._session.is_placed(point) for point in added]
        return {
            "breakpoints": [
                {"id": point.number, "verified": is_placed, "line": point.location.line}
                for point, is_placed in zip(added, placed, strict=True)
            ]
        }

    def on_setBreakpoints(self, arguments: Body) -> Any:  # noqa: N802
        """Set those of a file; a condition is `wave 1 lane 5`."""
        path = str(arguments["source"]["path"])
        wanted = [
            parse_breakpoint(f"{path}:{entry['line']} {entry.get('condition') or ''}", None)
            for entry in arguments.get("breakpoints", ())
        ]
        return self._replace(path, wanted)

    def on_setFunctionBreakpoints(self, arguments: Body) -> Any:  # noqa: N802
        """Set those at kernels."""
        names = [str(entry["name"]) for entry in arguments.get("breakpoints", ())]
        return self._replace("kernels", [(Location(kernel=name), Waves()) for name in names])

    def on_setInstructionBreakpoints(self, arguments: Body) -> Any:  # noqa: N802
        """Set those at instructions."""
        wanted = [
            (Location(pc=int(entry["instructionReference"], 0) + entry.get("offset", 0)), Waves())
            for entry in arguments.get("breakpoints", ())
        ]
        return self._replace("instructions", wanted)

    def on_setExceptionBreakpoints(self, arguments: Body) -> Any:  # noqa: N802
        """Say whether faults stop in launches without breakpoints, too."""
        self._catches = _FAULTS in arguments.get("filters", ())
        if self._session is not None:
            self._session.catches_faults = self._catches
        return {}

    # Running

    def _resumes(self, arguments: Body, action: Callable[[], Stop | None]) -> Any:
        thread = arguments.get("threadId")
        if isinstance(thread, int) and thread != _NO_WAVE:
            self._look_at(thread)
        return {"allThreadsContinued": True}, lambda: self._run(action)

    def _look_at(self, thread: int) -> None:
        self.session.look_at((thread - 1) // _WAVES, (thread - 1) % _WAVES)

    def _step(self, arguments: Body, until: Until, count: int, instructions: int) -> Any:
        if arguments.get("granularity") == "instruction":
            action = lambda: self.session.step_instructions(instructions)  # noqa: E731
        else:
            action = lambda: self.session.step(until, count)  # noqa: E731
        return self._resumes(arguments, action)

    def on_continue(self, arguments: Body) -> Any:
        """Run to the next breakpoint."""
        return {"allThreadsContinued": True}, lambda: self._run(self.session.resume)

    def on_reverseContinue(self, arguments: Body) -> Any:  # noqa: N802
        """Go back to the last breakpoint."""
        goal = Goal(Until.BREAKPOINT_BEFORE)
        return {}, lambda: self._run(lambda: self.session.run_goal(goal))

    def on_next(self, arguments: Body) -> Any:
        """Run the wave to its next line."""
        return self._step(arguments, Until.LINE, 1, 1)

    def on_stepIn(self, arguments: Body) -> Any:  # noqa: N802
        """Run the wave to its next line, into functions."""
        return self._step(arguments, Until.LINE, 0, 1)

    def on_stepOut(self, arguments: Body) -> Any:  # noqa: N802
        """Run to the end of the launch."""
        return self._resumes(arguments, lambda: self.session.run_goal(Goal(Until.END)))

    def on_stepBack(self, arguments: Body) -> Any:  # noqa: N802
        """Go back by a line or an instruction."""
        return self._step(arguments, Until.LINE_BEFORE, 0, -1)

    def on_pause(self, arguments: Body) -> Any:
        """Stop: that has been asked for already."""
        return {}

    # What is shown

    def on_threads(self, arguments: Body) -> Any:
        """List the waves."""
        waves = self.session.waves() if self.session.launch is not None else []
        rows = [
            {"id": thread_id(wave.group, wave.wave), "name": self._name(wave)} for wave in waves
        ]
        return {"threads": rows or [{"id": _NO_WAVE, "name": "no wave runs"}]}

    def _name(self, wave: WaveState) -> str:
        place = views.workgroup_place(wave.group, self.session.controlled().facts)
        return f"workgroup {place}, wave {wave.wave}: {wave.state}"

    def on_stackTrace(self, arguments: Body) -> Any:  # noqa: N802
        """Tell where a wave is."""
        thread = int(arguments["threadId"])
        if thread == _NO_WAVE:
            return {"stackFrames": [], "totalFrames": 0}
        self._look_at(thread)
        code, wave = self.session.listing(), self.session.wave()
        place = code.place(wave.dword)
        frame: Message = {
            "id": thread,
            "name": code.name,
            "line": 0 if place is None else place.line,
            "column": 0,
            "instructionPointerReference": hex(code.pc(wave.dword)),
        }
        if place is not None:
            frame["source"] = {"name": Path(place.file).name, "path": place.file}
        return {"stackFrames": [frame], "totalFrames": 1}

    def on_scopes(self, arguments: Body) -> Any:
        """List kinds of values of a wave."""
        self._look_at(int(arguments["frameId"]))
        return {"scopes": self._values().scopes()}

    def _values(self) -> Variables:
        if self._variables is None:
            raise LookupError("nothing has been launched")
        return self._variables

    def on_variables(self, arguments: Body) -> Any:
        """List values of a kind, or the parts of one."""
        return {"variables": self._values().of(int(arguments["variablesReference"]))}

    def on_evaluate(self, arguments: Body) -> Any:
        """Print a value, or run a command of the terminal."""
        text = str(arguments["expression"])
        if isinstance(arguments.get("frameId"), int) and arguments["frameId"]:
            self._look_at(int(arguments["frameId"]))
        if arguments.get("context") != "repl":
            return {"result": self._reader_text(text), "variablesReference": 0}
        screen, before = io.StringIO(), self.session.stop
        Terminal(self.session, screen).onecmd(text)
        result = {"result": screen.getvalue().rstrip(), "variablesReference": 0}
        if self.session.stop is before:
            return result
        return result, lambda: self._report(self.session.stop)

    def _reader_text(self, text: str) -> str:
        screen = io.StringIO()
        terminal = Terminal(self.session, screen)
        terminal.do_print(text)
        return screen.getvalue().rstrip()

    def on_disassemble(self, arguments: Body) -> Any:
        """List as many instructions as are asked for, from one on."""
        code = self.session.listing()
        dwords = list(code.instructions)
        pc = int(arguments["memoryReference"], 0) + int(arguments.get("offset", 0))
        start = code.dword(pc)
        if start is None:
            raise LookupError(f"no instruction begins at {hex(pc)}")
        first = dwords.index(start) + int(arguments.get("instructionOffset", 0))
        places = range(first, first + int(arguments["instructionCount"]))
        nothing = {"address": hex(pc), "instruction": "", "presentationHint": "invalid"}
        rows = [
            _instruction(code, dwords[at]) if 0 <= at < len(dwords) else nothing for at in places
        ]
        return {"instructions": rows}

    def on_readMemory(self, arguments: Body) -> Any:  # noqa: N802
        """Read global memory."""
        address = int(arguments["memoryReference"], 0) + int(arguments.get("offset", 0))
        count = int(arguments["count"])
        data = self.session.controlled().memory(address, count)
        answer: Message = {"address": hex(address), "data": base64.b64encode(data).decode()}
        if len(data) < count:
            answer["unreadableBytes"] = count - len(data)
        return answer


def _instruction(code: Code, dword: int) -> Message:
    row: Message = {"address": hex(code.pc(dword)), "instruction": code.instructions[dword]}
    if (place := code.place(dword)) is not None:
        row["location"] = {"name": Path(place.file).name, "path": place.file}
        row["line"] = place.line
    return row


def serve(
    source: IO[bytes], sink: IO[bytes], words_of: Callable[[Sequence[str]], list[str]]
) -> None:
    """Answer an editor until it goes.

    Args:
        source: What the editor writes.
        sink: What it reads.
        words_of: The command line of a program that the editor names.
    """
    Adapter(source, sink, words_of).run()


def serve_port(port: int, words_of: Callable[[Sequence[str]], list[str]]) -> None:
    """Answer the editor that connects to a TCP port of this host, and return when it goes."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
            serve(source, sink, words_of)
