# SPDX-License-Identifier: MIT
"""Every load, store and atomic of every GPU: what becomes of memory and of the result."""

import numpy as np
import pytest

from cklang.emulator.engine.isa import schema
from tests.support.assembly import CDNA, Module, assemble
from tests.support.memory_operations import Operation, operations
from tests.support.rdna import WAITS

pytestmark = pytest.mark.usefixtures("emulator")

GPUS = {schema.load(family).arch: operations(family) for family in schema.FAMILIES}
LANES = 32
_WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"
#: Each lane has 16 bytes of memory, then 16 of data and 16 of old result behind all memory.
_BODY = """
  s_load_{x4} s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  v_lshlrev_b32 v20, 5, v0
  {wait}
  global_load_{x4} v[2:5], v20, s[6:7]
  global_load_{x4} v[8:11], v20, s[6:7] offset:16
  {wait}
{before}
  {text}
  {wait}
{after}
  global_store_{x4} v20, v[8:11], s[6:7] offset:16
"""
_BUFFER = (
    "  s_mov_b32 s8, s4\n  s_mov_b32 s9, s5\n  s_mov_b32 s10, 4096\n  s_mov_b32 s11, {word3}\n"
)
_FLAT = (
    "  v_mov_b32 v15, s5\n  v_add_co_u32 v14, vcc{lo}, s4, v1\n"
    "  v_add{carry}_u32{long} v15, vcc{lo}, 0, v15, vcc{lo}\n"
)
#: Old and new result are one register there, and the data stand in it.
_SAME = "  v_mov_b32 v8, v2\n  v_mov_b32 v9, v3\n  v_mov_b32 v10, v4\n  v_mov_b32 v11, v5\n"


def register(first: int, dwords: int) -> str:
    return f"v[{first}:{first + dwords - 1}]" if dwords > 1 else f"v{first}"


def _returned(gpu: str) -> str:
    return {"gfx90a": "glc", "gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN"}.get(gpu, "sc0")


def text(op: Operation, gpu: str) -> str:
    """The instruction, on the lane's memory at byte v1 of the space."""
    atomic = "_atomic_" in op.name
    result, data = register(8, max(op.result, 1)), register(2, max(op.data, 1))
    last = f" {_returned(gpu)}" if atomic else ""
    if op.space == "buffer":
        registers = register(8 if atomic or op.result else 2, max(op.data, op.result))
        zero = "null" if gpu == "gfx1201" else "0"
        return f"{op.name} {registers}, v1, s[8:11], {zero} offen{last}"
    words = [result] if op.result else []
    if op.space == "ds":
        half = op.data // op.operands
        data = ", ".join(register(2 + n * half, half) for n in range(op.operands))
        return f"{op.name} {', '.join([*words, 'v1', *([data] if op.data else [])])}"
    place = {"global": "v[14:15]", "flat": "v[14:15]", "scratch": "off"}[op.space]
    words += [place, *([data] if op.data else [])]
    words += {"global": ["off"], "flat": [], "scratch": ["s12"]}[op.space]
    return f"{op.name} {', '.join(words)}{last}"


def body(op: Operation, gpu: str) -> str:
    cdna = gpu in CDNA
    x4, wait = ("dwordx4", _WAIT) if cdna else ("b128", WAITS[gpu])
    word3 = "0x20000" if cdna else hex(3 << 28)
    take, put = ("ds_read_b128", "ds_write_b128") if cdna else ("ds_load_b128", "ds_store_b128")
    before = after = ""
    if op.space == "buffer":
        before = _BUFFER.format(word3=word3)
        before += _SAME if "_atomic_" in op.name else ""
    elif op.space in ("global", "flat"):
        carry, long = ("c_co", "") if cdna else ("_co_ci", "_e64")
        before = _FLAT.format(lo="" if cdna else "_lo", carry=carry, long=long)
    fetch = f"  global_load_{x4} v[24:27], v1, s[4:5]\n  {wait}\n"
    keep = f"  {wait}\n  global_store_{x4} v1, v[24:27], s[4:5]\n"
    if op.space == "ds":
        before = f"{fetch}  {put} v1, v[24:27]\n  {wait}\n"
        after = f"  {take} v[24:27], v1\n{keep}"
    elif op.space == "scratch":
        before = f"{fetch}  s_mov_b32 s12, 16\n  scratch_store_{x4} off, v[24:27], s12\n  {wait}\n"
        after = f"  scratch_load_{x4} v[24:27], off, s12\n{keep}"
    return _BODY.format(x4=x4, wait=wait, before=before, text=text(op, gpu), after=after)


