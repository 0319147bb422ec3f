// SPDX-License-Identifier: MIT
//
// Records as bytes, which `Reader` of `emulator/engine/recording.py` reads.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/appended.h"
#include "core/base.h"

namespace ckemu {

/// Bytes one after the other, as the machine has them. Texts and arrays end at a multiple of 8.
class Packer {
 public:
  void number(u64 value) { raw(&value, sizeof value); }
  void text(const std::string& value) {
    number(value.size());
    raw(value.data(), value.size());
    pad();
  }
  template <class T>
  void array(const std::vector<T>& values) {
    number(values.size());
    raw(values.data(), values.size() * sizeof(T));
    pad();
  }
  template <class T>
  void array(const Appended<T>& values) {
    number(values.size());
    values.each_piece([this](const T* first, size_t count) { raw(first, count * sizeof(T)); });
    pad();
  }
  /// Room for a number that is not known yet; `set` writes it.
  size_t skipped() {
    number(0);
    return bytes.size() - sizeof(u64);
  }
  void set(size_t at, u64 value) { std::memcpy(bytes.data() + at, &value, sizeof value); }
  void raw(const void* data, size_t size) {
    const u8* from = static_cast<const u8*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  void pad() { bytes.resize((bytes.size() + 7) / 8 * 8); }
  std::vector<u8> bytes;
};

}  // namespace ckemu
