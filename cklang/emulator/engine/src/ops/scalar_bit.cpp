// SPDX-License-Identifier: MIT
//
// Scalar bit counting, searching and permuting, and the operations that save and change exec.
#include <type_traits>

#include "ops/handlers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

int count(u32 a) { return __builtin_popcount(a); }
int count(u64 a) { return __builtin_popcountll(a); }
int leading(u32 a) { return __builtin_clz(a); }
int leading(u64 a) { return __builtin_clzll(a); }
int trailing(u32 a) { return __builtin_ctz(a); }
int trailing(u64 a) { return __builtin_ctzll(a); }
u32 reversed(u32 a) { return __builtin_bitreverse32(a); }
u64 reversed(u64 a) { return __builtin_bitreverse64(a); }

constexpr auto count0 = [](auto a, bool& scc) {
  const u32 result = static_cast<u32>(count(static_cast<decltype(a)>(~a)));
  scc = result != 0;
  return result;
};
constexpr auto count1 = [](auto a, bool& scc) {
  const u32 result = static_cast<u32>(count(a));
  scc = result != 0;
  return result;
};
constexpr auto find1_low = [](auto a, bool&) { return a == 0 ? ~u32{0} : u32(trailing(a)); };
constexpr auto find0_low = [](auto a, bool& scc) { return find1_low(static_cast<decltype(a)>(~a), scc); };
constexpr auto find1_high = [](auto a, bool&) { return a == 0 ? ~u32{0} : u32(leading(a)); };
constexpr auto find_sign = [](auto a, bool& scc) {  // the first bit that differs from the sign
  using Signed = std::conditional_t<sizeof a == 8, i64, i32>;
  return find1_high(static_cast<Signed>(a) < 0 ? static_cast<decltype(a)>(~a) : a, scc);
};
constexpr auto reverse = [](auto a, bool&) { return reversed(a); };
constexpr auto sign_extend8 = [](u32 a, bool&) { return u32(i32(static_cast<i8>(a))); };
constexpr auto sign_extend16 = [](u32 a, bool&) { return u32(i32(static_cast<i16>(a))); };
template <auto expand>
constexpr auto quads = [](auto a, bool& scc) {  // every group of four bits becomes its or
  using T = decltype(a);
  T any = a | a >> 1;
  any = (any | any >> 2) & static_cast<T>(0x1111111111111111ull);
  const T result = expand(any);
  scc = result != 0;
  return result;
};
constexpr auto whole_quads = [](auto any) { return static_cast<decltype(any)>(any * 15); };
constexpr auto packed_quads = [](auto any) {
  using T = decltype(any);
  T result = 0;
  for (int n = 0; n < static_cast<int>(sizeof any) * 2; ++n) result |= (any >> (4 * n) & 1) << n;
  return result;
};
constexpr auto replicate = [](u32 a, bool&) {  // each bit twice
  u64 result = 0;
  for (int n = 0; n < 32; ++n) result |= u64{3 * (a >> n & 1)} << (2 * n);
  return result;
};

template <class T, bool value>
void bitset(Wave& w, const Code& c) {
  const T bit = T{1} << (scalar32(w, c.src[0]) % (8 * sizeof(T)));
  const T old = sizeof(T) == 8 ? static_cast<T>(w.sgpr64(c.dst)) : static_cast<T>(w.s[c.dst]);
  scalar_set<T>(w, c.dst, value ? old | bit : old & ~bit);
}

/// dst = old exec (or the new one); exec = op(source, exec).
template <auto op, bool write_result>
void with_exec(Wave& w, const Code& c) {
  const u64 old = w.exec();
  const u64 result = op(scalar64(w, c.src[0]), old);
  w.set_sgpr64(c.dst, write_result ? result : old);
  w.set_exec(result);
  w.scc = result != 0;
}
constexpr auto exec_and = [](u64 s, u64 e) { return s & e; };
constexpr auto exec_or = [](u64 s, u64 e) { return s | e; };
constexpr auto exec_xor = [](u64 s, u64 e) { return s ^ e; };
constexpr auto exec_andn2 = [](u64 s, u64 e) { return s & ~e; };
constexpr auto exec_orn2 = [](u64 s, u64 e) { return s | ~e; };
constexpr auto exec_andn1 = [](u64 s, u64 e) { return ~s & e; };
constexpr auto exec_orn1 = [](u64 s, u64 e) { return ~s | e; };
constexpr auto exec_nand = [](u64 s, u64 e) { return ~(s & e); };
constexpr auto exec_nor = [](u64 s, u64 e) { return ~(s | e); };
constexpr auto exec_xnor = [](u64 s, u64 e) { return ~(s ^ e); };

