// SPDX-License-Identifier: MIT
#include "decode/code_object.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/fault.h"
#include "decode/compressed.h"
#include "decode/decode.h"
#include "decode/metadata.h"

namespace ckemu {

namespace {

constexpr u16 kMachineAmdgpu = 224;
constexpr u64 kMaxImage = u64{1} << 32;
constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr size_t kBundleMagicSize = sizeof kBundleMagic - 1;

/// Target features in the file's flags that no emulated device has, by their two bits.
struct Feature {
  u32 mask, refused;
  const char* name;
};
constexpr Feature kFeatures[] = {{0x300, 0x300, "xnack+"}, {0xc00, 0x800, "sramecc-"}};

constexpr u64 kMostArguments = 1 << 20;  // bytes

constexpr u32 kWave32 = 1 << 10;  // of the kernel_code_properties

enum Relocation : u32 { kAbs64 = 3, kRel64 = 5, kAbs32 = 6, kRelative64 = 13 };

bool inside(u64 offset, u64 size, u64 total) { return offset <= total && size <= total - offset; }

/// Calls `visit(arch, code)` for each code object of an offload bundle that an emulated GPU may run, until it
/// returns true.
template <class Visit>
void each_in_bundle(const u8* bytes, size_t size, Visit visit) {
  const u64 count = load_as<u64>(bytes + kBundleMagicSize);
  size_t at = kBundleMagicSize + 8;
  for (u64 i = 0; i < count && inside(at, 24, size); ++i) {
    const u64 offset = load_as<u64>(bytes + at), length = load_as<u64>(bytes + at + 8);
    const u64 name_length = load_as<u64>(bytes + at + 16);
    at += 24;
    if (!inside(at, name_length, size) || !inside(offset, length, size)) return;
    std::string_view name(reinterpret_cast<const char*>(bytes + at), name_length);
    at += name_length;
    const bool usable = std::none_of(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& feature) {
      return name.find(feature.name) != std::string_view::npos;
    });
    if (!usable || name.substr(0, 4) == "host") continue;
    name = name.substr(0, name.find(':'));
    const size_t start = name.rfind('-') + 1;  // 0 if there is none
    if (visit(name.substr(start), std::string_view(reinterpret_cast<const char*>(bytes + offset), length))) return;
  }
}

/// The code object for `arch` in an offload bundle; size 0 if it holds none.
std::string_view from_bundle(const u8* bytes, size_t size, const char* arch) {
  std::string_view found;
  each_in_bundle(bytes, size, [&](std::string_view name, std::string_view code) {
    if (name != arch) return false;
    found = code;
    return true;
  });
  return found;
}

bool is_bundle(const u8* bytes, size_t size) {
  return size >= kBundleMagicSize + 8 && std::memcmp(bytes, kBundleMagic, kBundleMagicSize) == 0;
}

/// The names in a bundle that is not compressed, which may end anywhere.
struct Listing {
  const u8* data;
  size_t size;
  char names[16][32];  // plain memory: reading may be left in the middle
  size_t count = 0;
};
void list(void* context) {
  Listing& listing = *static_cast<Listing*>(context);
  if (!is_bundle(listing.data, listing.size)) return;
  each_in_bundle(listing.data, listing.size, [&](std::string_view name, std::string_view) {
    if (name.size() < sizeof listing.names[0]) {
      std::memcpy(listing.names[listing.count], name.data(), name.size());
      listing.names[listing.count++][name.size()] = '\0';
    }
    return listing.count == std::size(listing.names);
  });
}

/// The end of the furthest table or segment that the ELF header leads to.
u64 extent_of(const u8* bytes) {
  const auto header = load_as<Elf64_Ehdr>(bytes);
  u64 end = header.e_shoff + u64{header.e_shnum} * header.e_shentsize;
  for (u32 i = 0; i < header.e_phnum; ++i) {
    const auto segment = load_as<Elf64_Phdr>(bytes + header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_offset + segment.p_filesz > end) end = segment.p_offset + segment.p_filesz;
  }
  return end;
}

/// Finds the code object in what a caller gave: `data` and `size` (0: not known) are changed to it.
struct Search {
  const u8* data;
  size_t size;
  const char* arch;
  bool found = false;
  size_t readable = 0;  // of a compressed bundle: what may be read at most
};
void search(void* context) {
  Search& s = *static_cast<Search*>(context);
  if (s.size == 0) s.size = kMaxImage;
  s.found = false;
  if (s.size >= kCompressedHeader && is_compressed(s.data, s.size)) {
    static_cast<void>(*const_cast<const volatile u8*>(s.data + kCompressedHeader - 1));
    s.readable = s.size;
    return;
  }
  if (is_bundle(s.data, s.size)) {
    const std::string_view member = from_bundle(s.data, s.size, s.arch);
    s.data = reinterpret_cast<const u8*>(member.data());
    s.size = member.size();
    s.found = !member.empty();
  } else {
    s.found = true;
    if (s.size == kMaxImage)
      s.size = std::memcmp(s.data, ELFMAG, SELFMAG) == 0 ? extent_of(s.data) : sizeof(Elf64_Ehdr);
  }
  // Every page is looked at, so that what follows can rely on them.
  if (s.size > kMaxImage) s.size = kMaxImage;
  for (size_t at = 0; s.found && at < s.size; at += 4096)
    static_cast<void>(*const_cast<const volatile u8*>(s.data + at));
  if (s.found && s.size != 0) static_cast<void>(*const_cast<const volatile u8*>(s.data + s.size - 1));
}

bool is_elf(const u8* bytes) { return std::memcmp(bytes, ELFMAG, SELFMAG) == 0; }

}  // namespace

