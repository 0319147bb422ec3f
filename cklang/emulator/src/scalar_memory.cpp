// SPDX-License-Identifier: MIT
//
// Scalar loads and stores: addresses are aligned to dwords by dropping the low two bits; buffer
// forms check the range of each dword.
#include "handlers.h"
#include "scalar_access.h"

namespace ckemu {

namespace {

u64 offset_of(const Wave& w, const Code& c) {
  u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  if (c.src[1].kind != Kind::None) offset += scalar32(w, c.src[1]);
  return offset;
}
u8* place_of(const Wave& w, const Code& c) {
  const u64 address = w.sgpr64(c.src[0].index) + offset_of(w, c);
  return reinterpret_cast<u8*>(address & ~u64{3});
}

template <int dwords>
void load(Wave& w, const Code& c) {
  u32 value[dwords];
  std::memcpy(value, place_of(w, c), sizeof value);
  std::memcpy(&w.s[c.dst], value, sizeof value);
  w.counters->bytes_loaded += sizeof value;
}
template <int dwords>
void store(Wave& w, const Code& c) {
  std::memcpy(place_of(w, c), &w.s[c.src[2].index], 4 * dwords);
  w.counters->bytes_stored += 4 * dwords;
  w.counters->progress++;
}

template <int dwords>
void buffer_load(Wave& w, const Code& c) {
  const u32* word = &w.s[c.src[0].index];
  const u64 base = word[0] | u64{word[1] & 0xffff} << 32;
  const u32 stride = word[1] >> 16 & 0x3fff;
  const u64 size = stride == 0 ? word[2] : u64{stride} * word[2];
  const u64 offset = offset_of(w, c) & ~u64{3};
  u32 value[dwords] = {};
  for (int n = 0; n < dwords; ++n) {
    const u64 at = offset + 4 * static_cast<u64>(n);
    if (at + 4 <= size) value[n] = load_as<u32>(reinterpret_cast<u8*>((base & ~u64{3}) + at));
  }
  std::memcpy(&w.s[c.dst], value, sizeof value);
  w.counters->bytes_loaded += sizeof value;
}

constexpr HandlerRow kRows[] = {
    {Op::s_load_dword, load<1>},
    {Op::s_load_dwordx2, load<2>},
    {Op::s_load_dwordx4, load<4>},
    {Op::s_load_dwordx8, load<8>},
    {Op::s_load_dwordx16, load<16>},
    {Op::s_store_dword, store<1>},
    {Op::s_store_dwordx2, store<2>},
    {Op::s_store_dwordx4, store<4>},
    {Op::s_buffer_load_dword, buffer_load<1>},
    {Op::s_buffer_load_dwordx2, buffer_load<2>},
    {Op::s_buffer_load_dwordx4, buffer_load<4>},
    {Op::s_buffer_load_dwordx8, buffer_load<8>},
    {Op::s_buffer_load_dwordx16, buffer_load<16>},
};

}  // namespace

HandlerRows scalar_memory_handlers() { return kRows; }

}  // namespace ckemu
