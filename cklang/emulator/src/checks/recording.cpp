// SPDX-License-Identifier: MIT
#include "checks/recording.h"

#include "checks/global_access.h"
#include "core/launch.h"
#include "core/mutex.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

struct Recordings {
  Mutex lock;
  u32 workgroups = 0;
  bool alone = false;
  std::vector<std::unique_ptr<LaunchRecord>> launches;
};

Recordings& recordings() {
  static auto* all = new Recordings;
  return *all;
}

}  // namespace

void WaveRecord::before(Wave& w, const Code& c) {
  lines.push_back(c.slot);
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    for (u64 line = piece.at / kMemoryLine; line <= (piece.at + piece.bytes - 1) / kMemoryLine; ++line) {
      if (memory.empty() || memory.back() != line) memory.push_back(line);
    }
  });
  if (c.inst->enc != Encoding::DS || c.inst->gds || c.src[0].kind != Kind::Vgpr) return;
  const u32* row = w.v[c.src[0].index];
  const u64 exec = w.exec();
  for (u32 lane = 0; lane < kLanes; ++lane) {
    address.push_back((exec >> lane & 1) != 0 ? row[lane] + static_cast<u32>(c.offset) : ~0u);
  }
}

void record_launches(u32 workgroups, bool alone) {
  Recordings& all = recordings();
  const Guard guard(all.lock);
  all.launches.clear();
  all.alone = alone;
  __atomic_store_n(&all.workgroups, workgroups, __ATOMIC_RELAXED);
}

bool recording() { return __atomic_load_n(&recordings().workgroups, __ATOMIC_RELAXED) != 0; }

LaunchRecord* record_launch(const Launch& launch) {
  auto record = std::make_unique<LaunchRecord>();
  const Program& program = *launch.program;
  const u8* code = program.object().image() + program.base();
  record->code.assign(code, code + 4 * program.dwords());
  record->kernel = program.kernel().name;
  for (int axis = 0; axis < 3; ++axis) {
    record->groups[axis] = launch.groups[axis];
    record->block[axis] = launch.block[axis];
  }
  record->lds_bytes = launch.lds_bytes;
  record->vgprs = program.kernel().register_rows;
  record->lanes = program.kernel().wave_size;
  record->resident = launch.resident;
  Recordings& all = recordings();
  const Guard guard(all.lock);
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

std::vector<std::unique_ptr<LaunchRecord>>& launch_records() { return recordings().launches; }

}  // namespace ckemu