std::vector<std::string> archs_of_bundle(const void* bytes) {
  Search start{static_cast<const u8*>(bytes), 0, ""};
  if (!survives(search, &start)) return {};
  Listing listing{static_cast<const u8*>(bytes), kMaxImage, {}};
  Unpacked unpacked;
  if (start.readable != 0) {
    Message ignored;
    if (!decompress(start.data, start.readable, unpacked, ignored)) return {};
    listing.data = unpacked.data();
    listing.size = unpacked.size();
  }
  if (!survives(list, &listing)) return {};
  return {listing.names, listing.names + listing.count};
}

CodeObject::~CodeObject() {
  if (image_ != nullptr && !borrowed_) munmap(image_, image_size_);
}

CodeObject::Status CodeObject::load_at(u8* image, const void* bytes, size_t size, const char* arch, Message& error) {
  image_ = image;
  borrowed_ = true;
  return load(bytes, size, arch, error);
}

CodeObject::Status CodeObject::view(u8* image, u64 size, u64 descriptor, const char* name, const char* arch,
                                    Message& error) {
  image_ = image;
  borrowed_ = true;
  image_size_ = text_end_ = size;
  family_of(arch, family_);
  kernels_[name].name = name;
  return read_descriptor(kernels_[name], descriptor, error) ? Status::Ok : Status::Malformed;
}

CodeObject::Status CodeObject::load(const void* data, size_t size, const char* arch, Message& error) {
  Search found{static_cast<const u8*>(data), size, arch};
  bool readable = survives(search, &found);
  Unpacked unpacked;
  if (readable && found.readable != 0) {
    if (!decompress(found.data, found.readable, unpacked, error)) return Status::Malformed;
    found = {unpacked.data(), unpacked.size(), arch};
    readable = !is_compressed(found.data, found.size) && survives(search, &found);
  }
  if (!readable) {
    error.add("truncated file: its own tables point beyond the memory it was given in");
    return Status::Malformed;
  }
  if (!found.found) {
    error.add("the offload bundle holds no code object for %s", arch);
    return Status::WrongArch;
  }
  const u8* bytes = found.data;
  size = found.size;
  file_.assign(bytes, bytes + size);
  return load_elf(error, arch);
}

CodeObject::Status CodeObject::load_elf(Message& error, const char* arch) {
  if (file_.size() < sizeof(Elf64_Ehdr) || !is_elf(file_.data())) {
    error.add("not an ELF file (%zu bytes)", file_.size());
    return Status::Malformed;
  }
  const auto header = load_as<Elf64_Ehdr>(file_.data());
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineAmdgpu) {
    error.add("an ELF file, but no AMDGPU code object (machine %u)", header.e_machine);
    return Status::Malformed;
  }
  const char* built_for = gpu_of(header.e_flags & 0xff);
  if (built_for == nullptr || std::strcmp(built_for, arch) != 0) {
    error.add("the code object was built for %s (machine flag 0x%x), the device is %s",
              built_for != nullptr ? built_for : "another GPU", header.e_flags & 0xff, arch);
    return Status::WrongArch;
  }
  for (const Feature& feature : kFeatures) {
    if ((header.e_flags & feature.mask) != feature.refused) continue;
    error.add("the code object was built for %s:%s, which the device is not", arch, feature.name);
    return Status::WrongArch;
  }
  family_of(arch, family_);
  if (!inside(header.e_phoff, u64{header.e_phnum} * sizeof(Elf64_Phdr), file_.size()) ||
      !inside(header.e_shoff, u64{header.e_shnum} * sizeof(Elf64_Shdr), file_.size()) || header.e_phnum == 0 ||
      header.e_shnum == 0) {
    error.add("truncated ELF file: the header tables end after byte %zu", file_.size());
    return Status::Malformed;
  }
  if (!map_segments(error)) return Status::Malformed;
  if (!read_symbols(error) || !relocate(error) || !read_metadata(error)) return Status::Malformed;
  for (auto& [name, kernel] : kernels_) {
    for (const KernelArgument& argument : kernel.arguments) {
      if (u64{argument.offset} + argument.size <= kMostArguments) continue;
      error.add("the arguments of kernel %s reach beyond %llu bytes", name.c_str(),
                static_cast<unsigned long long>(kMostArguments));
      return Status::Malformed;
    }
    const auto descriptor = symbols_.find(name + ".kd");
    if (descriptor == symbols_.end()) {
      error.add("kernel %s has metadata but no descriptor symbol", name.c_str());
      return Status::Malformed;
    }
    if (!read_descriptor(kernel, descriptor->second.offset, error)) return Status::Malformed;
    const auto function = symbols_.find(name);
    if (function != symbols_.end()) kernel.code_size = static_cast<u32>(function->second.size);
  }
  return Status::Ok;
}

