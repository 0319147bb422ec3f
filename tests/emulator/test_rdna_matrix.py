# SPDX-License-Identifier: MIT
"""WMMA and SWMMAC of RDNA against NumPy.

The lanes of dense products of 32 lanes are those that Triton's and IREE's packages give. For 64
lanes, and for sparse products, nobody publishes them but the manuals: they are written here a
second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.emulator.test_layouts import encode
from tests.support.assembly import Module, assembled
from tests.support.layouts import BITS, DATA, Instruction, Layout, instructions, layout
from tests.support.rdna import GFX11, GFX12, RDNA, WAITS

pytestmark = pytest.mark.usefixtures("emulator")

SIZE = 16
OPS = [op for op in instructions() if op.arch in RDNA]
DENSE = [(op, package) for op in OPS for package in DATA if layout(package, op) is not None]

# A in v[2:9], B in v[10:17], C and then D in v[18:25], the indices of a sparse A in v26.
_BODY = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 7, v0
  {wait}
  global_load_b128 v[2:5], v1, s[4:5]
  global_load_b128 v[6:9], v1, s[4:5] offset:16
  global_load_b128 v[10:13], v1, s[4:5] offset:32
  global_load_b128 v[14:17], v1, s[4:5] offset:48
  global_load_b128 v[18:21], v1, s[4:5] offset:64
  global_load_b128 v[22:25], v1, s[4:5] offset:80
  global_load_b32 v26, v1, s[4:5] offset:96
  {wait}
  {text}
  v_lshlrev_b32 v1, 5, v0
  global_store_b128 v1, v[18:21], s[6:7]
  global_store_b128 v1, v[22:25], s[6:7] offset:16
"""
_A, _B, _D, _INDEX = 2, 10, 18, 26
_INPUT = 32


def registers(start: int, count: int) -> str:
    return f"v[{start}:{start + count - 1}]" if count > 1 else f"v{start}"


