# SPDX-License-Identifier: MIT
"""Check the instruction tables and write them as C++ for the decoder.

`generate` makes two files: `isa_tables.h` (the enumerations, for everybody) and `isa_tables.inc`
(the rows, for decode/decode.cpp alone). The text depends on the JSON files only.
"""

from collections.abc import Iterable
from pathlib import Path

from cklang.emulator.engine.isa.schema import (
    CLASSES,
    FAMILIES,
    FLAGS,
    TYPE_BITS,
    Encoding,
    Field,
    Matrix,
    Operand,
    Row,
    Table,
    TableError,
    load,
    operands,
)

#: Modifiers that a row may allow; the masked ones name the operands: "neg:01", "op_sel:013".
MASKED_MODS = ("neg", "abs", "neg_hi", "op_sel", "op_sel_hi")
PLAIN_MODS = ("clamp", "omod", "cbsz", "abid", "blgp")

#: What a 16-bit immediate means, for the printer and for its extension to 32 bits.
IMMEDIATES = (
    *("", "simm16", "uimm16", "uimm4", "hex16", "label", "hwreg", "sendmsg", "barrier"),
    *("waitcnt", "waitcnt11", "delay", "depctr"),
)


def modifiers(row: Row) -> dict[str, int]:
    """Allowed modifiers of `row`: name to operand mask (bit 3 is the destination), or to 1."""
    found = {}
    for word in row.mods.split():
        name, _, indices = word.partition(":")
        if name not in (MASKED_MODS if indices else PLAIN_MODS):
            raise TableError(f"{row.name}: unknown modifier {word!r}")
        found[name] = sum(1 << int(i) for i in indices) if indices else 1
    return found


def validate(table: Table) -> None:
    """Check that no two rows share an encoding and that each row is well formed.

    Raises:
        TableError: With the row and the rule.
    """
    taken: dict[tuple[int, int, int], str] = {}
    for row in table.rows:
        modifiers(row)
        if unknown := set(row.flags) - set(FLAGS):
            raise TableError(f"{row.name}: unknown flags {sorted(unknown)}")
        if row.imm not in IMMEDIATES:
            raise TableError(f"{row.name}: unknown immediate {row.imm!r}")
        for name, opcode in row.opcodes:
            encoding = table.encoding(name)
            if encoding.opcode is None or opcode >> encoding.opcode.width:
                raise TableError(f"{row.name}: opcode {opcode} does not fit {name}")
            identity = (encoding.mask, encoding.match, opcode)
            if (other := taken.setdefault(identity, row.name)) != row.name:
                raise TableError(f"{row.name} and {other} are both {name} {opcode}")
            dst, src = operands(row, encoding)
            if len(dst) > 2 or len(src) > 5:
                raise TableError(f"{row.name}: at most 2 destinations and 5 sources")


class _Names:
    """All families' names for one enumeration, in the order of the tables."""

    def __init__(self, tables: Iterable[Table]) -> None:
        tables = list(tables)
        self.ops = ["none", *sorted({row.name for t in tables for row in t.rows})]
        encodings: dict[str, None] = {}
        fields: dict[str, None] = {}
        for table in tables:
            for encoding in table.encodings:
                encodings.setdefault(encoding.name)
                for field in encoding.fields:
                    fields.setdefault(field.name)
        self.encodings = list(encodings)
        self.fields = ["none", *fields]


def _enum(name: str, base: str, members: Iterable[str]) -> list[str]:
    return [f"enum class {name} : {base} {{", *(f"  {m}," for m in members), "};", ""]


def _strings(name: str, values: Iterable[str]) -> list[str]:
    return [f"constexpr const char* {name}[] = {{", *(f'  "{v}",' for v in values), "};"]


def _immediate(name: str) -> str:
    return name.capitalize() or "None"


def _header(names: _Names) -> str:
    lines = [
        "// SPDX-License-Identifier: MIT",
        "// Written by cklang/emulator/engine/isa/tables.py from the JSON tables beside it.",
        "#pragma once",
        "#include <cstdint>",
        "namespace ckemu {",
        *_enum("Op", "uint16_t", [*names.ops, "kCount"]),
        *_enum("Encoding", "uint8_t", names.encodings),
        *_enum("Field", "uint8_t", [*names.fields, "kCount"]),
        *_enum("Class", "uint8_t", ["None", *(c.capitalize() for c in CLASSES)]),
        *_enum("Type", "uint8_t", ["None", *(t.upper() for t in TYPE_BITS)]),
        *_enum("Immediate", "uint8_t", [_immediate(i) for i in IMMEDIATES]),
        *(_flag(flag.capitalize(), i) for i, flag in enumerate(FLAGS)),
        _flag("TwoSizes", len(FLAGS)) + "  // has a 32-bit and a 64-bit form",
        "}  // namespace ckemu",
        "",
    ]
    return "\n".join(lines)


def _flag(name: str, bit: int) -> str:
    return f"constexpr uint32_t kFlag{name} = {1 << bit}u;"


def _words(value: int) -> str:
    return "{" + ", ".join(f"0x{value >> 32 * i & 0xFFFFFFFF:08x}u" for i in range(4)) + "}"


def _field_cpp(field: Field) -> str:
    (low, width), *rest = field.parts
    low2, width2 = rest[0] if rest else (0, 0)
    return (
        f"{{Field::{field.name}, Class::{(field.operand_class or 'none').capitalize()}, "
        f"{low}, {width}, {low2}, {width2}}}"
    )


