// SPDX-License-Identifier: MIT
#include "decode/lines.h"

#include <vector>

namespace ckemu {

namespace {

enum Form : u64 {
  kString = 0x08,
  kUdata = 0x0f,
  kLineStrp = 0x1f,
  kData16 = 0x1e,
  kData1 = 0x0b,
  kData2 = 0x05,
  kData4 = 0x06
};
enum ContentType : u64 { kPath = 1, kFolder = 2 };
enum Standard : u8 {
  kCopy = 1,
  kAdvancePc,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegate,
  kBasicBlock,
  kConstAddPc,
  kFixedAdvance
};
enum Extended : u8 { kEndSequence = 1, kSetAddress = 2 };

/// A reader of DWARF's integers that never passes its end.
class Reader {
 public:
  Reader(const u8* begin, const u8* end) : at_(begin), end_(end) {}
  bool more() const { return at_ < end_; }
  const u8* at() const { return at_; }
  void jump(const u8* to) { at_ = to <= end_ ? to : end_; }
  template <class T>
  T get() {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) {
      at_ = end_;
      return T{};
    }
    const T value = load_as<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  u64 uleb() {
    u64 value = 0;
    for (int shift = 0; more(); shift += 7) {
      const u8 byte = get<u8>();
      if (shift < 64) value |= u64{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  i64 sleb() {
    u64 value = 0;
    int shift = 0;
    u8 byte = 0x80;
    while (more() && (byte & 0x80) != 0) {
      byte = get<u8>();
      if (shift < 64) value |= u64{byte & 0x7fu} << shift;
      shift += 7;
    }
    if (shift < 64 && (byte & 0x40) != 0) value |= ~u64{0} << shift;
    return static_cast<i64>(value);
  }
  const char* string() {
    const char* text = reinterpret_cast<const char*>(at_);
    const void* zero = std::memchr(at_, 0, static_cast<size_t>(end_ - at_));
    if (zero == nullptr) {
      at_ = end_;
      return "";
    }
    at_ = static_cast<const u8*>(zero) + 1;
    return text;
  }

 private:
  const u8* at_;
  const u8* end_;
};

/// A path of a header's tables, and the number of its folder.
struct Name {
  const char* path = "";
  u64 folder = 0;
};

struct LineTable {
  CodeObject::Section strings;
  const std::function<bool(const LineRow&)>& visit;

  const char* string_at(u64 offset) const {
    if (offset >= strings.size || std::memchr(strings.data + offset, 0, strings.size - offset) == nullptr) return "";
    return reinterpret_cast<const char*>(strings.data) + offset;
  }
  /// One directory or file table of a version 5 header.
  bool names(Reader& in, std::vector<Name>& entries) const {
    struct Column {
      u64 content, form;
    };
    std::vector<Column> columns(in.get<u8>());
    for (Column& column : columns) column = {in.uleb(), in.uleb()};
    for (u64 left = in.uleb(); left != 0 && in.more(); --left) {
      Name entry;
      for (const Column& column : columns) {
        const char* text = "";
        u64 number = 0;
        switch (column.form) {
          case kString: text = in.string(); break;
          case kLineStrp: text = string_at(in.get<u32>()); break;
          case kUdata: number = in.uleb(); break;
          case kData1: number = in.get<u8>(); break;
          case kData2: number = in.get<u16>(); break;
          case kData4: number = in.get<u32>(); break;
          case kData16: in.jump(in.at() + 16); break;
          default: return false;
        }
        if (column.content == kPath) entry.path = text;
        if (column.content == kFolder) entry.folder = number;
      }
      entries.push_back(entry);
    }
    return true;
  }
  /// The file table of the versions before 5, whose first file is number 1.
  static void old_names(Reader& in, std::vector<Name>& folders, std::vector<Name>& files) {
    folders.push_back({});
    while (in.more()) {
      const char* path = in.string();
      if (*path == '\0') break;
      folders.push_back({path, 0});
    }
    files.push_back({});
    while (in.more()) {
      const char* path = in.string();
      if (*path == '\0') return;
      files.push_back({path, in.uleb()});
      for (int n = 0; n < 2; ++n) in.uleb();  // time, size
    }
  }
  bool unit(Reader in) const;
};

constexpr u16 kOldestVersion = 2, kOperationsVersion = 4, kNewestVersion = 5;

struct Registers {
  u64 address = 0, file = 1;
  i64 line = 1;
};

/// Runs one unit's line program; true once a visit is.
bool LineTable::unit(Reader in) const {
  const u16 version = in.get<u16>();
  if (version < kOldestVersion || version > kNewestVersion) return false;
  if (version == kNewestVersion) in.get<u16>();  // sizes of addresses and segments
  const u32 header = in.get<u32>();
  const u8* program = in.at() + header;
  const u8 unit_size = in.get<u8>();
  if (version >= kOperationsVersion) in.get<u8>();  // operations per instruction: no VLIW
  in.get<u8>();
  const i8 line_base = in.get<i8>();
  const u8 line_range = in.get<u8>(), opcode_base = in.get<u8>();
  std::vector<u8> lengths(opcode_base > 0 ? opcode_base - 1 : 0);
  for (u8& length : lengths) length = in.get<u8>();
  std::vector<Name> folders, files;
  if (line_range == 0) return false;
  if (version < kNewestVersion) {
    old_names(in, folders, files);
  } else if (!names(in, folders) || !names(in, files)) {
    return false;
  }
  in.jump(program);
  Registers now, before;
  bool open = false;
  const auto row = [&] {
    bool ends = false;
    if (open && before.file < files.size() && before.address < now.address) {
      const Name& file = files[before.file];
      const char* folder = file.folder < folders.size() ? folders[file.folder].path : "";
      const char* root = folders.empty() ? "" : folders.front().path;
      ends = visit(LineRow{before.address, now.address, root, folder, file.path, static_cast<u32>(before.line)});
    }
    before = now;
    open = true;
    return ends;
  };
  while (in.more()) {
    const u8 opcode = in.get<u8>();
    if (opcode >= opcode_base) {
      const u8 adjusted = static_cast<u8>(opcode - opcode_base);
      now.address += u64{unit_size} * (adjusted / line_range);
      now.line += line_base + adjusted % line_range;
      if (row()) return true;
      continue;
    }
    switch (opcode) {
      case 0: {
        const u64 length = in.uleb();
        const u8* end = in.at() + length;
        const u8 extended = in.get<u8>();
        if (extended == kSetAddress) now.address = in.get<u64>();
        if (extended == kEndSequence) {
          if (row()) return true;
          now = Registers{};
          open = false;
        }
        in.jump(end);
        break;
      }
      case kCopy:
        if (row()) return true;
        break;
      case kAdvancePc: now.address += unit_size * in.uleb(); break;
      case kAdvanceLine: now.line += in.sleb(); break;
      case kSetFile: now.file = in.uleb(); break;
      case kConstAddPc: now.address += u64{unit_size} * ((255u - opcode_base) / line_range); break;
      case kFixedAdvance: now.address += in.get<u16>(); break;
      default:
        for (u8 left = lengths[opcode - 1]; left != 0; --left) in.uleb();
        break;
    }
  }
  return false;
}

}  // namespace

std::string path_of(const LineRow& row) {
  std::string path = row.file;
  for (const char* folder : {row.folder, row.root}) {
    if (path[0] != '/' && folder[0] != '\0') path = std::string(folder) + "/" + path;
  }
  return path;
}

bool each_line(const CodeObject& object, const std::function<bool(const LineRow&)>& visit) {
  const CodeObject::Section table = object.section(".debug_line");
  const LineTable lines{object.section(".debug_line_str"), visit};
  Reader units(table.data, table.data + table.size);
  while (units.more()) {
    const u32 length = units.get<u32>();
    const u8* begin = units.at();
    if (length == 0xffffffff || length > static_cast<u64>(table.data + table.size - begin)) return false;
    if (lines.unit(Reader(begin, begin + length))) return true;
    units.jump(begin + length);
  }
  return false;
}

bool find_line(const CodeObject& object, u64 pc, SourceLine& found) {
  return each_line(object, [&](const LineRow& row) {
    if (pc < row.begin || pc >= row.end) return false;
    found.file = row.file;
    found.line = row.line;
    return true;
  });
}

}  // namespace ckemu

extern "C" int ckemu_lines(const char* arch, const void* object, size_t bytes,
                           void (*emit)(void* context, uint64_t begin, uint64_t end, const char* file, uint32_t line),
                           void* context) {
  using namespace ckemu;
  CodeObject code;
  Message error;
  if (code.load(object, bytes, arch, error) != CodeObject::Status::Ok) return -1;
  const u64 base = code.text_begin(), end = code.text_end();
  each_line(code, [&](const LineRow& row) {
    if (row.begin < base || row.end > end || row.line == 0) return false;
    emit(context, row.begin - base, row.end - base, path_of(row).c_str(), row.line);
    return false;
  });
  return 0;
}
