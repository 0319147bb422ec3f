// SPDX-License-Identifier: MIT
//
// Names and numbers are those of RFC 8878.
#include "decode/decompress.h"

namespace ckemu {

namespace {

constexpr u32 kFrameMagic = 0xfd2fb528;
constexpr size_t kBlock = 128 << 10;
constexpr u32 kMostWeights = 256, kMostBits = 11;

/// Bits of a stream in either direction: `at` counts from the low bit of the first byte. Places outside
/// of the stream read as 0.
struct BitReader {
  Input in;
  i64 at = 0;

  u64 peek(i64 from, u32 number) const {
    u64 value = 0;
    for (i64 byte = from >> 3; byte * 8 < from + number; ++byte) {
      if (byte < 0 || byte >= static_cast<i64>(in.size)) continue;
      const i64 shift = byte * 8 - from;
      value |= shift >= 0 ? u64{in.data[byte]} << shift : u64{in.data[byte]} >> -shift;
    }
    return value & ((u64{1} << number) - 1);
  }
  u32 forward(u32 number) {
    const u64 value = peek(at, number);
    at += number;
    return static_cast<u32>(value);
  }
  u32 backward(u32 number) {
    at -= number;
    return static_cast<u32>(peek(at, number));
  }
  /// Begins at the highest 1 of the last byte, which only marks the place.
  bool from_end() {
    if (in.size == 0 || in.data[in.size - 1] == 0) return false;
    at = static_cast<i64>(in.size) * 8 - 1 - (__builtin_clz(u32{in.data[in.size - 1]}) - 24);
    return true;
  }
};

u32 log2_of(u32 value) { return 31 - static_cast<u32>(__builtin_clz(value)); }

/// A finite state entropy code.
struct Fse {
  static constexpr u32 kMostLog = 9;
  struct Cell {
    u16 baseline;
    u8 symbol, bits;
  };
  Cell cells[1 << kMostLog];
  u32 log = 0;
  bool known = false;

  void build(const i16* probabilities, u32 number, u32 accuracy) {
    u16 next[256];
    log = accuracy;
    const u32 size = 1u << log, step = (size >> 1) + (size >> 3) + 3;
    u32 high = size, place = 0;
    for (u32 symbol = 0; symbol < number; ++symbol) {
      next[symbol] = probabilities[symbol] == -1 ? u16{1} : static_cast<u16>(probabilities[symbol]);
      if (probabilities[symbol] == -1) cells[--high].symbol = static_cast<u8>(symbol);
    }
    for (u32 symbol = 0; symbol < number; ++symbol) {
      for (int n = 0; n < probabilities[symbol]; ++n) {
        cells[place].symbol = static_cast<u8>(symbol);
        do place = (place + step) & (size - 1);
        while (place >= high);
      }
    }
    for (u32 state = 0; state < size; ++state) {
      const u32 following = next[cells[state].symbol]++;
      cells[state].bits = static_cast<u8>(log - log2_of(following));
      cells[state].baseline = static_cast<u16>((following << cells[state].bits) - size);
    }
    known = true;
  }
  /// A code of one symbol that takes no bits.
  void repeat(u8 symbol) {
    log = 0;
    cells[0] = {0, symbol, 0};
    known = true;
  }
  /// Reads the description in front of `in`; its bytes, or 0 if it is damaged.
  size_t read(Input in, u32 most_symbols, u32 most_log) {
    BitReader bits{in};
    i16 probabilities[256] = {};
    const u32 accuracy = bits.forward(4) + 5;
    if (accuracy > most_log) return 0;
    i32 left = 1 << accuracy;
    u32 number = 0;
    while (left > 0 && number < most_symbols) {
      const i32 probability = read_probability(bits, static_cast<u32>(left));
      left -= probability < 0 ? 1 : probability;
      probabilities[number++] = static_cast<i16>(probability);
      for (u32 zeros = probability == 0 ? 3 : 0; zeros == 3;) {
        zeros = bits.forward(2);
        number += zeros;
      }
      if (number > most_symbols) return 0;
    }
    const size_t bytes = static_cast<size_t>(bits.at + 7) / 8;
    if (left != 0 || bytes > in.size) return 0;
    build(probabilities, number, accuracy);
    return bytes;
  }

