# SPDX-License-Identifier: MIT
"""What Triton and IREE say about the lanes of each matrix instruction, as arrays.

The files in ``data`` are written by ``data/make_layouts.py``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cklang.emulator.engine.isa import schema
from cklang.emulator.engine.isa.schema import FAMILIES, Matrix

_DATA = Path(__file__).parents[1] / "emulator" / "data"
DATA = {
    package: json.loads((_DATA / f"layouts_{package}.json").read_text())
    for package in ("triton", "iree")
}
TABLES = {schema.load(family).arch: schema.load(family) for family in FAMILIES}
BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
BITS |= {"fp6": 6, "bf6": 6, "fp4": 4, "i4": 4}
#: The formats that CBSZ and BLGP of f8f6f4 instructions choose between.
FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
#: GPUs whose fp8 and bf8 have no negative zero and no infinity.
FNUZ = ("gfx90a", "gfx942")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One matrix instruction of one GPU, with the formats of its operands."""

    arch: str
    name: str
    modifiers: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    d: str

    @property
    def label(self) -> str:
        return f"{self.arch} {self.name}{self.modifiers}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the elements of A [block, m, k], B [block, k, n] and D [block, m, n] lie.

    Each array is [lane, element of the lane's registers, 3].
    """

    blocks: int
    a: np.ndarray
    b: np.ndarray
    d: np.ndarray


def instructions() -> Iterator[Instruction]:
    """Every dense matrix instruction; f8f6f4 once for each pair of formats."""
    for arch, table in TABLES.items():
        for row in table.rows:
            shape = row.matrix
            if shape is None or shape.sparse or shape.scaled:
                continue
            for a, b, modifiers in _formats(shape):
                signed = " neg_lo:[1,1,0]" if "wmma_i32" in row.name else ""
                yield Instruction(
                    arch=arch, name=row.name, modifiers=modifiers + signed,
                    m=shape.m, n=shape.n, k=shape.k, blocks=shape.blocks, a=a, b=b, d=shape.d,
                )  # fmt: skip


def _formats(shape: Matrix) -> Iterator[tuple[str, str, str]]:
    if shape.a != "f8f6f4":
        yield shape.a, shape.b, ""
        return
    for i, a in enumerate(FORMATS):
        for j, b in enumerate(FORMATS):
            yield a, b, f" cbsz:{i} blgp:{j}"


@cache
def layout(package: str, op: Instruction) -> Layout | None:
    """The layout that a package gives an instruction, or None if the package lacks it."""
    return {"triton": _triton, "iree": _iree}[package](op)


def used(package: str, op: Instruction) -> tuple[str, ...]:
    """The keys of the package's data that describe an instruction."""
    keys = triton_keys(op) if package == "triton" else (iree_key(op),)
    return tuple(dict.fromkeys(key for key in keys if key in DATA[package]["layouts"]))


def triton_keys(op: Instruction) -> tuple[str, str]:
    """The keys under which Triton describes A with D, and B."""
    if op.m == 4 and op.k == 4 and op.blocks == 16:
        key = f"{op.arch} 4x64x4 {BITS[op.a]}"  # the same A in all 16 blocks
        return key, key
    if op.blocks > 1:
        return "", ""
    return _triton_key(op, op.a), _triton_key(op, op.b)


def _triton_key(op: Instruction, kind: str) -> str:
    if kind == "fp4":  # two in a byte, and a layout of bytes
        return f"{op.arch} {op.m}x{op.n}x{op.k // 2} 8"
    return f"{op.arch} {op.m}x{op.n}x{op.k} {BITS[kind]}"


def _triton(op: Instruction) -> Layout | None:
    keys = triton_keys(op)
    layouts = DATA["triton"]["layouts"]
    if not all(key in layouts for key in keys):
        return None
    a, b, d = layouts[keys[0]]["A"], layouts[keys[1]]["B"], layouts[keys[0]]["D"]
    return Layout(
        blocks=1,
        a=_linear(_pairs(a, 1) if op.a == "fp4" else a),
        b=_linear(_pairs(b, 0) if op.b == "fp4" else b),
        d=_linear(d),
    )


def _pairs(bases: Any, axis: int) -> Any:
    """Each byte of a layout is two elements along K."""
    unit = [int(axis == 0), int(axis == 1)]
    wide = [[[r, c * 2] if axis == 1 else [r * 2, c] for r, c in part] for part in bases]
    return [[unit, *wide[0]], wide[1]]


def _linear(bases: Any) -> np.ndarray:
    registers, lanes = (np.array(part, int).reshape(-1, 2) for part in bases)
    registers = registers[registers.any(axis=1)]  # others repeat what is there
    result = np.zeros((1 << len(lanes), 1 << len(registers), 3), int)
    for bit, base in enumerate(registers):
        result[:, np.arange(result.shape[1]) >> bit & 1 == 1, 1:] ^= base
    for bit, base in enumerate(lanes):
        result[np.arange(len(result)) >> bit & 1 == 1, :, 1:] ^= base
    return result


def iree_key(op: Instruction) -> str:
    """The name of IREE's intrinsic for an instruction."""
    flavour = "FNUZ" if op.arch in FNUZ else ""
    names = {"fp8": f"F8E4M3{flavour or 'FN'}", "bf8": f"F8E5M2{flavour}"}
    a, b, d = (names.get(kind, kind.upper()) for kind in (op.a, op.b, op.d))
    unit = {"gfx1100": "WMMAR3", "gfx1201": "WMMAR4"}.get(op.arch, "MFMA")
    blocks = f"x{op.blocks}B" if op.blocks > 1 else ""
    return f"{unit}_{d}_{op.m}x{op.n}x{op.k}{blocks}_{a}" + (f"_{b}" if a != b else "")


def _iree(op: Instruction) -> Layout | None:
    tiles = DATA["iree"]["layouts"].get(iree_key(op))
    if tiles is None:
        return None
    lanes = 64 if op.arch.startswith("gfx9") else 32
    a, b, d = (_tiled(tiles[name], lanes) for name in "ABD")
    return Layout(blocks=op.blocks, a=a, b=b, d=d)


def _tiled(parts: list[list[int]], lanes: int) -> np.ndarray:
    """[lane, element, (block, row, column)] of outer pieces × threads × elements.

    IREE tells which elements a lane holds. In registers the pieces come before the elements of one
    piece, except that the registers of a block stay together.
    """
    outer, threads, strides, elements = parts
    lane = np.arange(lanes)
    counts = [*outer, *elements]
    index = np.indices(counts).reshape(len(counts), -1)
    if len(outer) == 3:
        index = index[:, np.argsort(index[3], kind="stable")]
    result = np.zeros((lanes, index.shape[1], 3), int)
    rank = len(outer)
    for axis in range(rank):
        # A stride of 0, or one beyond the wave, is that of a dimension with one thread.
        stride = strides[axis] or 1
        thread = lane // stride % threads[axis]
        place = (index[axis] * threads[axis] + thread[:, None]) * elements[axis]
        result[:, :, 3 - rank + axis] = place + index[rank + axis]
    return result
