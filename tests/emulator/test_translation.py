# SPDX-License-Identifier: MIT
"""Translated code gives what the interpreter gives, bit by bit: random programs, run both ways.

Where the CPU has AVX-512, they run as code for it and as code for AVX2; else as the latter alone.

A program is a loop of random vector, scalar and LDS instructions over a few registers, in which
masks of lanes come and go; all registers are its result.
"""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from cklang import emulator
from cklang.errors import CkValueError
from tests.support.assembly import Module, assembled, hip, ok

pytestmark = pytest.mark.usefixtures("emulator")

LENGTH, PROGRAMS, LDS, SCRATCH = 48, 40, 1024, 80
ROUNDS = 3
REGISTERS = range(2, 14)
SCALARS = range(16, 32)

FLOATS = (
    *("v_add_f32", "v_sub_f32", "v_subrev_f32", "v_mul_f32", "v_min_f32", "v_max_f32"),
    *("v_fma_f32", "v_fmac_f32", "v_min3_f32", "v_max3_f32", "v_med3_f32"),
    *("v_rcp_f32", "v_sqrt_f32", "v_rsq_f32", "v_trunc_f32", "v_ceil_f32", "v_floor_f32"),
    *("v_rndne_f32", "v_fract_f32"),
)
FLOAT_SOURCES = {"v_fma_f32": 3, "v_min3_f32": 3, "v_max3_f32": 3, "v_med3_f32": 3} | dict.fromkeys(
    (name for name in FLOATS if FLOATS.index(name) >= FLOATS.index("v_rcp_f32")), 1
)
ONE = (
    *("v_mov_b32", "v_not_b32", "v_bfrev_b32", "v_ffbh_u32", "v_cvt_f32_i32", "v_cvt_f32_u32"),
    *("v_cvt_i32_f32", "v_cvt_u32_f32", "v_cvt_f32_ubyte0", "v_cvt_f32_ubyte3", "v_cvt_f16_f32"),
)
TWO = (
    *("v_add_u32", "v_sub_u32", "v_subrev_u32", "v_and_b32", "v_or_b32", "v_xor_b32"),
    *("v_xnor_b32", "v_min_i32", "v_max_i32", "v_min_u32", "v_max_u32", "v_mul_lo_u32"),
    *("v_mul_hi_u32", "v_mul_hi_i32", "v_lshlrev_b32", "v_lshrrev_b32", "v_ashrrev_i32"),
    *("v_mul_u32_u24", "v_mul_i32_i24", "v_bcnt_u32_b32"),
)
THREE = (
    *("v_and_or_b32", "v_or3_b32", "v_add3_u32", "v_xad_u32", "v_min3_u32", "v_max3_u32"),
    *("v_min3_i32", "v_max3_i32", "v_lshl_add_u32", "v_lshl_or_b32", "v_add_lshl_u32"),
    *("v_bfi_b32", "v_bfe_u32", "v_bfe_i32", "v_alignbit_b32", "v_mad_u32_u24", "v_mad_i32_i24"),
    *("v_perm_b32", "v_med3_i32"),
)
PAIRS = (
    *("v_pk_add_i16", "v_pk_add_u16", "v_pk_sub_i16", "v_pk_sub_u16", "v_pk_mul_lo_u16"),
    *("v_pk_min_u16", "v_pk_max_u16", "v_pk_min_i16", "v_pk_max_i16", "v_pk_lshlrev_b16"),
    *("v_pk_lshrrev_b16", "v_pk_ashrrev_i16", "v_pk_add_f16", "v_pk_mul_f16"),
)
FOURS, SIXTEENS = ("v[46:49]", "v[50:53]", "v[60:63]"), ("v[46:61]", "v[62:77]")
MATRIX = (
    *(("16x16x16_f16", 2, FOURS), ("16x16x16_bf16", 2, FOURS), ("16x16x32_fp8_bf8", 2, FOURS)),
    *(("16x16x4_f32", 1, FOURS), ("32x32x8_f16", 2, SIXTEENS), ("32x32x16_bf8_bf8", 2, SIXTEENS)),
    ("16x16x16_f16", 2, FOURS),
)
"""Products: dwords of an operand, and where they add up."""
ATOMICS = ("add_u32", "sub_u32", "and_b32", "or_b32", "xor_b32", "max_u32")
HALVES = ("v_add_f16", "v_sub_f16", "v_subrev_f16", "v_mul_f16")
CONDITIONS = ("lt", "eq", "le", "gt", "ge")
FLOAT_CONDITIONS = (
    *CONDITIONS,
    *("f", "lg", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru"),
)
SCALAR_TWO = (
    *("s_add_u32", "s_sub_u32", "s_add_i32", "s_sub_i32", "s_addc_u32", "s_subb_u32"),
    *("s_and_b32", "s_or_b32", "s_xor_b32", "s_andn2_b32", "s_orn2_b32", "s_nand_b32"),
    *("s_nor_b32", "s_xnor_b32", "s_lshl_b32", "s_lshr_b32", "s_ashr_i32", "s_mul_i32"),
    *("s_mul_hi_u32", "s_mul_hi_i32", "s_min_i32", "s_max_i32", "s_min_u32", "s_max_u32"),
    *("s_cselect_b32", "s_bfe_u32", "s_bfm_b32", "s_absdiff_i32", "s_lshl1_add_u32"),
    *("s_lshl4_add_u32", "s_pack_ll_b32_b16"),
)
SCALAR_WIDE = (
    *("s_and_b64", "s_or_b64", "s_xor_b64", "s_andn2_b64", "s_orn2_b64", "s_nand_b64"),
    *("s_nor_b64", "s_xnor_b64", "s_cselect_b64"),
)
SCALAR_SHIFTS = ("s_lshl_b64", "s_lshr_b64", "s_ashr_i64")
SCALAR_COMPARES = tuple(
    f"s_cmp_{c}_{t}" for c in ("eq", "lg", "gt", "ge", "lt", "le") for t in ("i32", "u32")
)
SPECIAL = (
    *(0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFA00000, 1),
    *(0x80000001, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x00800000, 0x4F000000),
)
"""Zeros, infinities, NaN of both kinds, denormals, the largest and the smallest, 2^31."""
INLINE = ("0", "1", "7", "31", "32", "64", "-1", "-16", "1.0", "-0.5", "4.0")
MIXES: dict[str, tuple[str, ...]] = {
    "usual": (
        *("floating", "floating", "integer", "integer", "wide", "packed", "masked", "compare"),
        *("scalar_operation", "scalar_operation", "lanes", "local", "memory", "moved", "parts"),
        *("halves", "halves", "division"),
    ),
    "products": (
        *("floating", "integer", "exponential", "packed", "masked", "scalar_operation", "lanes"),
        *("local", "memory", "halves", *("buffer",) * 4, *("product",) * 6),
    ),
    "quotients": (
        *(*("division",) * 4, *("root",) * 2, *("exponential",) * 2, *("classes",) * 2),
        *("floating", "floating", "masked", "compare", "scalar_operation", "lanes"),
    ),
}
"""Kinds of instructions that a program draws: the methods of Writer."""


class Writer:
    """Writes random instructions."""

    def __init__(self, seed: int, mix: str = "usual") -> None:
        self.seed, self.random, self.mix = seed, Random(seed), mix

    def vector(self) -> str:
        return f"v{self.random.choice(REGISTERS)}"

    def pair(self) -> str:
        first = self.random.choice(REGISTERS[:-1:2])
        return f"v[{first}:{first + 1}]"

    def scalar(self) -> str:
        return f"s{self.random.choice(SCALARS)}"

    def scalars(self) -> str:
        first = self.random.choice(SCALARS[::2])
        return f"s[{first}:{first + 1}]"

    def mask(self) -> str:
        return self.random.choice(("vcc", self.scalars(), self.scalars()))

    def source(self) -> str:
        """A source of lanes that is no register of the scalar space."""
        return self.vector() if self.random.random() < 0.8 else self.random.choice(INLINE)

    def sources(self, count: int) -> list[str]:
        """At most one of them is scalar."""
        drawn = [self.source() for _ in range(count)]
        if self.random.random() < 0.25:
            drawn[self.random.randrange(count)] = self.scalar()
        return drawn

    def few(self) -> int:
        return self.random.randrange(5)

    def scalar_source(self) -> str:
        return self.scalar() if self.random.random() < 0.8 else self.random.choice(INLINE[:8])

    def signed(self, source: str) -> str:
        if source.startswith(("v", "s")):
            return self.random.choice((source, source, f"-{source}", f"|{source}|", f"-|{source}|"))
        return source

    # Kinds of instructions

    def floating(self) -> str:
        name = self.random.choice(FLOATS)
        sources = [self.signed(s) for s in self.sources(FLOAT_SOURCES.get(name, 2))]
        end = self.random.choice(("", "", "", " clamp", " mul:2", " div:2"))
        return f"{name}_e64 {self.vector()}, {', '.join(sources)}{end}".replace(
            "_f32_e64", "_f32" if FLOAT_SOURCES.get(name) == 3 else "_f32_e64"
        )

    def integer(self) -> str:
        count = self.random.randint(1, 3)
        name = self.random.choice((ONE, TWO, THREE)[count - 1])
        suffix = (
            "_e64" if count < 3 and not name.startswith(("v_mul_lo", "v_mul_hi", "v_bcnt")) else ""
        )
        return f"{name}{suffix} {self.vector()}, {', '.join(self.sources(count))}"

    def wide(self) -> str:
        shift = self.random.choice((self.vector(), str(self.random.randrange(64))))
        factors = f"{self.mask()}, {self.vector()}, {self.vector()}"
        return self.random.choice(
            (
                f"v_lshl_add_u64 {self.pair()}, {self.pair()}, {self.few()}, {self.pair()}",
                f"v_lshlrev_b64 {self.pair()}, {shift}, {self.pair()}",
                f"v_lshrrev_b64 {self.pair()}, {shift}, {self.pair()}",
                f"v_ashrrev_i64 {self.pair()}, {shift}, {self.pair()}",
                f"v_mad_u64_u32 {self.pair()}, {factors}, {self.pair()}",
                f"v_mad_i64_i32 {self.pair()}, {factors}, {self.pair()}",
                f"v_mov_b64 {self.pair()}, {self.pair()}",
            )
        )

    def packed(self) -> str:
        name, count = self.random.choice((("add", 2), ("mul", 2), ("fma", 3)))
        bits = [
            f" {word}:[{','.join(str(self.random.randrange(2)) for _ in range(count))}]"
            for word in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
        ]
        pairs = ", ".join(self.pair() for _ in range(count))
        return f"v_pk_{name}_f32 {self.pair()}, {pairs}{''.join(bits)}"

    def halves(self) -> str:
        """f16, pairs of 16-bit numbers, conversions, bytes, powers of two."""
        name = self.random.choice(PAIRS)
        bits = [
            f" {word}:[{self.random.randrange(2)},{self.random.randrange(2)}]"
            for word in ("op_sel", "op_sel_hi", *(("neg_lo", "neg_hi") if "f16" in name else ()))
        ]
        a, b = self.source(), self.source()
        v, w = self.vector(), self.vector()
        first, width = self.random.randrange(32), self.random.randrange(32)
        return self.random.choice(
            (
                f"{name} {self.vector()}, {v}, {w}{''.join(bits)}",
                f"{name} {self.vector()}, {v}, {w}{''.join(bits)}",
                f"v_pk_mad_u16 {self.vector()}, {v}, {w}, {self.vector()}",
                f"v_pk_mov_b32 {self.pair()}, {self.pair()}, {self.pair()} op_sel:[1,0]",
                f"{self.random.choice(HALVES)}_e64 {self.vector()}, {a}, {b}",
                f"v_cvt_f16_f32_e64 {self.vector()}, {self.signed(self.source())}",
                f"v_cvt_f32_f16 {self.vector()}, {v}",
                f"v_cvt_pkrtz_f16_f32_e64 {self.vector()}, {self.signed(v)}, {self.signed(w)}",
                f"v_pack_b32_f16 {self.vector()}, {v}, {w}",
                f"v_perm_b32 {self.vector()}, {v}, {w}, {self.scalar()}",
                f"v_perm_b32 {self.vector()}, {v}, {w}, {self.vector()}",
                f"v_ldexp_f32 {self.vector()}, {self.signed(v)}, {b} mul:2",
                f"v_bfe_i32 {self.vector()}, {v}, {first}, {width}",
            )
        )

    def division(self) -> str:
        """The three helpers of a quotient."""
        a, b = self.vector(), self.vector()
        scaled = self.random.choice((a, b))
        return self.random.choice(
            (
                f"v_div_scale_f32 {self.vector()}, {self.mask()}, {scaled}, {a}, {b}",
                f"v_div_fmas_f32 {self.vector()}, {a}, {b}, {self.vector()}",
                f"v_div_fixup_f32 {self.vector()}, {self.source()}, {a}, {b}",
            )
        )

    def root(self) -> str:
        """Reciprocal roots most, of literals too."""
        name = self.random.choice(("v_rsq_f32", "v_rsq_f32", "v_sqrt_f32", "v_rcp_f32"))
        if self.random.random() < 0.2:
            return f"{name}_e32 {self.vector()}, {self.random.choice(SPECIAL):#x}"
        end = self.random.choice(("", " clamp", " mul:2"))
        return f"{name}_e64 {self.vector()}, {self.signed(self.source())}{end}"

    def classes(self) -> str:
        return f"v_cmp_class_f32_e64 {self.mask()}, {self.signed(self.vector())}, {self.source()}"

    def masked(self) -> str:
        a, b = self.sources(2)
        carry = self.random.choice(("add", "sub", "subrev"))
        with_carry = {"add": "addc", "sub": "subb", "subrev": "subbrev"}[carry]
        v, w, mask = self.vector(), self.vector(), self.mask()
        return self.random.choice(
            (
                f"v_cndmask_b32_e64 {self.vector()}, {v}, {w}, {mask}",
                f"v_{carry}_co_u32_e64 {self.vector()}, {self.mask()}, {a}, {b}",
                f"v_{with_carry}_co_u32_e64 {self.vector()}, {self.mask()}, {v}, {w}, {mask}",
            )
        )

    def compare(self) -> str:
        kind = self.random.choice(("f32", "f32", "i32", "u32", "i64", "u64", "class"))
        if kind == "class":
            return self.classes()
        if kind == "f32":
            name = self.random.choice(FLOAT_CONDITIONS)
            a, b = (self.signed(s) for s in self.sources(2))
        else:
            name = self.random.choice((*CONDITIONS, "ne", "f", "t"))
            a, b = (self.pair(), self.pair()) if kind in ("i64", "u64") else self.sources(2)
        target = self.random.choice(("cmp", "cmp", "cmp", "cmp", "cmpx"))
        return f"v_{target}_{name}_{kind}_e64 {self.mask()}, {a}, {b}"

    def scalar_operation(self) -> str:
        a, b, wide = self.scalar_source(), self.scalar_source(), self.scalars()
        return self.random.choice(
            (
                f"{self.random.choice(SCALAR_TWO)} {self.scalar()}, {a}, {b}",
                f"{self.random.choice(SCALAR_WIDE)} {self.scalars()}, {wide}, {self.mask()}",
                f"{self.random.choice(SCALAR_SHIFTS)} {self.scalars()}, {wide}, {b}",
                f"{self.random.choice(SCALAR_COMPARES)} {a}, {b}",
                f"s_cmp_lg_u64 {self.scalars()}, {self.scalars()}",
                f"s_cmpk_lt_u32 {self.scalar()}, {self.random.getrandbits(16)}",
                f"s_cmpk_gt_i32 {self.scalar()}, {self.random.randrange(-32768, 32768)}",
                f"s_addk_i32 {self.scalar()}, {self.random.randrange(-32768, 32768)}",
                f"s_movk_i32 {self.scalar()}, {self.random.randrange(-32768, 32768)}",
                f"s_mulk_i32 {self.scalar()}, {self.random.randrange(-32768, 32768)}",
                f"s_not_b64 {self.scalars()}, {self.mask()}",
                f"s_bcnt1_i32_b64 {self.scalar()}, {self.mask()}",
                f"v_readfirstlane_b32 {self.scalar()}, {self.vector()}",
                f"s_load_dwordx2 {self.scalars()}, s[0:1], 0x0",
            )
        )

    def lanes(self) -> str:
        """Enables other lanes."""
        return self.random.choice(
            (
                "s_mov_b64 exec, -1",
                "s_mov_b64 exec, -1",
                f"s_mov_b64 exec, {self.scalars()}",
                f"s_or_b64 exec, exec, {self.scalars()}",
                f"s_and_saveexec_b64 {self.scalars()}, {self.mask()}",
                f"s_or_saveexec_b64 {self.scalars()}, {self.mask()}",
                f"s_xor_saveexec_b64 {self.scalars()}, {self.mask()}",
                f"s_andn2_saveexec_b64 {self.scalars()}, {self.mask()}",
            )
        )

    def local(self) -> str:
        """An access to LDS: neighbours, the same place, anywhere, or also beyond its end."""
        address = self.random.choice(("v14", "v15", "v16", "v17"))
        offset = self.random.choice(("", " offset:64", " offset:1020"))
        read = self.random.choice(REGISTERS[:-3:2])
        return self.random.choice(
            (
                f"ds_read_b32 {self.vector()}, {address}{offset}",
                f"ds_read_b64 {self.pair()}, {address}{offset}",
                f"ds_read_b96 v[{read}:{read + 2}], {address}{offset}",
                f"ds_read_b128 v[{read}:{read + 3}], {address}{offset}",
                f"ds_read2_b32 {self.pair()}, {address} offset0:1 offset1:16",
                f"ds_write_b32 {address}, {self.vector()}{offset}",
                f"ds_write_b64 {address}, {self.pair()}",
                f"ds_write2_b32 {address}, {self.vector()}, {self.vector()} offset0:3 offset1:64",
                f"ds_write_b128 {address}, v[{read}:{read + 3}]{offset}",
                f"ds_write2st64_b32 {address}, {self.vector()}, {self.vector()} offset1:2",
                f"ds_{self.random.choice(ATOMICS)} {address}, {self.vector()}{offset}",
                f"ds_add_rtn_u32 {self.vector()}, {address}, {self.vector()}",
                f"ds_read_u8 {self.vector()}, {address}{offset}",
            )
        )

    def memory(self) -> str:
        """An access to the program's data: neighbours, the same place, others; near and far."""
        read = self.random.choice(REGISTERS[:-3:2])
        address = self.random.choice(("v14", "v15", "v16", "v17", "v36"))
        far = self.random.choice(("v[38:39]", "v[40:41]", "v[42:43]"))
        return self.random.choice(
            (
                f"global_load_dword {self.vector()}, {far}, off offset:4",
                f"global_load_dwordx2 {self.pair()}, {far}, off offset:16",
                f"global_store_dword {address}, {self.vector()}, s[4:5] offset:8",
                f"global_store_dwordx2 {address}, {self.pair()}, s[4:5]",
                f"global_store_dword {far}, {self.vector()}, off",
                f"global_store_dwordx2 {far}, {self.pair()}, off offset:8",
                f"global_load_dword {self.vector()}, {address}, s[4:5]",
                f"global_load_dwordx2 {self.pair()}, {address}, s[4:5]",
                f"global_load_dwordx4 v[{read}:{read + 3}], {address}, s[4:5]",
                f"global_load_dwordx4 v[{read}:{read + 3}], {far}, off offset:32",
                f"global_store_dwordx4 {address}, v[{read}:{read + 3}], s[4:5]",
                f"global_store_dwordx4 {far}, v[{read}:{read + 3}], off",
                f"global_load_ubyte {self.vector()}, {address}, s[4:5]",
            )
        )

    def exponential(self) -> str:
        end = self.random.choice(("", " clamp", " mul:4"))
        return f"v_exp_f32_e64 {self.vector()}, {self.signed(self.source())}{end}"

    def buffer(self) -> str:
        """A raw buffer with its end among the lanes, one with a stride, scratch."""
        first = self.random.choice(REGISTERS[:-3:2])
        address = self.random.choice(("v14", "v15", "v16", "v17", "v36", self.vector()))
        data, four = self.vector(), f"v[{first}:{first + 3}]"
        buffer = self.random.choice(("s[36:39]", "s[36:39]", "s[36:39]", "s[40:43]"))
        end = self.random.choice(("0 offen", "s44 offen offset:24", "0 offen offset:8"))
        place = self.random.choice(("off", "off offset:16", "s44 offset:4", "off offset:60"))
        return self.random.choice(
            (
                f"buffer_load_dword {data}, {address}, {buffer}, {end}",
                f"buffer_load_dwordx4 {four}, {address}, {buffer}, {end}",
                f"buffer_store_dword {data}, {address}, {buffer}, {end}",
                f"buffer_store_dwordx4 {four}, {address}, {buffer}, {end}",
                f"buffer_load_dwordx2 {self.pair()}, {address}, {buffer}, {end}",
                f"scratch_load_dword {data}, off, {place}",
                f"scratch_load_dwordx4 {four}, off, {place}",
                f"scratch_store_dword off, {data}, {place}",
                f"scratch_store_dwordx4 off, {four}, {place}",
            )
        )

    def product(self) -> str:
        """A product of matrices, whose operands others write, and whose results they read."""
        name, size, places = self.random.choice(MATRIX)
        a, b = (self.operand(size) for _ in range(2))
        to = self.random.choice(places)
        add = self.random.choice((to, to, to, to, places[0], "0"))
        some = f"v{self.random.randrange(46, 78)}"
        moved = f"v_add_f32 {self.vector()}, {some}, {self.vector()}"
        changed = f"v_xor_b32 {some}, 1, {self.vector()}"
        product = f"v_mfma_f32_{name} {to}, {a}, {b}, {add}"
        return self.random.choice((*(product,) * 6, moved, changed))

    def operand(self, size: int) -> str:
        return self.pair() if size == 2 else self.vector()

    def moved(self) -> str:
        """Lanes exchanged on the way."""
        control = self.random.choice(
            (
                *("quad_perm:[1,0,3,2]", "row_shr:3", "row_shl:1", "row_ror:5", "row_mirror"),
                *("row_half_mirror", "row_newbcast:6", "row_bcast:15", "wave_shr:1"),
            )
        )
        masks = self.random.choice(
            ("", " bound_ctrl:0", " row_mask:0xa", " bank_mask:0x6", " bank_mask:0x3 bound_ctrl:0")
        )
        name = self.random.choice(
            ("v_add_f32", "v_max_f32", "v_mov_b32", "v_and_b32", "v_add_u32", "v_fmac_f32")
        )
        if name == "v_mov_b32":
            return f"{name}_dpp {self.vector()}, {self.vector()} {control}{masks}"
        first = self.vector()
        first = self.random.choice((first, f"-{first}")) if name == "v_add_f32" else first
        return f"{name}_dpp {self.vector()}, {first}, {self.vector()} {control}{masks}"

    def parts(self) -> str:
        """Bytes and halves of lanes."""
        a, b = (self.random.choice(("BYTE_0", "BYTE_3", "WORD_1", "DWORD")) for _ in range(2))
        if self.random.random() < 0.3:
            name = self.random.choice(("v_cvt_f32_f16", "v_cvt_f16_f32", "v_mov_b32"))
            sign = "" if name == "v_mov_b32" else self.random.choice(("", "", "-"))
            select = f"dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{a}"
            return f"{name}_sdwa {self.vector()}, {sign}{self.vector()} {select}"
        integers = ("v_add_u32", "v_lshlrev_b32", "v_and_b32", "v_mul_u32_u24")
        name = self.random.choice((*integers, *HALVES, "v_add_f32"))
        extended = f"sext({self.vector()})" if name in integers else f"|{self.vector()}|"
        first = self.random.choice((self.vector(), extended))
        kept = self.random.choice(("DWORD", "DWORD", "BYTE_1"))
        select = f"dst_sel:{kept} dst_unused:UNUSED_PAD src0_sel:{a} src1_sel:{b}"
        return f"{name}_sdwa {self.vector()}, {first}, {self.vector()} {select}"

    def program(self) -> str:
        kinds = [getattr(self, kind) for kind in MIXES[self.mix]]
        lines = []
        for number in range(LENGTH):
            if number % 12 == 11:  # a branch over an instruction
                name = self.random.choice(("scc0", "scc1", "vccz", "vccnz", "execz", "execnz"))
                lines += [
                    f"s_cbranch_{name} over_{self.seed}_{number}",
                    self.random.choice(kinds)(),
                ]
                lines.append(f"over_{self.seed}_{number}:")
            lines.append(self.random.choice(kinds)())
        return "\n".join(f"  {line}" for line in lines)


_BEFORE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_mul_u32_u24 v1, 48, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v1, s[4:5]
  global_load_dwordx4 v[6:9], v1, s[4:5] offset:16
  global_load_dwordx4 v[10:13], v1, s[4:5] offset:32
  s_load_dwordx16 s[16:31], s[4:5], 0x0
  v_lshlrev_b32 v14, 2, v0
  v_mov_b32 v15, 36
  v_xor_b32 v16, 20, v14
  v_mul_u32_u24 v17, 20, v0
  v_lshlrev_b32 v36, 3, v0
  v_mov_b32 v37, 0
  v_lshl_add_u64 v[38:39], v[36:37], 0, s[4:5]
  v_mov_b32 v44, v17
  v_mov_b32 v45, 0
  v_lshl_add_u64 v[40:41], v[44:45], 0, s[4:5]
  v_mov_b32 v44, v14
  v_lshl_add_u64 v[42:43], v[44:45], 0, s[4:5]
  s_mov_b32 vcc_lo, 0x0f0f3355
  s_mov_b32 vcc_hi, 0x00ff00ff
  s_movk_i32 s33, {rounds}
  s_mov_b64 s[36:37], s[4:5]
  s_movk_i32 s38, 2900
  s_mov_b32 s39, 0x00020000
  s_mov_b64 s[40:41], s[4:5]
  s_or_b32 s41, s41, 0x00100000
  s_mov_b64 s[42:43], s[38:39]
  s_movk_i32 s44, 16
  s_waitcnt vmcnt(0) lgkmcnt(0)
again_{name}:
"""
_AFTER = """
  s_sub_u32 s33, s33, 1
  s_cmp_lg_u32 s33, 0
  s_cbranch_scc1 again_{name}
  s_mov_b64 exec, -1
  v_mov_b32 v18, vcc_lo
  v_mov_b32 v19, vcc_hi
{scalars}
  v_mul_u32_u24 v1, 128, v0
  global_store_dwordx4 v1, v[2:5], s[6:7]
  global_store_dwordx4 v1, v[6:9], s[6:7] offset:16
  global_store_dwordx4 v1, v[10:13], s[6:7] offset:32
  global_store_dwordx2 v1, v[18:19], s[6:7] offset:48
  global_store_dwordx4 v1, v[20:23], s[6:7] offset:56
  global_store_dwordx4 v1, v[24:27], s[6:7] offset:72
  global_store_dwordx4 v1, v[28:31], s[6:7] offset:88
  global_store_dwordx4 v1, v[32:35], s[6:7] offset:104
  v_mul_u32_u24 v1, 128, v0
  v_add_u32 v1, 0x2000, v1
{sums}
"""


def program(seed: int, mix: str = "usual") -> str:
    """A kernel that reads [64, 12] dwords and writes [64, 32] twice."""
    scalars = "\n".join(f"  v_mov_b32 v{20 + n}, s{s}" for n, s in enumerate(SCALARS))
    sums = "\n".join(
        f"  global_store_dwordx4 v1, v[{46 + 4 * n}:{49 + 4 * n}], s[6:7] offset:{16 * n}"
        for n in range(8)
    )
    name = f"p{seed}"
    before, after = (
        _BEFORE.format(rounds=ROUNDS, name=name),
        _AFTER.format(name=name, scalars=scalars, sums=sums),
    )
    return before + Writer(seed, mix).program() + after


def data(seed: int) -> np.ndarray:
    """Bits of all kinds: any, small integers, ordinary floats, special ones."""
    rng = np.random.default_rng(seed)
    special = np.array(SPECIAL, np.uint32)
    shape = (64, 12)
    kinds = (
        rng.integers(0, 1 << 32, shape, np.uint32),
        rng.integers(-40, 41, shape, np.int32).view(np.uint32),
        rng.normal(scale=100, size=shape).astype(np.float32).view(np.uint32),
        special[rng.integers(0, len(special), shape)],
    )
    return np.asarray(np.choose(rng.integers(0, 4, shape), kinds), np.uint32)


def each_way(
    module: Module, name: str, source: np.ndarray, widths: tuple[int, ...]
) -> list[np.ndarray]:
    """What a kernel leaves in its memory, interpreted, and translated for each width."""
    results = []
    output, memory = np.empty((128, 32), np.uint32), np.empty_like(source)  # addresses are data too
    for what, bits in (("off", widths[-1]), *(("all", bits) for bits in widths)):
        emulator.translation(what)
        emulator.vector_width(bits)
        output.fill(0)
        np.copyto(memory, source)
        status = module.launch(name, memory, output)
        assert status == "hipSuccess", emulator.fault(module.device)
        results.append(np.concatenate((output.reshape(64, -1), memory.reshape(64, -1)), 1))
    return results


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_random_programs(gpu: str, mix: str, widths: tuple[int, ...]) -> None:
    """Of most instructions, of products of matrices with buffers and scratch, or of quotients."""
    seeds = range(PROGRAMS)
    texts = {f"p{seed}": program(seed, mix) for seed in seeds}
    module = assembled(texts, arch=gpu, lds=LDS, scratch=SCRATCH)
    for seed in seeds:
        for case in range(3):
            found = each_way(module, f"p{seed}", data(100 * seed + case), widths)
            for bits, translated in zip(widths, found[1:], strict=True):
                what = f"{seed}, {case}, {bits} bits"
                np.testing.assert_array_equal(translated, found[0], err_msg=what)


@pytest.mark.parametrize("mix", MIXES)
def test_the_counts_of_instructions_are_the_same(mix: str, widths: tuple[int, ...]) -> None:
    module = assembled({"p1": program(1, mix)}, lds=LDS, scratch=SCRATCH)
    counts = []
    for what, bits in (("off", widths[-1]), *(("all", bits) for bits in widths)):
        emulator.translation(what)
        emulator.vector_width(bits)
        assert module.launch("p1", data(1), np.zeros((128, 32), np.uint32)) == "hipSuccess"
        stats = emulator.stats(0)
        counts.append((emulator.fidelity(0), replace(stats, nanoseconds=0)))
    assert all(count == counts[0] for count in counts)


FAULTS = {
    # Lane 37 is the first whose address is in the unmapped page behind the allocation.
    "side_by_side": ("global_load_dword v3, v1, s[4:5]", 2, 37),
    "apart": ("global_load_dword v3, v1, s[4:5]", 3, 19),
    "pairs": ("global_load_dwordx2 v[2:3], v1, s[4:5]", 3, 18),
    "stored": ("global_store_dword v1, v2, s[4:5]", 2, 37),
    "quads": ("global_load_dwordx4 v[4:7], v1, s[4:5]", 4, 9),
    "quads_apart": ("global_load_dwordx4 v[4:7], v1, s[4:5]", 5, 5),
    "quads_stored": ("global_store_dwordx4 v1, v[4:7], s[4:5]", 4, 9),
    "bytes": ("global_load_ubyte v3, v1, s[4:5]", 3, 19),
    "buffer": ("buffer_load_dword v3, v1, s[4:7], 0 offen", 2, 37),
    "buffer_quads": ("buffer_load_dwordx4 v[4:7], v1, s[4:7], 0 offen", 4, 9),
    "buffer_stored": ("buffer_store_dwordx4 v[8:11], v1, s[4:7], 0 offen", 5, 5),
    "stored_apart": ("global_store_dwordx2 v1, v[2:3], s[4:5]", 5, 5),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_in_translated_code_names_instruction_and_lane(
    case: str, widths: tuple[int, ...]
) -> None:
    access, shift, lane = FAULTS[case]
    body = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, {shift}, v0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, 0xf6c
  s_addc_u32 s5, s5, 0
  s_movk_i32 s6, 0x4000
  s_mov_b32 s7, 0x00020000
  v_add_u32 v2, 1, v1
  v_add_u32 v2, 1, v2
  {access}
  v_add_u32 v2, 1, v1
"""
    reports = []
    for what, bits in (("off", widths[-1]), *(("all", bits) for bits in widths)):
        module = assembled({"faults": body})
        pages = int(ok(hip().hipMalloc(4096)))
        emulator.translation(what)
        emulator.vector_width(bits)
        text = module.fault("faults", pages, pages)
        reports.append([line for line in text.splitlines() if "pc" in line or "lane" in line])
        assert f"lane {lane}" in text
        assert access in text
    assert all(report == reports[0] for report in reports)


@pytest.mark.parametrize("wave", [32, 64])
def test_disabled_lanes_that_are_fetched(wave: int, widths: tuple[int, ...]) -> None:
    """They have their registers' values, not what translated code computes in all lanes."""
    enable = "s_mov_b32 exec_lo," if wave == 32 else "s_mov_b64 exec,"
    body = f"""
  s_load_b128 s[4:7], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[4:5]
  v_mov_b32 v3, 0
  s_movk_i32 s33, {ROUNDS}
  s_waitcnt vmcnt(0)
again:
  {enable} 0x5a5a3c3c
  v_add_nc_u32 v2, 7, v2
  v_add_nc_u32_dpp v3, v2, v3 row_ror:1 row_mask:0xf bank_mask:0xf fi:1
  {enable} -1
  s_sub_u32 s33, s33, 1
  s_cmp_lg_u32 s33, 0
  s_cbranch_scc1 again
  global_store_b32 v1, v3, s[6:7]
"""
    arch = "gfx1100"
    module = assembled({"fetches": body}, arch=arch, wave=wave)
    found = each_way(module, "fetches", data(3), widths)
    assert found[0].any()
    assert all(np.array_equal(translated, found[0]) for translated in found[1:])


def test_products_of_other_numerics(widths: tuple[int, ...]) -> None:
    """They are not executed together, but at the same places."""
    texts = {f"p{seed}": program(seed, "products") for seed in range(6)}
    module = assembled(texts, lds=LDS, scratch=SCRATCH)
    emulator.numerics("exact")
    for name in texts:
        found = each_way(module, name, data(7), widths)
        assert all(np.array_equal(translated, found[0]) for translated in found[1:]), name


def test_a_kernel_of_one_or_two_instructions_ends() -> None:
    """It has fewer segments than a piece could open."""
    module = assembled({"one": "", "two": "  s_nop 0\n"})
    emulator.translation("all")
    for name in ("one", "two"):
        for _ in range(3):
            assert module.launch(name, data(0), data(0)) == "hipSuccess"


def test_a_word_that_is_no_choice_is_refused() -> None:
    with pytest.raises(CkValueError, match="off, hot, all"):
        emulator.translation("some")
