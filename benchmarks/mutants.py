# SPDX-License-Identifier: MIT
"""Faults for ``mutations.py`` to plant in the emulator, each of a kind that someone has made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: a piece of a C++ file and what stands there instead."""

    name: str
    file: str
    """Below ``cklang/emulator/engine/src``."""
    old: str
    new: str
    tests: tuple[str, ...]
    """What should notice."""


def _mutant(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(
        name=name,
        file=file if file.endswith(".h") else f"{file}.cpp",
        old=old,
        new=new,
        tests=tuple(f"tests/emulator/test_{test}.py" for test in tests),
    )


MUTANTS = (
    # Matrix products
    _mutant("swapped fp8 flavour of matrix operands", "ops/matrix",
            "const bool ocp = w.program->family() >= Family::Cdna4;",
            "const bool ocp = w.program->family() < Family::Cdna4;", "matrix"),
    _mutant("columns of D in the wrong lanes", "ops/matrix_kernels.h",
            "acc.c + at.reg * acc.c_stride + at.lane, sizeof",
            "acc.c + at.reg * acc.c_stride + (at.lane ^ 16), sizeof", "layouts"),
    _mutant("int8 operands taken as unsigned", "ops/matrix_kernels.h",
            "case Type::I8: return unpack<Type::I8, width>(rows, shape, panel);",
            "case Type::I8: unpack<Type::I8, width>(rows, shape, panel);"
            " for (u32& e : panel.element) e &= 0xff; return;", "matrix"),
    _mutant("f16 operands flush denormals", "ops/matrix_kernels.h",
            "case Type::F16: return unpack<Type::F16, width>(rows, shape, panel);",
            "case Type::F16: unpack<Type::F16, width>(rows, shape, panel);"
            " for (u32& e : panel.element) { if ((e & 0x7fffffff) < 0x38800000) e = 0; } return;",
            "matrix"),
    _mutant("BLGP rotates the wrong way", "ops/matrix", "return (l + 16) % kLanes;",
            "return (l + 48) % kLanes;", "matrix_blocks"),
    _mutant("scale from the wrong byte", "ops/matrix_scaled", "row[l] >> (8 * byte)",
            "row[l] >> (8 * (byte ^ 1))", "matrix_f8f6f4"),
    _mutant("sparse products use the other index", "ops/matrix_sparse", "fields >> (2 * j) & 3",
            "fields >> (2 * (j ^ 1)) & 3", "smfmac"),
    _mutant("rows of gfx11's WMMA result interchanged", "ops/matrix_wave",
            "return {i / groups, kSize * (i % groups)};",
            "return {i % (kSize / groups), kSize * (i / (kSize / groups))};", "rdna_matrix"),
    # Conversions and arithmetic
    _mutant("swapped fp8 flavour of conversions", "ops/convert",
            "const bool ocp = w.program->family() >= Family::Cdna4;",
            "const bool ocp = w.program->family() < Family::Cdna4;", "convert_exhaustive"),
    _mutant("conversion to two f16 rounds to nearest", "ops/convert",
            "pk(_cvtss_sh(a, _MM_FROUND_TO_ZERO)", "pk(_cvtss_sh(a, _MM_FROUND_TO_NEAREST_INT)",
            "lanes"),
    _mutant("rounding mode ignored", "core/execute", "direction[rounding] << 13",
            "direction[0] << 13", "atomics"),
    _mutant("denormal results kept in flushing mode", "core/execute",
            "(denormals & 2) == 0 ? 0x8000 : 0", "(denormals & 2) == 0 ? 0 : 0", "lanes"),
    _mutant("div_fixup without the sign", "ops/division",
            "const auto with_sign = [negative](T value) { return negative ? -value : value; };",
            "const auto with_sign = [](T value) { return value; }; static_cast<void>(negative);",
            "alu"),
    _mutant("div_fmas scales the wrong way", "ops/division", "kTop<T> / 2 ? kUp<T> : kDown<T>",
            "kTop<T> / 2 ? kDown<T> : kUp<T>", "alu"),
    _mutant("a signalling NaN wins against numbers on gfx12", "ops/packed",
            "{Op::v_pk_min_num_f16, halves2<min_f_num>}", "{Op::v_pk_min_num_f16, halves2<min_f>}",
            "pseudocode"),
    _mutant("carry-in lost", "ops/carry", "const u64 in = carry_in ? mask_source(w, c, 2) : 0;",
            "const u64 in = 0;", "alu"),
    _mutant("unordered comparison is false", "ops/compare",
            "if constexpr ((condition & kUnordered) != 0) mask |= (a != a) | (b != b);", "", "alu"),
    _mutant("f16 comparison looks at whole registers", "ops/compare",
            "holds<condition, F8v, I8v>(low_f16(a), low_f16(b))",
            "holds<condition, F8v, I8v>(f(a), f(b))", "lanes"),
    _mutant("clamp turns NaN into one", "ops/modifiers",
            "value > 0 ? (value < 1 ? value : T(1)) : T(0)",
            "value <= 0 ? T(0) : value < 1 ? value : T(1)", "alu"),
    # Masks and lanes
    _mutant("cmpx clears exec", "ops/compare", "if (into_exec) w.set_exec(mask);",
            "if (into_exec) w.set_exec(0);", "known_mistakes"),
    _mutant("comparison keeps bits of disabled lanes", "ops/compare", "mask &= w.exec();", "",
            "lanes"),
    _mutant("ds_bpermute does not wrap", "ops/lds", "return wanted % w.lanes;",
            "return std::min<u32>(wanted, w.lanes - 1);", "alu"),
    _mutant("v_readfirstlane reads lane 0", "ops/cross_lane",
            "w.exec() != 0 ? __builtin_ctzll(w.exec()) : 0", "0", "alu"),
    _mutant("DPP rotates the wrong way", "ops/modifiers", "row | ((in_row - n) & 15)",
            "row | ((in_row + n) & 15)", "lanes"),
    _mutant("DPP ignores its bank mask", "ops/modifiers",
            " || (inst.bank_mask >> (l / 4 % 4) & 1) == 0", "", "lanes"),
    _mutant("SDWA without sign extension", "ops/modifiers", "return sign ? static_cast",
            "return false ? static_cast", "lanes"),
    _mutant("SDWA clears what it should keep", "ops/modifiers",
            "u32 rest = unused == 2 ? row[l] & ~mask : 0;", "u32 rest = 0;", "alu"),
    _mutant("mbcnt counts its own lane", "ops/cross_lane", "const u64 below = (u64{1} << l) - 1;",
            "const u64 below = (u64{2} << l) - 1;", "alu"),
    # Memory
    _mutant("loads beyond a buffer keep the register", "ops/buffer",
        "load_zero<kElement<access>>(rows + n * kLanes, l);", "static_cast<void>(0);", "ranges"),
    _mutant("fast range check of buffers forgets the width", "ops/buffer",
            "return last + buffer.immediate + buffer.scalar + bytes <= buffer.resource.records;",
            "return last + buffer.immediate + buffer.scalar <= buffer.resource.records;", "ranges"),
    _mutant("loads to LDS touch disabled lanes", "ops/buffer",
            "if (w.exec() == ~u64{0}) std::memcpy(to, values", "if (true) std::memcpy(to, values",
            "ranges"),
    _mutant("global stores ignore exec", "ops/flat",
            "store_lanes_at<access>(w, source_row(w, c, 2), {at.low, at.high, at.base});\n"
            "  count_store(w, access.bytes);\n}\n\n/// Dwords at the same place",
            "for (int l = 0; l < kLanes; ++l)"
            " store_lane<access>(source_row(w, c, 2), l, reinterpret_cast<u8*>(at(l)));\n"
            "  count_store(w, access.bytes);\n}\n\n/// Dwords at the same place", "known_mistakes"),
    _mutant("buffer bytes stored as dwords", "ops/buffer", "CKEMU_ACCESSES(buffer, load, store)",
        "CKEMU_ACCESSES(buffer, load, store) {Op::buffer_store_byte, store<Access{4}>},", "ranges"),
    _mutant("LDS of 64 kilobytes only", "ops/lds", "return address + bytes <= w.lds_bytes;",
            "return address + bytes <= (w.lds_bytes < 0x10000 ? w.lds_bytes : 0x10000);", "ranges"),
    _mutant("second offset of ds_read2 counts bytes", "ops/lds",
        "read_at<Access{bytes}>(w, address, c.inst->offset1 * scale, w.v[c.dst + bytes / 4]);",
        "read_at<Access{bytes}>(w, address, c.inst->offset1, w.v[c.dst + bytes / 4]);", "triton"),
    _mutant("rotating swizzle ignores its direction", "ops/lds",
            "(pattern & 0x400) != 0 ? lane - amount : lane + amount", "lane - amount",
            "known_mistakes"),
    _mutant("transposed LDS read without its transposition", "ops/lds_transpose",
            "const int from = block + lanes_a_row * j + column / per_lane;",
            "const int from = block + lanes_a_row * j + column % lanes_a_row;", "lds_transpose"),
    _mutant("buffer atomics do not return the old value", "ops/buffer",
            "atomic::update_lanes<T, op, true>(w, c, data, data,",
            "atomic::update_lanes<T, op, true>(w, c, data, w.v[w.rows],", "ranges"),
    # Control
    _mutant("a block moves registers that m0 leaves out", "ops/rdna_block",
            "for (u32 left = w.s[kM0]; left != 0;", "for (u32 left = ~u32{0}; left != 0;",
            "rdna_block"),
    _mutant("bytes of a transposed load from the wrong fours", "ops/rdna_block",
            "j / 4 * 8 + l / 8 % 2 * 4", "j / 4 * 4 + l / 8 % 2 * 8", "rdna_block"),
    _mutant("s_getpc gives its own address", "ops/control",
            "void getpc(Wave& w, const Code& c) { w.set_sgpr64(c.dst, return_address(w, c)); }",
            "void getpc(Wave& w, const Code& c) { w.set_sgpr64(c.dst, return_address(w, c) - 4); }",
            "known_mistakes"),
    _mutant("barrier that does not wait", "ops/control", "w.state = WaveState::Barrier;",
            "w.yielded = true;", "foreign_aiter"),
    _mutant("waves of a workgroup run one after the other", "core/workgroup",
        "constexpr i64 kWaveShare = 32;", "constexpr i64 kWaveShare = 1 << 20;", "foreign_aiter"),
    _mutant("split barrier that does not wait", "ops/rdna_control", "if (complete) return;",
            "return;", "rdna_kernels"),
    _mutant("missing waits go unnoticed", "checks/waits", "if (pending.number == 0) return;",
            "return;", "waits"),
    _mutant("a wait leaves one operation more", "checks/in_flight.h", "while (queue.size > left) {",
            "while (queue.size > left + 1) {", "waits"),
    _mutant("stores count as loads on RDNA", "checks/in_flight",
            "const bool loads = !is_rdna(family) ||", "const bool loads = true ||", "waits_rdna"),
    _mutant("a barrier orders what comes after it", "checks/wave_order",
            "if (earlier.arrived >= passed) return Order::NoBarrier;",
            "if (earlier.arrived > passed) return Order::NoBarrier;", "races"),
    _mutant("stores under way at a barrier have ended", "checks/wave_order",
            "arrivals[passed_by_all_ - 1].count[earlier.counter] >= earlier.number",
            "arrivals[passed_by_all_ - 1].count[earlier.counter] >= 0", "barrier_waits"),
    _mutant("checks of LDS add offsets in 64 bits", "checks/races",
            "access.at = address[access.lane] + offset;",
            "access.at = u64{address[access.lane]} + offset;", "memory_check"),
    _mutant("readers are forgotten", "checks/races", "read.readers |= 1u << w.id;",
            "read.readers = 0;", "races"),
    _mutant("repeated offsets of zstd keep their order", "decode/zstd",
            "for (; moved != 0; --moved)", "for (; moved > 2; --moved)", "hip_compressed"),
)  # fmt: skip