 private:
  /// Of the numbers up to `left` + 1 the small ones take a bit less.
  static i32 read_probability(BitReader& bits, u32 left) {
    const u32 number = log2_of(left + 1) + 1, low = (1u << (number - 1)) - 1;
    const u32 threshold = (1u << number) - 1 - (left + 1);
    u32 value = bits.forward(number);
    if ((value & low) < threshold) {
      --bits.at;
      value &= low;
    } else if (value > low) {
      value -= threshold;
    }
    return static_cast<i32>(value) - 1;
  }
};

/// Walks through the states of a code, reading backwards.
struct State {
  const Fse* code;
  u32 now = 0;
  void start(BitReader& bits) { now = bits.backward(code->log); }
  u8 symbol() const { return code->cells[now].symbol; }
  void step(BitReader& bits) { now = code->cells[now].baseline + bits.backward(code->cells[now].bits); }
};

/// The Huffman code of literals.
struct Huffman {
  u8 symbols[1 << kMostBits], lengths[1 << kMostBits];
  u32 bits = 0;  // of the longest code; 0: none was read yet

  /// Reads the description in front of `in`; its bytes, or 0.
  size_t read(Input in) {
    if (in.size == 0) return 0;
    u8 weights[kMostWeights] = {};
    const u32 head = in.data[0];
    const size_t bytes = 1 + (head < 128 ? head : (head - 127 + 1) / 2);
    if (bytes > in.size) return 0;
    u32 number = head - 127;
    for (u32 n = 0; head >= 128 && n < number; ++n) {
      const u8 pair = in.data[1 + n / 2];
      weights[n] = n % 2 == 0 ? pair >> 4 : pair & 15;
    }
    if (head < 128) number = read_weights({in.data + 1, head}, weights);
    return number != 0 && build(weights, number) ? bytes : 0;
  }
  /// Decodes exactly `size` symbols from a whole stream.
  bool decode(Input in, u8* out, size_t size) const {
    BitReader stream{in};
    if (!stream.from_end()) return false;
    for (size_t n = 0; n < size; ++n) {
      const u64 code = stream.peek(stream.at - bits, bits);
      out[n] = symbols[code];
      stream.at -= lengths[code];
    }
    return stream.at == 0;
  }

