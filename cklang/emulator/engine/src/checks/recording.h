// SPDX-License-Identifier: MIT
//
// What waves execute, for the clock and the profiler: the instructions of some workgroups of each launch, in
// order, with the lanes that take part and where they access memory; and how often the whole launch executed
// each instruction. The other workgroups run as ever, or not at all.
#pragma once

#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/appended.h"
#include "core/program.h"

namespace ckemu {

struct Launch;
struct LaunchResult;

/// One access to global memory, by the lanes of one instruction.
struct MemoryRecord {
  u32 place;     // of the instruction among those that the wave executed
  u32 bytes;     // of all lanes
  u32 segments;  // pieces of 64 bytes that they are in, each counted once
};

/// What one lane of a vector access accesses.
struct LaneRecord {
  u32 access;  // its number in `WaveRecord::memory`
  u32 lane;
  u64 at;
  u32 bytes, skip;  // skip: bytes before it in the lane's registers
};

/// The addresses of one operation of the LDS: those of a row of `WaveRecord::patterns`, so many bytes on.
struct LocalRecord {
  u32 pattern, shift;
};

struct Stretch;

/// One wave of a recorded workgroup.
struct WaveRecord {
  u32 wave = 0;
  u64 workgroup = 0;
  Appended<u32> stretches;      // that were executed, one after the other: numbers in `begins`
  Appended<u8> lanes;           // that were enabled, of each executed stretch
  std::vector<u32> begins;      // of each stretch, its first instruction in `slots`
  std::vector<u32> slots;       // dwords from the start of the code, of the instructions of each stretch
  Appended<LocalRecord> local;  // of each LDS operation with addresses
  std::vector<u32> patterns;    // rows of 64 addresses, ~0 where a lane is disabled
  std::vector<MemoryRecord> memory;
  std::vector<u64> segments;      // of all of `memory`, one after the other: addresses over 64
  std::vector<LaneRecord> shown;  // of the first execution of each instruction

  /// Notes a stretch that is about to be executed, whole.
  void before(Wave& wave, const Stretch& stretch);

 private:
  /// What is known of a stretch that the wave has executed.
  struct Known {
    static constexpr u32 kNone = ~u32{0};
    u32 number = kNone;   // in `begins`
    u32 pattern = kNone;  // of its last operation of the LDS
    u64 enabled = 0;      // lanes of that
  };
  Known& known(const Stretch& stretch);
  void note_global(Wave& wave, const Code& code, u32 place);
  void note_local(const Wave& wave, const Code& code, Known& known);
  u32 executed_ = 0;           // instructions
  std::vector<Known> known_;   // by the number of the stretch in the program
  std::set<u32> slots_shown_;  // of instructions whose lanes are in `shown`
};

/// What recorded launches share that are of one code object: its text section, the line table and the debug
/// information of inlined calls.
struct RecordedCode {
  static constexpr const char* kSections[] = {".debug_info", ".debug_abbrev",   ".debug_addr", ".debug_rnglists",
                                              ".debug_line", ".debug_line_str", ".debug_str",  ".debug_str_offsets"};
  struct Source {
    u32 begin, end;  // dwords from the start of the code
    u32 file, line;
  };
  explicit RecordedCode(const Program& program);
  /// Whether it is that of this program; equal code that was loaded again is the same.
  bool is_of(const Program& program) const;

  Ref<CodeObject> object;
  u64 base = 0;  // address of the text section, to which debug information refers
  u64 bytes = 0;
  std::vector<std::string> files;
  std::vector<Source> sources;  // the line table of the code
};

/// Memory that recorded waves accessed as a whole: an allocation, a code object, the arguments of the kernel.
struct ExtentRecord {
  u64 begin, end;
};

/// One launch while recordings are taken.
struct LaunchRecord {
  std::string kernel, gpu;
  u32 groups[3], block[3];
  u32 lds_bytes = 0, vgprs = 0, sgprs = 0, scratch_bytes = 0, lanes = 0, resident = 0;
  std::vector<std::unique_ptr<WaveRecord>> waves;
  std::vector<u64> executed;          // by dword of the code, of the whole launch
  std::vector<ExtentRecord> extents;  // in the order of their addresses
  std::vector<u64> pointers;          // among the arguments, into known memory: where arrays begin
  u64 bytes_loaded = 0, bytes_stored = 0;
  u32 code = 0;  // its number among those of all records

  /// Takes over what the launch as a whole executed, and notes the memory that it accessed.
  void finish(const LaunchResult& result);
};

/// From now on `workgroups` workgroups of each launch are recorded, evenly spaced; 0: none. With `alone` no
/// other workgroup runs. Earlier recordings are dropped.
void record_launches(u32 workgroups, bool alone);
bool recording();

/// What is known of a launch on a GPU before it runs.
std::unique_ptr<LaunchRecord> describe_launch(const Launch& launch, const char* gpu);
class Packer;
/// Writes all that a record has but its waves.
void pack_facts(const LaunchRecord& launch, Packer& out);
/// Writes a code object.
void pack_code(const RecordedCode& code, Packer& out);
/// Begins the record of a launch on a GPU; what it returns is valid until the next `record_launches`.
LaunchRecord* record_launch(const Launch& launch, const char* gpu);
/// Whether a workgroup of so many is recorded.
bool is_recorded(u64 workgroup, u64 total);
/// The first workgroup from `workgroup` on that runs.
u64 next_to_run(u64 workgroup, u64 total);
WaveRecord* record_wave(LaunchRecord& launch, u64 workgroup, u32 wave);

/// All records as bytes, which `recorded_launches` of `emulator/engine/recording.py` reads.
std::vector<u8> packed_records();

}  // namespace ckemu