def _operand_cpp(slot: str, operand: Operand) -> str:
    bits = TYPE_BITS[operand.type]
    return (
        f"{{{slot}, Field::{operand.field or 'none'}, Class::{operand.operand_class.capitalize()}, "
        f"Type::{operand.type.upper()}, {bits}, {operand.count}, {operand.dwords}}}"
    )


def _matrix_cpp(m: Matrix) -> str:
    types = ", ".join(f"Type::{t.upper()}" for t in (m.a, m.b, m.d))
    return (
        f"{{{m.m}, {m.n}, {m.k}, {m.blocks}, {types}, "
        f"{m.passes}, {str(m.sparse).lower()}, {str(m.scaled).lower()}}}"
    )


class _FamilyText:
    """The arrays of one family."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.fields: list[str] = []
        self.operands: list[str] = []
        self.matrices: list[str] = []
        self.encodings = [self._encoding(e) for e in table.encodings]
        entries = [
            (index, opcode, row, encoding)
            for index, encoding in enumerate(table.encodings)
            for row in table.rows
            for name, opcode in row.opcodes
            if name == encoding.name
        ]
        entries.sort(key=lambda e: e[:2])
        self.rows = [self._row(row, encoding, opcode) for _, opcode, row, encoding in entries]

    def _encoding(self, encoding: Encoding) -> str:
        first = len(self.fields)
        self.fields += [_field_cpp(field) for field in encoding.fields]
        low, width = encoding.opcode.parts[0] if encoding.opcode else (0, 0)
        forms = dict(encoding.forms)
        words = (forms.get(key, encoding.name) for key in ("sdwa", "dpp", "dpp8"))
        seconds = ", ".join(f"Encoding::{word}" for word in words)
        return (
            f"{{Encoding::{encoding.name}, {encoding.dwords}, {str(encoding.literal).lower()}, "
            f"{seconds}, {low}, {width}, {first}, {len(encoding.fields)}, "
            f"{_words(encoding.mask)}, {_words(encoding.match)}, "
            f"{_words(encoding.ignored)}}}"
        )

    def _row(self, row: Row, encoding: Encoding, opcode: int) -> str:
        first = len(self.operands)
        dst, src = operands(row, encoding)
        for base, group in ((0, dst), (2, src)):
            self.operands += [
                _operand_cpp(str(base + i), o) for i, o in enumerate(group) if o is not None
            ]
        matrix = -1
        if row.matrix is not None:
            text = _matrix_cpp(row.matrix)
            if text not in self.matrices:
                self.matrices.append(text)
            matrix = self.matrices.index(text)
        mods = modifiers(row)
        allowed = ", ".join(str(mods.get(name, 0)) for name in (*MASKED_MODS, *PLAIN_MODS))
        flags = [f"kFlag{flag.capitalize()}" for flag in row.flags]
        if {"VOP3", "VOP3B"} & dict(row.opcodes).keys() and len(row.opcodes) > 1:
            flags.append("kFlagTwoSizes")
        return (
            f"{{Op::{row.name}, Encoding::{encoding.name}, {opcode}, {first}, "
            f"{len(self.operands) - first}, Immediate::{_immediate(row.imm)}, "
            f"{' | '.join(flags) or 0}, "
            f"{{{allowed}}}, {matrix}}}"
        )

    def arrays(self) -> list[str]:
        prefix = f"k_{self.table.family}"
        lines = []
        for kind, name, items in (
            ("FieldSpec", "fields", self.fields),
            ("EncodingSpec", "encodings", self.encodings),
            ("OperandSpec", "operands", self.operands),
            ("MatrixShape", "matrices", self.matrices),
            ("Row", "rows", self.rows),
        ):
            lines += [f"constexpr {kind} {prefix}_{name}[] = {{", *(f"  {i}," for i in items), "};"]
        return lines

    def spec(self) -> str:
        prefix = f"k_{self.table.family}"
        caches = dict(self.table.cache_names)
        names = ", ".join(f'"{caches[key]}"' for key in ("sc0", "nt", "sc1"))
        return (
            f'  {{"{self.table.arch}", {self.table.generation}, {names}, '
            f"{prefix}_encodings, {len(self.encodings)}, {prefix}_fields, "
            f"{prefix}_operands, {prefix}_matrices, {prefix}_rows, {len(self.rows)}}},"
        )


def generate(out_dir: Path) -> None:
    """Write `isa_tables.h` and `isa_tables.inc` into `out_dir`."""
    tables = [load(family) for family in FAMILIES]
    for table in tables:
        validate(table)
    names = _Names(tables)
    texts = [_FamilyText(table) for table in tables]
    lines = [
        "// SPDX-License-Identifier: MIT",
        "// Written by cklang/emulator/engine/isa/tables.py from the JSON tables beside it.",
        *(line for text in texts for line in text.arrays()),
        "constexpr FamilySpec kFamilies[] = {",
        *(text.spec() for text in texts),
        "};",
        *_strings("kMnemonics", names.ops),
        *_strings("kEncodingNames", names.encodings),
        *_strings("kFieldNames", names.fields),
        "",
    ]
    (out_dir / "isa_tables.h").write_text(_header(names), "utf-8")
    (out_dir / "isa_tables.inc").write_text("\n".join(lines), "utf-8")
