// SPDX-License-Identifier: MIT
//
// Buffer accesses that convert numbers: the element's format is the instruction's (MTBUF) or the
// resource's (MUBUF, which also says which component goes where). Loads give f32 or integers of 32 bits,
// or with D16 of 16; components that the format lacks are 0, and the fourth is 1.
#include "core/fault.h"
#include "ops/access.h"
#include "ops/buffer.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

/// Bits of the components of a data format, the lowest first; the manual's names count from the top.
struct Layout {
  u8 bits[4];
  constexpr int components() const { return bits[3] != 0 ? 4 : bits[2] != 0 ? 3 : bits[1] != 0 ? 2 : bits[0] != 0; }
  constexpr u32 bytes() const { return (bits[0] + bits[1] + bits[2] + bits[3]) / 8u; }
};
constexpr Layout kLayouts[16] = {
    {},
    {{8}},
    {{16}},
    {{8, 8}},
    {{32}},
    {{16, 16}},
    {{11, 11, 10}},
    {{10, 11, 11}},
    {{2, 10, 10, 10}},
    {{10, 10, 10, 2}},
    {{8, 8, 8, 8}},
    {{32, 32}},
    {{16, 16, 16, 16}},
    {{32, 32, 32}},
    {{32, 32, 32, 32}},
    {},
};
enum Number : u8 { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };

constexpr bool has_number(u32 data, u32 number) {
  const Layout& layout = kLayouts[data];
  if (layout.components() == 0 || number == kReserved) return false;
  if (number == kFloat) return layout.bits[0] >= 16 || data == 6 || data == 7;
  return number >= kUint || layout.bits[0] < 32;
}

/// How an instruction's elements lie in memory and in registers.
struct Format {
  Layout layout;
  Number number;
  u8 select[4];  // of each register: 0, 1, or 4 and the component

  bool integer() const { return number == kUint || number == kSint; }
  u32 one() const { return integer() ? 1 : 0x3f800000; }
};

/// RDNA numbers the pairs of data and number formats, those that exist.
struct UnifiedFormats {
  u8 data[64] = {}, number[64] = {};
  constexpr UnifiedFormats() {
    u32 next = 1;
    for (u32 d = 1; d < 15; ++d) {
      for (u32 n = 0; n < 8; ++n) {
        // The formats of 32 bits and of 10, 10, 10 and 2 bits lack some numbers there.
        if (!has_number(d, n) || (d == 8 && (n == kUscaled || n == kSscaled)) || ((d == 6 || d == 7) && n != kFloat))
          continue;
        data[next] = static_cast<u8>(d);
        number[next++] = static_cast<u8>(n);
      }
    }
  }
};
constexpr UnifiedFormats kUnified;
static_assert(kUnified.data[63] == 14 && kUnified.number[63] == kFloat);

template <bool typed>
Format format_of(Wave& w, const Code& c) {
  const u32 word = w.s[c.src[1].index + 3];
  u32 data = typed ? c.inst->dfmt : word >> 15 & 15, number = typed ? c.inst->nfmt : word >> 12 & 7;
  if (is_rdna(w.program->family())) {
    const u32 unified = typed ? c.inst->dfmt : word >> 12 & 63;
    if (unified >= 64) raise(w, FaultKind::Instruction, "a buffer has no format %u", unified);
    data = kUnified.data[unified];
    number = kUnified.number[unified];
  }
  if (!has_number(data, number)) {
    raise(w, FaultKind::Instruction, "a buffer has no format with data format %u and number format %u", data, number);
  }
  Format format{.layout = kLayouts[data], .number = static_cast<Number>(number), .select = {4, 5, 6, 7}};
  for (u32 n = 0; !typed && n < 4; ++n) format.select[n] = word >> (3 * n) & 7;
  return format;
}

/// Floats of 11 and 10 bits: f16 without a sign and with fewer bits of mantissa.
float from_small(u32 code, int bits) { return from_f16(static_cast<u16>(code << (15 - bits))); }
u32 to_small(float value, int bits) {
  const int drop = 15 - bits;
  if (value != value) return 0x7fffu >> drop;
  if (!(value > 0)) return 0;
  u32 half = _cvtss_sh(value, _MM_FROUND_TO_ZERO);
  if (from_f16(static_cast<u16>(half)) != value) half |= 1;  // so that the next rounding is right
  return (half + (1u << (drop - 1)) - 1 + (half >> drop & 1)) >> drop;
}

i32 sign_extended(u32 code, int bits) { return static_cast<i32>(code << (32 - bits)) >> (32 - bits); }

