# SPDX-License-Identifier: MIT
"""The instruction tables as values: what a family's JSON file says, loaded and checked.

A file holds `encodings` (identifying bits, opcode bits, fields) and `instructions` (one row per
mnemonic). A file with `"extends"` starts from another family's rows: it lists what it removes and
the rows it adds or replaces.

An operand is written `[field=][class/]type[xCOUNT]`, e.g. `f16x4`, `sreg/b32`, `src1=f32`; `-` is a
slot that the instruction leaves empty. Field and class default to those of the encoding's slot.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAMILIES = ("cdna2", "cdna3", "cdna4", "rdna3", "rdna4")

#: Bits of each element type.
TYPE_BITS = {
    "b8": 8, "i8": 8, "u8": 8, "fp8": 8, "bf8": 8, "e8m0": 8,
    "b16": 16, "i16": 16, "u16": 16, "f16": 16, "bf16": 16,
    "i24": 24, "u24": 24, "b32": 32, "i32": 32, "u32": 32, "f32": 32, "xf32": 32,
    "b64": 64, "i64": 64, "u64": 64, "f64": 64, "b96": 96, "b128": 128, "b256": 256, "b512": 512,
    "b1024": 1024,
    "i4": 4, "u4": 4, "fp4": 4, "fp6": 6, "bf6": 6, "f8f6f4": 8, "rsrc": 128, "mask": 64,
}  # fmt: skip

#: Which codes of a field an operand may hold.
CLASSES = (
    "any",  # 9 bits: VGPR, scalar register, inline constant, literal, special
    "scalar",  # 8 bits: the same without VGPRs
    "sreg",  # a scalar register
    "lane",  # a scalar register or an inline integer
    "null",  # RDNA: the null register
    "barrier",  # m0 or an inline integer
    "vgpr",
    "agpr",
    "data",  # VGPR, or AGPR by the encoding's acc bits
    "acc",  # `data`, or an inline constant
    "literal",  # the 32 bits after the instruction, always
    "imm",  # the field itself, no register
    "sdwa",  # VGPR, or scalar register by its bit
    "vcc",  # implicit
    "exec",  # implicit; if the encoding has a vdst field, that names it
)

FLAGS = (
    "inout",  # dst[0] is read too
    "atomic",  # dst[0] exists only if sc0 is set
    "offset2",  # DS: two 8-bit offsets
    "gds",  # DS: works on global data share, the gds bit must be set
    "lds",  # MUBUF: may load to LDS
    "nocache",  # no cache bit may be set
    "scope",  # of the cache bits only the scope (sc0, sc1)
    "nooffset",  # no offset, no addressing mode
    "bitop3",  # neg, abs and omod hold the truth table
    "lanectl",  # VOP3: op_sel bit 0 is fetch_inactive, bit 1 is bound_ctrl
    "nodstsel",  # SDWA selects source bytes only
    "dpp",
    "dpp3",  # RDNA: the 64-bit encoding has DPP forms
    "sdwa",
    "cmpx",  # RDNA: dst[0] is exec and not written in the text
    "onescalar",  # RDNA: reads one scalar value only
    "bytesel",  # gfx12: op_sel chooses a byte of the source or of the result
    "prefetch",  # gfx12 SMEM: sdata is a length
    "mix",  # mixed-precision fma: neg_hi is abs, op_sel_hi chooses f16 sources
)

_OPERAND = re.compile(r"(?:(\w+)=)?(?:([a-z]+)/)?(xf32|[a-wyz0-9]+)(?:x(\d+))?$")


class TableError(ValueError):
    """A table contradicts itself; says which file, row and rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Bits of an instruction: `parts` as (lowest bit, width), the least significant part first."""

    name: str
    parts: tuple[tuple[int, int], ...]
    operand_class: str | None

    @property
    def width(self) -> int:
        """Number of bits."""
        return sum(width for _, width in self.parts)

    def place(self, value: int) -> int:
        """The instruction bits that hold `value`."""
        word = 0
        for low, width in self.parts:
            word |= (value & ((1 << width) - 1)) << low
            value >>= width
        return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """One instruction layout; `second` is set for SDWA and DPP words, which replace src0."""

    name: str
    dwords: int
    mask: int
    match: int
    ignored: int
    """Bits that the hardware does not read: any value is legal."""
    opcode: Field | None
    fields: tuple[Field, ...]
    dst: tuple[str, ...]
    src: tuple[str, ...]
    literal: bool
    forms: tuple[tuple[str, str], ...]

    def field(self, name: str) -> Field:
        """The field called `name`."""
        for field in self.fields:
            if field.name == name:
                return field
        raise TableError(f"encoding {self.name} has no field {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """An operand of an instruction in one encoding; literals and the implicit vcc have no field."""

    field: str
    operand_class: str
    type: str
    count: int

    @property
    def dwords(self) -> int:
        """Registers of 32 bits that the operand spans."""
        return max(1, -(-TYPE_BITS[self.type] * self.count // 32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """D[blocks][m][n] = A[blocks][m][k] * B[blocks][k][n] + C of one matrix instruction."""

    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    d: str
    passes: int
    sparse: bool
    scaled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An instruction as the JSON writes it."""

    name: str
    opcodes: tuple[tuple[str, int], ...]
    dst: tuple[str, ...]
    src: tuple[str, ...]
    mods: str
    imm: str
    flags: tuple[str, ...]
    matrix: Matrix | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All that is known of one family."""

    family: str
    arch: str
    generation: int
    """gfx9, gfx11 or gfx12: which the rules are that the rows do not tell."""
    cache_names: tuple[tuple[str, str], ...]
    encodings: tuple[Encoding, ...]
    rows: tuple[Row, ...]

    def encoding(self, name: str) -> Encoding:
        """The encoding called `name`."""
        for encoding in self.encodings:
            if encoding.name == name:
                return encoding
        raise TableError(f"{self.family}: no encoding {name}")


def _parts(text: str) -> tuple[tuple[int, int], ...]:
    """Parse `"15:0"`, `"14"` or `"60:59,14"`."""
    parts = []
    for part in text.split(","):
        high, _, low = part.partition(":")
        low = low or high
        parts.append((int(low), int(high) - int(low) + 1))
    return tuple(parts)


def _field(name: str, spec: list[str]) -> Field:
    return Field(name=name, parts=_parts(spec[0]), operand_class=spec[1] if len(spec) > 1 else None)


def _encoding(name: str, raw: dict[str, Any]) -> Encoding:
    mask = match = 0
    for bits, value in raw.get("match", {}).items():
        field = _field("match", [bits])
        mask |= field.place(-1)
        match |= field.place(int(value, 2))
    return Encoding(
        name=name,
        dwords=raw["dwords"],
        mask=mask,
        match=match,
        ignored=_field("ignored", [raw["ignored"]]).place(-1) if "ignored" in raw else 0,
        opcode=_field("opcode", [raw["op"]]) if "op" in raw else None,
        fields=tuple(_field(key, spec) for key, spec in raw["fields"].items()),
        dst=tuple(raw.get("dst", ())),
        src=tuple(raw.get("src", ())),
        literal=raw.get("literal", False),
        forms=tuple(raw.get("forms", {}).items()),
    )


def _matrix(raw: dict[str, Any]) -> Matrix:
    return Matrix(**{"blocks": 1, "passes": 0, "sparse": False, "scaled": False, **raw})


def _row(raw: dict[str, Any]) -> Row:
    known = {"name", "op", "dst", "src", "mods", "imm", "flags", "matrix"}
    if extra := set(raw) - known:
        raise TableError(f"{raw.get('name')}: unknown keys {sorted(extra)}")
    return Row(
        name=raw["name"],
        opcodes=tuple(sorted(raw["op"].items())),
        dst=tuple(raw.get("dst", ())),
        src=tuple(raw.get("src", ())),
        mods=raw.get("mods", ""),
        imm=raw.get("imm", ""),
        flags=tuple(raw.get("flags", ())),
        matrix=_matrix(raw["matrix"]) if "matrix" in raw else None,
    )


def _resolved(family: str, folder: Path) -> dict[str, Any]:
    """The family's JSON with `extends` applied: encodings by name, rows by mnemonic."""
    raw: dict[str, Any] = json.loads((folder / f"{family}.json").read_text("utf-8"))
    rows = {row["name"]: row for row in raw["instructions"]}
    if len(rows) != len(raw["instructions"]):
        raise TableError(f"{family}: two rows have one name")
    if "extends" not in raw:
        return {**raw, "instructions": rows}
    base = _resolved(raw["extends"], folder)
    inherited: dict[str, Any] = base["instructions"]
    if unknown := set(raw.get("removed", ())) - set(inherited):
        raise TableError(f"{family}: removes unknown rows {sorted(unknown)}")
    kept = {k: v for k, v in inherited.items() if k not in raw.get("removed", ())}
    return {
        **base,
        **raw,
        "encodings": base["encodings"] | raw.get("encodings", {}),
        "instructions": kept | rows,
    }


