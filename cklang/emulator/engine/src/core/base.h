// SPDX-License-Identifier: MIT
//
// Short names of fixed-width types, bit reinterpretation, and bounded text: the vocabulary of every
// other file. The library is built without exceptions, RTTI and a C++ runtime (see
// core/freestanding.cpp), so text is built in fixed buffers.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace ckemu {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

constexpr int kLanes = 64;

template <class To, class From>
inline To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

template <class T>
inline T load_as(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Bytes of memory, from `begin` to before `end`.
struct AddressRange {
  u64 begin, end;
};

/// Text of bounded length; what does not fit is cut, never overrun.
template <size_t Capacity>
class Text {
 public:
  Text() { text_[0] = '\0'; }
  Text(const Text& other) { *this = other; }
  Text& operator=(const Text& other) {  // most are empty
    length_ = other.length_;
    std::memmove(text_, other.text_, length_ + 1);
    return *this;
  }
  Text& add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list arguments;
    va_start(arguments, format);
    add_list(format, arguments);
    va_end(arguments);
    return *this;
  }
  Text& add_list(const char* format, va_list arguments) {
    if (length_ + 1 >= Capacity) return *this;
    const int wrote = std::vsnprintf(text_ + length_, Capacity - length_, format, arguments);
    if (wrote > 0) {
      const size_t end = length_ + static_cast<size_t>(wrote);
      length_ = end < Capacity ? end : Capacity - 1;
    }
    return *this;
  }
  void clear() { text_[length_ = 0] = '\0'; }
  bool empty() const { return length_ == 0; }
  const char* c_str() const { return text_; }

 private:
  char text_[Capacity];
  size_t length_ = 0;
};

using Message = Text<2048>;

}  // namespace ckemu
