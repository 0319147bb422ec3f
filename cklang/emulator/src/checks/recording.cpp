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
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr int kSegmentShift = 6;  // 64 bytes
constexpr u32 kDisabledLane = ~u32{0};

struct Recordings {
  Mutex lock;
  u32 workgroups = environment().profiled;
  bool alone = false;
  std::vector<std::unique_ptr<LaunchRecord>> launches;
  std::vector<std::unique_ptr<DebugInformation>> debug;  // of their code objects, each once
  pid_t process = getpid();
};

Recordings& recordings() { return immortal<Recordings>(); }

/// The line table of a launch's code, in dwords from its start.
void read_sources(const Program& program, LaunchRecord& record) {
  const u64 base = program.base(), end = base + 4 * program.dwords();
  std::map<std::string, u32> numbers;
  each_line(program.object(), [&](const LineRow& row) {
    if (row.begin < base || row.end > end || row.line == 0) return false;
    const std::string path = path_of(row);
    const auto [number, fresh] = numbers.try_emplace(path, static_cast<u32>(record.files.size()));
    if (fresh) record.files.push_back(path);
    record.sources.push_back({static_cast<u32>((row.begin - base) / 4), static_cast<u32>((row.end - base) / 4),
                              number->second, row.line});
    return false;
  });
}

bool is_of(const DebugInformation& known, const CodeObject& object) {
  for (size_t n = 0; n < std::size(known.sections); ++n) {
    const CodeObject::Section section = object.section(DebugInformation::kSections[n]);
    const std::vector<u8>& bytes = known.sections[n];
    if (bytes.size() != section.size || (section.size != 0 && std::memcmp(bytes.data(), section.data, section.size) != 0)) return false;
  }
  return true;
}

/// The number of a code object's debug information; it is taken over the first time. Called locked.
u32 number_of_debug(std::vector<std::unique_ptr<DebugInformation>>& all, const CodeObject& object) {
  for (size_t n = 0; n < all.size(); ++n) {
    if (is_of(*all[n], object)) return static_cast<u32>(n);
  }
  auto fresh = std::make_unique<DebugInformation>();
  for (size_t n = 0; n < std::size(fresh->sections); ++n) {
    const CodeObject::Section section = object.section(DebugInformation::kSections[n]);
    if (section.size != 0) fresh->sections[n].assign(section.data, section.data + section.size);
  }
  all.push_back(static_cast<std::unique_ptr<DebugInformation>&&>(fresh));
  return static_cast<u32>(all.size() - 1);
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
  size_t bytes = launch.code.size() + 8 * launch.executed.size() + 16 * launch.sources.size() + (64 << 10);
  for (const auto& wave : launch.waves) {
    bytes += 5 * wave->stretches.size() + 4 * (wave->begins.size() + wave->slots.size()) + 24 * wave->shown.size() + 12 * wave->memory.size() + 8 * wave->segments.size();
    bytes += 8 * wave->local.size() + 4 * wave->patterns.size() + 128;
  }
  return bytes;
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
    std::fprintf(stderr, "libamdhip64 (emulated): the records of CKLANG_PROFILE cannot be written to %s\n", path.c_str());
  }
  if (file != nullptr) std::fclose(file);
}

}  // namespace

void pack_facts(const LaunchRecord& launch, Packer& out) {
  out.text(launch.kernel);
  out.text(launch.gpu);
  out.array(launch.code);
  for (const u32 extent : launch.groups) out.number(extent);
  for (const u32 extent : launch.block) out.number(extent);
  for (const u32 fact : {launch.lds_bytes, launch.vgprs, launch.sgprs, launch.scratch_bytes, launch.lanes, launch.resident}) {
    out.number(fact);
  }
  out.number(launch.bytes_loaded);
  out.number(launch.bytes_stored);
  out.array(launch.executed);
  out.number(launch.files.size());
  for (const std::string& file : launch.files) out.text(file);
  out.array(launch.sources);
}

u32 WaveRecord::number_of(const Stretch& stretch) {
  const u32 slot = stretch.first->slot;
  if (slot >= newest_stretch_.size()) newest_stretch_.resize(slot + 1);
  Number& newest = newest_stretch_[slot];
  if (newest.stretch == &stretch) return newest.number;
  const auto [known, fresh] = numbers_.try_emplace(&stretch, static_cast<u32>(begins.size()));
  if (fresh) {
    begins.push_back(static_cast<u32>(slots.size()));
    for (u32 n = 0; n < stretch.count; ++n) slots.push_back(stretch.first[n].slot);
  }
  newest = {&stretch, known->second};
  return known->second;
}