 private:
  /// Two states take turns until the stream is used up.
  static u32 read_weights(Input in, u8* weights) {
    Fse code;
    const size_t head = code.read(in, kMostWeights, 6);
    if (head == 0) return 0;
    BitReader bits{{in.data + head, in.size - head}};
    if (!bits.from_end()) return 0;
    State states[2] = {{&code}, {&code}};
    states[0].start(bits);
    states[1].start(bits);
    for (u32 n = 0; n + 2 < kMostWeights; ++n) {
      State& state = states[n % 2];
      weights[n] = state.symbol();
      state.step(bits);
      if (bits.at >= 0) continue;
      weights[n + 1] = states[(n + 1) % 2].symbol();
      return n + 2;
    }
    return 0;
  }
  /// The last weight is not written: it completes the sum to a power of two.
  bool build(u8* weights, u32 number) {
    u32 sum = 0;
    for (u32 n = 0; n < number; ++n) {
      if (weights[n] > kMostBits) return false;
      sum += weights[n] != 0 ? 1u << (weights[n] - 1) : 0;
    }
    if (sum == 0 || number >= kMostWeights) return false;
    bits = log2_of(sum) + 1;
    const u32 left = (1u << bits) - sum;
    if (bits > kMostBits || (left & (left - 1)) != 0) return false;
    weights[number++] = static_cast<u8>(log2_of(left) + 1);
    u32 place = 0;
    for (u32 weight = 1; weight <= bits; ++weight) {
      for (u32 n = 0; n < number; ++n) {
        if (weights[n] != weight) continue;
        const u32 cells = 1u << (weight - 1);
        std::memset(symbols + place, static_cast<int>(n), cells);
        std::memset(lengths + place, static_cast<int>(bits + 1 - weight), cells);
        place += cells;
      }
    }
    return true;
  }
};

/// A number that a code and some more bits give.
struct Range {
  u32 baseline;
  u8 bits;
};
constexpr Range kLiteralLengths[36] = {
    {0, 0},   {1, 0},   {2, 0},     {3, 0},     {4, 0},     {5, 0},     {6, 0},      {7, 0},      {8, 0},
    {9, 0},   {10, 0},  {11, 0},    {12, 0},    {13, 0},    {14, 0},    {15, 0},     {16, 1},     {18, 1},
    {20, 1},  {22, 1},  {24, 2},    {28, 2},    {32, 3},    {40, 3},    {48, 4},     {64, 6},     {128, 7},
    {256, 8}, {512, 9}, {1024, 10}, {2048, 11}, {4096, 12}, {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};
constexpr Range kMatchLengths[53] = {
    {3, 0},   {4, 0},     {5, 0},     {6, 0},     {7, 0},     {8, 0},      {9, 0},      {10, 0},    {11, 0},
    {12, 0},  {13, 0},    {14, 0},    {15, 0},    {16, 0},    {17, 0},     {18, 0},     {19, 0},    {20, 0},
    {21, 0},  {22, 0},    {23, 0},    {24, 0},    {25, 0},    {26, 0},     {27, 0},     {28, 0},    {29, 0},
    {30, 0},  {31, 0},    {32, 0},    {33, 0},    {34, 0},    {35, 1},     {37, 1},     {39, 1},    {41, 1},
    {43, 2},  {47, 2},    {51, 3},    {59, 3},    {67, 4},    {83, 4},     {99, 5},     {131, 7},   {259, 8},
    {515, 9}, {1027, 10}, {2051, 11}, {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};
constexpr i16 kUsualLiteralLengths[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                          2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
constexpr i16 kUsualOffsets[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
constexpr i16 kUsualMatchLengths[53] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

/// One of the three codes of a block's sequences.
struct CodeKind {
  const i16* usual;
  u32 usual_symbols, usual_log, most_symbols, most_log;
};
constexpr CodeKind kCodes[3] = {
    {kUsualLiteralLengths, 36, 6, 36, 9}, {kUsualOffsets, 29, 5, 32, 8}, {kUsualMatchLengths, 53, 6, 53, 9}};

class FrameDecoder {
 public:
  FrameDecoder(u8* out, size_t size) : out_(out), size_(size) {}

  bool frame(Input in) {
    if (!header(in)) return false;
    for (bool last = false; !last;) {
      if (in.size < 3) return false;
      const u32 word = in.data[0] | u32{in.data[1]} << 8 | u32{in.data[2]} << 16;
      in = {in.data + 3, in.size - 3};
      last = (word & 1) != 0;
      if (!block(in, word >> 1 & 3, word >> 3)) return false;
    }
    return at_ == size_;
  }

 private:
  static u64 number(Input in, u32 bytes) {
    u64 value = 0;
    for (u32 n = 0; n < bytes; ++n) value |= u64{in.data[n]} << (8 * n);
    return value;
  }
  /// Skips the frame's header; dictionaries are not known.
  static bool header(Input& in) {
    if (in.size < 6 || load_as<u32>(in.data) != kFrameMagic) return false;
    const u32 flags = in.data[4], length = flags >> 6;
    const bool single = (flags & 32) != 0;
    if ((flags & 11) != 0) return false;  // reserved, or a dictionary
    const size_t content = length != 0 ? size_t{1} << length : single ? 1 : 0;
    const size_t bytes = 5 + (single ? 0 : 1) + content;
    if (bytes > in.size) return false;
    in = {in.data + bytes, in.size - bytes};
    return true;
  }
  bool put(const u8* from, size_t bytes) {
    if (bytes > size_ - at_) return false;
    std::memcpy(out_ + at_, from, bytes);
    at_ += bytes;
    return true;
  }
  bool block(Input& in, u32 kind, u32 bytes) {
    const u32 taken = kind == 1 ? 1 : bytes;
    if (kind == 3 || taken > in.size || bytes > kBlock) return false;
    const Input content{in.data, taken};
    in = {in.data + taken, in.size - taken};
    if (kind == 2) return compressed(content);
    if (kind == 0) return put(content.data, bytes);
    if (bytes > size_ - at_) return false;
    std::memset(out_ + at_, content.data[0], bytes);
    at_ += bytes;
    return true;
  }
  bool compressed(Input in) {
    const size_t bytes = read_literals(in);
    return bytes != 0 && sequences({in.data + bytes, in.size - bytes});
  }

  /// Fills literals_; the section's bytes, or 0.
  size_t read_literals(Input in) {
    if (in.size == 0) return 0;
    const u32 kind = in.data[0] & 3, format = in.data[0] >> 2 & 3;
    if (kind >= 2) return coded_literals(in, kind == 3, format);
    const u32 head = format == 1 ? 2 : format == 3 ? 3 : 1;
    if (in.size < head) return 0;
    literals_left_ = number(in, head) >> (head == 1 ? 3 : 4);
    const size_t bytes = head + (kind == 1 ? 1 : literals_left_);
    if (literals_left_ > kBlock || bytes > in.size) return 0;
    next_literal_ = literals_;
    if (kind == 1) std::memset(literals_, in.data[head], literals_left_);
    else std::memcpy(literals_, in.data + head, literals_left_);
    return bytes;
  }
  size_t coded_literals(Input in, bool known, u32 format) {
    const u32 head = format < 2 ? 3 : format + 2, width = format < 2 ? 10 : format == 2 ? 14 : 18;
    if (in.size < head) return 0;
    const u64 word = number(in, head) >> 4, mask = (u64{1} << width) - 1;
    const size_t made = word & mask, bytes = word >> width & mask;
    if (made > kBlock || bytes > in.size - head) return 0;
    Input coded{in.data + head, bytes};
    if (!known) {
      const size_t description = huffman_.read(coded);
      if (description == 0) return 0;
      coded = {coded.data + description, coded.size - description};
    }
    literals_left_ = made;
    next_literal_ = literals_;
    if (huffman_.bits == 0 || !(format == 0 ? huffman_.decode(coded, literals_, made) : four_streams(coded, made)))
      return 0;
    return head + bytes;
  }
  bool four_streams(Input in, size_t made) {
    if (in.size < 6) return false;
    const size_t each = (made + 3) / 4;
    size_t begin = 6, done = 0;
    for (u32 n = 0; n < 4; ++n) {
      const size_t bytes = n < 3 ? load_as<u16>(in.data + 2 * n) : in.size - begin;
      const size_t symbols = n < 3 ? each : made - done;
      if (bytes > in.size - begin || done + symbols > made) return false;
      if (!huffman_.decode({in.data + begin, bytes}, literals_ + done, symbols)) return false;
      begin += bytes;
      done += symbols;
      if (begin > in.size) return false;
    }
    return true;
  }

  bool sequences(Input in) {
    if (in.size == 0) return false;
    const u32 first = in.data[0];
    const size_t head = first < 128 ? 1 : first < 255 ? 2 : 3;
    if (in.size < head) return false;
    u32 left = first < 128   ? first
               : first < 255 ? (first - 128) << 8 | in.data[1]
                             : (in.data[1] | u32{in.data[2]} << 8) + 0x7f00;
    in = {in.data + head, in.size - head};
    if (left != 0 && !run(in, left)) return false;
    return put(next_literal_, literals_left_);
  }
  bool read_codes(Input& in) {
    if (in.size == 0) return false;
    const u32 modes = in.data[0];
    in = {in.data + 1, in.size - 1};
    for (u32 n = 0; n < 3; ++n) {
      const CodeKind& kind = kCodes[n];
      size_t bytes = 0;
      switch (modes >> (6 - 2 * n) & 3) {
        case 0: codes_[n].build(kind.usual, kind.usual_symbols, kind.usual_log); break;
        case 1:
          if (in.size == 0 || in.data[0] >= kind.most_symbols) return false;
          codes_[n].repeat(in.data[0]);
          bytes = 1;
          break;
        case 2:
          bytes = codes_[n].read(in, kind.most_symbols, kind.most_log);
          if (bytes == 0) return false;
          break;
        default:
          if (!codes_[n].known) return false;
      }
      in = {in.data + bytes, in.size - bytes};
    }
    return true;
  }
  bool run(Input in, u32 left) {
    if (!read_codes(in)) return false;
    BitReader bits{in};
    if (!bits.from_end()) return false;
    State literal{&codes_[0]}, offset{&codes_[1]}, match{&codes_[2]};
    literal.start(bits);
    offset.start(bits);
    match.start(bits);
    while (left-- != 0) {
      const u32 power = offset.symbol();
      const u64 distance = (u64{1} << power) + bits.backward(power);
      const Range& matched = kMatchLengths[match.symbol()];
      const u32 length = matched.baseline + bits.backward(matched.bits);
      const Range& copied = kLiteralLengths[literal.symbol()];
      const u32 literals = copied.baseline + bits.backward(copied.bits);
      if (bits.at < 0 || !sequence(literals, distance, length)) return false;
      if (left == 0) break;
      literal.step(bits);
      match.step(bits);
      offset.step(bits);
    }
    return bits.at == 0;
  }
  bool sequence(u32 literals, u64 offset, u32 length) {
    if (literals > literals_left_ || !put(next_literal_, literals)) return false;
    next_literal_ += literals;
    literals_left_ -= literals;
    const u64 distance = take_offset(offset, literals == 0);
    if (distance == 0 || distance > at_ || length > size_ - at_) return false;
    for (u32 n = 0; n < length; ++n, ++at_) out_[at_] = out_[at_ - distance];
    return true;
  }
  /// Offsets up to 3 name one of the last three, which move up.
  u64 take_offset(u64 offset, bool no_literals) {
    u64 value = offset - 3;
    u32 moved = 2;
    if (offset <= 3) {
      const u64 index = offset - 1 + (no_literals ? 1 : 0);
      value = index == 3 ? recent_[0] - 1 : recent_[index];
      moved = index < 2 ? static_cast<u32>(index) : 2;
    }
    for (; moved != 0; --moved) recent_[moved] = recent_[moved - 1];
    recent_[0] = value;
    return value;
  }

  u8* const out_;
  const size_t size_;
  size_t at_ = 0;
  Huffman huffman_;
  Fse codes_[3];  // literal lengths, offsets, match lengths
  u64 recent_[3] = {1, 4, 8};
  u8 literals_[kBlock];
  const u8* next_literal_ = literals_;
  size_t literals_left_ = 0;
};

}  // namespace

bool unzstd(Input in, u8* out, size_t size) { return FrameDecoder(out, size).frame(in); }

}  // namespace ckemu
