// SPDX-License-Identifier: MIT
#include "decode/compressed.h"

#include <sys/mman.h>

#include "core/fault.h"
#include "decode/decompress.h"

namespace ckemu {

namespace {

constexpr char kMagic[] = "CCOB";
constexpr u64 kMostBytes = u64{1} << 32;
enum Method : u32 { kZlib = 0, kZstd = 1 };

/// What stands before the compressed bytes: after the magic word the version and the method, 16 bits
/// each, the file's size from version 2 on, the size of what is packed, and a hash of 64 bits.
struct Header {
  u32 version = 0, method = 0;
  u64 file = 0, unpacked = 0;  // bytes; file 0: not known
  u32 bytes = 0;               // of the header itself
};
bool read_header(const u8* at, size_t size, Header& header) {
  if (size < kCompressedHeader) return false;
  header.version = load_as<u16>(at + 4);
  header.method = load_as<u16>(at + 6);
  switch (header.version) {
    case 1:
      header.unpacked = load_as<u32>(at + 8);
      header.bytes = 20;
      return true;
    case 2:
      header.file = load_as<u32>(at + 8);
      header.unpacked = load_as<u32>(at + 12);
      header.bytes = 24;
      return header.file >= header.bytes;
    case 3:
      header.file = load_as<u64>(at + 8);
      header.unpacked = load_as<u64>(at + 16);
      header.bytes = 32;
      return header.file >= header.bytes;
    default: return false;
  }
}

struct Work {
  Input in;
  u32 method;
  u8* out;
  size_t size;
  bool done = false;
};
void unpack(void* context) {
  Work& work = *static_cast<Work*>(context);
  work.done = work.method == kZlib ? inflate(work.in, work.out, work.size) : unzstd(work.in, work.out, work.size);
}

}  // namespace

Unpacked::~Unpacked() {
  if (data_ != nullptr) munmap(data_, size_);
}

bool Unpacked::reserve(size_t size) {
  if (size == 0) return false;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  data_ = static_cast<u8*>(memory);
  size_ = size;
  return true;
}

bool is_compressed(const u8* bytes, size_t size) {
  return size >= sizeof kMagic - 1 && std::memcmp(bytes, kMagic, sizeof kMagic - 1) == 0;
}

bool decompress(const u8* bytes, size_t size, Unpacked& out, Message& error) {
  Header header;
  if (!read_header(bytes, size, header)) {
    error.add("a compressed offload bundle of version %u; versions 1 to 3 are known", header.version);
    return false;
  }
  if (header.method > kZstd) {
    error.add("an offload bundle compressed by method %u; 0 (zlib) and 1 (zstd) are known", header.method);
    return false;
  }
  if (header.unpacked > kMostBytes || (header.file != 0 && header.file > size)) {
    error.add("truncated file: a compressed offload bundle of %llu bytes in %zu",
              static_cast<unsigned long long>(header.file), size);
    return false;
  }
  if (!out.reserve(header.unpacked)) {
    error.add("no memory for the %llu bytes of a compressed offload bundle",
              static_cast<unsigned long long>(header.unpacked));
    return false;
  }
  const u64 packed = (header.file != 0 ? header.file : size) - header.bytes;
  Work work{{bytes + header.bytes, packed}, header.method, out.data(), out.size()};
  if (survives(unpack, &work) && work.done) return true;
  error.add("a damaged offload bundle: its %s data cannot be decompressed", header.method == kZlib ? "zlib" : "zstd");
  return false;
}

}  // namespace ckemu