/// A component of memory as 32 bits of a register.
[[gnu::noinline]] u32 widen(u32 code, int bits, Number number) {
  const i32 with_sign = sign_extended(code, bits);
  switch (number) {
    case kUnorm: return bits_as<u32>(static_cast<float>(double(code) / ((1u << bits) - 1)));
    case kSnorm: {
      const double value = double(with_sign) / ((1 << (bits - 1)) - 1);
      return bits_as<u32>(static_cast<float>(value < -1 ? -1 : value));
    }
    case kUscaled: return bits_as<u32>(static_cast<float>(code));
    case kSscaled: return bits_as<u32>(static_cast<float>(with_sign));
    case kUint: return code;
    case kSint: return static_cast<u32>(with_sign);
    default: break;
  }
  if (bits == 32) return code;
  return bits_as<u32>(bits == 16 ? from_f16(static_cast<u16>(code)) : from_small(code, bits));
}

double clipped(double value, double low, double high) { return value > low ? (value < high ? value : high) : low; }

/// 32 bits of a register as a component of memory: out of range saturates, NaN is 0.
[[gnu::noinline]] u32 narrow(u32 value, int bits, Number number) {
  const double real = bits_as<float>(value);
  const double number_or_zero = real == real ? real : 0;
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const double top = static_cast<double>(mask >> 1), whole = static_cast<double>(mask);
  switch (number) {
    case kUnorm: return static_cast<u32>(__builtin_rint(clipped(number_or_zero, 0, 1) * whole));
    case kSnorm: return static_cast<u32>(static_cast<i32>(__builtin_rint(clipped(number_or_zero, -1, 1) * top))) & mask;
    case kUscaled: return static_cast<u32>(clipped(number_or_zero, 0, whole));
    case kSscaled: return static_cast<u32>(static_cast<i32>(clipped(number_or_zero, -top - 1, top))) & mask;
    case kUint: return value < mask ? value : mask;
    case kSint: return static_cast<u32>(static_cast<i32>(clipped(static_cast<i32>(value), -top - 1, top))) & mask;
    default: break;
  }
  if (bits == 32) return value;
  return bits == 16 ? to_f16(bits_as<float>(value)) : to_small(bits_as<float>(value), bits);
}

/// Bits of an element in memory; at most 128.
using Element = unsigned __int128;

