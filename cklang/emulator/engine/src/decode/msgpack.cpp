// SPDX-License-Identifier: MIT
#include "decode/msgpack.h"

namespace ckemu {

namespace {
constexpr int kMaxDepth = 32;
}

u64 MsgPack::big_endian(int count) {
  if (end_ - at_ < count) {
    ok_ = false;
    at_ = end_;
    return 0;
  }
  u64 value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | *at_++;
  return value;
}

std::string_view MsgPack::bytes(u64 count) {
  if (static_cast<u64>(end_ - at_) < count) {
    ok_ = false;
    at_ = end_;
    return {};
  }
  const std::string_view found(reinterpret_cast<const char*>(at_), count);
  at_ += count;
  return found;
}

u32 MsgPack::container(u8 fix_base, u8 fix_mask, u8 wide16) {
  const u8 tag = static_cast<u8>(big_endian(1));
  if ((tag & fix_mask) == fix_base) return tag & static_cast<u8>(~fix_mask);
  if (tag == wide16) return static_cast<u32>(big_endian(2));
  if (tag == wide16 + 1) return static_cast<u32>(big_endian(4));
  ok_ = false;
  return 0;
}

u32 MsgPack::map() { return container(0x80, 0xf0, 0xde); }
u32 MsgPack::array() { return container(0x90, 0xf0, 0xdc); }

std::string_view MsgPack::string() {
  const u8 tag = static_cast<u8>(big_endian(1));
  if ((tag & 0xe0) == 0xa0) return bytes(tag & 0x1f);
  if (tag >= 0xd9 && tag <= 0xdb) return bytes(big_endian(1 << (tag - 0xd9)));
  ok_ = false;
  return {};
}

u64 MsgPack::integer() {
  const u8 tag = static_cast<u8>(big_endian(1));
  if (tag < 0x80) return tag;
  if (tag >= 0xe0) return static_cast<u64>(static_cast<i64>(static_cast<i8>(tag)));
  if (tag == 0xc2 || tag == 0xc3) return tag - 0xc2;  // false, true
  if (tag >= 0xcc && tag <= 0xcf) return big_endian(1 << (tag - 0xcc));
  if (tag >= 0xd0 && tag <= 0xd3) {
    const int width = 1 << (tag - 0xd0);
    const int shift = 64 - 8 * width;
    return static_cast<u64>(static_cast<i64>(big_endian(width) << shift) >> shift);
  }
  ok_ = false;
  return 0;
}

void MsgPack::skip() {
  if (!ok_ || ++depth_ > kMaxDepth) {
    ok_ = false;
    return;
  }
  const u8 tag = peek();
  if ((tag & 0xf0) == 0x80 || tag == 0xde || tag == 0xdf) {
    for (u64 left = u64{2} * map(); left != 0 && ok_; --left) skip();
  } else if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) {
    for (u64 left = array(); left != 0 && ok_; --left) skip();
  } else if ((tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb)) {
    string();
  } else if (tag == 0xc0) {  // nil
    big_endian(1);
  } else if (tag == 0xca || tag == 0xcb) {  // float
    big_endian(1);
    bytes(tag == 0xca ? 4 : 8);
  } else if (tag >= 0xc4 && tag <= 0xc6) {  // binary
    big_endian(1);
    bytes(big_endian(1 << (tag - 0xc4)));
  } else {
    integer();
  }
  --depth_;
}

}  // namespace ckemu
