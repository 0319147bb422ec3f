# SPDX-License-Identifier: MIT
"""The user's lines are no part of a kernel's identity, and messages name them all the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang import places
from cklang.build import builder as building
from cklang.build.refusals import in_users_lines
from cklang.build.store import digest_of
from cklang.errors import CkBuildError, error
from cklang.ir.nodes import Function
from cklang.lowering.pointwise import c_functions
from cklang.places import place_fill
from cklang.source import Source, Span
from tests.runtime.test_build import epilogue
from tests.support.processes import run_python

FAULTY = """
import numpy as np

import cklang as ck
from cklang.runtime import call_key
B, H, S, T, D, E = ck.dims("B H S T D E")


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, E], t: ck.f32[H]
) -> ck.f16[B, H, S, E]:
    return ck.attention(q, k, v, score=lambda s, h: s + t[h])


q, t = np.ones((1, 2, 64, 64), np.float16), np.ones(2, np.float32)
o = attend(q, q, q, t, device="emu:gfx942")
print("digest", attend.last.launches[-1].artifact.folder.name)
ready = attend._prepare([q, q, q, t], None, "emu:gfx942")
call = call_key.of_call(attend._parameters, [q, q, q, t], None, ())
addresses = [*call.addresses, call_key.address(o)]
addresses[3] = 16
try:
    ready.plan.run(addresses, None)
except ck.CkError as problem:
    print(problem)
"""


M, N, K = ck.dims("M N K")


def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Become an op below."""
    return ck.tanh(x @ w.T) + 3.0


@pytest.fixture(autouse=True)
def _no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_known", {})


def placed_at(line: int, file: str = "user.py") -> Function:
    source = Source(name=file, text="return ck.exp(x @ w)\n", first_line=line)
    span = Span(source=source, line=line, column=0, end_line=line, end_column=1)
    function = epilogue("exp")["epilogue"]
    return replace(function, body=tuple(replace(each, span=span) for each in function.body))


def fill(line: int, file: str = "user.py") -> str:
    return c_functions({"ck_epilogue": placed_at(line, file)})


def test_lines_and_files_do_not_change_the_compiled_text() -> None:
    one, other, bare = (
        fill(3),
        fill(40, 'odd "dir"/b.py'),
        c_functions({"f": epilogue("exp")["epilogue"]}),
    )
    assert one != other
    assert place_fill(one).text == place_fill(other).text
    assert place_fill(one).name == place_fill(other).name
    assert (
        place_fill(c_functions({"ck_epilogue": epilogue("relu")["epilogue"]})).text
        != place_fill(one).text
    )
    assert not any(place_fill(bare).places)
    assert 'odd "dir"/b.py:40' in place_fill(other).places


def test_an_imported_registry_names_the_kernels_of_its_op() -> None:
    op = ck.op(product)
    registry = ck.dispatch.Registry("mine")
    x, w = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    op.declare(x, w, registry=registry, among="compute", device="emu:gfx942")
    again = ck.dispatch.Registry.from_json(registry.to_json())
    builder = building.shared_builder()
    one, other = (
        [digest_of("kernel", builder._job(each.key, each.functions).kernel) for each in kernels]
        for kernels in (registry, again)
    )
    assert one == other
    assert len(one) > 0


def test_a_message_names_the_lines_of_every_op_that_shares_the_fill() -> None:
    one, other = place_fill(fill(3)), place_fill(fill(40, "other.py"))
    line = one.places.index("user.py:3") + 1
    message = f"fault at /somewhere/{one.name}:{line} in {one.name}:{line}:7: error"
    assert places.translate(message) == message
    places.note(one.name, one.places)
    assert places.translate(message) == "fault at user.py:3 in user.py:3: error"
    places.note(other.name, other.places)
    assert "other.py:40 or user.py:3" in places.translate(message)
    assert places.translate(f"{one.name}:999") == f"{one.name}:999"


def test_a_compilers_message_names_the_users_line() -> None:
    placed = place_fill(fill(17))
    places.note(placed.name, placed.places)
    line = placed.places.index("user.py:17") + 1
    notes = [f"{placed.name}:{line}:5: error: no such function"]
    with pytest.raises(CkBuildError) as caught, in_users_lines():
        raise error("B010", tool="clang", status=1, log="log.txt", notes=notes)
    assert caught.value.notes == ("user.py:17: error: no such function",)


def test_a_moved_op_finds_its_kernel_and_a_fault_names_its_new_line(tmp_path: Path) -> None:
    outputs = []
    for shift in (0, 5):
        script = tmp_path / f"shifted{shift}.py"
        script.write_text("\n" * shift + FAULTY)
        done = run_python(script)
        lines = script.read_text().splitlines()
        (line,) = (at for at, text in enumerate(lines, 1) if "+ t" in text)
        assert "memory access fault at address 0x1" in done.stdout
        assert f"at {script}:{line}" in done.stdout
        outputs.append(done.stdout.splitlines()[0])
    assert outputs[0].startswith("digest ")
    assert outputs[0] == outputs[1]
