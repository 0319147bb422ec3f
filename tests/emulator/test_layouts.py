# SPDX-License-Identifier: MIT
"""Lanes of matrix instructions: the emulator against Triton's and IREE's packages.

An instruction runs once for each element of A, with a one there and zeros elsewhere, and once for
each element of B: its result then shows which row, column and K-index the emulator takes each
place of the registers for.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cklang.emulator.engine.isa import schema
from tests.support.assembly import CDNA, Module, assembled
from tests.support.layouts import BITS, DATA, FNUZ, Instruction, Layout, instructions, layout, used

pytestmark = pytest.mark.usefixtures("emulator")

OPS = [op for op in instructions() if any(layout(package, op) for package in DATA)]
SOURCES = Path(schema.__file__).with_name("layout_sources.json")


def _permuted(mine: Layout, other: Layout) -> bool:
    """Whether two layouts differ by an order of K at most, the same in A and B."""
    shape = (mine.a.max(axis=(0, 1))[2] + 1,)
    order = np.full(shape, -1)
    order[mine.a[..., 2]] = other.a[..., 2]
    return (
        np.array_equal(order[mine.a[..., 2]], other.a[..., 2])
        and np.array_equal(order[mine.b[..., 1]], other.b[..., 1])
        and np.array_equal(mine.a[..., :2], other.a[..., :2])
        and np.array_equal(mine.b[..., ::2], other.b[..., ::2])
        and np.array_equal(mine.d, other.d)
    )


def _same_blocks(triton: Layout, iree: Layout, op: Instruction) -> bool:
    """Triton's one block of 4 × 64 against IREE's blocks side by side, which share their A."""
    merged = [part.copy() for part in (iree.a, iree.b, iree.d)]
    for part in merged[1:]:
        part[..., 2] += op.n * part[..., 0]
    for part in merged:
        part[..., 0] = 0
    return all(
        np.array_equal(mine, theirs)
        for mine, theirs in zip(merged, (triton.a, triton.b, triton.d), strict=True)
    )


def agreeing(op: Instruction) -> list[str]:
    """The packages that know an instruction and agree on it."""
    known = {package: layout(package, op) for package in DATA}
    triton, iree = known["triton"], known["iree"]
    if triton is not None and iree is not None:
        same = _same_blocks(triton, iree, op) if op.blocks > 1 else _permuted(triton, iree)
        assert same, op.label
    return [
        str(DATA[package]["package"])
        for package, known_layout in known.items()
        if known_layout is not None
    ]


def test_the_packages_agree_and_the_record_says_where() -> None:
    record: dict[str, dict[str, list[str]]] = {}
    for op in OPS:
        # The packages leave out f8f6f4's 6-bit formats, so its record would not be true.
        if "f8f6f4" not in op.name:
            record.setdefault(op.arch, {})[op.name] = agreeing(op)
        else:
            agreeing(op)
    assert json.loads(SOURCES.read_text("utf-8"))["layouts"] == record


def test_all_that_the_packages_say_is_used() -> None:
    for package, content in DATA.items():
        mentioned = {key for op in OPS for key in used(package, op)}
        unused = set(content["layouts"]) - mentioned
        assert not unused, (package, unused)


_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_lshl_b32 s3, s2, 11
  s_add_u32 s3, s3, {shared}
  v_lshl_add_u32 v1, v0, 5, s3
  v_mul_u32_u24 v50, 0xa0, v0
  s_waitcnt lgkmcnt(0)
{loads}
  s_lshl_b32 s3, s2, 13
  v_lshl_add_u32 v1, v0, 7, s3
  s_waitcnt vmcnt(0)
  {text}
  s_nop 15
{stores}
"""
_A, _B, _D, _D_END = 2, 10, 18, 50
_SHARED = 64 * 40 * 4  # bytes of what every workgroup reads; each one's own operand follows
_LOADS = (
    "  global_load_dwordx4 v[{one}:{one_end}], v1, s[4:5]\n"
    "  global_load_dwordx4 v[{one4}:{one4_end}], v1, s[4:5] offset:16\n"
)


def _body(op: Instruction, one: int, dwords: tuple[int, int, int]) -> str:
    """The kernel in which the operand at register ``one`` is read anew by each workgroup."""
    rest = [_A + _B - one, _A + _B - one + 4, *range(_D, _D_END, 4)]
    loads = _LOADS.format(one=one, one_end=one + 3, one4=one + 4, one4_end=one + 7) + "\n".join(
        f"  global_load_dwordx4 v[{place}:{place + 3}], v50, s[4:5] offset:{16 * n}"
        for n, place in enumerate(rest)
    )
    registers = [
        f"v[{start}:{start + count - 1}]" if count > 1 else f"v{start}"
        for start, count in zip((_D, _A, _B), dwords, strict=True)
    ]
    stores = "\n".join(
        f"  global_store_dwordx4 v1, v[{place}:{place + 3}], s[6:7] offset:{place * 4 - _D * 4}"
        for place in range(_D, _D + dwords[0], 4)
    )
    text = f"{op.name} {', '.join((*registers, registers[0]))}{op.modifiers}"
    return _BODY.format(loads=loads, text=text, stores=stores, shared=_SHARED)


