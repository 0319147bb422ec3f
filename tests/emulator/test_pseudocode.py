# SPDX-License-Identifier: MIT
"""Vector and scalar operations against the pseudocode of AMD's manual, evaluated elsewhere.

``data/make_pseudocode.py`` made the results; see there which operations it could not evaluate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly import VCC, Module, assemble, lanes_body, run_lanes
from pseudocode import CARRIES, LANES, Operation, operands, operations

from cklang.emulator.isa import schema

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "pseudocode_cdna.json").read_text("utf-8")
)
#: Operations whose pseudocode says something else than the hardware does, and what.
DIFFERENT = {
    "s_setvskip": "it changes how the test itself runs",
    **{
        f"v_fract_{kind}": "results stay below 1, which LLVM relies on"
        for kind in ("f16", "f32", "f64")
    },
    **{
        f"v_frexp_exp_{kind}": "zero gives 0, and denormals their own exponent"
        for kind in ("i16_f16", "i32_f32", "i32_f64")
    },
    **{
        f"v_div_fmas_{kind}": "the scale is that of v_div_scale, up or down"
        for kind in ("f32", "f64")
    },
}
OPERATIONS = {
    op.name: op for op in operations() if op.name in GOLDEN["results"] and op.name not in DIFFERENT
}
# A scalar operation runs once for each lane of the results.
_SCALAR = """
  s_mov_b32 s27, 0
again:
  s_mul_i32 s28, s27, 48
  s_add_u32 s29, s28, 32
  s_load_dwordx8 s[16:23], s[4:5], s28
  s_load_dwordx2 s[24:25], s[4:5], s29
  s_waitcnt lgkmcnt(0)
  s_bitcmp1_b32 s27, 0
  {text}
  s_cselect_b32 s26, 1, 0
  v_cmp_eq_u32 vcc, s27, v0
  v_mov_b32 v16, s24
  v_cndmask_b32 v10, v10, v16, vcc
  v_mov_b32 v16, s25
  v_cndmask_b32 v11, v11, v16, vcc
  v_mov_b32 v16, s26
  v_cndmask_b32 v12, v12, v16, vcc
  s_add_u32 s27, s27, 1
  s_cmp_lt_u32 s27, 64
  s_cbranch_scc1 again
"""


def register(letter: str, first: int, kind: str) -> str:
    if kind == "mask":
        return "vcc"
    wide = schema.TYPE_BITS[kind.removesuffix("x2")] == 64
    return f"{letter}[{first}:{first + 1}]" if wide else f"{letter}{first}"


def text(op: Operation) -> str:
    letter, source, target = ("v", 2, 10) if op.vector else ("s", 16, 24)
    words = [register(letter, target, kind) for kind in op.destinations]
    words += [register(letter, source + 2 * n, kind) for n, kind in enumerate(op.sources)]
    words += ["vcc"] if op.carry_in else []
    return f"{op.name} {', '.join(words)}"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    assert CARRIES == VCC
    bodies = {}
    for name, op in OPERATIONS.items():
        scalar = _SCALAR.format(text=text(op)).replace("again", f"again_{name}")
        bodies[name] = lanes_body(f"  {text(op)}\n" if op.vector else scalar)
    return Module(assemble(tmp_path_factory.mktemp("pseudocode"), bodies, "gfx950"), "gfx950")


def equal(got: np.ndarray, want: np.ndarray, kind: str) -> np.ndarray:
    """Bit by bit; any NaN is as good as another."""
    plain = kind.removesuffix("x2")
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(plain)
    if dtype is None:
        half = schema.TYPE_BITS[plain] == 16 and "x2" not in kind  # some keep the other half
        return np.asarray(((got ^ want) & (0xFFFF if half else 0xFFFFFFFF) == 0).all(1))
    a, b = (np.ascontiguousarray(x).view(dtype) for x in (got, want))
    if plain == "f16" and "x2" not in kind:
        a, b = a[:, :1], b[:, :1]
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    same = (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
    return np.asarray(same.all(1))


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(module: Module, name: str) -> None:
    op = OPERATIONS[name]
    data = np.zeros((LANES, 12), np.uint32)
    table = np.array(operands(op), np.uint64)
    for slot, column in enumerate((0, 2, 4, 8)):
        data[:, column] = table[:, slot].astype(np.uint32)
        data[:, column + 1] = (table[:, slot] >> np.uint64(32)).astype(np.uint32)
    got = run_lanes(module, name, data)
    hexed, flags = GOLDEN["results"][name]
    dwords = op.result_dwords
    if dwords:
        want = np.frombuffer(bytes.fromhex(hexed), ">u4").reshape(LANES, dwords).astype(np.uint32)
        right = equal(got[:, :dwords], want, op.destinations[0])
        wrong = np.flatnonzero(~right)
        assert right.all(), [
            (lane, [hex(v) for v in operands(op)[lane]], got[lane, :dwords], want[lane])
            for lane in wrong[:3]
        ]
    if flags:
        bits = int(got[0, 4]) | int(got[0, 5]) << 32
        if not op.vector:
            bits = sum(int(flag) << lane for lane, flag in enumerate(got[:, 2]))
        assert f"{bits:016x}" == flags


def test_the_list_of_what_is_not_compared() -> None:
    """Every operation that could be compared is, or there is a reason."""
    names = {op.name for op in operations()}
    assert names == set(GOLDEN["results"]) | set(GOLDEN["not_evaluated"])
    assert set(DIFFERENT) <= set(GOLDEN["results"])
    assert len(OPERATIONS) > 400