/// Relative register moves: m0 is added to the source's or the destination's number.
template <class T, bool from>
void move_relative(Wave& w, const Code& c) {
  const u16 shift = static_cast<u16>(w.s[kM0]);
  const u16 to = (c.dst + (from ? 0 : shift)) & 127;
  Source source = c.src[0];
  if (from) source.index = (source.index + shift) & 127;
  scalar_set<T>(w, to, scalar_get<T>(w, source));
}

constexpr HandlerRow kScalarBitRows[] = {
    {Op::s_bcnt0_i32_b32, scalar1<u32, u32, count0>},
    {Op::s_bcnt0_i32_b64, scalar1<u32, u64, count0>},
    {Op::s_bcnt1_i32_b32, scalar1<u32, u32, count1>},
    {Op::s_bcnt1_i32_b64, scalar1<u32, u64, count1>},
    {Op::s_ff0_i32_b32, scalar1<u32, u32, find0_low>},
    {Op::s_ff0_i32_b64, scalar1<u32, u64, find0_low>},
    {Op::s_ff1_i32_b32, scalar1<u32, u32, find1_low>},
    {Op::s_ff1_i32_b64, scalar1<u32, u64, find1_low>},
    {Op::s_flbit_i32_b32, scalar1<u32, u32, find1_high>},
    {Op::s_flbit_i32_b64, scalar1<u32, u64, find1_high>},
    {Op::s_flbit_i32, scalar1<u32, u32, find_sign>},
    {Op::s_flbit_i32_i64, scalar1<u32, u64, find_sign>},
    {Op::s_brev_b32, scalar1<u32, u32, reverse>},
    {Op::s_brev_b64, scalar1<u64, u64, reverse>},
    {Op::s_sext_i32_i8, scalar1<u32, u32, sign_extend8>},
    {Op::s_sext_i32_i16, scalar1<u32, u32, sign_extend16>},
    {Op::s_wqm_b32, scalar1<u32, u32, quads<whole_quads>>},
    {Op::s_wqm_b64, scalar1<u64, u64, quads<whole_quads>>},
    {Op::s_quadmask_b32, scalar1<u32, u32, quads<packed_quads>>},
    {Op::s_quadmask_b64, scalar1<u64, u64, quads<packed_quads>>},
    {Op::s_bitreplicate_b64_b32, scalar1<u64, u32, replicate>},
    {Op::s_bitset0_b32, bitset<u32, false>},
    {Op::s_bitset1_b32, bitset<u32, true>},
    {Op::s_bitset0_b64, bitset<u64, false>},
    {Op::s_bitset1_b64, bitset<u64, true>},
    {Op::s_and_saveexec_b64, with_exec<exec_and, false>},
    {Op::s_or_saveexec_b64, with_exec<exec_or, false>},
    {Op::s_xor_saveexec_b64, with_exec<exec_xor, false>},
    {Op::s_andn2_saveexec_b64, with_exec<exec_andn2, false>},
    {Op::s_orn2_saveexec_b64, with_exec<exec_orn2, false>},
    {Op::s_nand_saveexec_b64, with_exec<exec_nand, false>},
    {Op::s_nor_saveexec_b64, with_exec<exec_nor, false>},
    {Op::s_xnor_saveexec_b64, with_exec<exec_xnor, false>},
    {Op::s_andn1_saveexec_b64, with_exec<exec_andn1, false>},
    {Op::s_orn1_saveexec_b64, with_exec<exec_orn1, false>},
    {Op::s_andn1_wrexec_b64, with_exec<exec_andn1, true>},
    {Op::s_andn2_wrexec_b64, with_exec<exec_andn2, true>},
    {Op::s_movrels_b32, move_relative<u32, true>},
    {Op::s_movrels_b64, move_relative<u64, true>},
    {Op::s_movreld_b32, move_relative<u32, false>},
    {Op::s_movreld_b64, move_relative<u64, false>},
};

}  // namespace

HandlerRows scalar_bit_handlers() { return kScalarBitRows; }

}  // namespace ckemu