BODIES = {gpu: {op.name: body(op, gpu) for op in of_gpu} for gpu, of_gpu in GPUS.items()}


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    by_gpu = {}
    for gpu, bodies in BODIES.items():
        wave = 64 if gpu in CDNA else LANES
        image = assemble(bodies, gpu, lds=1024, wave=wave, scratch=64)
        by_gpu[gpu] = Module(image, gpu)
    return by_gpu


def inputs(op: Operation) -> tuple[np.ndarray, np.ndarray]:
    """[lane, byte] of memory, and of data and old results; many lanes have equal numbers."""
    rng = np.random.default_rng(sum(op.name.encode()))
    memory = rng.integers(0, 256, (LANES, 16), np.uint8)
    io = rng.integers(0, 256, (LANES, 32), np.uint8)
    if op.floats is not None:
        size = np.dtype(op.floats).itemsize
        for part in (memory, io):
            usual: np.ndarray = rng.standard_normal(part.size // size).astype(op.floats)
            part[:] = usual.view(np.uint8).reshape(part.shape)
    elif "pk_add" in op.name:
        for part in (memory, io):
            bits = 0x3C00 + rng.integers(0, 1 << 10, part.size // 2, np.uint16)
            part[:] = (
                (bits | rng.integers(0, 2, part.size // 2, np.uint16) << 15)
                .view(np.uint8)
                .reshape(part.shape)
            )
    # Compare-and-swap finds what it expects in a third of the lanes, first or second operand.
    io[: LANES // 3, : op.bytes] = memory[: LANES // 3, : op.bytes]
    io[LANES // 3 : 2 * LANES // 3, op.bytes : 2 * op.bytes] = memory[
        LANES // 3 : 2 * LANES // 3, : op.bytes
    ]
    return memory, io


def expected(op: Operation, memory: np.ndarray, io: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[lane, byte] of memory and of results."""
    same = op.space == "buffer" and "_atomic_" in op.name  # one register has the data and the old
    lanes = [
        op.effect(cells, words[:16], words[:16] if same else words[16:])
        for cells, words in zip(memory, io, strict=True)
    ]
    return np.array([lane[0] for lane in lanes]), np.array([lane[1] for lane in lanes])


@pytest.mark.parametrize("space", ["global", "flat", "scratch", "buffer", "ds"])
@pytest.mark.parametrize("gpu", GPUS)
def test_operations(modules: dict[str, Module], gpu: str, space: str) -> None:
    wrong = []
    for op in (op for op in GPUS[gpu] if op.space == space):
        memory, io = inputs(op)
        after, shown = memory.copy(), io.copy()
        assert modules[gpu].launch(op.name, after, shown, block=LANES) == "hipSuccess", op.name
        cells, results = expected(op, memory, io)
        if not (np.array_equal(after, cells) and np.array_equal(shown[:, 16:], results)):
            wrong.append(op.name)
    assert not wrong


def test_what_is_not_described() -> None:
    """What the names of the other operations mean is tested elsewhere, or they move nothing."""
    described = {op.name for of_gpu in GPUS.values() for op in of_gpu}
    rows = {row.name: row for family in schema.FAMILIES for row in schema.load(family).rows}
    spaces = ("global_atomic", "flat_atomic", "buffer_atomic")
    rest = {name for name in rows if name.startswith(spaces)} - described
    assert rest == {"global_atomic_ordered_add_b64"}
    assert len(described) > 350
