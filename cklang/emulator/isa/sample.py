# SPDX-License-Identifier: MIT
"""Legal instruction words of any row, at random: food for tests of the decoder and of the engine.

Only what an assembler can write is sampled; the limits that go beyond a row's own data are:
a vector instruction reads at most one scalar value (register, special source or literal); a
literal is never a value that has an inline code; a matrix result is its addend or disjoint from it;
`src_pops_exiting_wave_id` is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from cklang.emulator.isa.schema import Encoding, Operand, Row, Table, operands
from cklang.emulator.isa.tables import modifiers

_VECTOR_ALU = {"VOP1", "VOP2", "VOPC", "VOP3", "VOP3B", "VOP3P", "MAI", "MAI_SCALED"}
_CACHE_BITS = ("sc0", "nt", "sc1")
_INLINE_INTS: tuple[int, ...] = tuple(range(128, 209))
_INLINE: tuple[int, ...] = (*_INLINE_INTS, *range(240, 249))
_SPECIAL = (235, 236, 237, 238, 251, 252, 253)
_ALIGNED_SCALARS: dict[int, tuple[int, ...]] = {
    1: (*range(108), 123, 124, 126, 127),
    2: (*range(0, 124, 2), 126),
}
_M0_AND_EXEC = (124, 126, 127)
_LITERAL = 255
_VGPR = 256
_DPP_CONTROLS = (
    *(0x1B, 0xE4, 0xFF, 0x101, 0x10F, 0x111, 0x11F, 0x121, 0x12F, 0x130, 0x134, 0x138, 0x13C),
    *(0x140, 0x141, 0x142, 0x143, 0x150, 0x15F),
)


@dataclass(slots=True)
class _Draft:
    """Field values of one instruction while they are chosen."""

    table: Table
    row: Row
    encoding: Encoding
    form: str
    random: Random
    values: dict[str, int] = field(default_factory=dict)
    second: dict[str, int] = field(default_factory=dict)
    literal: int | None = None
    scalar_left: bool = True
    """Whether a vector instruction may still read a scalar value."""

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.encoding.fields)

    def bits(self, name: str) -> int:
        return self.random.getrandbits(self.encoding.field(name).width)


def _literal(draft: _Draft, operand: Operand) -> None:
    """Choose the literal so that it has no inline code in the operand's type."""
    draft.literal = draft.literal or (
        draft.random.randrange(0x0101, 0x3000)
        if operand.type in ("f16", "bf16", "i16", "u16", "b16")
        else draft.random.randrange(0x10000, 0x3E000000) | 1
    )


def _vector(draft: _Draft, dwords: int) -> int:
    return draft.random.randrange(0, 257 - dwords, 2 if dwords > 1 else 1)


def _scalar(draft: _Draft, dwords: int) -> int:
    if dwords in _ALIGNED_SCALARS:
        choices = _ALIGNED_SCALARS[dwords]
        if draft.encoding.name in ("SMEM", "GLOBAL", "SCRATCH") or draft.row.name.startswith(
            "v_read"
        ):
            choices = tuple(c for c in choices if c not in _M0_AND_EXEC)
        return draft.random.choice(choices)
    return draft.random.randrange(0, 102 - dwords, 4)


def _source(draft: _Draft, operand: Operand, *, vector: bool, wide_field: bool) -> int:
    """A source code: a vector register, a scalar value if one is still allowed, or a constant."""
    free = draft.encoding.name not in _VECTOR_ALU or draft.scalar_left
    choices = ["inline"]
    if vector:
        choices += ["vector", "vector"]
    if free:
        choices += ["scalar", "special"]
        if draft.encoding.literal and draft.form == "":
            choices.append("literal")
    kind = draft.random.choice(choices)
    if kind in ("scalar", "special", "literal"):
        draft.scalar_left = False
    match kind:
        case "vector":
            return _vector(draft, operand.dwords) + (_VGPR if wide_field else 0)
        case "scalar":
            return _scalar(draft, operand.dwords)
        case "special" if operand.dwords == 1:
            return draft.random.choice(_SPECIAL)
        case "literal":
            _literal(draft, operand)
            return _LITERAL
        case _:
            return draft.random.choice(_INLINE)


def _lane(draft: _Draft) -> int:
    if draft.scalar_left and draft.random.random() < 0.5:
        draft.scalar_left = False
        return _scalar(draft, 1)
    return draft.random.choice(_INLINE_INTS)


def _code(draft: _Draft, operand: Operand) -> int:
    """A legal value for the field of `operand`."""
    width = draft.encoding.field(operand.field).width
    wide = width == 9
    if operand.type == "f8f6f4":
        return _VGPR + draft.random.randrange(0, 248, 2)
    if operand.field == "sbase":
        return _scalar(draft, operand.dwords) // 2
    if operand.field == "srsrc":
        return _scalar(draft, 4) // 4
    match operand.operand_class:
        case "vgpr" | "agpr" | "data":
            return _vector(draft, operand.dwords) + (_VGPR if wide else 0)
        case "acc":
            if draft.random.random() < 0.3:
                return draft.random.choice(_INLINE)
            return _VGPR + _vector(draft, operand.dwords)
        case "sreg":
            draft.scalar_left = False
            return _scalar(draft, operand.dwords)
        case "lane":
            return _lane(draft)
        case "imm":
            return draft.random.randrange(16)
        case _:
            vector = operand.operand_class == "any"
            return _source(draft, operand, vector=vector, wide_field=wide)


