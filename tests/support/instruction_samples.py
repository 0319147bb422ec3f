# SPDX-License-Identifier: MIT
"""Legal instruction words of any row, at random: food for tests of the decoder and of the engine.

Only what an assembler can write is sampled; the limits that go beyond a row's own data are:
a vector instruction reads at most one scalar value (register, special source or literal; on RDNA
two, of which one literal); the halves of a dual instruction read from different register banks; a
literal is never a value that has an inline code; a matrix result is its addend or disjoint from it;
`src_pops_exiting_wave_id` is left out.
"""

from dataclasses import dataclass, field
from random import Random

from cklang.emulator.engine.isa.schema import Encoding, Operand, Row, Table, operands
from cklang.emulator.engine.isa.tables import modifiers

_COMPACT = {"VOP1", "VOP2", "VOPC"}
_VECTOR_ALU = _COMPACT | {"VOP3", "VOP3B", "VOP3P", "MAI", "MAI_SCALED", "VOPD", "VOPDY"}
_CACHE_BITS = ("sc0", "nt", "sc1", "th", "scope")
_INLINE_INTS: tuple[int, ...] = tuple(range(128, 209))
_INLINE: tuple[int, ...] = (*_INLINE_INTS, *range(240, 249))
_SPECIAL = (235, 236, 237, 238, 251, 252, 253)
_ALIGNED_SCALARS: dict[int, tuple[int, ...]] = {
    1: (*range(108), 123, 124, 126, 127),
    2: (*range(0, 124, 2), 126),
}
_M0_AND_EXEC = (124, 126, 127)
_RDNA_SPECIAL = (235, 236, 237, 238, 253)
_RDNA_SCALARS: dict[int, tuple[int, ...]] = {1: tuple(range(128)), 2: tuple(range(0, 128, 2))}
_RDNA_M0_AND_EXEC = (125, 126, 127)
_NULL = 124
_EXEC = 126
_HALF_TYPES = ("f16", "bf16", "i16", "u16", "b16")
_LITERAL = 255
_VGPR = 256
_RDNA_DPP_CONTROLS = (0x1B, 0xE4, 0x101, 0x11F, 0x121, 0x140, 0x141, 0x150, 0x15F, 0x160, 0x16F)
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
    scalar_left: int = 1
    """How many scalar values a vector instruction may still read."""

    @property
    def rdna(self) -> bool:
        return self.table.generation > 9

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.encoding.fields)

    def bits(self, name: str) -> int:
        return self.random.getrandbits(self.encoding.field(name).width)


def _literal(draft: _Draft, operand: Operand) -> None:
    """Choose the literal so that it has no inline code in the operand's type."""
    draft.literal = draft.literal or (
        draft.random.randrange(0x0101, 0x3000)
        if operand.type in _HALF_TYPES
        else draft.random.randrange(0x10000, 0x3E000000) | 1
    )


def _vector(draft: _Draft, dwords: int) -> int:
    return draft.random.randrange(0, 257 - dwords, 2 if dwords > 1 and not draft.rdna else 1)


def _scalar(draft: _Draft, dwords: int) -> int:
    if draft.rdna and dwords in _RDNA_SCALARS:
        choices = _RDNA_SCALARS[dwords]
        memory = draft.encoding.name in ("SMEM", "GLOBAL", "SCRATCH")
        if memory or draft.row.name.startswith(("v_read", "v_s_")):
            choices = tuple(c for c in choices if c not in _RDNA_M0_AND_EXEC and c != _NULL)
        return draft.random.choice(choices)
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
    free = draft.encoding.name not in _VECTOR_ALU or draft.scalar_left > 0
    wide = draft.encoding.dwords > 1  # there the assembler takes no modifiers on 64-bit literals
    choices = ["inline"]
    if vector:
        choices += ["vector", "vector"]
    if free:
        choices += ["scalar", "special"]
        writable = not (wide and operand.dwords == 2) and "mix" not in draft.row.flags
        writable = writable and operand.type not in ("fp8", "bf8")
        writable = writable and (operand.type not in _HALF_TYPES or (draft.literal or 0) < 1 << 16)
        if draft.encoding.literal and draft.form == "" and (writable or not draft.rdna):
            choices.append("literal")
    if draft.rdna and draft.form and wide_field:  # what the assembler takes for src1 varies
        choices = [c for c in choices if c == "vector"]
    kind = draft.random.choice(choices)
    if kind in ("scalar", "special", "literal"):
        draft.scalar_left -= 1
    match kind:
        case "vector":
            return _register(draft, operand) + (_VGPR if wide_field else 0)
        case "scalar":
            return _scalar(draft, operand.dwords)
        case "special" if operand.dwords == 1:
            return draft.random.choice(_RDNA_SPECIAL if draft.rdna else _SPECIAL)
        case "literal":
            _literal(draft, operand)
            return _LITERAL
        case _:
            # The assembler writes a float source of this one as a literal.
            integers = draft.row.name == "v_pk_fmac_f16" and draft.rdna
            return draft.random.choice(_INLINE_INTS if integers else _INLINE)


