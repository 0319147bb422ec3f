# SPDX-License-Identifier: MIT
"""The edges of memory: which bytes of a buffer and of LDS an access may touch, and does."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

LANE = np.arange(64)
_HEAD = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
"""
_BUFFER = """
  s_mov_b32 s8, {low}
  s_mov_b32 s9, {high}
  s_mov_b32 s10, {records}
  s_mov_b32 s11, 0x20000
"""
#: What the suffix of an instruction moves, in bytes.
WIDTHS = {"ubyte": 1, "ushort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_START = 4  # the immediate offset of each access


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Accesses side by side, lane after lane, to a buffer of `records` bytes."""

    width: str
    records: int

    @property
    def bytes(self) -> int:
        return WIDTHS[self.width]

    @property
    def inside(self) -> np.ndarray:
        """[lane, dword]: whether it is in range as a whole."""
        unit = min(self.bytes, 4)
        return self.places + unit <= self.records

    @property
    def places(self) -> np.ndarray:
        return _START + self.bytes * LANE[:, None] + 4 * np.arange(max(1, self.bytes // 4))

    def load(self) -> str:
        buffer = _BUFFER.format(low="s4", high="s5", records=self.records)
        old = "".join(f"  v_mov_b32 v{n}, -1\n" for n in range(4, 8))
        return f"""{_HEAD}{buffer}{old}
  v_mul_u32_u24 v2, {self.bytes}, v0
  buffer_load_{self.width} v[4:7], v2, s[8:11], 0 offen offset:{_START}
  s_waitcnt vmcnt(0)
  global_store_dwordx4 v1, v[4:7], s[6:7]
""".replace("v[4:7], v2", f"{self.registers}, v2")

    def store(self) -> str:
        buffer = _BUFFER.format(low="s6", high="s7", records=self.records)
        name = {"ubyte": "byte", "ushort": "short"}.get(self.width, self.width)
        return f"""{_HEAD}{buffer}
  global_load_dwordx4 v[4:7], v1, s[4:5]
  v_mul_u32_u24 v2, {self.bytes}, v0
  s_waitcnt vmcnt(0)
  buffer_store_{name} {self.registers}, v2, s[8:11], 0 offen offset:{_START}
"""

    @property
    def registers(self) -> str:
        count = max(1, self.bytes // 4)
        return "v4" if count == 1 else f"v[4:{3 + count}]"


def _edges(width: str) -> list[Edge]:
    end = _START + 64 * WIDTHS[width]
    sizes = {end, end - 1, end - 3, end - WIDTHS[width], end // 2 + 1, _START + 1, 0}
    return [Edge(width=width, records=max(records, 0)) for records in sorted(sizes)]


EDGES = [edge for width in WIDTHS for edge in _edges(width)]
OTHERS = {
    # Disabled lanes hold an address far from everything; the buffer reaches it.
    "masked": f"""{_HEAD}{_BUFFER.format(low="s4", high="s5", records=-1)}
  v_lshlrev_b32 v2, 2, v0
  v_mov_b32 v3, 0x5a5a
  ds_write_b32 v2, v3
  s_mov_b32 m0, 0
  s_mov_b64 s[12:13], 0xff
  s_mov_b64 exec, s[12:13]
  s_not_b64 exec, exec
  v_mov_b32 v2, 0xf0000000
  s_mov_b64 exec, s[12:13]
  buffer_load_dword v2, s[8:11], 0 offen lds
  s_mov_b64 exec, -1
  v_lshlrev_b32 v2, 2, v0
  s_waitcnt vmcnt(0)
  ds_read_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v3, s[6:7]
""",
    # Each dword of the buffer is added to by the lane, and its old value comes back.
    "atomic": f"""{_HEAD}{_BUFFER.format(low="s6", high="s7", records=160)}
  v_lshlrev_b32 v2, 2, v0
  global_load_dword v3, v2, s[4:5]
  s_waitcnt vmcnt(0)
  buffer_atomic_add v3, v2, s[8:11], 0 offen sc0
  s_waitcnt vmcnt(0)
  global_store_dword v2, v3, s[6:7] offset:256
""",
}
_LDS = (
    _HEAD
    + """
  v_mul_u32_u24 v2, 0xc00, v0
  v_mov_b32 v4, v0
  v_add_u32 v5, 0x100, v0
  v_mov_b32 v6, 7
  v_mov_b32 v7, 7
  ds_write_b64 v2, v[4:5] offset:4
  s_waitcnt lgkmcnt(0)
  ds_read_b64 v[6:7], v2 offset:4
  s_waitcnt lgkmcnt(0)
  global_store_dwordx4 v1, v[4:7], s[6:7]
"""
)
LDS_BYTES = 160 * 1024


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {f"load{n}": edge.load() for n, edge in enumerate(EDGES)}
    bodies |= {f"store{n}": edge.store() for n, edge in enumerate(EDGES)} | OTHERS
    return assembled(bodies, lds=256)


def random(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)


@pytest.mark.parametrize("width", WIDTHS)
def test_loads_give_zero_beyond_the_range(module: Module, width: str) -> None:
    data = random(0, 260)
    for n, edge in enumerate(EDGES):
        if edge.width == width:
            output = np.zeros((64, 4), np.uint32)
            assert module.launch(f"load{n}", data, output) == "hipSuccess"
            unit = min(edge.bytes, 4)
            parts = [
                data.view(np.uint8)[edge.places + byte].astype(np.uint32) for byte in range(unit)
            ]
            value = sum(part << np.uint32(8 * byte) for byte, part in enumerate(parts))
            got = output[:, : edge.places.shape[1]]
            np.testing.assert_array_equal(got, np.where(edge.inside, value, 0), err_msg=str(edge))


@pytest.mark.parametrize("width", WIDTHS)
def test_stores_touch_what_is_in_range_and_nothing_else(module: Module, width: str) -> None:
    data = random(1, 256).reshape(64, 4)
    for n, edge in enumerate(EDGES):
        if edge.width == width:
            output = random(2, 300)
            want = output.copy().view(np.uint8)
            assert module.launch(f"store{n}", data, output) == "hipSuccess"
            for byte in range(min(edge.bytes, 4)):
                value = data[:, : edge.places.shape[1]] >> np.uint32(8 * byte) & 0xFF
                want[edge.places[edge.inside] + byte] = value[edge.inside]
            np.testing.assert_array_equal(output.view(np.uint8), want, err_msg=str(edge))


def test_disabled_lanes_of_a_load_to_lds_touch_nothing(module: Module) -> None:
    data, output = random(3, 64), np.zeros(64, np.uint32)
    assert module.launch("masked", data, output) == "hipSuccess"
    np.testing.assert_array_equal(output, np.where(LANE < 8, data, 0x5A5A))


def test_atomics_return_the_old_value_or_zero(module: Module) -> None:
    data, output = random(4, 64), random(5, 128)
    before = output.copy()
    assert module.launch("atomic", data, output) == "hipSuccess"
    inside = LANE < 40
    np.testing.assert_array_equal(output[:64], np.where(inside, before[:64] + data, before[:64]))
    np.testing.assert_array_equal(output[64:], np.where(inside, before[:64], 0))


def test_lds_ends_where_the_gpu_ends_it() -> None:
    """All 160 KB of gfx950; what lies behind reads as zero."""
    module = assembled({"lds": _LDS}, "gfx950", lds=LDS_BYTES)
    output = np.zeros((64, 4), np.uint32)
    assert module.launch("lds", np.zeros(4, np.uint32), output) == "hipSuccess"
    inside = LANE * 0xC00 + 4 + 8 <= LDS_BYTES
    assert inside.any()
    assert not inside.all()
    np.testing.assert_array_equal(output[:, 2], np.where(inside, LANE, 0))
    np.testing.assert_array_equal(output[:, 3], np.where(inside, LANE + 0x100, 0))
