# SPDX-License-Identifier: MIT
"""The process of a submission: it is loaded and called here, and its results are sent away.

The reference is never here. ``python -m cklang.judge.worker IN OUT`` reads requests from one file
descriptor and writes an answer to each to another.
"""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
import torch._dynamo  # wraps functions of torch when it is imported, which is then no change
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

from cklang import emulator
from cklang.emulator.clock.sampling import SAMPLES, representative
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.profiler.prediction import predicted
from cklang.errors import CkError
from cklang.judge.honesty import Watch, noticed
from cklang.judge.task import load_module
from cklang.judge.wire import receive, send
from cklang.pretend import pretend
from cklang.pretend.memory import bounded, watched
from cklang.pretend.tensor import GpuTensor

_SEED = 42
_LINES = 6
"""How much of a traceback is in an answer."""


def main(words: Sequence[str]) -> int:
    """Answer requests until there are none."""
    incoming: BinaryIO = os.fdopen(int(words[0]), "rb")
    outgoing: BinaryIO = os.fdopen(int(words[1]), "wb")
    first = receive(incoming)
    resource.setrlimit(resource.RLIMIT_DATA, (first["bytes"], first["bytes"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (first["file_bytes"], first["file_bytes"]))
    changes: list[str] = []
    with pretend(first["gpu"]), bounded():
        try:
            with noticed(changes):
                call = _loaded(first)
        except Exception:
            send(outgoing, {"error": _last_lines()})
            return 1
        send(outgoing, {"changed": changes})
        session = _Session(call)
        while True:
            try:
                request = receive(incoming)
            except EOFError:
                return 0
            send(outgoing, {"nonce": request["nonce"], **session.answer(request)})


def _loaded(first: Mapping[str, Any]) -> Callable[..., Any]:
    """Return what is called."""
    module = load_module(Path(first["path"]), "cklang_judge_submission")
    entry: Callable[..., Any] = getattr(module, first["entry"])
    if first["initial"] is None:
        return entry
    torch.manual_seed(_SEED)
    model: Any = entry(*first["initial"])
    own, theirs = model.state_dict(), first["state"]
    if {k: v.shape for k, v in own.items()} == {k: v.shape for k, v in theirs.items()}:
        model.load_state_dict(theirs)
    moved: Callable[..., Any] = model.cuda()
    return moved


class _Session:
    """A submission, and the arguments of its last call."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._arguments: list[Any] = []

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what came of a call."""
        self._take(request)
        changes: list[str] = []
        gc.collect()
        watch = Watch(request["seed"])
        try:
            with noticed(changes), timing(SAMPLES) as recording, watched(watch.moved):
                with torch.no_grad(), watch:
                    outputs = self._call(*self._arguments)
                sources = [
                    watch.source_of(leaf) for leaf in tree_leaves(outputs) if is_tensor(leaf)
                ]
        except (Exception, SystemExit):
            return {"error": _last_lines(), "changed": changes}
        return {
            "outputs": outputs,
            "changed": changes,
            "computed": dict(watch.computed),
            "sources": sources,
            "places": [_place(leaf) for leaf in tree_leaves(outputs)],
            **_measured(recording.launches, request["timed"]),
        }

    def _take(self, request: Mapping[str, Any]) -> None:
        """Put arguments where a call finds them: in new memory, or in that of the last call."""
        new = request["arguments"]
        if not request["again"]:
            self._arguments = tree_map(lambda value: _shaped(value, request["gaps"]), new)
            return
        old, _ = tree_flatten(self._arguments)
        for target, value in zip(old, tree_leaves(new), strict=True):
            if is_tensor(target):
                target.copy_(value)


def is_tensor(value: object) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value, torch.Tensor)


def _shaped(value: Any, gaps: bool) -> Any:
    """Return a tensor on the GPU; with ``gaps``, its last axis is not contiguous."""
    if not is_tensor(value):
        return value
    if not gaps or value.dim() == 0:
        return value.cuda()
    wide = torch.stack((value, value), dim=-1).cuda()
    return wide[..., 0]


def _place(value: Any) -> str:
    """Return what a result is, if it is no tensor on the GPU as torch has it."""
    if not is_tensor(value):
        return f"a {type(value).__name__}"
    if type(value) is not GpuTensor:
        return "a tensor on the CPU" if type(value) is torch.Tensor else f"a {type(value).__name__}"
    return ""


def _last_lines() -> str:
    return "\n".join(traceback.format_exc().rstrip().splitlines()[-_LINES:])


def _measured(launches: Sequence[RecordedLaunch], timed: bool) -> dict[str, Any]:
    """Return the launches of a call, and how long they take."""
    rows: list[dict[str, Any]] = [
        {
            "kernel": launch.kernel,
            "groups": list(launch.groups),
            "block": list(launch.block),
            "vgprs": launch.vgprs,
            "lds_bytes": launch.lds_bytes,
            "bytes_stored": launch.bytes_stored,
        }
        for launch in launches
    ]
    answer: dict[str, Any] = {"launches": rows}
    if not timed or not launches:
        return answer
    answer["operations"] = operations(launches)
    try:
        prediction = predicted([representative(launch) for launch in launches])
    except CkError as problem:
        return answer | {"untimed": str(problem)}
    for row, kernel in zip(rows, prediction.kernels, strict=True):
        row |= {"us": kernel.us, "error": kernel.error, "bound": kernel.bound}
    loaded = prediction.us_under_load
    return answer | {"us": prediction.us, "us_error": prediction.error, "us_under_load": loaded}


_LINE = re.compile(r"\s*([0-9a-f]+):\s+(\S+)")


def operations(launches: Sequence[RecordedLaunch]) -> dict[str, int]:
    """Return how often waves executed each operation."""
    counts: Counter[str] = Counter()
    for launch in launches:
        for line in emulator.disassemble(launch.gpu, launch.code).splitlines():
            match = _LINE.match(line)
            at = int(match[1], 16) // 4 if match else len(launch.executed)
            if match and at < len(launch.executed) and launch.executed[at]:
                counts[match[2]] += int(launch.executed[at])
    return dict(counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
