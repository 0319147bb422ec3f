# SPDX-License-Identifier: MIT
"""The judge: it calls a submission in a process of its own, and computes the reference in this."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map

from cklang import knobs
from cklang.emulator.engine.reports import read_reports
from cklang.judge.comparison import compared
from cklang.judge.task import Task, load_task
from cklang.judge.verdict import Certificate, Finding, Verdict, certificate, findings_of
from cklang.judge.wire import receive, send
from cklang.pretend import pretend

_SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, 1e30, -1e30, 1e-30)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a submission's process may take."""

    seconds: float = 300.0
    """For all calls with one choice of sizes."""
    memory_bytes: int = 16 << 30
    file_bytes: int = 1 << 30


class EndedError(Exception):
    """The submission's process has ended, or was ended."""


class _Process:
    """A submission that can be called."""

    def __init__(self, files: tuple[Any, Any]) -> None:
        self._out, self._in = files

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a message."""
        try:
            send(self._out, message)
            return receive(self._in)
        except (EOFError, OSError, ValueError, KeyError, TypeError) as problem:
            raise EndedError from problem

    def call(self, arguments: Sequence[Any], **settings: Any) -> dict[str, Any]:
        """Return what came of a call."""
        nonce = secrets.token_hex(16)
        request = {"seed": 0, "again": False, "gaps": False, "timed": False, **settings}
        answer = self.ask({"nonce": nonce, "arguments": list(arguments), **request})
        if answer.get("nonce") != nonce:
            raise EndedError
        return answer


@contextmanager
def _started(folder: Path, limits: Limits) -> Iterator[_Process]:
    there, out = os.pipe()
    back, here = os.pipe()
    environment = knobs.tool_environment(
        **{
            knobs.SANITIZE.name: ",".join(knobs.SANITIZERS),
            knobs.REPORTS.name: str(folder / "reports"),
        }
    )
    command = [sys.executable, "-m", "cklang.judge.worker", str(there), str(here)]
    log = (folder / "log.txt").open("w")
    child = subprocess.Popen(
        command, pass_fds=(there, here), cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    os.close(there)
    os.close(here)

    def end() -> None:
        with suppress(ProcessLookupError, BrokenPipeError):
            os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(limits.seconds, end)
    timer.start()
    files = (os.fdopen(out, "wb"), os.fdopen(back, "rb"))
    try:
        yield _Process(files)
    finally:
        timer.cancel()
        with suppress(ProcessLookupError, BrokenPipeError):
            files[0].close()
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_GRACE)
        end()
        child.wait()
        files[1].close()
        log.close()


_GRACE = 10.0
"""Seconds for the process to end by itself."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of calls with one choice of sizes."""

    findings: tuple[Finding, ...]
    trials: int
    first: Mapping[str, Any]
    """The answer to the first call."""


def judge(
    task: Path,
    submission: Path,
    *,
    gpu: str,
    sizes: Mapping[str, int] | None = None,
    seeds: int = 2,
    allow_torch: bool = False,
    limits: Limits | None = None,
    shrink: int = 8,
) -> Verdict:
    """Return what a judge says of a submission to a task.

    Args:
        task: A Python file: KernelBench's (Model, get_inputs), GPU MODE's (generate_input,
            ref_kernel) or two functions (inputs, reference).
        submission: A Python file with ModelNew, custom_kernel or submission.
        gpu: The emulated GPU.
        sizes: Arguments of generate_input or inputs; for KernelBench, variables of its module.
        seeds: How many draws of inputs are called, before those in the memory of the last one.
        allow_torch: Whether torch may compute beside the kernels.
        limits: Of the submission's process.
        shrink: How many smaller sizes are tried where it fails.

    Raises:
        CkValueError: Z010, there is no such file, or it is no task; D001, E011, the GPU.
    """
    begin, limits = time.monotonic(), limits or Limits()
    with pretend(gpu):
        asked = load_task(task, dict(sizes or {}))
        whole = dict(asked.named_sizes)
        run = _run(asked, submission, gpu, whole, seeds, limits)
        smaller = None
        if any(f.rule == "differs" for f in run.findings):
            smaller = _shrunk(asked, submission, gpu, whole, limits, shrink)
    answer = run.first
    findings = [_lenient(f) if allow_torch and f.rule == "torch" else f for f in run.findings]
    return Verdict(
        task=str(task),
        submission=str(submission),
        form=asked.form.name,
        gpu=gpu,
        findings=tuple(findings),
        trials=run.trials,
        seconds=time.monotonic() - begin,
        sizes=whole,
        failing_sizes=smaller,
        us=answer.get("us"),
        us_error=answer.get("us_error"),
        us_under_load=answer.get("us_under_load"),
        launches=tuple(answer.get("launches", ())),
        certificate=_certificate(answer),
    )


def _lenient(finding: Finding) -> Finding:
    return replace(finding, level="warning")


def _certificate(answer: Mapping[str, Any]) -> Certificate | None:
    return certificate(answer["operations"]) if answer.get("operations") else None


