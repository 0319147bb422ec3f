// SPDX-License-Identifier: MIT
#include "checks/recording.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "checks/global_access.h"
#include "checks/stretch.h"
#include "core/environment.h"
#include "core/immortal.h"
#include "core/launch.h"
#include "core/mutex.h"
#include "core/packer.h"
#include "decode/lines.h"
#include "hip/memory.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr int kSegmentShift = 6;  // 64 bytes
constexpr int kPageShift = 6;     // segments of a page
constexpr u32 kDisabledLane = ~u32{0};

struct Recordings {
  Mutex lock;
  u32 workgroups = environment().profiled;
  bool alone = false;
  std::vector<std::unique_ptr<LaunchRecord>> launches;
  std::vector<std::unique_ptr<RecordedCode>> codes;  // of their kernels, each once
  pid_t process = getpid();
};

Recordings& recordings() { return immortal<Recordings>(); }

CodeObject::Section text_of(const CodeObject& object, u64 base, u64 bytes) { return {object.image() + base, bytes}; }

bool equal(const CodeObject::Section& one, const CodeObject::Section& other) {
  return one.size == other.size &&
         (one.size == 0 || one.data == other.data || std::memcmp(one.data, other.data, one.size) == 0);
}

/// The number of a program's code; it is taken over the first time. Called locked.
u32 number_of_code(std::vector<std::unique_ptr<RecordedCode>>& all, const Program& program) {
  size_t n = 0;
  while (n < all.size() && !all[n]->is_of(program)) ++n;
  if (n == all.size()) all.push_back(std::make_unique<RecordedCode>(program));
  return static_cast<u32>(n);
}

void pack(const WaveRecord& wave, Packer& out) {
  out.number(wave.workgroup);
  out.number(wave.wave);
  out.array(wave.stretches);
  out.array(wave.lanes);
  out.array(wave.begins);
  out.array(wave.slots);
  out.array(wave.local);
  out.array(wave.patterns);
  out.array(wave.memory);
  out.array(wave.segments);
  out.array(wave.shown);
}

/// About as many as a record takes.
size_t bytes_of(const LaunchRecord& launch) {
  size_t bytes = 8 * launch.executed.size() + (4 << 10);
  for (const auto& wave : launch.waves) {
    bytes += 5 * wave->stretches.size() + 4 * (wave->begins.size() + wave->slots.size()) + 24 * wave->shown.size() +
             12 * wave->memory.size() + 8 * wave->segments.size();
    bytes += 8 * wave->local.size() + 4 * wave->patterns.size() + 192;
  }
  return bytes;
}

size_t bytes_of(const RecordedCode& code) {
  size_t bytes = code.bytes + 16 * code.sources.size() + (4 << 10);
  for (const char* name : RecordedCode::kSections) bytes += code.object->section(name).size + 16;
  for (const std::string& file : code.files) bytes += file.size() + 16;
  return bytes;
}

/// Adds the memory that holds some byte of a segment, unless it is among `extents` or none does.
void add_extent(u64 segment, std::vector<ExtentRecord>& extents) {
  const u64 begin = segment << kSegmentShift, last = begin + (u64{1} << kSegmentShift) - 1;
  for (const ExtentRecord& extent : extents) {
    if (last >= extent.begin && begin < extent.end) return;
  }
  ExtentRecord extent;
  for (const u64 address : {begin, last}) {
    if (ground_at(address, 1, extent.begin, extent.end) == Ground::Inside) return extents.push_back(extent);
  }
}

/// When the process ends; a fork of it has nothing of its own to write.
__attribute__((destructor)) void write_records() {
  if (environment().profiled == 0) return;
  const Recordings& all = recordings();
  if (all.process != getpid() || all.launches.empty()) return;
  Text<32> name;
  name.add("/%d.records", static_cast<int>(all.process));
  const std::string path = environment().profile + name.c_str();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const std::vector<u8> bytes = packed_records();
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
    std::fprintf(stderr, "libamdhip64 (emulated): the records of CKLANG_PROFILE cannot be written to %s\n",
                 path.c_str());
  }
  if (file != nullptr) std::fclose(file);
}

}  // namespace

void pack_facts(const LaunchRecord& launch, Packer& out) {
  out.text(launch.kernel);
  out.text(launch.gpu);
  for (const u32 extent : launch.groups) out.number(extent);
  for (const u32 extent : launch.block) out.number(extent);
  for (const u32 fact :
       {launch.lds_bytes, launch.vgprs, launch.sgprs, launch.scratch_bytes, launch.lanes, launch.resident}) {
    out.number(fact);
  }
  out.number(launch.bytes_loaded);
  out.number(launch.bytes_stored);
  out.array(launch.executed);
  out.array(launch.extents);
  out.array(launch.pointers);
}

