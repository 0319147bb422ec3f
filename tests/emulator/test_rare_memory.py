# SPDX-License-Identifier: MIT
"""Memory operations that compilers rarely use: exchanges and counters in LDS, scalar atomics."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.assembly import Module, assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator")

U32 = np.uint32

# LDS starts as lane l's dwords 2 and 3 at 8 l; then the operation; then what is at 8 l is read back
# to v[12:13].
_LDS = """
  v_lshlrev_b32 v16, 3, v0
  ds_write_b64 v16, v[4:5]
  s_waitcnt lgkmcnt(0)
  s_mov_b32 m0, {m0}
{text}
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, -1
  ds_read_b64 v[12:13], v16
"""
LDS = {
    "wrxchg2": ("  ds_wrxchg2_rtn_b32 v[10:11], v16, v2, v3 offset1:1", 0),
    "wrxchg2st64": ("  ds_wrxchg2st64_rtn_b32 v[10:11], v17, v2, v3 offset1:1", 0),
    "condxchg": ("  ds_condxchg32_rtn_b64 v[10:11], v16, v[2:3]", 0),
    "wrap": ("  ds_wrap_rtn_b32 v10, v16, v2, v3", 0),
    "append": ("  s_mov_b64 exec, 0xff0f\n  ds_append v10 offset:4", 8),
    "consume": ("  s_mov_b64 exec, 0x70001\n  ds_consume v10", 16),
    "addtid": ("  ds_write_addtid_b32 v2 offset:64\n  ds_read_addtid_b32 v10 offset:64", 128),
}


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {
        name: lanes_body("  v_lshlrev_b32 v17, 2, v0\n" + _LDS.format(text=text, m0=m0))
        for name, (text, m0) in LDS.items()
    }
    return assembled(bodies, lds=4096)


def operands(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, (64, 4), dtype=U32)


def test_exchanges_of_two(module: Module) -> None:
    data = operands()
    got = run_lanes(module, "wrxchg2", data)
    np.testing.assert_array_equal(got[:, :2], data[:, 2:4])  # the old values
    np.testing.assert_array_equal(got[:, 2:4], data[:, :2])
    far = run_lanes(module, "wrxchg2st64", data)
    flat = data[:, 2:4].reshape(-1)  # dword l and dword 64 + l
    np.testing.assert_array_equal(far[:, :2], np.stack([flat[:64], flat[64:]], 1))
    np.testing.assert_array_equal(far[:, 2:4].reshape(-1), np.concatenate([data[:, 0], data[:, 1]]))


def test_conditional_exchange(module: Module) -> None:
    data = operands(1)
    got = run_lanes(module, "condxchg", data)
    np.testing.assert_array_equal(got[:, :2], data[:, 2:4])
    new, old = data[:, :2], data[:, 2:4]
    np.testing.assert_array_equal(got[:, 2:4], np.where(new >> 31, new & 0x7FFFFFFF, old))


def test_wrap(module: Module) -> None:
    data = operands(2)
    got = run_lanes(module, "wrap", data)
    old, limit, more = data[:, 2], data[:, 0], data[:, 1]
    np.testing.assert_array_equal(got[:, 0], old)
    np.testing.assert_array_equal(got[:, 2], np.where(old >= limit, old - limit, old + more))


@pytest.mark.parametrize(
    ("name", "lanes", "dword", "step"), [("append", 0xFF0F, 3, 12), ("consume", 0x70001, 4, -4)]
)
def test_counters(module: Module, name: str, lanes: int, dword: int, step: int) -> None:
    """All enabled lanes get the old value of one counter, which moves by their number."""
    data = operands(3)
    got = run_lanes(module, name, data)
    flat = data[:, 2:4].reshape(-1)
    enabled = np.array([lanes >> lane & 1 for lane in range(64)], bool)
    assert (got[enabled, 0] == flat[dword]).all()
    assert (got[~enabled, 0] == 0).all()
    want = flat.copy()
    want[dword] = (int(want[dword]) + step) % 2**32
    np.testing.assert_array_equal(got[:, 2:4].reshape(-1), want)


def test_addresses_by_lane(module: Module) -> None:
    data = operands(4)
    np.testing.assert_array_equal(run_lanes(module, "addtid", data)[:, 0], data[:, 0])


# Scalar atomics: s[12:15] holds the operation's data, the output's first dwords the memory.
_SCALAR = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dwordx4 s[12:15], s[4:5], 0x0
  s_mov_b64 s[8:9], s[6:7]
  s_mov_b32 s10, 256
  s_mov_b32 s11, 0x27000
  s_mov_b32 s16, 1
  s_waitcnt lgkmcnt(0)
  {text}
  s_waitcnt lgkmcnt(0)
  s_store_dwordx4 s[12:15], s[6:7], 0x40 glc
  s_dcache_wb
"""


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


