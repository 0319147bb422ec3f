// SPDX-License-Identifier: MIT
//
// What waves execute, for the clock: the instructions of some workgroups of each launch, in order, and
// where the lanes of each LDS operation access memory, and lines of global memory. The other workgroups run as ever, or not at all.
#pragma once

#include <memory>
#include <vector>

#include "core/program.h"

namespace ckemu {

struct Launch;

/// Bytes of a line of the caches before memory.
constexpr u64 kMemoryLine = 128;

/// One wave of a recorded workgroup.
struct WaveRecord {
  u32 wave = 0;
  u64 workgroup = 0;
  std::vector<u32> lines;    // dwords from the start of the code, of each executed instruction
  std::vector<u32> address;  // of each LDS operation with addresses: 64 lanes, ~0 where a lane is disabled

  std::vector<u64> memory;   // lines of global memory (address / kMemoryLine) in order, no two alike in a row

  void before(Wave& wave, const Code& code);
};

/// One launch while recordings are taken.
struct LaunchRecord {
  std::vector<u8> code;  // the whole text section
  std::string kernel;
  u32 groups[3], block[3];
  u32 lds_bytes = 0, vgprs = 0, lanes = 0, resident = 0;
  std::vector<std::unique_ptr<WaveRecord>> waves;
};

/// From now on `workgroups` workgroups of each launch are recorded, evenly spaced; 0: none. With `alone` no
/// other workgroup runs. Earlier recordings are dropped.
void record_launches(u32 workgroups, bool alone);
bool recording();

/// Begins the record of a launch; what it returns is valid until the next `record_launches`.
LaunchRecord* record_launch(const Launch& launch);
/// Whether a workgroup of so many is recorded.
bool is_recorded(u64 workgroup, u64 total);
/// The first workgroup from `workgroup` on that runs.
u64 next_to_run(u64 workgroup, u64 total);
WaveRecord* record_wave(LaunchRecord& launch, u64 workgroup, u32 wave);

std::vector<std::unique_ptr<LaunchRecord>>& launch_records();

}  // namespace ckemu