def _register(draft: _Draft, operand: Operand) -> int:
    """A vector register, or in the 32-bit encodings of RDNA one half of one below v128."""
    return _vector(draft, operand.dwords)


def _lane(draft: _Draft) -> int:
    if draft.scalar_left > 0 and draft.random.random() < 0.5:
        draft.scalar_left -= 1
        return _scalar(draft, 1)
    return draft.random.choice(_INLINE_INTS)


def _few_codes(draft: _Draft, operand: Operand) -> int:
    """A value for a field that takes neither registers nor constants in general."""
    if operand.operand_class == "null":
        return _NULL
    if operand.operand_class == "barrier":
        return draft.random.choice((_RDNA_M0_AND_EXEC[0], *_INLINE_INTS))
    return draft.random.randrange(32 if "prefetch" in draft.row.flags else 16)


def _code(draft: _Draft, operand: Operand) -> int:
    """A legal value for the field of `operand`."""
    width = draft.encoding.field(operand.field).width
    wide = width == 9
    if operand.type == "f8f6f4":
        return _VGPR + draft.random.randrange(0, 248, 2)
    if operand.field in ("sbase", "srsrc"):
        unit = {"sbase": 2, "srsrc": 4 if draft.table.generation < 12 else 1}[operand.field]
        return _scalar(draft, operand.dwords) // unit
    match operand.operand_class:
        case "vgpr" | "agpr" | "data":
            return _register(draft, operand) + (_VGPR if wide else 0)
        case "acc":
            if draft.random.random() < 0.3:
                return draft.random.choice(_INLINE)
            return _VGPR + _vector(draft, operand.dwords)
        case "sreg":
            draft.scalar_left -= 1
            return _scalar(draft, operand.dwords)
        case "lane":
            return _lane(draft)
        case "null" | "barrier" | "imm":
            return _few_codes(draft, operand)
        case _:
            vector = operand.operand_class == "any"
            return _source(draft, operand, vector=vector, wide_field=wide)


def _operands(draft: _Draft) -> None:
    dst, src = operands(draft.row, draft.encoding)
    named = [o for o in (*dst, *src) if o is not None]
    reads_vcc = any(o is not None and o.operand_class == "vcc" for o in src)
    if reads_vcc or "div_fmas" in draft.row.name:
        draft.scalar_left -= 1
    # Operands that must be scalar take the one scalar value before the others may.
    for operand in sorted(named, key=lambda o: o.operand_class not in ("literal", "sreg")):
        if operand.operand_class == "literal":
            draft.scalar_left -= 1
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
    if draft.table.generation > 9 and draft.encoding.name == "VOP3":
        _halves(draft)
    if draft.encoding.name == "VOP3P":
        rest = 7 & ~allowed.get("op_sel_hi", 0)
        draft.values["op_sel_hi"] = draft.values.get("op_sel_hi", 0) | rest
    if "bitop3" in draft.row.flags:
        draft.values.update({name: draft.bits(name) for name in ("neg", "abs", "omod")})


def _halves(draft: _Draft) -> None:
    """RDNA's assembler names the halves of vector registers, and takes no op_sel beside that."""
    _, src = operands(draft.row, draft.encoding)
    for i, operand in enumerate(src):
        named = (draft.form and i == 0) or draft.values.get(f"src{i}", 0) >= _VGPR
        if operand is not None and operand.type in _HALF_TYPES and not named:
            draft.values["op_sel"] = draft.values.get("op_sel", 0) & ~(1 << i)


def _matrix(draft: _Draft) -> None:
    """Fix up matrix instructions: formats, the addend, which registers are accumulators."""
    values, random = draft.values, draft.random
    if draft.row.matrix is None:
        return
    if draft.rdna:
        _rdna_matrix(draft)
        return
    if draft.row.matrix.a == "f8f6f4":
        values["cbsz"], values["blgp"] = random.randrange(5), random.randrange(5)
    else:
        values["cbsz"] = values.get("cbsz", 0) & 3
    if "neg" in modifiers(draft.row) and not draft.rdna:
        values["blgp"] = random.randrange(8)
    if values["src2"] >= _VGPR and not draft.row.matrix.sparse:
        values["src2"] = values["vdst"] + _VGPR
    values["acc_cd"] = random.randrange(2)
    values["acc"] = random.randrange(4)