def _operands(draft: _Draft) -> None:
    dst, src = operands(draft.row, draft.encoding)
    named = [o for o in (*dst, *src) if o is not None]
    reads_vcc = any(o is not None and o.operand_class == "vcc" for o in src)
    if reads_vcc or "div_fmas" in draft.row.name:
        draft.scalar_left = False
    # Operands that must be scalar take the one scalar value before the others may.
    for operand in sorted(named, key=lambda o: o.operand_class not in ("literal", "sreg")):
        if operand.operand_class == "literal":
            draft.scalar_left = False
            _literal(draft, operand)
        elif operand.field:
            if operand in dst and operand.operand_class == "sreg":
                draft.values[operand.field] = _scalar(draft, operand.dwords)
            else:
                draft.values[operand.field] = _code(draft, operand)


def _modifier_fields(draft: _Draft) -> None:
    allowed = modifiers(draft.row)
    for name, mask in allowed.items():
        if not draft.has(name):
            continue
        width = draft.encoding.field(name).width
        masked = name not in ("clamp", "omod", "cbsz", "abid", "blgp")
        draft.values[name] = draft.random.getrandbits(width) & (mask if masked else -1)
    if draft.encoding.name == "VOP3P":
        rest = 7 & ~allowed.get("op_sel_hi", 0)
        draft.values["op_sel_hi"] = draft.values.get("op_sel_hi", 0) | rest
    if "bitop3" in draft.row.flags:
        draft.values.update({name: draft.bits(name) for name in ("neg", "abs", "omod")})


def _matrix(draft: _Draft) -> None:
    """Fix up matrix instructions: formats, the addend, which registers are accumulators."""
    values, random = draft.values, draft.random
    if draft.row.matrix is None:
        return
    if draft.row.matrix.a == "f8f6f4":
        values["cbsz"], values["blgp"] = random.randrange(5), random.randrange(5)
    else:
        values["cbsz"] = values.get("cbsz", 0) & 3
    if "neg" in modifiers(draft.row):
        values["blgp"] = random.randrange(8)
    if values["src2"] >= _VGPR and not draft.row.matrix.sparse:
        values["src2"] = values["vdst"] + _VGPR
    values["acc_cd"] = random.randrange(2)
    values["acc"] = random.randrange(4)


def _mode_bits(draft: _Draft) -> None:
    """Offsets, cache bits and addressing modes of memory instructions."""
    values = draft.values
    for name in ("offset0", "offset1", "offset", "acc", *_CACHE_BITS, "dfmt", "nfmt"):
        if draft.has(name):
            values[name] = draft.bits(name)
    _, src = operands(draft.row, draft.encoding)
    match draft.encoding.name:
        case "SMEM":
            _scalar_memory(draft, bool(src))
        case "DS":
            values["gds"] = int("gds" in draft.row.flags)
        case "MUBUF" | "MTBUF" if src:
            _buffer(draft)
        case "GLOBAL" | "SCRATCH":
            _flat(draft)
    _data(draft)
    _assembler_limits(draft)


def _data(draft: _Draft) -> None:
    """Drop the data registers that the chosen modes leave unused."""
    values, flags = draft.values, draft.row.flags
    if "atomic" in flags and not values["sc0"] and draft.encoding.name != "MUBUF":
        values.pop("vdst", None)
    if draft.has("acc") and not any("data" in name or name == "vdst" for name in values):
        values["acc"] = 0
    if "lds" in flags and draft.random.random() < 0.3:
        values.update(lds=1, acc=0, vdata=0)


def _assembler_limits(draft: _Draft) -> None:
    """Clear what the row, or clang's assembler, does not take."""
    values, flags, name = draft.values, draft.row.flags, draft.row.name
    cleared: list[str] = []
    if "nocache" in flags:
        cleared += _CACHE_BITS
    if "scope" in flags:
        cleared += ["nt"]
    if "nooffset" in flags:
        cleared += ["offset", "offset0", "offset1"]
    if "atomic" in flags and (draft.table.family == "cdna2" or name.endswith("f64")):
        cleared += ["sc1"]  # the assembler drops it
    if name in ("global_atomic_add_f32", "global_atomic_pk_add_f16"):
        cleared += ["acc"]  # the assembler knows no AGPR form
    if "gws" in name and "addr" in values:
        values["addr"] &= ~1
    values.update({key: 0 for key in cleared if key in values})