u32 field(Element element, int at, int bits) {
  return static_cast<u32>(element >> at) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

/// What register `n` of a load gets.
u32 loaded(const Format& format, Element element, int n) {
  const int component = format.select[n] - 4;
  if (component < 0) return format.select[n] == 1 ? format.one() : 0;
  if (component >= format.layout.components()) return component == 3 ? format.one() : 0;
  int at = 0;
  for (int before = 0; before < component; ++before) at += format.layout.bits[before];
  return widen(field(element, at, format.layout.bits[component]), format.layout.bits[component], format.number);
}

u16 halved(u32 value, const Format& format) {
  return format.integer() ? static_cast<u16>(value) : to_f16(bits_as<float>(value));
}
u32 doubled(u16 value, const Format& format) {
  if (!format.integer()) return bits_as<u32>(from_f16(value));
  return format.number == kSint ? static_cast<u32>(static_cast<i32>(static_cast<i16>(value))) : value;
}

/// The registers of an instruction: how many components, and whether as 16-bit halves.
struct Registers {
  int components;
  bool d16 = false, high = false;
};

void put_half(u32* rows, int lane, int half, u16 value) {
  u32& target = rows[half / 2 * kLanes + lane];
  target = half % 2 != 0 ? (target & 0xffff) | u32{value} << 16 : (target & 0xffff0000) | value;
}

template <Registers registers>
void put(u32* rows, int lane, const Format& format, Element element) {
  for (int n = 0; n < registers.components; ++n) {
    const u32 value = loaded(format, element, n);
    if constexpr (registers.d16) {
      put_half(rows, lane, n + registers.high, halved(value, format));
    } else {
      rows[n * kLanes + lane] = value;
    }
  }
}
template <Registers registers>
u32 get(const u32* rows, int lane, int n, const Format& format) {
  if constexpr (!registers.d16) return rows[n * kLanes + lane];
  const int half = n + registers.high;
  return doubled(static_cast<u16>(rows[half / 2 * kLanes + lane] >> (half % 2 != 0 ? 16 : 0)), format);
}

template <Registers registers, bool typed>
void load(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  const Format format = format_of<typed>(w, c);
  const u32 bytes = format.layout.bytes();
  alignas(64) u32 straight[kLanes];  // what goes to LDS
  u32* rows = c.inst->lds ? straight : w.v[c.dst];
  Element elements[kLanes] = {};  // read before the registers, which may hold the addresses
  each_lane_once(w, [&](int l) {
    w.lane = l;
    if (const u8* place = buffer.place(l, 0, bytes)) std::memcpy(&elements[l], place, bytes);
  });
  w.lane = -1;
  each_lane_once(w, [&](int l) { put<registers>(rows, l, format, elements[l]); });
  count_load(w, static_cast<int>(bytes));
  if (!c.inst->lds) return;
  each_lane_once(w, [&](int l) {
    const u64 to = u64{lds_base(w)} + static_cast<u32>(c.offset) + 4 * static_cast<u64>(l);
    if (to + 4 <= w.lds_bytes) std::memcpy(w.lds + to, &straight[l], 4);
  });
}

/// The register that holds each component of the format.
void sources_of(Wave& w, const Format& format, int available, int (&source)[4]) {
  for (int component = 0; component < format.layout.components(); ++component) {
    source[component] = -1;
    for (int n = available; n-- > 0;) {
      if (format.select[n] == 4 + component) source[component] = n;
    }
    if (source[component] < 0) {
      raise(w, FaultKind::Instruction, "a store of %d components to a format of %d is not emulated", available,
            format.layout.components());
    }
  }
}

template <Registers registers, bool typed>
void store(Wave& w, const Code& c) {
  const Buffer buffer = buffer_of(w, c);
  const Format format = format_of<typed>(w, c);
  const u32* rows = source_row(w, c, 3);
  const u32 bytes = format.layout.bytes();
  int source[4];
  sources_of(w, format, registers.components, source);
  each_lane_once(w, [&](int l) {
    w.lane = l;
    Element element = 0;
    for (int n = 0, at = 0; n < format.layout.components(); at += format.layout.bits[n++]) {
      const u32 value = get<registers>(rows, l, source[n], format);
      element |= Element{narrow(value, format.layout.bits[n], format.number)} << at;
    }
    if (u8* place = buffer.place(l, 0, bytes)) std::memcpy(place, &element, bytes);
  });
  w.lane = -1;
  count_store(w, static_cast<int>(bytes));
  w.counters->progress++;
}

// clang-format off
#define FORMATS(prefix, typed)                                                          \
  {Op::prefix##_load_format_x, load<Registers{1}, typed>},                              \
  {Op::prefix##_load_format_xy, load<Registers{2}, typed>},                             \
  {Op::prefix##_load_format_xyz, load<Registers{3}, typed>},                            \
  {Op::prefix##_load_format_xyzw, load<Registers{4}, typed>},                           \
  {Op::prefix##_load_format_d16_x, load<Registers{1, true}, typed>},                    \
  {Op::prefix##_load_format_d16_xy, load<Registers{2, true}, typed>},                   \
  {Op::prefix##_load_format_d16_xyz, load<Registers{3, true}, typed>},                  \
  {Op::prefix##_load_format_d16_xyzw, load<Registers{4, true}, typed>},                 \
  {Op::prefix##_store_format_x, store<Registers{1}, typed>},                            \
  {Op::prefix##_store_format_xy, store<Registers{2}, typed>},                           \
  {Op::prefix##_store_format_xyz, store<Registers{3}, typed>},                          \
  {Op::prefix##_store_format_xyzw, store<Registers{4}, typed>},                         \
  {Op::prefix##_store_format_d16_x, store<Registers{1, true}, typed>},                  \
  {Op::prefix##_store_format_d16_xy, store<Registers{2, true}, typed>},                 \
  {Op::prefix##_store_format_d16_xyz, store<Registers{3, true}, typed>},                \
  {Op::prefix##_store_format_d16_xyzw, store<Registers{4, true}, typed>},

constexpr HandlerRow kBufferFormatRows[] = {
    FORMATS(buffer, false)
    FORMATS(tbuffer, true)
    {Op::buffer_load_format_d16_hi_x, load<Registers{1, true, true}, false>},
    {Op::buffer_store_format_d16_hi_x, store<Registers{1, true, true}, false>},
};
// clang-format on

}  // namespace

u32 unified_format(u32 data, u32 number) {
  u32 format = 0;
  while (format < 63 && (kUnified.data[format] != data || kUnified.number[format] != number)) ++format;
  return format;
}

HandlerRows buffer_format_handlers() { return kBufferFormatRows; }

}  // namespace ckemu
