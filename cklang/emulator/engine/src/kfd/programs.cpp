// SPDX-License-Identifier: MIT
//
// Kernels that AMD's runtime has put into memory, found by the descriptors that packets name. The runtime lists the
// files of code objects for debuggers. A kernel of one has its name and lines; others have an address.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <map>

#include "core/fault.h"
#include "core/immortal.h"
#include "decode/decode.h"
#include "hip/memory.h"
#include "kfd/calls.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

struct Object {
  Ref<CodeObject> code;
  u64 contents = 0;                      // a number for its bytes
  u64 checked = 0;                       // the doubt after which they were compared
  std::map<u64, Ref<Program>> programs;  // by descriptor
};
struct Programs {
  Mutex lock;
  std::map<u64, Object> objects;  // by where they begin
  u64 doubts = 1;
};
Programs& programs() { return immortal<Programs>(); }

u64 contents_of(const CodeObject& object) {
  u64 hash = 0;
  for (u64 at = 0; at + 8 <= object.image_size(); at += 8) {
    hash = (hash ^ load_as<u64>(object.image() + at)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  }
  return hash;
}

/// The number behind a word of a URI; 0 if it has none.
u64 number_in(const char* uri, const char* word) {
  const char* found = std::strstr(uri, word);
  return found != nullptr ? std::strtoull(found + std::strlen(word), nullptr, 0) : 0;
}

/// A place in a file, and where it is in memory.
struct Place {
  std::string_view path;
  u64 offset = 0, address = 0;
};

/// Looks for a code object at a place in a file that the process has loaded. The program itself has no name here, and
/// is taken for its loader where that was started with it.
int look(dl_phdr_info* info, size_t, void* context) {
  Place& place = *static_cast<Place*>(context);
  const std::string_view name = info->dlpi_name;
  if (!name.empty() && name != place.path) return 0;
  for (const ElfW(Phdr)* part = info->dlpi_phdr; part != info->dlpi_phdr + info->dlpi_phnum; ++part) {
    if (part->p_type != PT_LOAD || place.offset - part->p_offset >= part->p_filesz) continue;
    const u64 address = info->dlpi_addr + part->p_vaddr + place.offset - part->p_offset;
    if (std::memcmp(reinterpret_cast<const void*>(address), ELFMAG, SELFMAG) == 0) place.address = address;
  }
  return 0;
}

/// Where the bytes of a code object are that a URI names.
u64 place_of(const std::string_view uri, u64 offset) {
  constexpr std::string_view memory = "memory://", file = "file://";
  if (uri.substr(0, memory.size()) == memory) return offset;
  if (uri.substr(0, file.size()) != file) return 0;
  Place place{uri.substr(file.size(), uri.rfind('#') - file.size()), offset, 0};
  dl_iterate_phdr(look, &place);
  return place.address;
}

/// Reads the file of a code object, if it is in memory.
bool read(const LoadedObject& object, const char* arch, CodeObject& code) {
  const void* const bytes = reinterpret_cast<const void*>(place_of(object.name, number_in(object.name, "offset=")));
  if (bytes == nullptr) return false;
  Message ignored;
  return code.load_at(reinterpret_cast<u8*>(object.base), bytes, number_in(object.name, "size="), arch, ignored) ==
         CodeObject::Status::Ok;
}

/// The code object that holds a descriptor and that the runtime lists; none if it does not.
Ref<CodeObject> listed(u64 descriptor, const char* arch) {
  void* const runtime = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto* const loader =
      runtime != nullptr ? static_cast<const Loader*>(dlsym(runtime, "_amdgpu_r_debug")) : nullptr;
  for (const LoadedObject* one = loader != nullptr ? loader->objects : nullptr; one != nullptr; one = one->next) {
    if (descriptor < one->base || descriptor - one->base >= u64{1} << 32) continue;
    Ref<CodeObject> code = Ref<CodeObject>::make();
    if (read(*one, arch, *code) && descriptor - one->base < code->image_size()) return code;
  }
  return {};
}

std::string name_of(u64 descriptor) {
  Text<32> name;
  name.add("0x%llx", static_cast<unsigned long long>(descriptor));
  return name.c_str();
}

Ref<CodeObject> load(u64 descriptor, const char* arch, Message& problem) {
  if (Ref<CodeObject> code = listed(descriptor, arch)) return code;
  Buffer buffer;
  if (!find_buffer(descriptor, buffer)) {
    problem.add("no memory of the GPU holds a kernel at %s", name_of(descriptor).c_str());
    return {};
  }
  Ref<CodeObject> code = Ref<CodeObject>::make();
  const auto status = code->view(reinterpret_cast<u8*>(buffer.address), buffer.size, descriptor - buffer.address,
                                 name_of(descriptor).c_str(), arch, problem);
  return status == CodeObject::Status::Ok ? code : Ref<CodeObject>();
}

/// The kernel with this descriptor; null if the object has none there.
const Kernel* kernel_at(const CodeObject& code, u64 descriptor) {
  const u64 offset = descriptor - reinterpret_cast<u64>(code.image());
  for (const auto& [name, kernel] : code.kernels()) {
    const auto symbol = code.symbols().find(name + ".kd");
    const bool here = symbol != code.symbols().end() ? symbol->second.offset == offset : name == name_of(descriptor);
    if (here) return &kernel;
  }
  return nullptr;
}

/// What is known of the code around a descriptor, if it is still so.
Object* known(u64 descriptor) {
  Programs& table = programs();
  auto after = table.objects.upper_bound(descriptor);
  if (after == table.objects.begin()) return nullptr;
  Object& object = (--after)->second;
  if (descriptor - after->first >= object.code->image_size()) return nullptr;
  const bool doubted = object.checked != table.doubts;
  object.checked = table.doubts;
  if (doubted && contents_of(*object.code) != object.contents) {
    table.objects.erase(after);
    return nullptr;
  }
  return &object;
}

}  // namespace

Ref<Program> program_at(Device& gpu, u64 descriptor, Message& problem) {
  Programs& table = programs();
  const Guard guard(table.lock);
  Object* object = known(descriptor);
  if (object != nullptr) {
    if (const auto found = object->programs.find(descriptor); found != object->programs.end()) return found->second;
  }
  if (object == nullptr || kernel_at(*object->code, descriptor) == nullptr) {
    const Ref<CodeObject> code = load(descriptor, gpu.spec->arch, problem);
    if (!code) return {};
    object = &table.objects[reinterpret_cast<u64>(code->image())];
    *object = {code, contents_of(*code), table.doubts, {}};
  }
  const Kernel* kernel = kernel_at(*object->code, descriptor);
  if (kernel == nullptr) {
    problem.add("a code object has no kernel at %s", name_of(descriptor).c_str());
    return {};
  }
  Family family = Family::Cdna3;
  family_of(gpu.spec->arch, family);
  return object->programs[descriptor] = Ref<Program>::make(object->code, *kernel, family);
}

void doubt_programs() {
  const Guard guard(programs().lock);
  ++programs().doubts;
}

}  // namespace ckemu::kfd