void WaveRecord::before(Wave& w, const Stretch& stretch) {
  stretches.push_back(number_of(stretch));
  lanes.push_back(static_cast<u8>(__builtin_popcountll(w.exec())));
  const u32 place = executed_;
  executed_ += stretch.count;
  if (stretch.plain) return;
  note_global(w, *stretch.first, place);
  note_local(w, *stretch.first);
}

void WaveRecord::note_global(Wave& w, const Code& c, u32 place) {
  const size_t first = segments.size();
  u32 bytes = 0;
  const bool show = accesses_global(*c.inst) && slots_shown_.insert(c.slot).second;
  const u32 number = static_cast<u32>(memory.size());
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    bytes += piece.bytes;
    if (show && piece.lane >= 0) shown.push_back({number, static_cast<u32>(piece.lane), piece.at, piece.bytes, piece.skip});
    for (u64 at = piece.at >> kSegmentShift; at <= (piece.at + piece.bytes - 1) >> kSegmentShift; ++at) {
      if (segments.size() > first && segments.back() == at) continue;
      const auto begin = segments.begin() + static_cast<i64>(first);
      if (std::find(begin, segments.end(), at) == segments.end()) segments.push_back(at);
    }
  });
  if (bytes != 0) memory.push_back({place, bytes, static_cast<u32>(segments.size() - first)});
}

void WaveRecord::note_local(const Wave& w, const Code& c) {
  if (c.inst->enc != Encoding::DS || c.inst->gds || c.src[0].kind != Kind::Vgpr) return;
  const u64 exec = w.exec();
  const u32* row = w.v[c.src[0].index];
  u32 address[kLanes];
  for (u32 lane = 0; lane < kLanes; ++lane) {
    address[lane] = (exec >> lane & 1) != 0 ? row[lane] + static_cast<u32>(c.offset) : kDisabledLane;
  }
  const auto [known, fresh] = newest_.try_emplace(c.slot, static_cast<u32>(patterns.size() / kLanes));
  if (!fresh) {
    const u32* pattern = &patterns[kLanes * known->second];
    const u32 lane = exec == 0 ? 0 : static_cast<u32>(__builtin_ctzll(exec)), shift = address[lane] - pattern[lane];
    u32 differs = 0;
    for (u32 l = 0; l < kLanes; ++l) differs |= address[l] ^ (pattern[l] == kDisabledLane ? kDisabledLane : pattern[l] + shift);
    if (differs == 0) return local.push_back({known->second, shift});
    known->second = static_cast<u32>(patterns.size() / kLanes);
  }
  local.push_back({known->second, 0});
  patterns.insert(patterns.end(), address, address + kLanes);
}

void LaunchRecord::finish(const LaunchResult& result) {
  executed = result.executed;
  bytes_loaded = result.bytes_loaded;
  bytes_stored = result.bytes_stored;
}

void record_launches(u32 workgroups, bool alone) {
  Recordings& all = recordings();
  const Guard guard(all.lock);
  all.launches.clear();
  all.debug.clear();
  all.alone = alone;
  __atomic_store_n(&all.workgroups, workgroups, __ATOMIC_RELAXED);
}

bool recording() { return __atomic_load_n(&recordings().workgroups, __ATOMIC_RELAXED) != 0; }

std::unique_ptr<LaunchRecord> describe_launch(const Launch& launch, const char* gpu) {
  auto record = std::make_unique<LaunchRecord>();
  const Program& program = *launch.program;
  const u8* code = program.object().image() + program.base();
  record->code.assign(code, code + 4 * program.dwords());
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
  record->base = program.base();
  read_sources(program, *record);
  return record;
}

LaunchRecord* record_launch(const Launch& launch, const char* gpu) {
  std::unique_ptr<LaunchRecord> record = describe_launch(launch, gpu);
  Recordings& all = recordings();
  const Guard guard(all.lock);
  record->debug = number_of_debug(all.debug, launch.program->object());
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
  for (const auto& debug : all.debug) {
    for (const std::vector<u8>& section : debug->sections) most += section.size() + 16;
  }
  out.bytes.reserve(most);
  out.number(all.debug.size());
  for (const auto& debug : all.debug) {
    for (const std::vector<u8>& section : debug->sections) out.array(section);
  }
  out.number(all.launches.size());
  for (const auto& launch : all.launches) {
    pack_facts(*launch, out);
    out.number(launch->base);
    out.number(launch->debug);
    out.number(launch->waves.size());
    for (const auto& wave : launch->waves) pack(*wave, out);
  }
  return static_cast<std::vector<u8>&&>(out.bytes);
}

}  // namespace ckemu