def load(family: str, folder: Path = Path(__file__).parent) -> Table:
    """Load the table of `family`, one of `FAMILIES`.

    Raises:
        TableError: If the file contradicts itself.
    """
    raw = _resolved(family, folder)
    return Table(
        family=family,
        arch=raw["arch"],
        generation=raw.get("generation", 9),
        cache_names=tuple(raw["cache_names"].items()),
        encodings=tuple(_encoding(name, spec) for name, spec in raw["encodings"].items()),
        rows=tuple(_row(raw["instructions"][name]) for name in sorted(raw["instructions"])),
    )


def parse_operand(text: str, slot: Field | None) -> Operand:
    """The operand `text` of a row, in the encoding slot `slot` (None if the encoding has none)."""
    found = _OPERAND.match(text)
    if found is None or found[3] not in TYPE_BITS:
        raise TableError(f"operand {text!r} is not [field=][class/]type[xCOUNT]")
    operand_class = found[2] or (slot.operand_class if slot else None) or ""
    if operand_class not in CLASSES:
        raise TableError(f"operand {text!r} has the unknown class {operand_class!r}")
    return Operand(
        field=slot.name if slot and operand_class not in ("literal", "vcc", "exec") else "",
        operand_class=operand_class,
        type=found[3],
        count=int(found[4] or 1),
    )


def operands(row: Row, encoding: Encoding) -> tuple[tuple[Operand | None, ...], ...]:
    """(destinations, sources) of `row` in `encoding`; None is an empty slot.

    A mask operand is a pair of scalar registers; beyond the encoding's slots it is implicit: vcc.
    """

    def resolve(texts: tuple[str, ...], slots: tuple[str, ...]) -> tuple[Operand | None, ...]:
        result: list[Operand | None] = []
        for index, text in enumerate(texts):
            if text == "-":
                result.append(None)
                continue
            named = text.partition("=")[0] if "=" in text else ""
            name = named or (slots[index] if index < len(slots) else "")
            if named and encoding.name == "VOPDY":
                name = f"y_{named}"  # the second half of a dual instruction
            if text == "mask":
                text = "sreg/mask" if name else "vcc/mask"
            try:
                result.append(parse_operand(text, encoding.field(name) if name else None))
            except TableError as error:
                raise TableError(f"{row.name} as {encoding.name}: {error}") from None
        return tuple(result)

    return resolve(row.dst, encoding.dst), resolve(row.src, encoding.src)