STEPS: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda a, b, n: b,
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "smin": lambda a, b, n: min(signed(a, n), signed(b, n)),
    "umin": lambda a, b, n: min(a, b),
    "smax": lambda a, b, n: max(signed(a, n), signed(b, n)),
    "umax": lambda a, b, n: max(a, b),
    "and": lambda a, b, n: a & b,
    "or": lambda a, b, n: a | b,
    "xor": lambda a, b, n: a ^ b,
    "inc": lambda a, b, n: 0 if a >= b else a + 1,
    "dec": lambda a, b, n: b if a == 0 or a > b else a - 1,
}
ATOMICS = {
    f"s_{space}atomic_{name}{wide}": (name, 64 if wide else 32, space)
    for space in ("", "buffer_")
    for name in (*STEPS, "cmpswap")
    for wide in ("", "_x2")
}
STORES = {
    "s_buffer_store": (
        "s_buffer_store_dwordx2 s[12:13], s[8:11], 0xfc\n  s_buffer_store_dword s14, s[8:11], 8"
    ),
    "s_scratch_store": "s_scratch_store_dwordx2 s[12:13], s[6:7], s16",
    "s_scratch_load": "s_scratch_load_dwordx2 s[14:15], s[4:5], s16",
}


@pytest.fixture(scope="module")
def scalar() -> Module:
    bodies = {name: _SCALAR.format(text=text) for name, text in STORES.items()}
    for name, (step, bits, space) in ATOMICS.items():
        registers = bits // 32 * (2 if step == "cmpswap" else 1)
        data = "s12" if registers == 1 else f"s[12:{11 + registers}]"
        base = "s[8:11]" if space else "s[6:7]"
        bodies[name] = _SCALAR.format(text=f"{name} {data}, {base}, 0x8 glc")
    return assembled(bodies, "gfx90a")


def run_scalar(module: Module, name: str, data: np.ndarray, memory: np.ndarray) -> np.ndarray:
    output = np.zeros(80, U32)
    output[: len(memory)] = memory
    assert module.launch(name, data, output) == "hipSuccess"
    return output


@pytest.mark.parametrize("name", ATOMICS)
def test_scalar_atomics(scalar: Module, name: str) -> None:
    step, bits, _ = ATOMICS[name]
    words, mask = bits // 32, (1 << bits) - 1
    for seed in range(4):
        data, memory = np.random.default_rng(seed).integers(0, 1 << 32, (2, 4), dtype=U32)
        if seed == 3:  # equal, which compare-and-swap waits for
            data[words : 2 * words] = memory[2 : 2 + words]

        def value(array: np.ndarray, at: int) -> int:
            return sum(int(array[at + n]) << 32 * n for n in range(words))

        output = run_scalar(scalar, name, data, memory)
        old, operand = value(memory, 2), value(data, 0)
        if step == "cmpswap":
            want = operand if value(data, words) == old else old
        else:
            want = STEPS[step](old, operand, bits) & mask
        assert value(output, 2) == want
        assert value(output, 16) == old


def test_scalar_stores(scalar: Module) -> None:
    data = np.array([11, 22, 33, 44], U32)
    output = run_scalar(scalar, "s_buffer_store", data, np.zeros(0, U32))
    assert (output[2], output[63], output[64]) == (33, 11, 0)  # dword 64 is out of range
    output = run_scalar(scalar, "s_scratch_store", data, np.zeros(0, U32))
    np.testing.assert_array_equal(output[16:20], data)  # a register offset counts 64 bytes ...
    source = np.arange(100, 132, dtype=U32)
    output = run_scalar(scalar, "s_scratch_load", source, np.zeros(0, U32))
    np.testing.assert_array_equal(output[16:20], [100, 101, 116, 117])
