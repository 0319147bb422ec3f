// SPDX-License-Identifier: MIT
#include "decode/metadata.h"

#include "decode/msgpack.h"

namespace ckemu {

namespace {

constexpr u32 kNoteAmdgpuMetadata = 32;

struct Field {
  std::string_view key;
  u32 Kernel::* member;
};
constexpr Field kFields[] = {
    {".max_flat_workgroup_size", &Kernel::max_threads},
    {".sgpr_count", &Kernel::sgprs},
    {".vgpr_count", &Kernel::vgprs},
    {".agpr_count", &Kernel::agprs},
    {".sgpr_spill_count", &Kernel::sgpr_spills},
    {".vgpr_spill_count", &Kernel::vgpr_spills},
};

KernelArgument read_argument(MsgPack& cursor) {
  KernelArgument argument;
  for (u32 left = cursor.map(); left != 0 && cursor.ok(); --left) {
    const std::string_view key = cursor.string();
    if (key == ".offset") {
      argument.offset = static_cast<u32>(cursor.integer());
    } else if (key == ".size") {
      argument.size = static_cast<u32>(cursor.integer());
    } else if (key == ".value_kind") {
      argument.kind = std::string(cursor.string());
    } else {
      cursor.skip();
    }
  }
  return argument;
}

Kernel read_kernel(MsgPack& cursor) {
  Kernel kernel;
  for (u32 left = cursor.map(); left != 0 && cursor.ok(); --left) {
    const std::string_view key = cursor.string();
    const Field* field = nullptr;
    for (const Field& candidate : kFields) {
      if (candidate.key == key) field = &candidate;
    }
    if (field != nullptr) {
      kernel.*field->member = static_cast<u32>(cursor.integer());
    } else if (key == ".symbol") {
      std::string_view symbol = cursor.string();  // "name.kd"
      if (symbol.size() > 3) kernel.name = std::string(symbol.substr(0, symbol.size() - 3));
    } else if (key == ".uses_dynamic_stack") {
      kernel.dynamic_stack = cursor.integer() != 0;
    } else if (key == ".args") {
      for (u32 count = cursor.array(); count != 0 && cursor.ok(); --count) {
        kernel.arguments.push_back(read_argument(cursor));
      }
    } else {
      cursor.skip();
    }
  }
  return kernel;
}

bool read_document(MsgPack cursor, std::map<std::string, Kernel>& kernels) {
  for (u32 left = cursor.map(); left != 0 && cursor.ok(); --left) {
    if (cursor.string() != "amdhsa.kernels") {
      cursor.skip();
      continue;
    }
    for (u32 count = cursor.array(); count != 0 && cursor.ok(); --count) {
      Kernel kernel = read_kernel(cursor);
      const std::string name = kernel.name;
      if (cursor.ok()) kernels[name] = static_cast<Kernel&&>(kernel);
    }
  }
  return cursor.ok();
}

}  // namespace

bool read_kernel_metadata(const u8* data, u64 size, std::map<std::string, Kernel>& kernels, Message& error) {
  const auto padded = [](u32 length) { return (u64{length} + 3) / 4 * 4; };
  for (u64 at = 0; at + 12 <= size;) {
    const u32 name_size = load_as<u32>(data + at), body_size = load_as<u32>(data + at + 4);
    const u32 type = load_as<u32>(data + at + 8);
    const u64 body = at + 12 + padded(name_size);
    if (body > size || body_size > size - body) break;
    if (type == kNoteAmdgpuMetadata) {
      if (read_document(MsgPack(data + body, body_size), kernels)) return true;
      error.add("the code object's metadata is not valid MessagePack");
      return false;
    }
    at = body + padded(body_size);
  }
  error.add("the code object has no AMDGPU metadata");
  return false;
}

}  // namespace ckemu