def _shrunk(
    task: Task, submission: Path, gpu: str, sizes: Mapping[str, int], limits: Limits, budget: int
) -> Mapping[str, int]:
    """Halve sizes while the submission still gives other results than the reference."""
    smallest = dict(sizes)
    for name in [name for name, value in sizes.items() if value > 1]:
        while budget > 0 and smallest[name] > 1:
            budget -= 1
            tried = {**smallest, name: smallest[name] // 2}
            try:
                findings = _run(task, submission, gpu, tried, 1, limits).findings
            except Exception:  # a task need not take all sizes
                break
            if not any(f.rule == "differs" and f.level == "error" for f in findings):
                break
            smallest = tried
    return smallest


def _run(
    task: Task, submission: Path, gpu: str, sizes: Mapping[str, int], seeds: int, limits: Limits
) -> Run:
    """Call the submission a few times, and compare."""
    findings: list[Finding] = []
    answers: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="cklang-judge-") as name:
        folder = Path(name)
        try:
            with _started(folder, limits) as process:
                findings += _loaded(process, task, submission, gpu, sizes, limits)
                for trial in () if findings else _trials(seeds):
                    answer, found = _tried(process, task, sizes, trial, answers)
                    answers.append(answer)
                    findings += found
                    if any(f.level == "error" for f in found):
                        break
        except EndedError:
            log = (folder / "log.txt").read_text(errors="replace").strip().splitlines()[-3:]
            why = f"its process ended, after at most {limits.seconds:.0f} s: " + " / ".join(log)
            findings.append(Finding(rule="fails", message=why))
        findings += findings_of(read_reports(folder / "reports"))
    return Run(
        findings=tuple(dict.fromkeys(findings)),
        trials=len(answers),
        first=answers[0] if answers else {},
    )


def _loaded(
    process: _Process, task: Task, submission: Path, gpu: str, sizes: Mapping[str, int],
    limits: Limits,
) -> list[Finding]:  # fmt: skip
    """Let the process load the submission; return what speaks against it already."""
    model = task.model(sizes)
    answer = process.ask(
        {
            "path": str(submission.resolve()),
            "entry": task.form.entry,
            "gpu": gpu,
            "initial": task.initial(sizes) if model is not None else None,
            "state": dict(model.state_dict()) if model is not None else None,
            "bytes": limits.memory_bytes,
            "file_bytes": limits.file_bytes,
        }
    )
    if "error" in answer:
        return [Finding(rule="fails", message=answer["error"])]
    return _patched(answer)


def _patched(answer: Mapping[str, Any]) -> list[Finding]:
    names = answer["changed"]
    return [Finding(rule="patched", message=", ".join(names))] if names else []


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """One call."""

    seed: int
    again: bool = False
    """In the memory of the call before."""
    gaps: bool = False
    special: bool = False
    rule: str = "differs"
    level: str = "error"


def _trials(seeds: int) -> list[_Trial]:
    """Return the calls of a submission, in order."""
    drawn = [_Trial(seed=seed) for seed in range(1, seeds + 1)]
    return [
        *drawn,
        _Trial(seed=seeds + 1, again=True),
        _Trial(seed=seeds + 2, special=True, rule="special", level="warning"),
        _Trial(seed=seeds + 3, gaps=True, rule="gaps", level="warning"),
    ]


def _tried(
    process: _Process, task: Task, sizes: Mapping[str, int], trial: _Trial,
    before: Sequence[Mapping[str, Any]],
) -> tuple[Mapping[str, Any], list[Finding]]:  # fmt: skip
    """Call the submission once; return its answer, and what speaks against it."""
    inputs = task.inputs(sizes, trial.seed)
    if trial.special:
        inputs = tree_map(_with_special, inputs)
    answer = process.call(
        inputs, seed=trial.seed, again=trial.again, gaps=trial.gaps, timed=not before
    )
    if "error" in answer:
        rule = "fails" if trial.level == "error" else trial.rule
        return answer, [Finding(rule=rule, level=trial.level, message=answer["error"])]
    exact, own = task.expected(sizes, inputs)
    got = answer["outputs"]
    findings = [] if trial.level == "warning" else _honesty(answer)
    wrong = compared(got, exact, own, inputs, special=trial.special)
    if wrong:
        is_stale = trial.again and bool(before) and _equal(got, before[-1]["outputs"])
        rule = "stale" if is_stale else trial.rule
        findings.append(Finding(rule=rule, level=trial.level, message=wrong))
    elif trial.level == "error":
        findings += _objections(task.own_check(inputs, got))
    return answer, findings


def _objections(text: str) -> list[Finding]:
    return [Finding(rule="task-check", message=text)] if text else []


def _equal(results: Any, others: Any) -> bool:
    """Return whether results are those of another call."""
    return not compared(results, others, others, [], special=True)


def _with_special(value: Any) -> Any:
    """Return a tensor of floats with some values that are not usual."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return value
    flat = value.clone().reshape(-1)
    top = torch.finfo(flat.dtype).max
    for number, special in enumerate(_SPECIAL):
        at = number * len(flat) // len(_SPECIAL)
        flat[at] = max(-top, min(top, special)) if abs(special) < float("inf") else special
    return flat.reshape(value.shape)


def _honesty(answer: Mapping[str, Any]) -> list[Finding]:
    """Return what says that results are not those of kernels of the call."""
    findings = _patched(answer)
    if answer["computed"]:
        names = ", ".join(f"{name} ({count})" for name, count in answer["computed"].items())
        findings.append(Finding(rule="torch", message=f"torch computes {names}"))
    sources = [source for source in answer["sources"] if source]
    if not answer["launches"]:
        findings.append(Finding(rule="no-kernel", message="no kernel is launched"))
    elif sources:
        findings.append(
            Finding(rule="no-kernel", message=f"a result is as {', '.join(sources)} wrote it")
        )
    places = [place for place in answer["places"] if place]
    if places:
        findings.append(Finding(rule="other-type", message=f"a result is {', '.join(places)}"))
    return findings
