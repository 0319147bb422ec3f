# SPDX-License-Identifier: MIT
"""Which lane and register holds which element of the operands of a matrix instruction.

CK Tile builds its tile distributions on these layouts: the accumulator of a block is one such tile
for each repetition of the instruction in a wave. ``tests/emulator/debugger/test_tiles.py`` compares
them with what Triton's and IREE's packages say.
"""

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cklang.arch import arch
from cklang.emulator.engine.isa import schema
from cklang.emulator.engine.isa.schema import TYPE_BITS, Matrix
from cklang.errors import error

Places = npt.NDArray[np.int64]

_OPERANDS = ("D", "A", "B")
_REGISTERS = re.compile(r"([va])(?:(\d+)|\[(\d+):(\d+)\])")
_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""What the modifiers cbsz and blgp of f8f6f4 choose between."""
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Fragment:
    """Where the elements of one operand are."""

    name: str
    """``A`` [block, m, k], ``B`` [block, k, n] or ``D`` [block, m, n]."""
    type: str
    """The type of an element."""
    bits: int
    """Bits of an element in the registers."""
    shape: tuple[int, int, int]
    places: Places
    """[lane, element, (block, row, column)]."""
    file: str = ""
    """``v`` or ``a``, and the first register; empty where the text of no instruction was given."""
    first: int = 0

    def register(self, element: int) -> int:
        """Return the register that holds an element of a lane."""
        return self.first + element * self.bits // _WORD_BITS

    @property
    def registers(self) -> int:
        """How many registers a lane has of it."""
        return -(-int(self.places.shape[1]) * self.bits // _WORD_BITS)


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """A matrix instruction as text, with its operands."""

    text: str
    operands: dict[str, Fragment]


@cache
def _matrices(gpu: str) -> dict[str, Matrix]:
    tables = (schema.load(family) for family in schema.FAMILIES)
    table = next(entry for entry in tables if entry.arch == gpu)
    return {row.name: row.matrix for row in table.rows if row.matrix is not None}


def _lanes(count: int, elements: int) -> tuple[Places, Places]:
    lane, element = np.indices((count, elements))
    return lane, element


def _cdna_input(size: int, depth: int, blocks: int, bits: int) -> Places:
    """[lane, element, (block, row, k)] of A on CDNA."""
    groups = 64 // size
    lane, element = _lanes(64, max(1, size * depth * blocks // 64))
    group = lane // size
    if bits == 64 and blocks > 1:  # blocks beside each other in each group of k
        block, part = group % blocks, group // blocks
    else:
        block, part = group // max(1, groups // blocks), group % max(1, groups // blocks)
    k = part * element.shape[1] + element
    return np.stack([block, lane % size, k], axis=-1)


def _cdna_result(size: int, blocks: int, bits: int) -> Places:
    """[lane, element, (block, row, column)] of D on CDNA: four rows of a column at a time."""
    lane, element = _lanes(64, size * size * blocks // 64)
    column, group = lane % size, lane // size
    if bits == 64:
        block = group % blocks
        return np.stack([block, 4 * element + group // blocks, column], axis=-1)
    if size == 4:
        return np.stack([group, element, column], axis=-1)
    in_block = size * size // 64
    block, at = element // in_block, element % in_block
    row = 4 * (64 // size) * (at // 4) + 4 * group + at % 4
    return np.stack([block, row, column], axis=-1)


def _rdna_input(lanes: int, depth: int, repeated: bool) -> Places:
    """[lane, element, (block, row, k)] of A on RDNA, which gfx11 has in each half of the wave."""
    groups = 1 if repeated else lanes // 16
    lane, element = _lanes(lanes, depth // groups)
    k = lane // 16 % groups * element.shape[1] + element
    return np.stack([np.zeros_like(lane), lane % 16, k], axis=-1)


def _rdna_result(lanes: int, repeated: bool) -> Places:
    groups = lanes // 16
    lane, element = _lanes(lanes, 16 // groups)
    group = lane // 16
    row = groups * element + group if repeated else element.shape[1] * group + element
    return np.stack([np.zeros_like(lane), row, lane % 16], axis=-1)


def _types(matrix: Matrix, text: str) -> tuple[str, str]:
    """Return the types of A and B, which f8f6f4 has in modifiers."""
    if matrix.a != "f8f6f4":
        return matrix.a, matrix.b

    def modifier(name: str) -> str:
        match = re.search(rf"{name}:(\d)", text)
        return _FORMATS[int(match[1]) if match else 0]

    return modifier("cbsz"), modifier("blgp")


def _bits(type_: str) -> int:
    narrow = {"fp6": 6, "bf6": 6, "fp4": 4, "i4": 4, "u4": 4}
    return int(narrow.get(type_) or TYPE_BITS[type_])


@cache
def fragment(gpu: str, mnemonic: str, operand: str, text: str = "", lanes: int = 0) -> Fragment:
    """Return where the elements of an operand of a matrix instruction are.

    Args:
        gpu: Such as ``gfx942``.
        mnemonic: Such as ``v_mfma_f32_32x32x8_f16``.
        operand: ``A``, ``B`` or ``D``.
        text: The whole instruction, for f8f6f4's formats.
        lanes: Of a wave; as many as the GPU's waves usually have by default.

    Example:
        >>> d = fragment("gfx942", "v_mfma_f32_32x32x8_f16", "D")
        >>> d.shape, d.places[33, 5].tolist()
        ((1, 32, 32), [0, 13, 1])
    """
    matrix = _matrices(gpu).get(mnemonic)
    if matrix is None:
        raise error("D038", got=mnemonic, problem=f"it is no matrix instruction of {gpu}")
    if matrix.sparse:
        raise error("D038", got=mnemonic, problem="its A is sparse")
    a, b = _types(matrix, text)
    kind = {"A": a, "B": b, "D": matrix.d}[operand]
    m, n, k, blocks = matrix.m, matrix.n, matrix.k, matrix.blocks
    spec = arch(gpu)
    lanes = lanes or spec.wave_size
    if mnemonic.startswith("v_mfma"):
        wide = 64 if a == "f64" else 0
        places = (
            _cdna_result(m, blocks, wide) if operand == "D" else _cdna_input(m, k, blocks, wide)
        )
    else:
        repeated = spec.repeats_rows
        places = (
            _rdna_result(lanes, repeated) if operand == "D" else _rdna_input(lanes, k, repeated)
        )
    if operand == "B":
        places = places[..., [0, 2, 1]]
    shape = {"A": (blocks, m, k), "B": (blocks, k, n), "D": (blocks, m, n)}[operand]
    bits = max(_bits(kind), _WORD_BITS) if operand == "D" else _bits(kind)
    return Fragment(operand, kind, bits, shape, places)


def matrix_instruction(gpu: str, text: str, lanes: int = 0) -> MatrixInstruction:
    """Return the operands of an instruction, with their registers.

    Example:
        >>> text = "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[0:15]"
        >>> {name: (each.file, each.first) for name, each in
        ...  matrix_instruction("gfx942", text).operands.items()}
        {'D': ('a', 0), 'A': ('v', 2), 'B': ('v', 4)}
    """
    mnemonic, _, rest = text.partition(" ")
    operands = {}
    for name, match in zip(_OPERANDS, _REGISTERS.finditer(rest), strict=False):
        plain = fragment(gpu, mnemonic, name, text, lanes)
        first = int(match[2] if match[2] is not None else match[3])
        operands[name] = Fragment(
            plain.name, plain.type, plain.bits, plain.shape, plain.places, match[1], first
        )
    if not operands:
        raise error("D038", got=mnemonic, problem="it has no registers")
    return MatrixInstruction(text, operands)


def holder(fragment: Fragment, row: int, column: int, block: int = 0) -> list[tuple[int, int]]:
    """Return the lanes that hold an element, and which of their elements it is.

    Example:
        >>> holder(fragment("gfx942", "v_mfma_f32_16x16x16_f16", "D"), 5, 3)
        [(19, 1)]
    """
    same = (fragment.places == (block, row, column)).all(axis=-1)
    return [(int(lane), int(element)) for lane, element in np.argwhere(same)]
