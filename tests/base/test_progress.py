# SPDX-License-Identifier: MIT
"""Waits that are announced: what is said, when, and by which of several."""

import os
import sys
import time
from io import StringIO

import pytest

from cklang.toolchain import progress
from cklang.toolchain.progress import Wait, report
from tests.support.waits import announce_at_once


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    announce_at_once(monkeypatch)


def is_asleep() -> bool:
    return progress.asleep


def lines_until(count: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what was said until there are ``count`` lines."""
    text, end = "", time.monotonic() + 10
    while text.count("\n") < count and time.monotonic() < end:
        time.sleep(0.01)
        text += capsys.readouterr().err
    return text.splitlines()


@pytest.mark.parametrize(
    ("steps", "elapsed", "expected", "said"),
    [
        ((0, 0), 3.2, None, "3 s so far"),
        ((0, 8), 3.2, None, "0 of 8 steps done, 3 s so far"),
        ((2, 8), 3.0, None, "2 of 8 steps done, 3 s so far, about 9 s left"),
        ((1, 8), 3.0, None, "1 of 8 steps done, 3 s so far"),
        ((2, 3), 3.0, None, "2 of 3 steps done, 3 s so far"),
        ((2, 8), 3.0, 20.0, "2 of 8 steps done, 3 s so far, about 17 s left"),
        ((1, 8), 30.0, 20.0, "1 of 8 steps done, 30 s so far"),
        ((2, 8), 30.0, 20.0, "2 of 8 steps done, 30 s so far, about 90 s left"),
        ((8, 8), 30.0, None, "8 of 8 steps done, 30 s so far"),
    ],
)
def test_a_line_says_what_is_left(
    steps: tuple[int, int], elapsed: float, expected: float | None, said: str
) -> None:
    assert report("title", steps, elapsed, expected) == f"cklang: title: {said}"


@pytest.mark.usefixtures("quick")
def test_a_long_wait_speaks_once_and_again_and_a_short_one_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Wait("short"):
        pass
    begin = time.perf_counter()
    with Wait("long"):
        assert lines_until(2, capsys) == ["cklang: long: 0 s so far"] * 2
        assert time.perf_counter() - begin > 0.12
    end = time.monotonic() + 10
    while not is_asleep() and time.monotonic() < end:
        time.sleep(0.01)
    assert is_asleep(), "the thread goes on though there is no wait"
    with Wait("later"):
        assert not is_asleep()
        assert lines_until(1, capsys) == ["cklang: later: 0 s so far"]


@pytest.mark.usefixtures("quick")
def test_waits_for_one_thing_speak_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.perf_counter()
    for _ in range(5):
        with Wait("one of many"):
            time.sleep(0.05)
    spent = time.perf_counter() - begin
    assert 1 <= len(capsys.readouterr().err.splitlines()) <= 1 + spent / 0.1


@pytest.mark.usefixtures("quick")
def test_the_wait_that_began_last_speaks_and_names_its_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Wait("outer"), Wait("inner", 1) as inner, inner.step("first"), inner.step("second"):
        line = "cklang: inner: first; 0 of 2 steps done, 0 s so far"
        assert lines_until(1, capsys) == [line]


@pytest.mark.usefixtures("quick")
def test_items_are_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with Wait("items", 2) as wait:
        for item in wait.over((7, 9), lambda number: f"number {number}"):
            if item == 9:
                (line,) = lines_until(1, capsys)
    assert line == "cklang: items: number 9; 1 of 2 steps done, 0 s so far"


@pytest.mark.usefixtures("quick")
def test_a_wait_that_cannot_be_announced_leaves_the_others_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken() -> tuple[int, int]:
        raise RuntimeError

    with Wait("broken", count=broken):
        time.sleep(0.06)
    with Wait("whole"):
        assert lines_until(1, capsys) == ["cklang: whole: 0 s so far"]


@pytest.mark.usefixtures("quick")
def test_workgroups_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with Wait("kernels", count=lambda: (3, 9)):
        (line,) = lines_until(1, capsys)
    assert line == "cklang: kernels: 3 of 9 workgroups done, 0 s so far"


@pytest.mark.usefixtures("quick")
def test_a_terminal_has_one_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, line = Terminal(), "\r\x1b[Kcklang: long: 0 s so far"
    monkeypatch.setattr(sys, "stderr", terminal)
    with Wait("short"):
        pass
    assert terminal.getvalue() == ""
    end = time.monotonic() + 10
    with Wait("long"):
        while terminal.getvalue().count(line) < 3 and time.monotonic() < end:
            time.sleep(0.01)
    text = terminal.getvalue()
    assert text == line * text.count(line) + "\r\x1b[K"
    assert text.count(line) >= 3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("closed", [False, True])
def test_nobody_is_told_where_nobody_listens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: bool
) -> None:
    if closed:
        stream = StringIO()
        stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
    else:
        monkeypatch.setenv("CKLANG_LOG", "error")
    with Wait("long"):
        time.sleep(0.06)
        assert not is_asleep()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("quick")
def test_a_forked_process_announces_its_own_waits_alone() -> None:
    read, write = os.pipe()
    with Wait("the parent's"):
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            with os.fdopen(write, "w") as sys.stderr, Wait("the child's"):
                time.sleep(0.5)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as stream:
            assert set(stream.read().splitlines()) == {"cklang: the child's: 0 s so far"}
        os.waitpid(child, 0)
