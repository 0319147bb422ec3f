# SPDX-License-Identifier: MIT
"""Ops wherever Python defines functions: classes, exec with text, the REPL; and copies of them."""

import copy
import linecache
import pickle
import subprocess
import sys
from typing import Any

import cloudpickle
import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError

M, K = ck.dims("M K")
TEXT = "@ck.op\ndef doubled(x: ck.f32[M, K]) -> ck.f32[M, K]:\n    return 2.0 * x\n"
ARRAY = np.ones((2, 3), np.float32)


class Layer:
    @ck.op
    def plain(x: ck.f32[M, K]) -> ck.f32[M, K]:  # noqa: N805 - an op in a class is static
        return ck.relu(x)

    @staticmethod
    @ck.op
    def static(x: ck.f32[M, K]) -> ck.f32[M, K]:
        return ck.relu(x)

    class Inner:
        @ck.op
        def nested(x: ck.f32[M, K]) -> ck.f32[M, K]:  # noqa: N805 - as above
            return ck.relu(x)


@ck.op
def of_module(x: ck.f32[M, K]) -> ck.f32[M, K]:
    return ck.relu(x)


def program(op: ck.Op) -> str:
    return str(op.ir(ARRAY)).partition("(")[2]


@pytest.mark.parametrize("owner", [Layer, Layer()], ids=["class", "object"])
def test_an_op_in_a_class_is_called_through_class_and_object(owner: Any) -> None:
    for op in (owner.plain, owner.static, owner.Inner.nested):
        assert isinstance(op, ck.Op)
        assert program(op) == program(of_module)


def executed(file: str) -> Any:
    names: dict[str, Any] = {"ck": ck, "M": M, "K": K}
    exec(compile(TEXT, file, "exec"), names)
    return names["doubled"]


def test_exec_needs_the_text_in_linecache() -> None:
    with pytest.raises(CkError, match="F002") as caught:
        executed("<not known>")
    assert "give it to linecache" in str(caught.value)
    file = "<known>"
    linecache.cache[file] = (len(TEXT), None, TEXT.splitlines(keepends=True), file)
    assert "mul" in program(executed(file))


def test_a_loader_that_has_the_text_is_asked_for_it() -> None:
    class Loader:
        def get_source(self, name: str) -> str:
            assert name == "made_by_a_loader"
            return TEXT

    names: dict[str, Any] = {"ck": ck, "M": M, "K": K, "__loader__": Loader()}
    names["__name__"] = "made_by_a_loader"
    exec(compile(TEXT, "made_by_a_loader.py", "exec"), names)
    assert "mul" in program(names["doubled"])


def test_the_repl_keeps_its_text_or_the_error_says_what_to_do() -> None:
    lines = f"import cklang as ck\nM, K = ck.dims('M K')\n{TEXT}\nprint(doubled)\n"
    command = [sys.executable, "-i", "-q", "-c", ""]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    shown = done.stdout + done.stderr
    keeps_text = "<cklang op doubled>" in shown
    assert keeps_text or "before Python 3.13, the REPL keep no text" in " ".join(shown.split())


def copies(op: ck.Op) -> list[ck.Op]:
    plain = [pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)]
    return [*plain, cloudpickle.loads(cloudpickle.dumps(op))]


@pytest.mark.parametrize("where", ["module", "class", "function", "exec", "text of the IR"])
def test_copies_compute_the_same(where: str) -> None:
    @ck.op
    def local(x: ck.f32[M, K]) -> ck.f32[M, K]:
        return ck.relu(x)

    file = "<copied>"
    linecache.cache[file] = (len(TEXT), None, TEXT.splitlines(keepends=True), file)
    op = {
        "module": of_module,
        "class": Layer.Inner.nested,
        "function": local,
        "exec": executed(file),
        "text of the IR": ck.parse(str(of_module.ir(ARRAY))),
    }[where]
    assert [program(each) for each in copies(op)] == [program(op)] * 4


def test_a_module_that_holds_an_op_can_be_copied(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.op = of_module

    assert copy.deepcopy(Module()).op is of_module
