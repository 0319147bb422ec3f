# SPDX-License-Identifier: MIT
"""Memory operations in which RDNA differs: buffer formats and bounds, atomics, exchanges on LDS."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.assembly import Module, assembled
from tests.support.rdna import GFX11, GFX12, LANE, LANES, RDNA, WAITS

pytestmark = pytest.mark.usefixtures("emulator")

U32, F32 = np.uint32, np.float32
_RAW, _STRUCTURE = 3 << 28, 0

# The descriptor of the input stands in s[8:11]; a lane has its word in v2, its result in v8 to v11.
_BODY = """
  s_load_b128 s[4:7], s[0:1], 0x0
  {wait}
  s_mov_b32 s8, s4
  s_or_b32 s9, s5, {stride} << 16
  s_mov_b32 s10, {records}
  s_mov_b32 s11, {word3}
  v_lshlrev_b32 v1, 2, v0
  buffer_load_b32 v2, v1, s[8:11], {zero} offen
  v_mov_b32 v8, -1
  v_mov_b32 v9, -1
  v_mov_b32 v10, -1
  v_mov_b32 v11, -1
  {wait}
  {text}
  {wait}
  v_lshlrev_b32 v1, 4, v0
  global_store_b128 v1, v[8:11], s[6:7]
"""
_ZERO = {GFX11: "0", GFX12: "null"}


def _body(gpu: str, text: str, records: int = 4096, word3: int = _RAW, stride: int = 0) -> str:
    return _BODY.format(
        wait=WAITS[gpu],
        zero=_ZERO[gpu],
        text=text.format(zero=_ZERO[gpu], wait=WAITS[gpu]),
        records=records,
        word3=word3,
        stride=stride,
    )


def _run(module: Module, name: str, data: np.ndarray) -> np.ndarray:
    output = np.zeros((LANES, 4), U32)
    assert module.launch(name, data, output, block=LANES) == "hipSuccess"
    return output


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values.astype(F32)).view(U32)


def _parts(data: np.ndarray, dtype: type, count: int) -> np.ndarray:
    """[lane, component] of elements that stand one after the other."""
    return data.view(dtype)[: LANES * count].reshape(LANES, count)


def _ten(data: np.ndarray) -> np.ndarray:
    words = data[:LANES]
    return np.stack([words >> 10 * n & 0x3FF for n in range(3)] + [words >> 30], axis=1)


# Name, bytes of an element, components as they arrive in registers.
FORMATS = {
    "8_UNORM": (1, lambda d: _bits(_parts(d, np.uint8, 1) / F32(255))),
    "8_SINT": (1, lambda d: _parts(d, np.int8, 1).astype(np.int32).view(U32)),
    "16_FLOAT": (2, lambda d: _bits(_parts(d, np.float16, 1))),
    "8_8_USCALED": (2, lambda d: _bits(_parts(d, np.uint8, 2))),
    "32_UINT": (4, lambda d: _parts(d, U32, 1)),
    "16_16_SINT": (4, lambda d: _parts(d, np.int16, 2).astype(np.int32).view(U32)),
    "10_10_10_2_UINT": (4, lambda d: _ten_top(d)),
    "2_10_10_10_UNORM": (4, lambda d: _bits(_ten(d) / np.array([1023, 1023, 1023, 3], F32))),
    "8_8_8_8_UINT": (4, lambda d: _parts(d, np.uint8, 4).astype(U32)),
    "32_32_FLOAT": (8, lambda d: _parts(d, U32, 2)),
    "16_16_16_16_SINT": (8, lambda d: _parts(d, np.int16, 4).astype(np.int32).view(U32)),
    "32_32_32_SINT": (12, lambda d: _parts(d, U32, 3)),
    "32_32_32_32_FLOAT": (16, lambda d: _parts(d, U32, 4)),
}


def _ten_top(data: np.ndarray) -> np.ndarray:
    """The two bits lowest: names count components from the top."""
    words = data[:LANES]
    return np.stack([words & 3, *(words >> 2 + 10 * n & 0x3FF for n in range(3))], axis=1)


@pytest.mark.parametrize("gpu", RDNA)
def test_formats_have_the_assemblers_numbers(gpu: str) -> None:
    """Each format by its name in assembly, whose number the emulator has to know."""
    bodies = {}
    for name, (size, _) in FORMATS.items():
        text = (
            f"v_mul_u32_u24 v1, {size}, v0\n  tbuffer_load_format_xyzw v[8:11], v1, s[8:11], "
            f"{{zero}} format:[BUF_FMT_{name}] offen"
        )
        bodies[f"f{name}"] = _body(gpu, text)
    module = assembled(bodies, gpu, wave=LANES)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 1 << 32, 1024, U32)
    data[: 16 * LANES].view(np.float16)[:] = rng.standard_normal(32 * LANES).astype(np.float16)
    for name, (_, oracle) in FORMATS.items():
        want = oracle(data)
        count = want.shape[1]
        got = _run(module, f"f{name}", data)
        np.testing.assert_array_equal(got[:, :count], want, name)
        one = 1 if name.endswith("INT") else 0x3F800000
        rest = np.array([0, 0, 0, one], U32)[count:]
        np.testing.assert_array_equal(got[:, count:], np.broadcast_to(rest, (LANES, 4 - count)))


@pytest.mark.parametrize("gpu", RDNA)
def test_bounds_are_those_that_the_descriptor_selects(gpu: str) -> None:
    load = "v_lshlrev_b32 v1, 2, v0\n  buffer_load_b32 v8, v1, s[8:11], {zero} offen"
    index = "buffer_load_b32 v8, v0, s[8:11], {zero} idxen"
    inside = "v_lshlrev_b32 v1, 1, v0\n  v_mov_b32 v3, v1\n  v_mov_b32 v2, 3\n"
    both = inside + "  buffer_load_b32 v8, v[2:3], s[8:11], {zero} idxen offen"
    bodies = {
        "bytes": _body(gpu, load, records=41),
        "records": _body(gpu, index, records=7, stride=8, word3=1 << 28),
        "structure": _body(gpu, both, records=7, stride=32, word3=_STRUCTURE),
        "empty": _body(gpu, load, records=0, word3=2 << 28, stride=4),
    }
    module = assembled(bodies, gpu, wave=LANES)
    data = np.arange(1, 1025, dtype=U32) * U32(0x01010101)
    got = {name: _run(module, name, data)[:, 0] for name in bodies}
    np.testing.assert_array_equal(got["bytes"], np.where(LANE < 10, data[:LANES], 0))
    np.testing.assert_array_equal(got["records"], np.where(LANE < 7, data[2 * LANE], 0))
    words = data.view(np.uint8)
    place = 3 * 32 + 2 * LANE
    read = sum(words[place + n].astype(U32) << U32(8 * n) for n in range(4))
    np.testing.assert_array_equal(got["structure"], np.where(2 * LANE + 4 <= 32, read, 0))
    assert not got["empty"].any()


def test_cmpstore_has_the_new_value_first(tmp_path: Path) -> None:
    """The operands of ds_cmpst stand the other way."""
    text = (
        "v_lshlrev_b32 v1, 2, v0\n  v_mov_b32 v3, 5\n  v_mov_b32 v4, 9\n"
        "  ds_store_b32 v1, v2\n  ds_cmpstore_rtn_b32 v8, v1, v4, v3\n  {wait}\n"
        "  ds_load_b32 v9, v1"
    )
    for gpu in RDNA:
        folder = tmp_path / gpu
        folder.mkdir()
        body = {"k": _body(gpu, text)}
        module = assembled(body, gpu, lds=256, wave=LANES)
        data = np.tile(np.arange(8, dtype=U32), 128)
        got = _run(module, "k", data)
        np.testing.assert_array_equal(got[:, 0], data[:LANES])
        np.testing.assert_array_equal(got[:, 1], np.where(data[:LANES] == 5, 9, data[:LANES]))


@pytest.mark.parametrize("space", ["global", "buffer", "ds"])
def test_atomics_of_gfx12(space: str) -> None:
    """Subtractions that stop at zero, or that do not happen; each gives what was there before."""
    rows = {
        "sub_clamp": lambda old: np.maximum(old.astype(int) - 3, 0),
        "cond_sub": lambda old: np.where(old >= 3, old.astype(int) - 3, old),
    }
    bodies = {}
    for name in rows:
        if space == "ds":
            text = f"ds_store_b32 v1, v2\n  ds_{name}_rtn_u32 v8, v1, v3\n  ds_load_b32 v9, v1"
        elif space == "global":
            text = (
                f"global_atomic_{name}_u32 v8, v1, v3, s[4:5] th:TH_ATOMIC_RETURN\n  {{wait}}\n"
                "  global_load_b32 v9, v1, s[4:5]"
            )
        else:
            text = (
                f"v_mov_b32 v8, v3\n  buffer_atomic_{name}_u32 v8, v1, s[8:11], {{zero}} offen "
                "th:TH_ATOMIC_RETURN\n  {wait}\n  buffer_load_b32 v9, v1, s[8:11], {zero} offen"
            )
        bodies[name] = _body(GFX12, f"v_mov_b32 v3, 3\n  v_lshlrev_b32 v1, 2, v0\n  {text}")
    module = assembled(bodies, GFX12, lds=256, wave=LANES)
    for name, oracle in rows.items():
        data = np.tile(np.arange(8, dtype=U32), 128)
        old = data[:LANES].copy()
        got = _run(module, name, data)
        np.testing.assert_array_equal(got[:, 0], old)
        np.testing.assert_array_equal(got[:, 1], oracle(old))


@pytest.mark.parametrize("space", ["buffer", "global", "flat"])
def test_swap_where_a_number_is_equal(space: str) -> None:
    """gfx11's f32 compare-and-swap: zeros of both signs are equal, and nan is not."""
    texts = {
        "buffer": "buffer_atomic_cmpswap_f32 v[8:9], v1, s[8:11], 0 offen glc",
        "global": "global_atomic_cmpswap_f32 v8, v1, v[8:9], s[4:5] glc",
        "flat": "v_add_co_u32 v4, vcc_lo, s4, v1\n  v_add_co_ci_u32_e64 v5, vcc_lo, s5, 0, vcc_lo\n"
        "  flat_atomic_cmpswap_f32 v8, v[4:5], v[8:9] glc",
    }
    # The new value is 5; what is expected is 0 for even lanes, 1 for odd ones.
    text = "v_and_b32 v9, 1, v0\n  v_cvt_f32_u32 v9, v9\n  v_mov_b32 v8, 0x40a00000\n  "
    body = _body(GFX11, text + texts[space])
    module = assembled({"swap": body}, GFX11, wave=LANES)
    before = np.zeros(1024, U32)
    before[:LANES] = np.resize(_bits(np.array([0.0, 1.0, -0.0, np.nan, 1.0, 0.0])), LANES)
    data = before.copy()
    old = _run(module, "swap", data)[:, 0]
    np.testing.assert_array_equal(old, before[:LANES])
    equal = before[:LANES].view(F32) == (LANE & 1)
    want = np.where(equal, U32(0x40A00000), before[:LANES])
    np.testing.assert_array_equal(data[:LANES], want)