def _rdna_matrix(draft: _Draft) -> None:
    """The result is its addend, and the factors lie elsewhere."""
    values = draft.values
    if values["src2"] >= _VGPR and not (draft.row.matrix and draft.row.matrix.sparse):
        values["src2"] = values["vdst"] + _VGPR
    dst, _ = operands(draft.row, draft.encoding)
    width = dst[0].dwords if dst[0] else 1
    after = values["vdst"] + width
    start = after if after < 200 else 0
    values["src0"], values["src1"] = _VGPR + start, _VGPR + start + 16
    if draft.row.matrix and draft.row.matrix.sparse:
        values["src2"] = _VGPR + start + 40
        values["op_sel"] = values.get("op_sel", 0) & modifiers(draft.row).get("op_sel", 0) >> 1


def _mode_bits(draft: _Draft) -> None:
    """Offsets, cache bits and addressing modes of memory instructions."""
    values = draft.values
    for name in ("offset0", "offset1", "offset", "acc", *_CACHE_BITS, "dfmt", "nfmt", "format"):
        if draft.has(name):
            values[name] = draft.bits(name)
    _, src = operands(draft.row, draft.encoding)
    match draft.encoding.name:
        case "SMEM":
            _scalar_memory(draft, bool(src))
        case "DS" if draft.has("gds"):
            values["gds"] = int("gds" in draft.row.flags)
        case "MUBUF" | "MTBUF" if src:
            _buffer(draft)
        case "GLOBAL" | "SCRATCH":
            _flat(draft)
    if draft.has("th"):
        _hints(draft)
    _data(draft)
    _assembler_limits(draft)


def _data(draft: _Draft) -> None:
    """Drop the data registers that the chosen modes leave unused."""
    values, flags = draft.values, draft.row.flags
    returns = values["th"] & 1 if draft.has("th") else values.get("sc0", 0)
    if "atomic" in flags and not returns and draft.encoding.name != "MUBUF":
        values.pop("vdst", None)
    if draft.has("acc") and not any("data" in name or name == "vdst" for name in values):
        values["acc"] = 0
    if "lds" in flags and draft.random.random() < 0.3:
        values.update(lds=1, acc=0, vdata=0)


def _hints(draft: _Draft) -> None:
    """Choose a temporal hint that has a name."""
    values, random = draft.values, draft.random
    if draft.encoding.name == "SMEM":
        values["th"] = random.randrange(4)
    elif "atomic" in draft.row.flags:
        values["th"] = random.choice((0, 1, 2, 3))
        values["scope"] &= 1 if values["th"] > 1 else 3
    else:
        values["th"] = random.randrange(7)


def _assembler_limits(draft: _Draft) -> None:
    """Clear what the row, or clang's assembler, does not take."""
    values, flags, name = draft.values, draft.row.flags, draft.row.name
    cleared: list[str] = []
    if "nocache" in flags:
        cleared += _CACHE_BITS
    if "scope" in flags:
        cleared += ["nt", "th"]
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
        if draft.rdna:
            values.update(sc0=0, sc1=0) if draft.has("sc0") else values.update(th=0, scope=0)
        return
    if draft.rdna:
        with_register = random.random() < 0.5
        values["soffset"] = register if with_register else _NULL
        values["offset"] = random.getrandbits(20)
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
    none = _NULL if draft.rdna else 0x7F
    if "saddr" not in values:
        values["saddr"] = none
        return
    values["saddr"] = values["saddr"] if based and "nooffset" not in draft.row.flags else none
    if draft.encoding.name == "GLOBAL":
        if "addr" in values:
            values["addr"] = _vector(draft, 1 if based else 2)
        return
    with_vector = random.random() < 0.5 if draft.has("sve") else not based
    if draft.has("sve"):
        values["sve"] = int(with_vector)
    values["addr"] = _vector(draft, 1) if with_vector else 0


def _fixed(draft: _Draft) -> None:
    """Operands that only one register can be."""
    if "cmpx" in draft.row.flags and draft.has("vdst"):
        draft.values["vdst"] = _EXEC


def _immediate(draft: _Draft) -> None:
    if not draft.has("simm16"):
        return
    random = draft.random
    bits = random.getrandbits(16)
    hwreg = random.randrange(1, 8) | bits & 0xFFC0
    draft.values["simm16"] = {
        "": 0,
        "waitcnt": bits & 0xCF7F,
        "waitcnt11": bits & 0xFFF7,
        "delay": random.choice((0x1, 0x91, 0x5A3, 0x9)),
        "sendmsg": random.choice((1, 3) if draft.rdna else (1, 2, 3)),
        "uimm4": bits & 15,
        "hwreg": hwreg,
    }.get(draft.row.imm, bits)