bool CodeObject::map_segments(Message& error) {
  const auto header = load_as<Elf64_Ehdr>(file_.data());
  u64 end = 0;
  const auto segment_at = [&](u32 i) {
    return load_as<Elf64_Phdr>(file_.data() + header.e_phoff + i * sizeof(Elf64_Phdr));
  };
  for (u32 i = 0; i < header.e_phnum; ++i) {
    const Elf64_Phdr segment = segment_at(i);
    if (!inside(segment.p_offset, segment.p_filesz, file_.size()) ||
        (segment.p_type == PT_LOAD && segment.p_filesz > segment.p_memsz) ||
        !inside(segment.p_vaddr, segment.p_memsz, kMaxImage)) {
      error.add("truncated ELF file: segment %u lies outside its %zu bytes", i, file_.size());
      return false;
    }
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr + segment.p_memsz > end) end = segment.p_vaddr + segment.p_memsz;
    if ((segment.p_flags & PF_X) != 0) {
      text_begin_ = segment.p_vaddr;
      text_end_ = segment.p_vaddr + segment.p_filesz;
    }
  }
  if (text_end_ == text_begin_) {
    error.add("the code object has no executable segment");
    return false;
  }
  image_size_ = (end + 4095) / 4096 * 4096;
  if (borrowed_) return true;
  void* memory = mmap(nullptr, image_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    error.add("no memory for a code object of %llu bytes", static_cast<unsigned long long>(image_size_));
    return false;
  }
  image_ = static_cast<u8*>(memory);
  for (u32 i = 0; i < header.e_phnum; ++i) {
    const Elf64_Phdr segment = segment_at(i);
    if (segment.p_type != PT_LOAD) continue;
    std::memcpy(image_ + segment.p_vaddr, file_.data() + segment.p_offset, segment.p_filesz);
  }
  return true;
}

CodeObject::Section CodeObject::section(const char* name) const {
  if (file_.empty()) return {};
  const auto header = load_as<Elf64_Ehdr>(file_.data());
  const auto at = [&](u32 i) { return load_as<Elf64_Shdr>(file_.data() + header.e_shoff + i * sizeof(Elf64_Shdr)); };
  if (header.e_shstrndx >= header.e_shnum) return {};
  const Elf64_Shdr names = at(header.e_shstrndx);
  if (!inside(names.sh_offset, names.sh_size, file_.size())) return {};
  const size_t length = std::strlen(name) + 1;
  for (u32 i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = at(i);
    if (section.sh_type == SHT_NOBITS || !inside(section.sh_name, length, names.sh_size) ||
        !inside(section.sh_offset, section.sh_size, file_.size())) {
      continue;
    }
    if (std::memcmp(file_.data() + names.sh_offset + section.sh_name, name, length) == 0) {
      return {file_.data() + section.sh_offset, section.sh_size};
    }
  }
  return {};
}

bool CodeObject::read_symbols(Message& error) {
  const Section table = section(".dynsym"), names = section(".dynstr");
  if (table.data == nullptr || names.data == nullptr) {
    error.add("the code object has no dynamic symbol table");
    return false;
  }
  for (u64 at = 0; at + sizeof(Elf64_Sym) <= table.size; at += sizeof(Elf64_Sym)) {
    const auto symbol = load_as<Elf64_Sym>(table.data + at);
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const char* begin = reinterpret_cast<const char*>(names.data) + symbol.st_name;
    if (symbol.st_name >= names.size || std::memchr(begin, 0, names.size - symbol.st_name) == nullptr ||
        !inside(symbol.st_value, symbol.st_size, image_size_)) {
      error.add("a symbol of the code object lies outside it");
      return false;
    }
    const bool function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    symbols_[begin] = Symbol{symbol.st_value, symbol.st_size, function};
  }
  return true;
}