def by_manual(arch: str, lanes: int, m: int, k: int) -> np.ndarray:
    """[lane, element, (block, row, K)] of A; with rows and columns exchanged that of B."""
    groups = lanes // SIZE
    per_lane = k if arch == GFX11 else k // groups
    lane, element = np.indices((lanes, per_lane))
    first = 0 if arch == GFX11 else per_lane * (lane // SIZE)
    return np.stack([np.zeros_like(lane), lane % m, first + element], axis=-1)


def result_by_manual(arch: str, lanes: int) -> np.ndarray:
    """[lane, element, (block, row, column)] of D."""
    groups = lanes // SIZE
    lane, element = np.indices((lanes, SIZE // groups))
    group = lane // SIZE
    row = element * groups + group if arch == GFX11 else SIZE // groups * group + element
    return np.stack([np.zeros_like(lane), row, lane % SIZE], axis=-1)


def layout64(op: Instruction) -> Layout:
    a = by_manual(op.arch, 64, op.m, op.k)
    b = by_manual(op.arch, 64, op.n, op.k)[..., [0, 2, 1]]
    return Layout(blocks=1, a=a, b=b, d=result_by_manual(op.arch, 64))


def half_registers(op: Instruction) -> bool:
    """gfx11 keeps one 16-bit element of D in a register."""
    return op.arch == GFX11 and BITS.get(op.d) == 16


def pack_result(op: Instruction, values: np.ndarray, high: bool = False) -> np.ndarray:
    """Registers [lane, dword] of elements [lane, element] of C or D."""
    if half_registers(op):
        filled = np.full((*values.shape, 2), 21, values.dtype)  # the other half must stay
        filled[..., int(high)] = values
        values = filled.reshape(len(values), -1)
    return encode(values, op.d, op.arch)


def dwords(op: Instruction, known_layout: Layout) -> tuple[int, int, int]:
    """Registers of D, A and B."""
    bits = {**BITS, "i32": 32}
    wide = 32 if half_registers(op) else bits[op.d]
    sizes = ((known_layout.d, wide), (known_layout.a, bits[op.a]), (known_layout.b, bits[op.b]))
    d, a, b = (max(1, part.shape[1] * width // 32) for part, width in sizes)
    return d, a, b


def text(op: Instruction, known_layout: Layout, modifiers: str = "") -> str:
    counts = dwords(op, known_layout)
    places = [registers(*pair) for pair in zip((_D, _A, _B), counts, strict=True)]
    return f"{op.name} {', '.join((*places, places[0]))}{op.modifiers}{modifiers}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices:
    """Random small integers, and their product."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @classmethod
    def random(cls, seed: int, k: int) -> Matrices:
        rng = np.random.default_rng(seed)
        shapes = ((SIZE, k), (k, SIZE), (SIZE, SIZE))
        a, b, c = (rng.integers(-4, 5, shape) for shape in shapes)
        return cls(a=a, b=b, c=c)


def gather(matrix: np.ndarray, places: np.ndarray) -> np.ndarray:
    return matrix[places[..., 1], places[..., 2]]


def build(bodies: Mapping[str, Mapping[str, str]], wave: int) -> dict[str, Module]:
    modules = {}
    for arch, texts in bodies.items():
        kernels = {name: _BODY.format(wait=WAITS[arch], text=t) for name, t in texts.items()}
        modules[arch] = assembled(kernels, arch, wave=wave)
    return modules


@pytest.fixture(scope="module")
def modules() -> dict[tuple[str, int], Module]:
    by_target = {}
    for lanes in (32, 64):
        bodies: dict[str, dict[str, str]] = {arch: {} for arch in RDNA}
        for n, op in enumerate(OPS):
            where = layout("triton", op) if lanes == 32 else layout64(op)
            assert where is not None
            bodies[op.arch][f"k{n}"] = text(op, where)
        for arch, module in build(bodies, lanes).items():
            by_target[arch, lanes] = module
    return by_target


def run(
    module: Module,
    name: str,
    op: Instruction,
    where: Layout,
    values: Matrices,
    *,
    high: bool = False,
    index: np.ndarray | None = None,
) -> np.ndarray:
    """Registers [lane, dword] of the result; the indices are those of a sparse A."""
    lanes = len(where.d)
    data = np.zeros((lanes, _INPUT), np.uint32)
    a = encode(gather(values.a, where.a), op.a, op.arch)
    b = encode(gather(values.b, where.b), op.b, op.arch)
    c = pack_result(op, gather(values.c, where.d), high)
    for start, words in ((0, a), (8, b), (16, c)):
        data[:, start : start + words.shape[1]] = words
    if index is not None:
        data[:, 24] = index
    output = np.zeros((lanes, 8), np.uint32)
    assert module.launch(name, data, output, block=lanes) == "hipSuccess"
    return output[:, : c.shape[1]]


def result_of(op: Instruction, where: Layout, values: Matrices) -> np.ndarray:
    """What :func:`run` has to give."""
    return pack_result(op, gather(values.a @ values.b + values.c, where.d))


@pytest.mark.parametrize(
    ("op", "package"), DENSE, ids=lambda part: part if isinstance(part, str) else part.label
)
def test_lanes_are_those_of_the_packages(
    modules: dict[tuple[str, int], Module], op: Instruction, package: str
) -> None:
    where = layout(package, op)
    assert where is not None
    values = Matrices.random(OPS.index(op), op.k)
    output = run(modules[op.arch, 32], f"k{OPS.index(op)}", op, where, values)
    np.testing.assert_array_equal(output, result_of(op, where, values))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.label)
def test_64_lanes(modules: dict[tuple[str, int], Module], op: Instruction) -> None:
    where, values = layout64(op), Matrices.random(OPS.index(op), op.k)
    output = run(modules[op.arch, 64], f"k{OPS.index(op)}", op, where, values)
    np.testing.assert_array_equal(output, result_of(op, where, values))


def test_the_manual_layout_is_that_of_the_packages_for_32_lanes() -> None:
    """What the tests of 64 lanes state is the same rule."""
    for op, package in DENSE:
        where = layout(package, op)
        assert where is not None
        np.testing.assert_array_equal(where.d, result_by_manual(op.arch, 32))
        assert np.array_equal(where.a[..., 1], by_manual(op.arch, 32, op.m, op.k)[..., 1])


def _by_name(arch: str, name: str) -> Instruction:
    return next(op for op in OPS if (op.arch, op.name) == (arch, name))


_F32, _F16 = "v_wmma_f32_16x16x16_f16", "v_wmma_f16_16x16x16_f16"
_IU8 = "v_wmma_i32_16x16x16_iu8"


@pytest.mark.parametrize("arch", RDNA)
def test_modifiers(arch: str) -> None:
    """C negated, absolute, constant; A negated by the parity of K; bytes unsigned, saturated."""
    op, integer = _by_name(arch, _F32), _by_name(arch, _IU8)
    where, bytewise = layout("triton", op), layout("triton", integer)
    assert where is not None
    assert bytewise is not None
    plain = text(op, where)
    constant = plain.rsplit(",", 1)[0] + ", 2.0"
    unsigned = text(integer, bytewise).replace(" neg_lo:[1,1,0]", "")
    bodies = {
        "negative": plain + " neg_lo:[0,0,1]",
        "absolute": plain + " neg_lo:[0,0,1] neg_hi:[0,0,1]",
        "odd": plain + " neg_hi:[1,0,0]",
        "constant": constant,
        "unsigned": unsigned + " clamp",
    }
    module = build({arch: bodies}, 32)[arch]
    values = Matrices.random(1, 16)
    product, odd = values.a @ values.b, values.a * np.where(np.arange(16) % 2 == 1, -1, 1)
    wanted = {
        "negative": product - values.c,
        "absolute": product - np.abs(values.c),
        "odd": odd @ values.b + values.c,
        "constant": product + 2,
    }
    for name, want in wanted.items():
        got = run(module, name, op, where, values)
        np.testing.assert_array_equal(got.view(np.float32), gather(want, where.d), name)
    big = Matrices(
        a=values.a & 255, b=values.b & 255, c=np.where(values.c > 0, 2**31 - 1, values.c)
    )
    got = run(module, "unsigned", integer, bytewise, big).view(np.int32)
    want = np.minimum(big.a @ big.b + big.c, 2**31 - 1)
    np.testing.assert_array_equal(got, gather(want, bytewise.d))


def test_gfx11_writes_the_half_that_op_sel_names() -> None:
    op = _by_name(GFX11, _F16)
    where = layout("triton", op)
    assert where is not None
    bodies = {GFX11: {"high": text(op, where, " op_sel:[0,0,1]")}}
    module = build(bodies, 32)[GFX11]
    values = Matrices.random(2, 16)
    want = gather(values.a @ values.b + values.c, where.d)
    output = run(module, "high", op, where, values, high=True)
    np.testing.assert_array_equal(output, pack_result(op, want, high=True))


def _sparse() -> Iterator[Instruction]:
    for name, k, a, b, d in (
        ("f32_16x16x32_f16", 32, "f16", "f16", "f32"),
        ("f32_16x16x32_bf16", 32, "bf16", "bf16", "f32"),
        ("f16_16x16x32_f16", 32, "f16", "f16", "f16"),
        ("bf16_16x16x32_bf16", 32, "bf16", "bf16", "bf16"),
        ("f32_16x16x32_fp8_fp8", 32, "fp8", "fp8", "f32"),
        ("f32_16x16x32_fp8_bf8", 32, "fp8", "bf8", "f32"),
        ("f32_16x16x32_bf8_fp8", 32, "bf8", "fp8", "f32"),
        ("f32_16x16x32_bf8_bf8", 32, "bf8", "bf8", "f32"),
        ("i32_16x16x32_iu8", 32, "i8", "i8", "i32"),
        ("i32_16x16x32_iu4", 32, "i4", "i4", "i32"),
        ("i32_16x16x64_iu4", 64, "i4", "i4", "i32"),
    ):
        signed = " neg_lo:[1,1,0]" if a.startswith("i") else ""
        yield Instruction(
            arch=GFX12, name=f"v_swmmac_{name}", modifiers=signed, m=16, n=16, k=k, blocks=1,
            a=a, b=b, d=d,
        )  # fmt: skip


SPARSE = tuple(_sparse())


def _layout_of_sparse(op: Instruction, lanes: int) -> Layout:
    a = by_manual(op.arch, lanes, op.m, op.k // 2)
    b = by_manual(op.arch, lanes, op.n, op.k)[..., [0, 2, 1]]
    return Layout(blocks=1, a=a, b=b, d=result_by_manual(op.arch, lanes))


@pytest.mark.parametrize("lanes", [32, 64])
def test_sparse(lanes: int) -> None:
    """Of four neighbours in K two are stored; two bits each say which, in any set of them."""
    where = {op.name: _layout_of_sparse(op, lanes) for op in SPARSE}
    sets = {name: 32 // (2 * known_layout.a.shape[1]) for name, known_layout in where.items()}
    if lanes == 64:
        sets["v_swmmac_i32_16x16x32_iu4"] = 1  # the emulator refuses the others
    bodies = {}
    for op in SPARSE:
        d, a, b = dwords(op, where[op.name])
        places = f"{registers(_D, d)}, {registers(_A, a)}, {registers(_B, b)}, v{_INDEX}"
        for key in range(sets[op.name]):
            chosen = f" index_key:{key}" if key else ""
            bodies[f"{op.name}_{key}"] = f"{op.name} {places}{chosen}{op.modifiers}"
    module = build({GFX12: bodies}, lanes)[GFX12]
    rng = np.random.default_rng(4)
    for op in SPARSE:
        known_layout, values = where[op.name], Matrices.random(3, op.k)
        pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
        picks = pairs[rng.integers(0, 6, (SIZE, op.k // 4))].reshape(SIZE, -1)
        column = np.arange(op.k // 2) // 2 * 4 + picks
        stored = np.take_along_axis(values.a, column, axis=1)
        dense = np.zeros_like(values.a)
        np.put_along_axis(dense, column, stored, axis=1)
        want = result_of(op, known_layout, replace(values, a=dense))
        index = gather(picks, known_layout.a)
        fields = (index << (2 * np.arange(index.shape[1]))).sum(1)
        for key in range(sets[op.name]):
            name, word = f"{op.name}_{key}", fields << (2 * index.shape[1] * key) & 0xFFFFFFFF
            output = run(module, name, op, known_layout, replace(values, a=stored), index=word)
            np.testing.assert_array_equal(output, want, name)
