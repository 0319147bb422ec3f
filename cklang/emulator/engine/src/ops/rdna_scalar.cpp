// SPDX-License-Identifier: MIT
//
// Scalar operations that only RDNA has: exec of waves of 32 lanes, 64-bit integers, loads of parts
// and of three dwords, relative moves of both operands.
#include "core/fault.h"
#include "ops/handlers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

constexpr auto both = [](u32 s, u32 e) { return s & e; };
constexpr auto either = [](u32 s, u32 e) { return s | e; };
constexpr auto differ = [](u32 s, u32 e) { return s ^ e; };
constexpr auto not_both = [](u32 s, u32 e) { return ~(s & e); };
constexpr auto neither = [](u32 s, u32 e) { return ~(s | e); };
constexpr auto same = [](u32 s, u32 e) { return ~(s ^ e); };
constexpr auto without_exec = [](u32 s, u32 e) { return s & ~e; };
constexpr auto or_not_exec = [](u32 s, u32 e) { return s | ~e; };
constexpr auto without_source = [](u32 s, u32 e) { return ~s & e; };
constexpr auto or_not_source = [](u32 s, u32 e) { return ~s | e; };

/// The low half of exec: dst = its old value (or the new one); exec = op(source, exec).
template <auto op, bool write_result>
void with_exec(Wave& w, const Code& c) {
  const u32 old = w.s[kExec], result = op(scalar32(w, c.src[0]), old);
  w.s[c.dst] = write_result ? result : old;
  w.s[kExec] = result;
  w.scc = result != 0;
}

constexpr auto add64 = [](u64 a, u64 b, bool&) { return a + b; };
constexpr auto sub64 = [](u64 a, u64 b, bool&) { return a - b; };
constexpr auto mul64 = [](u64 a, u64 b, bool&) { return a * b; };
constexpr auto pack_hl = [](u32 a, u32 b, bool&) { return a >> 16 | b << 16; };

/// Moves whose source and destination m0 shifts by its low and its high half.
void move_relative(Wave& w, const Code& c) {
  const u32 from = c.src[0].index + (w.s[kM0] & 0x3ff), to = c.dst + (w.s[kM0] >> 16 & 0x3ff);
  if (c.src[0].kind != Kind::Sgpr || from >= kVcc || to >= kVcc) {
    raise(w, FaultKind::Instruction, "relative move from s%u to s%u, beyond the scalar registers", from, to);
  }
  w.s[to] = w.s[from];
}

u64 offset_of(const Wave& w, const Code& c) {
  const u64 immediate = static_cast<u64>(static_cast<i64>(c.offset));
  return immediate + (c.src[1].kind == Kind::None ? 0 : scalar32(w, c.src[1]));
}

/// Three dwords, or a part of one dword, which need not be aligned.
template <class T, int count>
void load(Wave& w, const Code& c) {
  T value[count];
  std::memcpy(value, reinterpret_cast<const u8*>(w.sgpr64(c.src[0].index) + offset_of(w, c)), sizeof value);
  for (int n = 0; n < count; ++n) w.s[c.dst + n] = static_cast<u32>(static_cast<i32>(value[n]));
  w.counters->bytes_loaded += sizeof value;
}
template <class T, int count>
void buffer_load(Wave& w, const Code& c) {
  const u32* word = &w.s[c.src[0].index];
  const u64 base = word[0] | u64{word[1] & 0xffff} << 32;
  const u32 stride = word[1] >> 16 & 0x3fff;
  const u64 size = stride == 0 ? word[2] : u64{stride} * word[2], offset = offset_of(w, c);
  for (int n = 0; n < count; ++n) {
    const u64 at = offset + sizeof(T) * static_cast<u64>(n);
    T value = 0;
    if (at + sizeof(T) <= size) value = load_as<T>(reinterpret_cast<const u8*>(base + at));
    w.s[c.dst + n] = static_cast<u32>(static_cast<i32>(value));
  }
  w.counters->bytes_loaded += sizeof(T) * count;
}

constexpr HandlerRow kRdnaScalarRows[] = {
    {Op::s_and_saveexec_b32, with_exec<both, false>},
    {Op::s_or_saveexec_b32, with_exec<either, false>},
    {Op::s_xor_saveexec_b32, with_exec<differ, false>},
    {Op::s_nand_saveexec_b32, with_exec<not_both, false>},
    {Op::s_nor_saveexec_b32, with_exec<neither, false>},
    {Op::s_xnor_saveexec_b32, with_exec<same, false>},
    {Op::s_and_not1_saveexec_b32, with_exec<without_exec, false>},
    {Op::s_or_not1_saveexec_b32, with_exec<or_not_exec, false>},
    {Op::s_and_not0_saveexec_b32, with_exec<without_source, false>},
    {Op::s_or_not0_saveexec_b32, with_exec<or_not_source, false>},
    {Op::s_and_not0_wrexec_b32, with_exec<without_source, true>},
    {Op::s_and_not1_wrexec_b32, with_exec<without_exec, true>},
    {Op::s_add_nc_u64, scalar2<u64, u64, u64, add64>},
    {Op::s_sub_nc_u64, scalar2<u64, u64, u64, sub64>},
    {Op::s_mul_u64, scalar2<u64, u64, u64, mul64>},
    {Op::s_pack_hl_b32_b16, scalar2<u32, u32, u32, pack_hl>},
    {Op::s_movrelsd_2_b32, move_relative},
    {Op::s_load_b96, load<u32, 3>},
    {Op::s_load_u8, load<u8, 1>},
    {Op::s_load_i8, load<i8, 1>},
    {Op::s_load_u16, load<u16, 1>},
    {Op::s_load_i16, load<i16, 1>},
    {Op::s_buffer_load_b96, buffer_load<u32, 3>},
    {Op::s_buffer_load_u8, buffer_load<u8, 1>},
    {Op::s_buffer_load_i8, buffer_load<i8, 1>},
    {Op::s_buffer_load_u16, buffer_load<u16, 1>},
    {Op::s_buffer_load_i16, buffer_load<i16, 1>},
};

}  // namespace

HandlerRows rdna_scalar_handlers() { return kRdnaScalarRows; }

}  // namespace ckemu
