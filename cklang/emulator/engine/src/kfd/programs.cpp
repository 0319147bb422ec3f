// SPDX-License-Identifier: MIT
//
// Kernels that AMD's runtime has put into memory, found by the descriptors that packets name.
#include <map>

#include "core/immortal.h"
#include "decode/decode.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

struct Known {
  Ref<Program> program;
  u64 contents = 0;  // a number for the bytes of its code
  u64 checked = 0;   // when they were compared
};
struct Programs {
  Mutex lock;
  std::map<u64, Known> all;  // by descriptor
  u64 doubts = 1;
};
Programs& programs() { return immortal<Programs>(); }

u64 contents_of(const CodeObject& object) {
  u64 hash = 0;
  for (u64 at = 0; at + 8 <= object.image_size(); at += 8)
    hash = (hash ^ load_as<u64>(object.image() + at)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

Ref<Program> load(Device& gpu, u64 descriptor, Message& problem) {
  Buffer buffer;
  if (!find_buffer(descriptor, buffer)) {
    problem.add("no memory of the GPU holds a kernel at 0x%llx", static_cast<unsigned long long>(descriptor));
    return {};
  }
  Ref<CodeObject> object = Ref<CodeObject>::make();
  Text<32> name;
  name.add("0x%llx", static_cast<unsigned long long>(descriptor));
  u8* const image = reinterpret_cast<u8*>(buffer.address);
  const auto status =
      object->view(image, buffer.size, descriptor - buffer.address, name.c_str(), gpu.spec->arch, problem);
  if (status != CodeObject::Status::Ok) return {};
  Family family = Family::Cdna3;
  family_of(gpu.spec->arch, family);
  return Ref<Program>::make(object, *object->kernel(name.c_str()), family);
}

}  // namespace

Ref<Program> program_at(Device& gpu, u64 descriptor, Message& problem) {
  Programs& table = programs();
  const Guard guard(table.lock);
  Known& known = table.all[descriptor];
  if (known.program && known.checked != table.doubts && contents_of(known.program->object()) != known.contents)
    known.program = {};
  if (!known.program) {
    known.program = load(gpu, descriptor, problem);
    if (known.program) known.contents = contents_of(known.program->object());
  }
  known.checked = table.doubts;
  return known.program;
}

void doubt_programs() {
  const Guard guard(programs().lock);
  ++programs().doubts;
}

}  // namespace ckemu::kfd
