# SPDX-License-Identifier: MIT
"""The Debug Adapter Protocol, spoken as an editor speaks it."""

import base64
import io
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from cklang.cli.target import words_of
from cklang.emulator.debugger.dap import read_message, serve, serve_port
from tests.support.assembly import assemble

_LINES = {"load": 14, "store": 18}


class Editor:
    """One end of the protocol."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink
        self._number = 0
        self._waiting: list[dict[str, Any]] = []
        self.output = ""

    def _next(self) -> dict[str, Any]:
        message = read_message(self._source)
        assert message is not None, "the adapter has gone"
        if message.get("event") == "output":
            self.output += message["body"]["output"]
        return message

    def send(self, command: str, **arguments: Any) -> int:
        self._number += 1
        request = {"seq": self._number, "type": "request", "command": command}
        data = json.dumps({**request, "arguments": arguments}).encode()
        self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._sink.flush()
        return self._number

    def _until(self, **wanted: Any) -> dict[str, Any]:
        def fits(message: dict[str, Any]) -> bool:
            return all(message.get(name) == value for name, value in wanted.items())

        for at, message in enumerate(self._waiting):
            if fits(message):
                return self._waiting.pop(at)
        while not fits(message := self._next()):
            self._waiting.append(message)
        return message

    def answer(self, number: int) -> dict[str, Any]:
        return self._until(type="response", request_seq=number)

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        answer = self.answer(self.send(command, **arguments))
        assert answer["success"], answer
        body: dict[str, Any] = answer["body"]
        return body

    def refusal(self, command: str, **arguments: Any) -> str:
        answer = self.answer(self.send(command, **arguments))
        assert not answer["success"]
        return str(answer["message"])

    def event(self, name: str) -> dict[str, Any]:
        body: dict[str, Any] = self._until(type="event", event=name)["body"]
        return body


@pytest.fixture
def editor() -> Iterator[Editor]:
    """An editor and an adapter, joined by pipes."""
    to_adapter, from_editor = os.pipe()
    to_editor, from_adapter = os.pipe()
    ends: list[IO[bytes]] = [os.fdopen(to_adapter, "rb"), os.fdopen(from_adapter, "wb")]
    mine: list[IO[bytes]] = [os.fdopen(to_editor, "rb"), os.fdopen(from_editor, "wb")]
    thread = threading.Thread(target=serve, args=(*ends, words_of), daemon=True)
    thread.start()
    talk = Editor(mine[0], mine[1])
    yield talk
    mine[1].close()
    thread.join(30)
    assert not thread.is_alive()
    for end in (ends[0], mine[0]):
        end.close()


@pytest.mark.usefixtures("emulator")
def test_a_program(editor: Editor, transpose_program: Path) -> None:
    source = str(Path(__file__).parents[1] / "profiler" / "transpose.hip")
    assert editor.ask("initialize", adapterID="cklang")["supportsStepBack"]
    editor.event("initialized")
    started = editor.send(
        "launch", program=str(transpose_program), args=["64"], env={"CKLANG_GPUS": "gfx942"}
    )
    set_ = editor.ask(
        "setBreakpoints",
        source={"path": source},
        breakpoints=[{"line": _LINES["store"], "condition": "workgroup 2 wave 1"}],
    )
    assert [each["line"] for each in set_["breakpoints"]] == [_LINES["store"]]
    editor.ask("setExceptionBreakpoints", filters=["faults"])
    editor.ask("configurationDone")
    assert editor.answer(started)["success"]

    stopped = editor.event("stopped")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [1])
    thread = stopped["threadId"]
    threads = {each["id"]: each["name"] for each in editor.ask("threads")["threads"]}
    assert len(threads) % 4 == 0
    assert threads[thread] == "workgroup (0, 1, 0), wave 1: ready"
    (frame,) = editor.ask("stackTrace", threadId=thread)["stackFrames"]
    assert (frame["name"], frame["line"]) == ("transpose", _LINES["store"])
    assert frame["source"]["path"] == source

    scopes = {
        each["name"]: each["variablesReference"]
        for each in editor.ask("scopes", frameId=frame["id"])["scopes"]
    }
    facts = editor.ask("variables", variablesReference=scopes["Wave"])["variables"]
    values = {each["name"]: each["value"] for each in facts}
    assert values["pc"] == frame["instructionPointerReference"]
    assert values["exec"] == "0xffffffffffffffff"
    vectors = editor.ask("variables", variablesReference=scopes["Vector registers"])["variables"]
    lanes = editor.ask("variables", variablesReference=vectors[0]["variablesReference"])
    assert len(lanes["variables"]) == 64
    assert editor.ask("variables", variablesReference=scopes["LDS"])["variables"]
    hover = editor.ask("evaluate", expression="v0", frameId=frame["id"], context="hover")
    assert lanes["variables"][0]["value"] in hover["result"]

    pc = frame["instructionPointerReference"]
    rows = editor.ask("disassemble", memoryReference=pc, instructionOffset=-2, instructionCount=5)
    assert [row["address"] for row in rows["instructions"]].index(pc) == 2
    far = editor.ask("disassemble", memoryReference=pc, instructionOffset=-9999, instructionCount=2)
    assert {row["presentationHint"] for row in far["instructions"]} == {"invalid"}

    editor.ask("stepIn", threadId=thread, granularity="instruction")
    assert editor.event("stopped")["reason"] == "step"
    (later,) = editor.ask("stackTrace", threadId=thread)["stackFrames"]
    assert later["instructionPointerReference"] != pc
    assert "variables" in editor.refusal("variables", variablesReference=scopes["Wave"])
    editor.ask("stepBack", threadId=thread, granularity="instruction")
    assert editor.event("stopped")["threadId"] == thread
    (again,) = editor.ask("stackTrace", threadId=thread)["stackFrames"]
    assert again["instructionPointerReference"] == pc
    editor.ask("next", threadId=thread)
    editor.event("stopped")
    (line,) = editor.ask("stackTrace", threadId=thread)["stackFrames"]
    assert line["line"] != _LINES["store"]
    editor.ask("reverseContinue", threadId=thread)
    assert editor.event("stopped")["reason"] in ("breakpoint", "entry")

    kernarg = int(editor.ask("evaluate", expression="kernarg", context="hover")["result"], 16)
    data = editor.ask("readMemory", memoryReference=hex(kernarg), count=20)["data"]
    assert int.from_bytes(base64.b64decode(data)[16:20], "little") == 64
    assert editor.ask("readMemory", memoryReference="0x40", count=4)["unreadableBytes"] == 4

    editor.ask("setBreakpoints", source={"path": source}, breakpoints=[])
    assert "no breakpoints" in editor.ask("evaluate", expression="info b", context="repl")["result"]
    assert "D031" in editor.ask("evaluate", expression="bogus", context="repl")["result"]
    editor.ask("stepOut", threadId=thread)
    editor.event("stopped")
    assert [each["name"] for each in editor.ask("threads")["threads"]] == ["no wave runs"]
    editor.ask("continue", threadId=thread)
    assert editor.event("exited") == {"exitCode": 0}
    editor.event("terminated")
    assert "correct" in editor.output
    editor.ask("disconnect")


@pytest.mark.usefixtures("emulator")
def test_entry_kernels_and_instructions(editor: Editor, transpose_program: Path) -> None:
    editor.ask("initialize")
    editor.ask("launch", program=str(transpose_program), args=["32"], stopOnEntry=True)
    editor.ask("configurationDone")
    stopped = editor.event("stopped")
    thread = stopped["threadId"]
    set_ = editor.ask("setInstructionBreakpoints", breakpoints=[{"instructionReference": "0x8"}])
    assert set_["breakpoints"][0]["verified"]
    set_ = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "nothing"}])
    assert not set_["breakpoints"][0]["verified"]
    editor.ask("continue", threadId=thread)
    assert editor.event("stopped")["reason"] == "breakpoint"
    (frame,) = editor.ask("stackTrace", threadId=1)["stackFrames"]
    assert frame["instructionPointerReference"] == "0x8"
    result = editor.ask("evaluate", expression="stepi 2", context="repl")["result"]
    assert "instruction" in result
    assert editor.event("stopped")["reason"] == "step"
    editor.ask("terminate")
    editor.event("terminated")


_FOREVER = """
import pathlib, sys
import numpy as np
from tests.support.assembly import Module
module = Module(pathlib.Path(sys.argv[1]).read_bytes())
module.launch("forever", np.zeros(64, np.uint32), np.zeros(64, np.uint32))
"""


@pytest.mark.usefixtures("emulator")
def test_a_launch_that_does_not_end_is_paused(editor: Editor, tmp_path: Path) -> None:
    body = "  v_mov_b32 v1, 0\nforever_again:\n  v_add_u32 v1, 1, v1\n  s_branch forever_again"
    (tmp_path / "forever.co").write_bytes(assemble({"forever": body}))
    editor.ask("initialize")
    editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "forever"}])
    words = ["-c", _FOREVER, str(tmp_path / "forever.co")]
    root = str(Path(__file__).parents[3])
    editor.ask("launch", program=sys.executable, args=words, cwd=root)
    editor.ask("configurationDone")
    assert editor.event("stopped")["reason"] == "breakpoint"
    editor.ask("continue")
    editor.ask("pause", threadId=1)
    assert editor.event("stopped")["reason"] == "pause"
    assert "v_add" in editor.ask("evaluate", expression="disassemble", context="repl")["result"]
    editor.ask("disconnect")


def test_before_a_program_is_launched(editor: Editor) -> None:
    assert "nothing has been launched" in editor.refusal("threads")
    assert "no such request" in editor.refusal("restartFrame")
    editor.ask("initialize")
    editor.ask("disconnect")


def test_a_program_that_cannot_be_run(editor: Editor) -> None:
    editor.ask("initialize")
    editor.ask("launch", program="/nowhere/saxpy")
    editor.ask("configurationDone")
    editor.event("terminated")
    assert "/nowhere/saxpy" in editor.output
    editor.ask("disconnect")


def test_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as any_:
        port = any_.getsockname()[1]
    thread = threading.Thread(target=serve_port, args=(port, words_of), daemon=True)
    thread.start()
    connection = None
    while connection is None:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert thread.is_alive()
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
        editor = Editor(source, sink)
        assert editor.ask("initialize")["supportsDisassembleRequest"]
        editor.ask("disconnect")
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("text", [b"", b"Content-Length: 20\r\n\r\n{}", b"X: 1\r\n\r\n"])
def test_what_is_no_message(text: bytes) -> None:
    assert read_message(io.BytesIO(text)) is None