bool CodeObject::relocate(Message& error) {
  if (borrowed_) return true;
  const Section table = section(".rela.dyn"), dynamic = section(".dynsym");
  for (u64 at = 0; table.data != nullptr && at + sizeof(Elf64_Rela) <= table.size; at += sizeof(Elf64_Rela)) {
    const auto entry = load_as<Elf64_Rela>(table.data + at);
    const u64 index = ELF64_R_SYM(entry.r_info), type = ELF64_R_TYPE(entry.r_info);
    if (!inside(entry.r_offset, 8, image_size_) ||
        !inside(index * sizeof(Elf64_Sym), sizeof(Elf64_Sym), dynamic.size)) {
      error.add("a relocation lies outside the code object");
      return false;
    }
    const auto symbol = load_as<Elf64_Sym>(dynamic.data + index * sizeof(Elf64_Sym));
    if (index != 0 && symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_WEAK) {
      const Section names = section(".dynstr");
      error.add("undefined symbol %s",
                symbol.st_name < names.size ? reinterpret_cast<const char*>(names.data) + symbol.st_name : "?");
      return false;
    }
    const u64 base = reinterpret_cast<u64>(image_);
    const u64 value = (index != 0 ? base + symbol.st_value : base) + entry.r_addend;
    u8* place = image_ + entry.r_offset;
    switch (type) {
      case kAbs64:
      case kRelative64: std::memcpy(place, &value, 8); break;
      case kAbs32: std::memcpy(place, &value, 4); break;
      case kRel64: {
        const u64 relative = value - reinterpret_cast<u64>(place);
        std::memcpy(place, &relative, 8);
        break;
      }
      default: error.add("relocation type %llu is not known", static_cast<unsigned long long>(type)); return false;
    }
  }
  return true;
}

bool CodeObject::read_metadata(Message& error) {
  const Section note = section(".note");
  if (note.data == nullptr) {
    error.add("the code object has no metadata note");
    return false;
  }
  return read_kernel_metadata(note.data, note.size, kernels_, error);
}

bool CodeObject::read_descriptor(Kernel& kernel, u64 offset, Message& error) {
  if (!inside(offset, 64, image_size_)) {
    error.add("the descriptor of kernel %s lies outside the code object", kernel.name.c_str());
    return false;
  }
  const u8* descriptor = image_ + offset;
  kernel.lds_bytes = load_as<u32>(descriptor);
  kernel.private_bytes = load_as<u32>(descriptor + 4);
  kernel.kernarg_bytes = load_as<u32>(descriptor + 8);
  kernel.entry = offset + load_as<u64>(descriptor + 16);
  const u32 resource3 = load_as<u32>(descriptor + 44);
  const u32 resource1 = load_as<u32>(descriptor + 48);
  const u32 resource2 = load_as<u32>(descriptor + 52);
  kernel.properties = load_as<u16>(descriptor + 56);
  const u32 preload = load_as<u16>(descriptor + 58);
  kernel.preload_dwords = preload & 0x7f;
  kernel.preload_offset = preload >> 7;
  if (kernel.preload_dwords != 0) kernel.entry += 256;  // past the loads for older firmware
  const bool rdna = is_rdna(family_);
  kernel.wave_size = rdna && (kernel.properties & kWave32) != 0 ? 32 : 64;
  kernel.register_rows = ((resource1 & 0x3f) + 1) * (rdna && kernel.wave_size == 64 ? 4 : 8);
  kernel.accum_offset = rdna ? kernel.register_rows : ((resource3 & 0x3f) + 1) * 4;
  const u32 float_mode = resource1 >> 12 & 0xff;
  const bool dx10_and_ieee = family_ != Family::Rdna4;  // there the bits mean something else
  kernel.mode = float_mode | (resource1 >> 26 & 1) << 23;
  if (dx10_and_ieee) kernel.mode |= (resource1 >> 21 & 1) << 8 | (resource1 >> 23 & 1) << 9;
  kernel.private_segment = (resource2 & 1) != 0;
  kernel.user_sgprs = resource2 >> 1 & 0x1f;
  for (int axis = 0; axis < 3; ++axis) kernel.group_id[axis] = (resource2 >> (7 + axis) & 1) != 0;
  kernel.group_info = (resource2 >> 10 & 1) != 0;
  kernel.item_id_dims = resource2 >> 11 & 3;
  if (kernel.entry < text_begin_ || kernel.entry >= text_end_ || kernel.entry % 4 != 0) {
    error.add("the entry of kernel %s lies outside the code", kernel.name.c_str());
    return false;
  }
  return true;
}

const Kernel* CodeObject::kernel(const char* name) const {
  const auto found = kernels_.find(name);
  return found != kernels_.end() ? &found->second : nullptr;
}

}  // namespace ckemu