def _scalar_memory(draft: _Draft, addressed: bool) -> None:
    values, random = draft.values, draft.random
    register = values.pop("soffset", 0)
    values["offset"] = 0
    if not addressed:
        return
    mode = random.choice(("imm", "register", "both"))
    values.update(imm=int(mode != "register"), soffset_en=int(mode == "both"))
    if mode == "register":
        values["offset"] = register
    else:
        buffer = "buffer" in draft.row.name
        values["offset"] = random.getrandbits(20) | (0 if buffer else random.getrandbits(1) << 20)
    if mode == "both":
        values["soffset"] = register


def _buffer(draft: _Draft) -> None:
    values, random = draft.values, draft.random
    values["offen"], values["idxen"] = random.randrange(2), random.randrange(2)
    parts = values["offen"] + values["idxen"]
    values["vaddr"] = _vector(draft, parts) if parts else 0


def _flat(draft: _Draft) -> None:
    """A global address is 64 bits in vaddr, or saddr plus 32 bits; scratch may lack either."""
    values, random = draft.values, draft.random
    based = random.random() < 0.5
    if draft.encoding.name == "GLOBAL":
        values["addr"] = _vector(draft, 1 if based else 2)
        values["saddr"] = values["saddr"] if based else 0x7F
        return
    values["saddr"] = values["saddr"] if based else 0x7F
    with_vector = random.random() < 0.5 if draft.has("sve") else not based
    if draft.has("sve"):
        values["sve"] = int(with_vector)
    values["addr"] = _vector(draft, 1) if with_vector else 0


def _immediate(draft: _Draft) -> None:
    if not draft.has("simm16"):
        return
    random = draft.random
    bits = random.getrandbits(16)
    hwreg = random.randrange(1, 8) | bits & 0xFFC0
    draft.values["simm16"] = {
        "": 0,
        "waitcnt": bits & 0xCF7F,
        "sendmsg": random.choice((1, 2, 3)),
        "uimm4": bits & 15,
        "hwreg": hwreg,
    }.get(draft.row.imm, bits)


def _second_word(draft: _Draft) -> None:
    """Move src0 into the SDWA or DPP word and choose what else that word says."""
    dst, src = operands(draft.row, draft.encoding)
    allowed, random = modifiers(draft.row), draft.random
    word = {"src0": _vector(draft, src[0].dwords if src[0] else 1)}
    count = min(len(src), 2)
    for i in range(count):
        for kind in ("neg", "abs"):
            if allowed.get(kind, 0) >> i & 1:
                word[f"{kind}{i}"] = random.randrange(2)
    if draft.form == "dpp":
        wide = any(o is not None and o.dwords == 2 and o.type != "mask" for o in (*dst, *src))
        control = random.choice(_DPP_CONTROLS[-2:] if wide else _DPP_CONTROLS)
        word.update(dpp_ctrl=control, bound_ctrl=random.randrange(2))
        word.update(row_mask=random.randrange(16), bank_mask=random.randrange(16))
    else:
        word.update({f"src{i}_sel": random.randrange(7) for i in range(count)})
        if draft.encoding.name != "VOPC":
            plain = "nodstsel" in draft.row.flags
            word.update(dst_sel=6 if plain else random.randrange(7), clamp=random.randrange(2))
            word.update(dst_unused=0 if plain else random.randrange(3))
    draft.values["src0"] = {"sdwa": 249, "dpp": 250}[draft.form]
    if count == 2:
        draft.values["src1"] = _vector(draft, src[1].dwords if src[1] else 1)
    draft.second = word


def forms(row: Row, encoding: Encoding) -> tuple[str, ...]:
    """The forms of `row` in `encoding`: "" is the plain one, then "sdwa" and "dpp"."""
    return ("", *(name for name, _ in encoding.forms if name in row.flags and row.src))


def sample(table: Table, row: Row, encoding: Encoding, form: str, random: Random) -> bytes:
    """Legal code of `row` in `encoding` and `form` with random operands and modifiers.

    Returns:
        4 to 16 bytes, little-endian, literal included.
    """
    draft = _Draft(table, row, encoding, form, random)
    _operands(draft)
    if form:
        _second_word(draft)
    else:
        _modifier_fields(draft)
    _matrix(draft)
    if encoding.name in ("SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"):
        _mode_bits(draft)
    _immediate(draft)
    return _pack(draft, dict(row.opcodes)[encoding.name])


def _pack(draft: _Draft, opcode: int) -> bytes:
    encoding, dwords = draft.encoding, draft.encoding.dwords
    word = encoding.match
    if encoding.opcode is not None:
        word |= encoding.opcode.place(opcode)
    for name, value in draft.values.items():
        word |= encoding.field(name).place(value)
    if draft.form:
        second = draft.table.encoding(dict(encoding.forms)[draft.form])
        dwords = second.dwords
        for name, value in draft.second.items():
            word |= second.field(name).place(value)
    code = word.to_bytes(16, "little")[: 4 * dwords]
    return code if draft.literal is None else code + draft.literal.to_bytes(4, "little")
