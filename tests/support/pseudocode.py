# SPDX-License-Identifier: MIT
"""The operations of three GPUs whose pseudocode is compared, and the operands they get.

Shared by the script that evaluates the pseudocode and by the test, so that the operands need not be
stored: they come from Python's own generator, seeded with the operation's name.
"""

from dataclasses import dataclass
from functools import cache
from random import Random

from cklang.emulator.engine.isa import schema

GPUS = {"cdna4": "gfx950", "rdna3": "gfx1100", "rdna4": "gfx1201"}
"""By family: the wheel has pseudocode for one generation of CDNA and two of RDNA."""
LANES = 64
"""RDNA's waves have as many here."""
CARRIES = 0x00FF00FF0F0F3355
"""The lanes' carries before an operation (vcc)."""
_ENCODINGS = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3B", "VOP3P", "SOP1", "SOP2", "SOPC")
_TYPES = {
    *("f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64", "b16", "b32", "b64"),
    *("i24", "u24", "mask"),
}
_SPECIAL = {
    "f32": (0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
            1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F000000, 0x4B000001, 0x40490FDB, 0xCF000000),
    "f64": (0, 1 << 63, 0x3FF0 << 48, 0xBFF0 << 48, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48,
            0x7FF << 52 | 1, 1, (1 << 52) - 1, 1 << 52, (0x7FF << 52) - 1, 0x3FE0 << 48,
            0x41E0 << 48, 0xC1E00000 << 32, 0x400921FB54442D18),
    "f16": (0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 1, 0x83FF, 0x0400, 0x7BFF,
            0x3800, 0x6401, 0x4248, 0xC900),
}  # fmt: skip
_INTEGERS = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
             0xFFFFFFFF, 0x0F0F0F0F, 0x12345678)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation, its encoding, and the types of its operands."""

    name: str
    encoding: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    carry_in: bool
    halves: bool
    """RDNA: its operands of 16 bits are halves of registers that the instruction names."""

    writes_exec: bool
    """RDNA: a comparison whose result is exec."""

    @property
    def vector(self) -> bool:
        return self.encoding[0] == "V" and not self.name.startswith("v_s_")

    @property
    def result_dwords(self) -> int:
        """Dwords of the first destination; 0 if it is a mask, or there is none."""
        if not self.destinations or self.destinations[0] == "mask":
            return 0
        return (schema.TYPE_BITS[self.destinations[0].split("x")[0]] + 31) // 32


@cache
def operations(family: str) -> tuple[Operation, ...]:
    """What can be compared: plain operands of at most 64 bits."""
    table = schema.load(family)
    listing = []
    for row in table.rows:
        encoding = next((e for e, _ in row.opcodes if e in _ENCODINGS), None)
        if encoding is None or row.imm or row.matrix is not None:
            continue
        sources = tuple(text.partition("/")[2] or text for text in row.src)
        destinations = tuple(text.partition("/")[2] or text for text in row.dst)
        kinds = {text.removesuffix("x2") for text in (*sources, *destinations)}
        if not kinds <= _TYPES or not sources:
            continue
        carry = sources[-1] == "mask"
        plain = sources[:-1] if carry else sources
        if "mask" in plain or any("x2" in text and text[1:3] != "16" for text in plain):
            continue
        listing.append(
            Operation(
                name=row.name,
                encoding=encoding,
                sources=plain,
                destinations=destinations,
                carry_in=carry,
                writes_exec=family != "cdna4" and row.dst[:1] == ("exec/mask",),
                halves=family != "cdna4" and "op_sel" in row.mods,
            )
        )
    return tuple(listing)


def _value(random: Random, kind: str, lane: int, slot: int) -> int:
    plain = kind.removesuffix("x2")
    special = _SPECIAL.get(plain, _INTEGERS)
    if lane < 40:
        value = special[(lane * (5, 3, 7, 1)[slot] + lane // 16 + slot) % 16]
        return value | random.choice(special) << 16 if "x2" in kind else value
    bits = random.getrandbits(64)
    if lane >= 52 and plain == "f32":  # ordinary numbers
        return 0x3F000000 + (bits & 0x80FFFFFF)
    return bits


@cache
def operands(op: Operation) -> tuple[tuple[int, int, int, int], ...]:
    """[lane]: three sources and the old destination, 64 bits each."""
    random = Random(op.name)
    kinds = [*op.sources, "b64", "b64", "b64"][:3]
    rows = []
    for lane in range(LANES):
        values = [_value(random, kind, lane, slot) for slot, kind in enumerate(kinds)]
        rows.append((*values, random.getrandbits(64)))
    return tuple(rows)  # type: ignore[arg-type]
