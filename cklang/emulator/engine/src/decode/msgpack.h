// SPDX-License-Identifier: MIT
//
// A cursor over MessagePack bytes: just what AMDGPU code-object metadata uses (maps, arrays,
// strings, integers, booleans). Every read is checked against the end of the buffer.
#pragma once

#include <string_view>

#include "core/base.h"

namespace ckemu {

class MsgPack {
 public:
  MsgPack(const u8* begin, size_t size) : at_(begin), end_(begin + size) {}

  bool ok() const { return ok_; }
  /// The number of entries of the map (array) here; 0 and !ok() if there is none.
  u32 map();
  u32 array();
  std::string_view string();
  u64 integer();
  /// Passes over one value of any kind.
  void skip();

 private:
  u8 peek() const { return at_ < end_ ? *at_ : u8{0xc1}; }
  u64 big_endian(int bytes);
  std::string_view bytes(u64 count);
  u32 container(u8 fix_base, u8 fix_mask, u8 wide16);

  const u8* at_;
  const u8* end_;
  bool ok_ = true;
  int depth_ = 0;
};

}  // namespace ckemu
