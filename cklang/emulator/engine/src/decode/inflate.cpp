// SPDX-License-Identifier: MIT
#include "decode/decompress.h"

namespace ckemu {

namespace {

constexpr u32 kLongest = 15, kEnd = 256, kLengths = 288, kDistances = 32;

/// Bits from the low end of each byte on. Behind the input there are zeros, and `spent` tells.
struct Bits {
  Input in;
  size_t at = 0;
  u64 held = 0;
  u32 count = 0;
  bool spent = false;

  u32 take(u32 wanted) {
    while (count < wanted) {
      if (at >= in.size) spent = true;
      held |= u64{at < in.size ? in.data[at] : u8{0}} << count;
      ++at;
      count += 8;
    }
    const u32 value = static_cast<u32>(held & ((u64{1} << wanted) - 1));
    held >>= wanted;
    count -= wanted;
    return value;
  }
  /// Goes on at the next whole byte.
  void align() {
    at -= count / 8;
    held = count = 0;
  }
};

/// A canonical Huffman code: how many codes there are of each length, and their symbols in order.
struct Code {
  u16 of_length[kLongest + 1];
  u16 symbols[kLengths];

  void build(const u8* lengths, u32 number) {
    u16 start[kLongest + 2] = {};
    std::memset(of_length, 0, sizeof of_length);
    for (u32 n = 0; n < number; ++n) ++of_length[lengths[n]];
    of_length[0] = 0;
    for (u32 bits = 1; bits <= kLongest; ++bits) start[bits + 1] = static_cast<u16>(start[bits] + of_length[bits]);
    for (u32 n = 0; n < number; ++n) {
      if (lengths[n] != 0) symbols[start[lengths[n]]++] = static_cast<u16>(n);
    }
  }
  /// The next symbol, or -1.
  int read(Bits& bits) const {
    i32 code = 0, first = 0, index = 0;
    for (u32 length = 1; length <= kLongest; ++length) {
      code |= static_cast<i32>(bits.take(1));
      const i32 number = of_length[length];
      if (code - first < number) return symbols[index + code - first];
      index += number;
      first = (first + number) << 1;
      code <<= 1;
    }
    return -1;
  }
};

struct Codes {
  Code literals, distances;
};

struct Output {
  u8* data;
  size_t size, at = 0;

  bool put(const u8* from, size_t bytes) {
    if (bytes > size - at) return false;
    std::memcpy(data + at, from, bytes);
    at += bytes;
    return true;
  }
  bool repeat(size_t distance, size_t bytes) {
    if (distance == 0 || distance > at || bytes > size - at) return false;
    for (; bytes != 0; --bytes, ++at) data[at] = data[at - distance];
    return true;
  }
};

void fixed_codes(Codes& codes) {
  u8 lengths[kLengths];
  for (u32 n = 0; n < kLengths; ++n) lengths[n] = n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8;
  codes.literals.build(lengths, kLengths);
  std::memset(lengths, 5, kDistances);
  codes.distances.build(lengths, kDistances);
}

/// Reads the lengths of both codes, which are themselves coded.
bool dynamic_codes(Bits& bits, Codes& codes) {
  static constexpr u8 order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const u32 literals = bits.take(5) + 257, distances = bits.take(5) + 1, number = bits.take(4) + 4;
  u8 lengths[kLengths + kDistances] = {};
  for (u32 n = 0; n < number; ++n) lengths[order[n]] = static_cast<u8>(bits.take(3));
  if (literals > kLengths) return false;
  Code meta;
  meta.build(lengths, 19);
  for (u32 n = 0; n < literals + distances;) {
    const int symbol = meta.read(bits);
    if (symbol < 0) return false;
    if (symbol < 16) {
      lengths[n++] = static_cast<u8>(symbol);
      continue;
    }
    if (symbol == 16 && n == 0) return false;
    const u8 value = symbol == 16 ? lengths[n - 1] : u8{0};
    const u32 repeats = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    if (repeats > literals + distances - n) return false;
    std::memset(lengths + n, value, repeats);
    n += repeats;
  }
  codes.literals.build(lengths, literals);
  codes.distances.build(lengths + literals, distances);
  return true;
}

/// The number that a length symbol (3 and up) or a distance symbol (1 and up) stands for: groups of
/// `1 << steps` symbols take one bit more each.
u32 scaled(Bits& bits, u32 symbol, u32 steps) {
  const u32 group = symbol >> steps;
  if (group == 0) return symbol;
  const u32 extra = group - 1;
  return (((1u << steps) + (symbol & ((1u << steps) - 1))) << extra) + bits.take(extra);
}

bool coded_block(Bits& bits, Output& out, const Codes& codes) {
  while (!bits.spent) {
    const int symbol = codes.literals.read(bits);
    if (symbol < 0 || symbol > 285) return false;
    if (symbol == kEnd) return true;
    if (symbol < static_cast<int>(kEnd)) {
      const u8 byte = static_cast<u8>(symbol);
      if (!out.put(&byte, 1)) return false;
      continue;
    }
    const u32 length = symbol == 285 ? 258 : 3 + scaled(bits, static_cast<u32>(symbol) - 257, 2);
    const int distance = codes.distances.read(bits);
    if (distance < 0 || distance > 29) return false;
    if (!out.repeat(1 + scaled(bits, static_cast<u32>(distance), 1), length)) return false;
  }
  return false;
}

bool stored_block(Bits& bits, Output& out) {
  bits.align();
  const u32 length = bits.take(16), inverse = bits.take(16);
  if ((length ^ inverse) != 0xffff || bits.spent || length > bits.in.size - bits.at) return false;
  const bool fits = out.put(bits.in.data + bits.at, length);
  bits.at += length;
  return fits;
}

u32 adler32(const u8* data, size_t size) {
  u32 low = 1, high = 0;
  for (size_t n = 0; n < size; ++n) {
    low = (low + data[n]) % 65521;
    high = (high + low) % 65521;
  }
  return high << 16 | low;
}

}  // namespace

bool inflate(Input in, u8* out, size_t size) {
  Bits bits{in};
  const u32 method = bits.take(8), flags = bits.take(8);
  if ((method & 15) != 8 || (method << 8 | flags) % 31 != 0 || (flags & 32) != 0) return false;
  Output output{out, size};
  Codes codes;
  bool last = false;
  while (!last && !bits.spent) {
    last = bits.take(1) != 0;
    const u32 kind = bits.take(2);
    if (kind == 3) return false;
    if (kind == 1) fixed_codes(codes);
    if (kind == 2 && !dynamic_codes(bits, codes)) return false;
    if (!(kind == 0 ? stored_block(bits, output) : coded_block(bits, output, codes))) return false;
  }
  bits.align();
  u32 sum = 0;
  for (int n = 0; n < 4; ++n) sum = sum << 8 | bits.take(8);
  return !bits.spent && output.at == size && sum == adler32(out, size);
}

}  // namespace ckemu
