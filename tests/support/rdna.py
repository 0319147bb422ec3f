# SPDX-License-Identifier: MIT
"""What hand-written RDNA kernels of the tests have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tests.support.assembly import Module, assembled

GFX11, GFX12 = "gfx1100", "gfx1201"
RDNA = (GFX11, GFX12)

WAITS = {
    GFX11: "s_waitcnt vmcnt(0) lgkmcnt(0)",
    GFX12: "s_wait_loadcnt 0x0\n  s_wait_kmcnt 0x0\n  s_wait_dscnt 0x0",
}
"""Waits for every load that a wave has under way."""

BARRIERS = {GFX11: "s_barrier", GFX12: "s_barrier_signal -1\n  s_barrier_wait -1"}

GROUP = {GFX11: "s2", GFX12: "ttmp9"}
"""Where a kernel with one kernel-argument pointer finds its workgroup's number."""

U32, I32, F32, F16, F64 = np.uint32, np.int32, np.float32, np.float16, np.float64
Words = np.ndarray
Oracle = Callable[[Words, Words, Words, Words], "Words | tuple[Words, Words]"]

LANES = 32
LANE = np.arange(LANES)
VCC = 0x0F0F3355
PICKED = (VCC >> LANE & 1).astype(bool)

# a in v[2:3], b in v[4:5], c in v[6:7]; the result, and its old value, in v[8:9]. The first lane's
# words are in s8, s9 and s10 too.
_BODY = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 5, v0
  {wait}
  global_load_b128 v[2:5], v1, s[4:5]
  global_load_b128 v[6:9], v1, s[4:5] offset:16
  {wait}
  v_readfirstlane_b32 s8, v2
  v_readfirstlane_b32 s9, v4
  v_readfirstlane_b32 s10, v6
  s_mov_b32 vcc_lo, 0x0f0f3355
  s_mov_b32 vcc_hi, 0x12345678
  s_mov_b32 exec_lo, {exec}
  {text}
  s_mov_b32 exec_lo, -1
  v_mov_b32 v10, vcc_lo
  v_mov_b32 v11, vcc_hi
  v_lshlrev_b32 v1, 4, v0
  global_store_b128 v1, v[8:11], s[6:7]
"""


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction and what it leaves in v8, or in v8 and v9, from a, b, c and the old v8."""

    text: str
    oracle: Oracle
    archs: tuple[str, ...] = RDNA
    exec: str = "-1"
    floats: type | None = None
    """NaNs of this type in the result have no fixed bits."""
    vcc: bool = False
    """The oracle's lanes are the bits of vcc instead of v8."""


def f32(words: Words) -> np.ndarray:
    return words.view(F32)


def bits(values: np.ndarray) -> Words:
    return np.ascontiguousarray(values.astype(F32)).view(U32)


def low(words: Words) -> np.ndarray:
    return (words & 0xFFFF).astype(np.uint16).view(F16)


def high(words: Words) -> np.ndarray:
    return (words >> 16).astype(np.uint16).view(F16)


def halves(lower: np.ndarray, upper: np.ndarray) -> Words:
    pair = [np.asarray(x).astype(F16).view(np.uint16).astype(U32) for x in (lower, upper)]
    return pair[0] | pair[1] << U32(16)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN wins, and -0 is less than +0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.minimum(a, b))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def min_num(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A number wins."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.fmin(a, b))


def max_num(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.fmax(a, b))


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Products of f32 are exact in long double, and their sums nearly."""
    wide = [np.asarray(x, np.longdouble) for x in (a, b, c)]
    return (wide[0] * wide[1] + wide[2]).astype(F32)


def first(words: Words) -> Words:
    """The first lane's word in every lane."""
    return np.full(LANES, words[0], U32)


def inputs(seed: int) -> np.ndarray:
    """Random words, among them numbers of usual size and the special values of f32 and f16."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 1 << 32, (LANES, 8), U32)
    usual = rng.standard_normal((LANES, 8)).astype(F32).view(U32)
    data = np.where(rng.random((LANES, 8)) < 0.5, usual, data)
    special = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x3C007C00], U32)
    return np.where(rng.random((LANES, 8)) < 0.15, rng.choice(special, (LANES, 8)), data)


def same(got: Words, wanted: np.ndarray, floats: type | None) -> np.ndarray:
    """Which lanes are equal, any NaN to any other."""
    words = np.broadcast_to(np.asarray(wanted), got.shape).astype(np.int64).astype(U32)
    equal = got == words
    if floats is F32:
        return equal | np.isnan(got.view(F32)) & np.isnan(words.view(F32))
    if floats is F16:
        parts = [(x(got), x(words)) for x in (low, high)]
        each = [
            (p.view(np.uint16) == q.view(np.uint16)) | np.isnan(p) & np.isnan(q) for p, q in parts
        ]
        return each[0] & each[1]
    return equal


def selected(cases: Mapping[str, Case]) -> list[tuple[str, str]]:
    """(GPU, name) of every case."""
    return [(arch, name) for arch in RDNA for name, case in cases.items() if arch in case.archs]


def build(cases: Mapping[str, Case]) -> dict[str, Module]:
    """By GPU, a module with one kernel a case."""
    modules = {}
    for arch in RDNA:
        bodies = {
            name: _BODY.format(wait=WAITS[arch], text=case.text, exec=case.exec)
            for name, case in cases.items()
            if arch in case.archs
        }
        modules[arch] = assembled(bodies, arch, wave=LANES)
    return modules


def check(module: Module, name: str, case: Case) -> None:
    """Run a case on random words and compare."""
    for seed in range(3):
        data = inputs(seed)
        output = np.zeros((LANES, 4), U32)
        assert module.launch(name, data.copy(), output, block=LANES) == "hipSuccess"
        with np.errstate(all="ignore"):
            wanted = case.oracle(data[:, 0], data[:, 2], data[:, 4], data[:, 6])
        if case.vcc:
            assert [bool(output[0, 2] >> lane & 1) for lane in range(LANES)] == np.asarray(
                wanted
            ).tolist()
            continue
        assert (output[:, 3] == 0x12345678).all()  # vcc_hi belongs to nobody
        results = wanted if isinstance(wanted, tuple) else (wanted,)
        for register, words in enumerate(results):
            equal = same(output[:, register], words, case.floats)
            assert equal.all(), (seed, register, np.flatnonzero(~equal), output[:, register], words)