void pack_code(const RecordedCode& code, Packer& out) {
  const auto section = [&out](const CodeObject::Section& bytes) {
    out.number(bytes.size);
    if (bytes.size != 0) out.raw(bytes.data, bytes.size);
    out.pad();
  };
  const size_t size = out.skipped();
  section(text_of(*code.object, code.base, code.bytes));
  out.number(code.base);
  out.number(code.files.size());
  for (const std::string& file : code.files) out.text(file);
  out.array(code.sources);
  for (const char* name : RecordedCode::kSections) section(code.object->section(name));
  out.set(size, out.bytes.size() - size - sizeof(u64));
}

RecordedCode::RecordedCode(const Program& program)
    : object(program.shared_object()), base(program.base()), bytes(4 * program.dwords()) {
  const u64 end = base + bytes;
  std::map<std::string, u32> numbers;
  each_line(*object, [&](const LineRow& row) {
    if (row.begin < base || row.end > end || row.line == 0) return false;
    const std::string path = path_of(row);
    const auto [number, fresh] = numbers.try_emplace(path, static_cast<u32>(files.size()));
    if (fresh) files.push_back(path);
    sources.push_back(
        {static_cast<u32>((row.begin - base) / 4), static_cast<u32>((row.end - base) / 4), number->second, row.line});
    return false;
  });
}

bool RecordedCode::is_of(const Program& program) const {
  const CodeObject& other = program.object();
  if (base != program.base() || bytes != 4 * program.dwords()) return false;
  if (object.get() == &other) return true;
  if (!equal(text_of(*object, base, bytes), text_of(other, base, bytes))) return false;
  for (const char* name : kSections) {
    if (!equal(object->section(name), other.section(name))) return false;
  }
  return true;
}

WaveRecord::Known& WaveRecord::known(const Stretch& stretch) {
  if (stretch.number >= known_.size()) known_.resize(2 * stretch.number + 16);
  Known& result = known_[stretch.number];
  if (result.number == Known::kNone) [[unlikely]] {
    result.number = static_cast<u32>(begins.size());
    begins.push_back(static_cast<u32>(slots.size()));
    for (u32 n = 0; n < stretch.count; ++n) slots.push_back(stretch.first[n].slot);
  }
  return result;
}

void WaveRecord::before(Wave& w, const Stretch& stretch) {
  Known& of_stretch = known(stretch);
  stretches.push_back(of_stretch.number);
  lanes.push_back(static_cast<u8>(__builtin_popcountll(w.exec())));
  const u32 place = executed_;
  executed_ += stretch.count;
  if (stretch.plain) return;
  const Inst& inst = *stretch.first->inst;
  if (accesses_global(inst)) return note_global(w, *stretch.first, place);
  if (inst.enc == Encoding::DS && !inst.gds && stretch.first->src[0].kind == Kind::Vgpr)
    note_local(w, *stretch.first, of_stretch);
}

void WaveRecord::note_global(Wave& w, const Code& c, u32 place) {
  const size_t first = segments.size();
  u32 bytes = 0;
  const bool show = slots_shown_.insert(c.slot).second;
  const u32 number = static_cast<u32>(memory.size());
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    bytes += piece.bytes;
    if (show && piece.lane >= 0)
      shown.push_back({number, static_cast<u32>(piece.lane), piece.at, piece.bytes, piece.skip});
    for (u64 at = piece.at >> kSegmentShift; at <= (piece.at + piece.bytes - 1) >> kSegmentShift; ++at) {
      if (segments.size() > first && segments.back() == at) continue;
      const auto begin = segments.begin() + static_cast<i64>(first);
      if (std::find(begin, segments.end(), at) == segments.end()) segments.push_back(at);
    }
  });
  if (bytes != 0) memory.push_back({place, bytes, static_cast<u32>(segments.size() - first)});
}

void WaveRecord::note_local(const Wave& w, const Code& c, Known& known) {
  const u64 exec = w.exec();
  const u32* row = w.v[c.src[0].index];
  const u32 offset = static_cast<u32>(c.offset);
  if (known.pattern != Known::kNone && known.enabled == exec) {
    const u32* pattern = &patterns[kLanes * known.pattern];
    const u32 lane = exec == 0 ? 0 : static_cast<u32>(__builtin_ctzll(exec));
    const u32 shift = exec == 0 ? 0 : row[lane] + offset - pattern[lane];
    u32 differs = 0;
    if (exec == ~u64{0}) {
      for (u32 l = 0; l < kLanes; ++l) differs |= row[l] + offset ^ pattern[l] + shift;
    } else {
      for (u32 l = 0; l < kLanes; ++l) differs |= (exec >> l & 1) != 0 ? row[l] + offset ^ pattern[l] + shift : 0;
    }
    if (differs == 0) return local.push_back({known.pattern, shift});
  }
  known.pattern = static_cast<u32>(patterns.size() / kLanes);
  known.enabled = exec;
  local.push_back({known.pattern, 0});
  for (u32 l = 0; l < kLanes; ++l) patterns.push_back((exec >> l & 1) != 0 ? row[l] + offset : kDisabledLane);
}