def _dwords(op: Instruction) -> tuple[int, int, int]:
    known_layout = next(part for package in DATA if (part := layout(package, op)) is not None)
    kinds = ((known_layout.d, op.d), (known_layout.a, op.a), (known_layout.b, op.b))
    bits = {**BITS, "i32": 32}
    d, a, b = (max(1, part.shape[1] * bits[kind] // 32) for part, kind in kinds)
    return d, a, b


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    by_arch = {}
    for arch in CDNA:
        bodies = {
            f"k{n}_{one}": _body(op, one, _dwords(op))
            for n, op in enumerate(OPS)
            if op.arch == arch
            for one in (_A, _B)
        }
        by_arch[arch] = assembled(bodies, arch)
    return by_arch


_TYPES = {
    "f64": np.float64, "f32": np.float32, "xf32": np.float32, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "fp4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def encode(values: np.ndarray, kind: str, arch: str) -> np.ndarray:
    """Registers [..., dword] of small integers [..., element]."""
    if kind.startswith("i"):
        codes = values.astype(np.int32 if kind == "i32" else np.int8)
    elif kind in {"fp8", "bf8"}:
        flavours = {
            ("fp8", True): ml_dtypes.float8_e4m3fnuz, ("fp8", False): ml_dtypes.float8_e4m3fn,
            ("bf8", True): ml_dtypes.float8_e5m2fnuz, ("bf8", False): ml_dtypes.float8_e5m2,
        }  # fmt: skip
        codes = values.astype(flavours[kind, arch in FNUZ])
    else:
        codes = values.astype(_TYPES[kind])
    if BITS.get(kind) == 4:
        nibbles = codes.view(np.uint8) & 15
        codes = nibbles[..., ::2] | nibbles[..., 1::2] << 4
    short = -codes.shape[-1] * codes.itemsize % 4 // codes.itemsize
    if short:
        codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, short)])
    return np.ascontiguousarray(codes).view(np.uint32)


def _runs() -> Iterator[tuple[int, str]]:
    for n, op in enumerate(OPS):
        if op.arch in CDNA:
            for package in DATA:
                if layout(package, op) is not None:
                    yield n, package


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize(
    ("number", "package"),
    tuple(_runs()),
    ids=lambda part: part if isinstance(part, str) else OPS[part].label,
)
def test_one_hot(modules: dict[str, Module], number: int, package: str, operand: str) -> None:
    op = OPS[number]
    known_layout = layout(package, op)
    assert known_layout is not None
    rng = np.random.default_rng(number)
    mine, other = (
        (known_layout.a, known_layout.b) if operand == "A" else (known_layout.b, known_layout.a)
    )
    extent = tuple(mine.max(axis=(0, 1)) + 1)
    other_values = rng.integers(-4, 5, tuple(other.max(axis=(0, 1)) + 1))
    c = rng.integers(-9, 10, tuple(known_layout.d.max(axis=(0, 1)) + 1))

    # One workgroup for each element of the operand.
    flat = np.ravel_multi_index(tuple(np.moveaxis(mine, -1, 0)), extent)
    count = int(np.prod(extent))
    hot = flat[None] == np.arange(count)[:, None, None]
    kinds = (op.a, op.b) if operand == "A" else (op.b, op.a)
    data = np.zeros(64 * (40 + count * 8), np.uint32)
    shared, inputs = data[: 64 * 40].reshape(64, 40), data[64 * 40 :].reshape(count, 64, 8)
    words = encode(hot.astype(np.int8), kinds[0], op.arch)
    inputs[..., : words.shape[-1]] = words
    words = encode(other_values[tuple(np.moveaxis(other, -1, 0))], kinds[1], op.arch)
    shared[:, : words.shape[-1]] = words
    words = encode(c[tuple(np.moveaxis(known_layout.d, -1, 0))], op.d, op.arch)
    shared[:, 8 : 8 + words.shape[-1]] = words

    output = np.zeros((count, 64, 32), np.uint32)
    kernel = f"k{number}_{_A if operand == 'A' else _B}"
    status = modules[op.arch].launch(kernel, data, output, grid=count)
    assert status == "hipSuccess"

    block, row, column = np.unravel_index(np.arange(count), extent)
    d_block, d_row, d_column = np.moveaxis(known_layout.d, -1, 0)
    at = [part[:, None, None] for part in (block, row, column)]
    want = np.broadcast_to(c[d_block, d_row, d_column], (count, *d_block.shape)).copy()
    if operand == "A":
        hit = (d_block[None] == at[0]) & (d_row[None] == at[1])
        want += hit * other_values[d_block[None], at[2], d_column[None]]
    else:
        hit = (d_block[None] == at[0]) & (d_column[None] == at[2])
        want += hit * other_values[d_block[None], d_row[None], at[1]]
    np.testing.assert_array_equal(output[..., : words.shape[-1]], encode(want, op.d, op.arch))
