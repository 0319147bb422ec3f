// SPDX-License-Identifier: MIT
//
// Reads and writes of the workgroup's local memory, and the lane permutes that use its crossbar.
// Addresses beyond the allocation read 0 and drop writes.
#include "core/fault.h"
#include "ops/groups.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// Whether every enabled lane's `bytes` at address + offset lie inside the allocation.
CKEMU_INLINE bool all_inside(const Wave& w, const u32* address, u32 offset, u32 bytes) {
  if (w.lds_bytes < bytes + offset) return false;
  const u32 last = w.lds_bytes - bytes - offset;
  U8v highest = 0;
  const u64 exec = w.exec();
  for (int g = 0; g < 8; ++g) {
    const U8v enabled = __builtin_bit_cast(U8v, spread_mask(exec >> (8 * g) & 0xff));
    highest = __builtin_elementwise_max(highest, load8(address, g) & enabled);
  }
  return __builtin_reduce_max(highest) <= last;
}
CKEMU_INLINE bool inside(const Wave& w, u64 address, u32 bytes) { return address + bytes <= w.lds_bytes; }

template <Access access>
void read_at(Wave& w, const u32* address, u32 offset, u32* rows) {
  if (all_inside(w, address, offset, access.bytes)) [[likely]] {
    load_lanes_at<access>(w, rows, {address, nullptr, reinterpret_cast<u64>(w.lds) + offset});
    return;
  }
  each_lane_once(w, [&](int l) {
    const u64 place = address[l] + offset;  // wraps around as 32 bits do
    if (inside(w, place, access.bytes)) {
      load_lane<access>(rows, l, w.lds + place);
    } else {
      load_zero<access>(rows, l);
    }
  });
}
template <Access access>
void write_at(Wave& w, const u32* address, u32 offset, const u32* rows) {
  if (all_inside(w, address, offset, access.bytes)) [[likely]] {
    store_lanes_at<access>(w, rows, {address, nullptr, reinterpret_cast<u64>(w.lds) + offset});
    return;
  }
  each_lane_once(w, [&](int l) {
    const u64 place = address[l] + offset;  // wraps around as 32 bits do
    if (inside(w, place, access.bytes)) store_lane<access>(rows, l, w.lds + place);
  });
}

void refuse_gds(Wave& w, const Code& c) {
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
}

template <Access access>
void read(Wave& w, const Code& c) {
  refuse_gds(w, c);
  read_at<access>(w, source_row(w, c, 0), static_cast<u32>(c.offset), w.v[c.dst]);
}
template <Access access>
void write(Wave& w, const Code& c) {
  refuse_gds(w, c);
  write_at<access>(w, source_row(w, c, 0), static_cast<u32>(c.offset), source_row(w, c, 1));
}
/// Two accesses whose offsets count elements, or 64 elements. The results are assembled apart from
/// the registers, which may hold the address.
template <u8 bytes, u32 unit>
void read2(Wave& w, const Code& c) {
  refuse_gds(w, c);
  alignas(64) u32 address[kLanes];
  std::memcpy(address, source_row(w, c, 0), sizeof address);
  constexpr u32 scale = bytes * unit;
  read_at<Access{bytes}>(w, address, static_cast<u32>(c.offset) * scale, w.v[c.dst]);
  read_at<Access{bytes}>(w, address, c.inst->offset1 * scale, w.v[c.dst + bytes / 4]);
}
template <u8 bytes, u32 unit>
void write2(Wave& w, const Code& c) {
  refuse_gds(w, c);
  const u32* address = source_row(w, c, 0);
  constexpr u32 scale = bytes * unit;
  write_at<Access{bytes}>(w, address, static_cast<u32>(c.offset) * scale, source_row(w, c, 1));
  write_at<Access{bytes}>(w, address, c.inst->offset1 * scale, source_row(w, c, 2));
}

/// Addressed by m0, the immediate and the lane number.
void read_addtid(Wave& w, const Code& c) {
  const u32 base = (w.s[kM0] & 0xffff) + static_cast<u32>(c.offset);
  each_lane(w, [&](int l) {
    const u32 place = base + 4 * static_cast<u32>(l);
    w.v[c.dst][l] = inside(w, place, 4) ? load_as<u32>(w.lds + place) : 0;
  });
}
void write_addtid(Wave& w, const Code& c) {
  const u32 base = (w.s[kM0] & 0xffff) + static_cast<u32>(c.offset);
  const u32* data = source_row(w, c, 1);
  each_lane(w, [&](int l) {
    const u32 place = base + 4 * static_cast<u32>(l);
    if (inside(w, place, 4)) std::memcpy(w.lds + place, &data[l], 4);
  });
}

/// The lane that number `wanted` means to lane `l`. On gfx11 each half of a wave is by itself.
u32 permuted(const Wave& w, int l, u32 wanted) {
  if (w.program->family() == Family::Rdna3) return (static_cast<u32>(l) & 32) | (wanted & 31);
  return wanted % w.lanes;
}

