// SPDX-License-Identifier: MIT
//
// Scalar loads, stores and atomics: addresses are aligned to dwords by dropping the low two bits;
// buffer forms check the range of each dword; scratch forms count a register offset in 64 bytes.
#include "ops/atomics.h"
#include "ops/handlers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

template <u32 unit>
u64 offset_of(const Wave& w, const Code& c) {
  u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  if (c.src[1].kind != Kind::None) offset += u64{unit} * scalar32(w, c.src[1]);
  return offset;
}

/// Memory at an address that a register pair holds.
template <u32 unit>
struct Plain {
  static u8* place(const Wave& w, const Code& c, u64 skip, u32) {
    const u64 address = w.sgpr64(c.src[0].index) + offset_of<unit>(w, c);
    return reinterpret_cast<u8*>((address & ~u64{3}) + skip);
  }
};
using Global = Plain<1>;
using Scratch = Plain<64>;

/// Memory that a resource descriptor describes; null out of its range.
struct Buffered {
  static u8* place(const Wave& w, const Code& c, u64 skip, u32 bytes) {
    const u32* word = &w.s[c.src[0].index];
    const u64 base = word[0] | u64{word[1] & 0xffff} << 32;
    const u32 stride = word[1] >> 16 & 0x3fff;
    const u64 size = stride == 0 ? word[2] : u64{stride} * word[2];
    const u64 at = (offset_of<1>(w, c) & ~u64{3}) + skip;
    return at + bytes <= size ? reinterpret_cast<u8*>((base & ~u64{3}) + at) : nullptr;
  }
};

template <class Space, int dwords>
void load(Wave& w, const Code& c) {
  u32 value[dwords] = {};
  for (int n = 0; n < dwords; ++n) {
    if (const u8* from = Space::place(w, c, 4 * static_cast<u64>(n), 4)) value[n] = load_as<u32>(from);
  }
  std::memcpy(&w.s[c.dst], value, sizeof value);
  w.counters->bytes_loaded += sizeof value;
}
template <class Space, int dwords>
void store(Wave& w, const Code& c) {
  for (int n = 0; n < dwords; ++n) {
    if (u8* to = Space::place(w, c, 4 * static_cast<u64>(n), 4)) std::memcpy(to, &w.s[c.src[2].index + n], 4);
  }
  w.counters->bytes_stored += 4 * dwords;
  w.counters->progress++;
}

template <class T>
T scalar_value(const Wave& w, u32 index) {
  return load_as<T>(&w.s[index]);
}
/// sc0 (glc) returns the old value in the data registers.
template <class T>
void give_back(Wave& w, const Code& c, T old) {
  if (c.inst->sc0) std::memcpy(&w.s[c.src[2].index], &old, sizeof old);
}
template <class Space, class T, auto op>
void update(Wave& w, const Code& c) {
  bool changed = false;
  T old = 0;
  if (u8* place = Space::place(w, c, 0, sizeof(T))) {
    atomic::check_alignment(w, place, sizeof(T));
    old = atomic::apply<T, op>(place, scalar_value<T>(w, c.src[2].index), changed);
  }
  give_back(w, c, old);
  w.counters->progress += changed;
}
template <class Space, class T>
void compare_swap(Wave& w, const Code& c) {  // data: new value, then the expected one
  bool changed = false;
  T old = 0;
  const u32 data = c.src[2].index;
  if (u8* place = Space::place(w, c, 0, sizeof(T))) {
    atomic::check_alignment(w, place, sizeof(T));
    old = atomic::compare_swap<T>(place, scalar_value<T>(w, data + sizeof(T) / 4), scalar_value<T>(w, data), changed);
  }
  give_back(w, c, old);
  w.counters->progress += changed;
}

void no_operation(Wave&, const Code&) {}  // hints to translation and caches, which are always coherent here

// clang-format off
#define ATOMIC(name, T, op)                                     \
  {Op::s_atomic_##name, update<Global, T, atomic::op>},         \
  {Op::s_buffer_atomic_##name, update<Buffered, T, atomic::op>},

constexpr HandlerRow kScalarMemoryRows[] = {
    {Op::s_load_dword, load<Global, 1>},
    {Op::s_load_dwordx2, load<Global, 2>},
    {Op::s_load_dwordx4, load<Global, 4>},
    {Op::s_load_dwordx8, load<Global, 8>},
    {Op::s_load_dwordx16, load<Global, 16>},
    {Op::s_store_dword, store<Global, 1>},
    {Op::s_store_dwordx2, store<Global, 2>},
    {Op::s_store_dwordx4, store<Global, 4>},
    {Op::s_scratch_load_dword, load<Scratch, 1>},
    {Op::s_scratch_load_dwordx2, load<Scratch, 2>},
    {Op::s_scratch_load_dwordx4, load<Scratch, 4>},
    {Op::s_scratch_store_dword, store<Scratch, 1>},
    {Op::s_scratch_store_dwordx2, store<Scratch, 2>},
    {Op::s_scratch_store_dwordx4, store<Scratch, 4>},
    {Op::s_buffer_load_dword, load<Buffered, 1>},
    {Op::s_buffer_load_dwordx2, load<Buffered, 2>},
    {Op::s_buffer_load_dwordx4, load<Buffered, 4>},
    {Op::s_buffer_load_dwordx8, load<Buffered, 8>},
    {Op::s_buffer_load_dwordx16, load<Buffered, 16>},
    {Op::s_buffer_store_dword, store<Buffered, 1>},
    {Op::s_buffer_store_dwordx2, store<Buffered, 2>},
    {Op::s_buffer_store_dwordx4, store<Buffered, 4>},
    CKEMU_INTEGER_ATOMICS(ATOMIC)
    {Op::s_atomic_cmpswap, compare_swap<Global, u32>},
    {Op::s_atomic_cmpswap_x2, compare_swap<Global, u64>},
    {Op::s_buffer_atomic_cmpswap, compare_swap<Buffered, u32>},
    {Op::s_buffer_atomic_cmpswap_x2, compare_swap<Buffered, u64>},
    {Op::s_atc_probe, no_operation},
    {Op::s_atc_probe_buffer, no_operation},
    {Op::s_dcache_discard, no_operation},
    {Op::s_dcache_discard_x2, no_operation},
};
// clang-format on

}  // namespace

HandlerRows scalar_memory_handlers() { return kScalarMemoryRows; }

}  // namespace ckemu