def _second_word(draft: _Draft) -> None:
    """Move src0 into the SDWA or DPP word and choose what else that word says."""
    dst, src = operands(draft.row, draft.encoding)
    allowed, random = modifiers(draft.row), draft.random
    word = {"src0": _register(draft, src[0]) if src[0] else 0}
    count = min(len(src), 2)
    narrow = draft.encoding.dwords == 1
    for i in range(count if narrow and draft.form != "dpp8" else 0):
        for kind in ("neg", "abs"):
            if allowed.get(kind, 0) >> i & 1:
                word[f"{kind}{i}"] = random.randrange(2)
    if draft.form == "dpp":
        wide = any(o is not None and o.dwords == 2 and o.type != "mask" for o in (*dst, *src))
        control = random.choice(_DPP_CONTROLS[-2:] if wide else _DPP_CONTROLS)
        if draft.rdna:
            control = random.choice(_RDNA_DPP_CONTROLS)
            word["fi"] = random.randrange(2)
        word.update(dpp_ctrl=control, bound_ctrl=random.randrange(2))
        word.update(row_mask=random.randrange(16), bank_mask=random.randrange(16))
    elif draft.form == "dpp8":
        word["lanes"] = random.getrandbits(24)
    else:
        word.update({f"src{i}_sel": random.randrange(7) for i in range(count)})
        if draft.encoding.name != "VOPC":
            plain = "nodstsel" in draft.row.flags
            word.update(dst_sel=6 if plain else random.randrange(7), clamp=random.randrange(2))
            word.update(dst_unused=0 if plain else random.randrange(3))
    code = {"sdwa": 249, "dpp": 250, "dpp8": random.choice((233, 234))}[draft.form]
    draft.values["src0"] = code
    if count == 2 and src[1] is not None and narrow:
        draft.values["src1"] = _register(draft, src[1])
    draft.second = word


def forms(row: Row, encoding: Encoding) -> tuple[str, ...]:
    """The forms of `row` in `encoding`: "" is the plain one, then "sdwa" and "dpp"."""
    wide = encoding.dwords > 1
    flags = {"sdwa": "sdwa", "dpp": "dpp3" if wide else "dpp", "dpp8": "dpp3" if wide else "dpp"}
    return ("", *(name for name, _ in encoding.forms if flags[name] in row.flags and row.src))


def sample(table: Table, row: Row, encoding: Encoding, form: str, random: Random) -> bytes:
    """Legal code of `row` in `encoding` and `form` with random operands and modifiers.

    Returns:
        4 to 16 bytes, little-endian, literal included.
    """
    draft = _Draft(table, row, encoding, form, random)
    if draft.rdna and "onescalar" not in row.flags and encoding.name != "VOPD":
        draft.scalar_left = 2
    _operands(draft)
    if form:
        _second_word(draft)
    if not form or encoding.dwords > 1:
        _modifier_fields(draft)
    if encoding.name == "VOPD":
        _second_half(draft)
    _fixed(draft)
    _matrix(draft)
    if encoding.name in ("SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF"):
        _mode_bits(draft)
    _immediate(draft)
    return _pack(draft, dict(row.opcodes)[encoding.name])


def _second_half(draft: _Draft) -> None:
    """A second instruction for a dual one, which must not share register banks with the first."""
    table, random = draft.table, draft.random
    rows = [row for row in table.rows if "VOPDY" in dict(row.opcodes)]
    other = random.choice(rows)
    encoding = table.encoding("VOPDY")
    first_dst = draft.values["vdst"]
    second = _Draft(table, other, encoding, "", random, literal=draft.literal)
    _operands(second)
    draft.literal = second.literal
    values = second.values
    values["y_vdst"] >>= 1
    for x, y in (("src0", "y_src0"), ("src1", "y_src1")):
        base = _VGPR if x == "src0" else 0
        mine, yours = draft.values.get(x, 0), values.get(y, 0)
        if x in draft.values and y in values and mine >= base and yours >= base:
            values[y] = (yours & ~3) | (mine + 1) & 3
    values["opy"] = dict(other.opcodes)["VOPDY"]
    if "literal" in {o.operand_class for o in operands(other, encoding)[1] if o is not None}:
        for name in ("src0", "y_src0"):
            source = draft.values if name == "src0" else values
            if source.get(name, 0) < 128:
                source[name] = 128
    draft.values.update(values)
    if "inout" in other.flags and "fmamk" in draft.row.name:
        draft.values["src1"] ^= draft.values["src1"] & 1 ^ first_dst & 1
    if "inout" in draft.row.flags and "fmamk" in other.name:
        draft.values["y_src1"] ^= 1 ^ draft.values["y_src1"] & 1 ^ first_dst & 1


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
