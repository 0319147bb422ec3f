# SPDX-License-Identifier: MIT
"""Small vector operations and wide loads to LDS that gfx950 has; the census of code."""

from collections.abc import Callable

import numpy as np
import pytest

from cklang import emulator
from tests.support.assembly import Module, assemble

pytestmark = pytest.mark.usefixtures("emulator")

U32 = np.uint32
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_mov_b32 v8, v5
  {text}
  v_lshlrev_b32 v1, 2, v0
  global_store_dword v1, v8, s[6:7]
"""


def ashr_pk(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    low, high = (
        np.clip(x.view(np.int32) >> (c & 31).view(np.int32), -128, 127) & 255 for x in (a, b)
    )
    return (low | high << 8).astype(U32) | (d & U32(0xFFFF0000))


def bitop(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Truth table 0x6a: c, inverted where both a and b are set."""
    return (c ^ (a & b)) & U32(0xFFFF) | (d & U32(0xFFFF0000))


def halves(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    low, high = (x.view(np.float32).astype(np.float16).view(np.uint16).astype(U32) for x in (a, b))
    return low | high << U32(16)


OPS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "ashr_pk": ("v_ashr_pk_i8_i32 v8, v2, v3, v4", ashr_pk),
    "bitop3_b16": ("v_bitop3_b16 v8, v2, v3, v4 bitop3:0x6a", bitop),
    "cvt_pk_f16": ("v_cvt_pk_f16_f32 v8, v2, v3", halves),
    "prng": ("v_prng_b32 v8, v2", lambda a, b, c, d: a << U32(1) ^ (a >> U32(31)) * U32(197)),
}
# 16 bytes a lane, from addresses in reverse, to consecutive places behind m0.
_LDS = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_sub_u32 v1, 63, v0
  v_lshlrev_b32 v1, 4, v1
  v_lshlrev_b32 v2, 4, v0
  s_mov_b32 m0, 0x11000
  s_waitcnt lgkmcnt(0)
  global_load_lds_dwordx4 v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_add_u32 v3, 0x11000, v2
  ds_read_b128 v[4:7], v3
  s_waitcnt lgkmcnt(0)
  global_store_dwordx4 v2, v[4:7], s[6:7]
"""


@pytest.fixture(scope="module")
def image() -> bytes:
    bodies = {name: _BODY.format(text=text) for name, (text, _) in OPS.items()} | {"lds": _LDS}
    return assemble(bodies, "gfx950", lds=0x12000)


@pytest.mark.parametrize("name", OPS)
def test_operation(image: bytes, name: str) -> None:
    data = np.random.default_rng(0).integers(0, 2**32, (64, 4), dtype=U32)
    data[:, :2] &= U32(0xC7FFFFFF)  # as f32: no NaN
    output = np.zeros(64, U32)
    assert Module(image, "gfx950").launch(name, data, output) == "hipSuccess"
    with np.errstate(over="ignore"):
        want = OPS[name][1](*(data[:, n].copy() for n in range(4)))
    np.testing.assert_array_equal(output, want)


def test_wide_loads_to_lds_beyond_64_kilobytes(image: bytes) -> None:
    data = np.arange(256, dtype=U32).reshape(64, 4)
    output = np.zeros((64, 4), U32)
    assert Module(image, "gfx950").launch("lds", data, output) == "hipSuccess"
    np.testing.assert_array_equal(output, data[::-1])


def test_census_tells_known_from_unknown(image: bytes) -> None:
    known = emulator.instruction_census("gfx950", image)
    assert known.emulated["v_prng_b32"] == 1
    assert not known.missing
    words = np.array([0xFFFFFFFF, 0x7E000280], U32).tobytes()  # nothing, v_mov_b32 v0, 0
    census = emulator.instruction_census("gfx950", words)
    assert census == emulator.Census(emulated={"v_mov_b32": 1}, missing={}, undecoded=1)
    missing = emulator.instruction_census("gfx942", assemble({"k": "  s_sethalt 1\n"})).missing
    assert missing == {"s_sethalt": 1}
