# SPDX-License-Identifier: MIT
"""Vector and scalar operations against the pseudocode of AMD's manual, evaluated elsewhere.

``data/make_pseudocode.py`` made the results; see there which operations it could not evaluate.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cklang.emulator.engine.isa import schema
from tests.support.assembly import VCC, Module, assemble, lanes_body, run_lanes
from tests.support.pseudocode import CARRIES, GPUS, LANES, Operation, operands, operations
from tests.support.rdna import WAITS
from tests.support.read_back import HALVES

pytestmark = pytest.mark.usefixtures("emulator")

GOLDEN: dict[str, dict[str, Any]] = {
    family: json.loads(
        (Path(__file__).parent / "data" / f"pseudocode_{family}.json").read_text("utf-8")
    )
    for family in GPUS
}
#: Operations whose pseudocode says something else than the hardware does, and what.
DIFFERENT = {
    "s_setvskip": "it changes how the test itself runs",
    "v_fmac_dx9_zero_f32": "it adds to the destination, which has no name S2",
    **{
        f"{unit}_rndne_{kind}": "what becomes zero keeps its sign, as in LLVM's rint"
        for unit in ("v", "s")
        for kind in ("f16", "f32", "f64")
    },
    **{
        f"v{scalar}_rsq_{kind}": "it is rounded once"
        for scalar in ("", "_s")
        for kind in ("f16", "f32", "f64")
    },
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
    family: {
        op.name: op
        for op in operations(family)
        if op.name in GOLDEN[family]["results"] and op.name not in DIFFERENT
    }
    for family in GPUS
}
# A scalar operation runs once for each lane of the results.
_SCALAR = """
  s_mov_b32 s27, 0
again:
  s_mul_i32 s28, s27, 48
  s_add_i32 s29, s28, 32
  s_load_dwordx8 s[16:23], s[4:5], s28
  s_load_dwordx2 s[24:25], s[4:5], s29
  {wait}
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
  s_add_i32 s27, s27, 1
  s_cmp_lt_u32 s27, 64
  s_cbranch_scc1 again
"""
# As `lanes_body` for RDNA.
_LANES_RDNA = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mul_u32_u24 v1, 48, v0
  {wait}
  global_load_b128 v[2:5], v1, s[4:5]
  global_load_b128 v[6:9], v1, s[4:5] offset:16
  global_load_b128 v[10:13], v1, s[4:5] offset:32
  s_mov_b32 vcc_lo, 0x0f0f3355
  s_mov_b32 vcc_hi, 0x00ff00ff
  {wait}
{text}
  s_mov_b64 exec, -1
  v_mov_b32 v14, vcc_lo
  v_mov_b32 v15, vcc_hi
  v_mul_u32_u24 v1, 24, v0
  global_store_b128 v1, v[10:13], s[6:7]
  global_store_b64 v1, v[14:15], s[6:7] offset:16
"""


def register(letter: str, first: int, kind: str, halves: bool) -> str:
    if kind == "mask":
        return "vcc"
    wide = schema.TYPE_BITS[kind.removesuffix("x2")]
    half = ".l" if halves and wide == 16 and "x2" not in kind else ""
    return f"{letter}[{first}:{first + 1}]" if wide == 64 else f"{letter}{first}{half}"


def text(op: Operation) -> str:
    letter, source, target = ("v", 2, 10) if op.vector else ("s", 16, 24)
    shown = () if op.writes_exec else op.destinations
    words = [register(letter, target, kind, op.halves) for kind in shown]
    words += [
        register(letter, source + 2 * n, kind, op.halves) for n, kind in enumerate(op.sources)
    ]
    words += ["vcc"] if op.carry_in else []
    copy_of_exec = "\n  s_mov_b64 vcc, exec" if op.writes_exec else ""
    return f"{op.name} {', '.join(words)}{copy_of_exec}"


def body(op: Operation, gpu: str) -> str:
    """A kernel that runs an operation on the operands of each lane."""
    wait = WAITS.get(gpu, "s_waitcnt lgkmcnt(0)")
    plain = f"  {text(op)}\n"
    scalar = _SCALAR.format(text=text(op), wait=wait).replace("again", f"again_{op.name}")
    inner = plain if op.vector else scalar
    return _LANES_RDNA.format(text=inner, wait=wait) if gpu in WAITS else lanes_body(inner)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    assert CARRIES == VCC
    by_family = {}
    for family, gpu in GPUS.items():
        bodies = {name: body(op, gpu) for name, op in OPERATIONS[family].items()}
        image = assemble(bodies, gpu, flags=HALVES.get(gpu, ()))
        by_family[family] = Module(image, gpu)
    return by_family


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


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family in GPUS for name in OPERATIONS[family]]
)
def test_operation(modules: dict[str, Module], family: str, name: str) -> None:
    op = OPERATIONS[family][name]
    data = np.zeros((LANES, 12), np.uint32)
    table = np.array(operands(op), np.uint64)
    for slot, column in enumerate((0, 2, 4, 8)):
        data[:, column] = table[:, slot].astype(np.uint32)
        data[:, column + 1] = (table[:, slot] >> np.uint64(32)).astype(np.uint32)
    got = run_lanes(modules[family], name, data)
    hexed, flags = GOLDEN[family]["results"][name]
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


@pytest.mark.parametrize("family", GPUS)
def test_the_list_of_what_is_not_compared(family: str) -> None:
    """Every operation that could be compared is, or there is a reason."""
    golden = GOLDEN[family]
    names = {op.name for op in operations(family)}
    assert names == set(golden["results"]) | set(golden["not_evaluated"])
    assert len(OPERATIONS[family]) > 450