/// Each lane takes the value of the lane it names; lane numbers wrap. Disabled lanes give 0, unless
/// the operation reads inactive lanes too.
template <bool inactive>
void bpermute(Wave& w, const Code& c) {
  const u32 *address = source_row(w, c, 0), *data = source_row(w, c, 1);
  alignas(64) u32 values[kLanes];
  const u64 exec = w.exec();
  for (int l = 0; l < kLanes; ++l) {
    const u32 from = permuted(w, l, (address[l] + static_cast<u32>(c.offset)) / 4);
    values[l] = inactive || (exec >> from & 1) != 0 ? data[from] : 0;
  }
  write_lanes(w, w.v[c.dst], [&](int g) { return load8(values, g); });
}
/// Each lane sends its value to the lane it names; the highest sender wins.
void permute(Wave& w, const Code& c) {
  const u32 *address = source_row(w, c, 0), *data = source_row(w, c, 1);
  alignas(64) u32 values[kLanes] = {};
  each_lane(w, [&](int l) { values[permuted(w, l, (address[l] + static_cast<u32>(c.offset)) / 4)] = data[l]; });
  write_lanes(w, w.v[c.dst], [&](int g) { return load8(values, g); });
}

/// The lane that lane `l` reads under a swizzle pattern.
int swizzled(u32 pattern, int l) {
  if ((pattern & 0xc000) == 0x8000) return (l & ~3) | (pattern >> (2 * (l & 3)) & 3);
  const int mask = static_cast<int>(pattern & 31), lane = l & 31;
  if (pattern >= 0xe000) {  // the order of a decomposed FFT
    if (mask == 31) return l;
    const int reversed = static_cast<int>(__builtin_bitreverse32(static_cast<u32>(lane)) >> 27);
    return (l & 32) | ((reversed >> __builtin_popcount(static_cast<u32>(mask))) | (lane & mask));
  }
  if (pattern >= 0xc000) {  // rotation of the lane bits outside the mask
    const int amount = static_cast<int>(pattern >> 5 & 31);
    const int moved = (pattern & 0x400) != 0 ? lane - amount : lane + amount;
    return (l & 32) | (lane & mask) | (moved & ~mask & 31);
  }
  const int in_half =
      (((l & 31) & static_cast<int>(pattern & 31)) | (pattern >> 5 & 31)) ^ static_cast<int>(pattern >> 10 & 31);
  return (l & 32) | in_half;
}
void swizzle(Wave& w, const Code& c) {
  const u32* data = source_row(w, c, 0);
  const u32 pattern = static_cast<u32>(c.offset) & 0xffff;
  alignas(64) u32 values[kLanes];
  const u64 exec = w.exec();
  for (int l = 0; l < kLanes; ++l) {
    const int from = swizzled(pattern, l);
    values[l] = (exec >> from & 1) != 0 ? data[from] : 0;
  }
  write_lanes(w, w.v[c.dst], [&](int g) { return load8(values, g); });
}

void no_operation(Wave&, const Code&) {}

constexpr HandlerRow kLdsRows[] = {
    {Op::ds_nop, no_operation},
    {Op::ds_read_b32, read<Access{4}>},
    {Op::ds_read_b64, read<Access{8}>},
    {Op::ds_read_b96, read<Access{12}>},
    {Op::ds_read_b128, read<Access{16}>},
    {Op::ds_read_u8, read<Access{1}>},
    {Op::ds_read_i8, read<Access{1, Extend::Sign}>},
    {Op::ds_read_u16, read<Access{2}>},
    {Op::ds_read_i16, read<Access{2, Extend::Sign}>},
    {Op::ds_read_u8_d16, read<Access{1, Extend::LowHalf}>},
    {Op::ds_read_u8_d16_hi, read<Access{1, Extend::HighHalf}>},
    {Op::ds_read_i8_d16, read<Access{1, Extend::SignLow}>},
    {Op::ds_read_i8_d16_hi, read<Access{1, Extend::SignHigh}>},
    {Op::ds_read_u16_d16, read<Access{2, Extend::LowHalf}>},
    {Op::ds_read_u16_d16_hi, read<Access{2, Extend::HighHalf}>},
    {Op::ds_write_b8, write<Access{1}>},
    {Op::ds_write_b16, write<Access{2}>},
    {Op::ds_write_b32, write<Access{4}>},
    {Op::ds_write_b64, write<Access{8}>},
    {Op::ds_write_b96, write<Access{12}>},
    {Op::ds_write_b128, write<Access{16}>},
    {Op::ds_write_b8_d16_hi, write<Access{1, Extend::HighHalf}>},
    {Op::ds_write_b16_d16_hi, write<Access{2, Extend::HighHalf}>},
    {Op::ds_read2_b32, read2<4, 1>},
    {Op::ds_read2_b64, read2<8, 1>},
    {Op::ds_read2st64_b32, read2<4, 64>},
    {Op::ds_read2st64_b64, read2<8, 64>},
    {Op::ds_write2_b32, write2<4, 1>},
    {Op::ds_write2_b64, write2<8, 1>},
    {Op::ds_write2st64_b32, write2<4, 64>},
    {Op::ds_write2st64_b64, write2<8, 64>},
    {Op::ds_read_addtid_b32, read_addtid},
    {Op::ds_write_addtid_b32, write_addtid},
    {Op::ds_bpermute_b32, bpermute<false>},
    {Op::ds_bpermute_fi_b32, bpermute<true>},
    {Op::ds_permute_b32, permute},
    {Op::ds_swizzle_b32, swizzle},
};

}  // namespace

HandlerRows lds_handlers() { return kLdsRows; }

}  // namespace ckemu