void LaunchRecord::finish(const LaunchResult& result) {
  executed = result.executed;
  bytes_loaded = result.bytes_loaded;
  bytes_stored = result.bytes_stored;
  for (const auto& wave : waves) {
    u64 before = ~u64{0};
    for (const u64 segment : wave->segments) {
      if (segment >> kPageShift != before) add_extent(segment, extents);
      before = segment >> kPageShift;
    }
  }
  std::sort(extents.begin(), extents.end(),
            [](const ExtentRecord& one, const ExtentRecord& other) { return one.begin < other.begin; });
}

void record_launches(u32 workgroups, bool alone) {
  Recordings& all = recordings();
  const Guard guard(all.lock);
  all.launches.clear();
  all.codes.clear();
  all.alone = alone;
  __atomic_store_n(&all.workgroups, workgroups, __ATOMIC_RELAXED);
}

bool recording() { return __atomic_load_n(&recordings().workgroups, __ATOMIC_RELAXED) != 0; }

std::unique_ptr<LaunchRecord> describe_launch(const Launch& launch, const char* gpu) {
  auto record = std::make_unique<LaunchRecord>();
  const Program& program = *launch.program;
  record->kernel = program.kernel().name;
  record->gpu = gpu;
  for (int axis = 0; axis < 3; ++axis) {
    record->groups[axis] = launch.groups[axis];
    record->block[axis] = launch.block[axis];
  }
  record->lds_bytes = launch.lds_bytes;
  record->vgprs = program.kernel().register_rows;
  record->sgprs = program.kernel().sgprs;
  record->scratch_bytes = launch.scratch_bytes;
  record->lanes = program.kernel().wave_size;
  record->resident = launch.resident;
  return record;
}

LaunchRecord* record_launch(const Launch& launch, const char* gpu) {
  std::unique_ptr<LaunchRecord> record = describe_launch(launch, gpu);
  const u64 arguments = reinterpret_cast<u64>(launch.kernarg);
  if (launch.kernarg_bytes != 0) record->extents.push_back({arguments, arguments + launch.kernarg_bytes});
  for (size_t at = 0; at + sizeof(u64) <= launch.kernarg_bytes; at += sizeof(u64)) {
    u64 value, begin, end;
    std::memcpy(&value, launch.kernarg + at, sizeof value);
    if (ground_at(value, 1, begin, end) == Ground::Inside) record->pointers.push_back(value);
  }
  Recordings& all = recordings();
  const Guard guard(all.lock);
  record->code = number_of_code(all.codes, *launch.program);
  all.launches.push_back(static_cast<std::unique_ptr<LaunchRecord>&&>(record));
  return all.launches.back().get();
}

bool is_recorded(u64 workgroup, u64 total) {
  const u64 wanted = recordings().workgroups;
  if (wanted >= total) return true;
  const u64 index = (workgroup * wanted + total - 1) / total;
  return index < wanted && index * total / wanted == workgroup;
}

u64 next_to_run(u64 workgroup, u64 total) {
  if (!recordings().alone) return workgroup;
  while (workgroup < total && !is_recorded(workgroup, total)) ++workgroup;
  return workgroup;
}

WaveRecord* record_wave(LaunchRecord& launch, u64 workgroup, u32 wave) {
  auto record = std::make_unique<WaveRecord>();
  record->wave = wave;
  record->workgroup = workgroup;
  const Guard guard(recordings().lock);
  launch.waves.push_back(static_cast<std::unique_ptr<WaveRecord>&&>(record));
  return launch.waves.back().get();
}

std::vector<u8> packed_records() {
  Recordings& all = recordings();
  const Guard guard(all.lock);
  Packer out;
  size_t most = 0;
  for (const auto& launch : all.launches) most += bytes_of(*launch);
  for (const auto& code : all.codes) most += bytes_of(*code);
  out.bytes.reserve(most);
  out.number(all.codes.size());
  for (const auto& code : all.codes) pack_code(*code, out);
  out.number(all.launches.size());
  for (const auto& launch : all.launches) {
    pack_facts(*launch, out);
    out.number(launch->code);
    out.number(launch->waves.size());
    const size_t size = out.skipped();
    for (const auto& wave : launch->waves) pack(*wave, out);
    out.set(size, out.bytes.size() - size - sizeof(u64));
  }
  return static_cast<std::vector<u8>&&>(out.bytes);
}

}  // namespace ckemu
