// SPDX-License-Identifier: MIT
//
// An AMD code object in memory: its segments at their final address, symbols, kernels with their
// descriptors and metadata, and the line table. Loading checks every offset against the file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base.h"
#include "decode/isa.h"

namespace ckemu {

/// A value that the run time adds behind a kernel's own arguments, or an argument of the source.
struct KernelArgument {
  u32 offset = 0;
  u32 size = 0;
  std::string kind;  // the metadata's .value_kind
};

/// A kernel as its descriptor and its metadata describe it.
struct Kernel {
  std::string name;
  u64 entry = 0;  // offset of the first instruction in the image
  u32 code_size = 0;
  u32 lds_bytes = 0;
  u32 private_bytes = 0;  // scratch per lane
  u32 kernarg_bytes = 0;
  u32 max_threads = 1024;
  u32 wave_size = 64;  // lanes of a wave; on RDNA the kernel chooses
  u32 sgprs = 0, vgprs = 0, agprs = 0;
  u32 sgpr_spills = 0, vgpr_spills = 0;
  bool dynamic_stack = false;
  u32 register_rows = 0;  // vector registers allocated, AGPRs included
  u32 accum_offset = 0;   // row of the first AGPR
  u32 user_sgprs = 0;
  u32 mode = 0;        // initial MODE register
  u32 properties = 0;  // kernel_code_properties
  u32 preload_dwords = 0, preload_offset = 0;
  bool group_id[3] = {};
  bool group_info = false;
  bool private_segment = false;
  u32 item_id_dims = 0;  // 0: x, 1: x y, 2: x y z
  std::vector<KernelArgument> arguments;
};

struct Symbol {
  u64 offset = 0;  // in the image
  u64 size = 0;
  bool function = false;
};

/// The GPUs that an offload bundle has code for, as `gfx942`; empty if it is none or damaged.
std::vector<std::string> archs_of_bundle(const void* bytes);

class CodeObject {
 public:
  CodeObject() = default;
  CodeObject(const CodeObject&) = delete;
  CodeObject& operator=(const CodeObject&) = delete;
  ~CodeObject();

  /// What became of loading.
  enum class Status { Ok, Malformed, WrongArch, NoMemory };

  /// Reads an ELF file, or an offload bundle that holds one, for `arch`.
  /// @param size bytes readable, or 0 if unknown (then the file's own tables are believed).
  Status load(const void* bytes, size_t size, const char* arch, Message& error);

  /// As `load`, of a file whose segments another loader has put at `image` and relocated. They stay its own.
  Status load_at(u8* image, const void* bytes, size_t size, const char* arch, Message& error);

  /// Takes code of which no file is known: `size` bytes from `image` on, with the descriptor of a kernel that is called
  /// `name` at `descriptor`.
  Status view(u8* image, u64 size, u64 descriptor, const char* name, const char* arch, Message& error);

  const Kernel* kernel(const char* name) const;
  const std::map<std::string, Kernel>& kernels() const { return kernels_; }
  const std::map<std::string, Symbol>& symbols() const { return symbols_; }
  u8* image() const { return image_; }
  u64 image_size() const { return image_size_; }
  u64 text_begin() const { return text_begin_; }
  u64 text_end() const { return text_end_; }
  /// The raw .debug_line contents and strings (empty without a line table).
  struct Section {
    const u8* data = nullptr;
    u64 size = 0;
  };
  Section section(const char* name) const;

 private:
  Status load_elf(Message& error, const char* arch);
  bool map_segments(Message& error);
  bool read_symbols(Message& error);
  bool relocate(Message& error);
  bool read_metadata(Message& error);
  bool read_descriptor(Kernel& kernel, u64 offset, Message& error);

  std::vector<u8> file_;
  u8* image_ = nullptr;
  bool borrowed_ = false;  // the image is another loader's
  u64 image_size_ = 0;
  u64 text_begin_ = 0, text_end_ = 0;
  Family family_ = Family::Cdna3;
  std::map<std::string, Kernel> kernels_;
  std::map<std::string, Symbol> symbols_;
};

}  // namespace ckemu
