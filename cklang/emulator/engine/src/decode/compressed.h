// SPDX-License-Identifier: MIT
//
// Compressed offload bundles, as clang's offload bundler writes them.
#pragma once

#include "core/base.h"

namespace ckemu {

/// Memory that is taken from the system only as it is written.
class Unpacked {
 public:
  Unpacked() = default;
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  ~Unpacked();
  bool reserve(size_t size);
  u8* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  u8* data_ = nullptr;
  size_t size_ = 0;
};

/// The longest header; what is shorter is no bundle.
constexpr size_t kCompressedHeader = 32;

bool is_compressed(const u8* bytes, size_t size);

/// Unpacks a compressed bundle of at most `size` readable bytes; false, and why, if that fails.
bool decompress(const u8* bytes, size_t size, Unpacked& out, Message& error);

}  // namespace ckemu
