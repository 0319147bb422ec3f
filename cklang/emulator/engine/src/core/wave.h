// SPDX-License-Identifier: MIT
//
// The state of one wavefront. A vector register is a row of 64 lanes, 256 bytes, so that one
// vector instruction is a short loop over rows and lane l of register r is v[r][l].
#pragma once

#include "core/base.h"
#include "decode/isa.h"

namespace ckemu {

struct Code;
struct Wave;
struct Workgroup;
class Program;
struct Checks;

using Row64 = u32[kLanes];
using Handler = void (*)(Wave&, const Code&);

/// Rows behind the registers, for operands that a modifier has changed on their way.
enum SpareRow : u32 { kSpareSource = 0, kSpareResult = 6, kSpareRows = 8 };

constexpr u64 kNoPhase = ~u64{0};
constexpr u32 kNoLanes = ~u32{0};

enum class WaveState : u8 { Ready, Barrier, Ended };

/// Counters of one worker thread and one launch.
struct Counters {
  u64* executed = nullptr;  // by code dword offset in the program
  u64 bytes_loaded = 0;
  u64 bytes_stored = 0;
  u64 lds_bytes = 0;
  u64 progress = 0;            // memory changes and finished waves; standing still means spinning
  u64* segments = nullptr;     // by translated segment; null: everything is interpreted
  u32 lanes_at_hand = 16;      // that translated code computes at a time
  bool eager = false;          // translate what control reaches for the first time
  const u64* ticks = nullptr;  // what clocks show in place of the time, where a launch must repeat itself
};

constexpr u32 kMostOfRun = 6144;  // elements of panels: with an accumulator they stay in a first-level cache

/// Where scalar and constant operands are spread over lanes before use, and the panels of products that translated code
/// executes together.
struct alignas(64) Broadcasts {
  Row64 row[4][4];
  u32 panels[kMostOfRun];
};

/// MODE bit: vector register numbers are indexed by m0.
constexpr u32 kModeIndexed = 1u << 27;

/// MODE bit: vector instructions are skipped (s_setvskip).
constexpr u32 kModeSkip = 1u << 28;

/// Flat addresses of these apertures are no canonical x86 addresses, so no host memory lies there.
constexpr u64 kSharedAperture = u64{0x01000000} << 32;
constexpr u64 kPrivateAperture = u64{0x02000000} << 32;

/// Where writes to RDNA's null register go: behind the scalar registers, room for the widest.
constexpr u16 kDiscarded = 128;

struct alignas(64) Wave {
  u32 s[128 + 16] = {};  // the scalar register space: SGPRs, vcc, ttmp, m0, exec; discarded results
  Row64* v = nullptr;    // VGPRs, AGPRs, spare rows
  u32 rows = 0;          // registers allocated; spare rows follow
  const Code* next = nullptr;
  i64 budget = 0;      // instructions until the time slice ends
  u32 lanes = kLanes;  // 32 or 64; of 32 lanes the upper halves of rows and of exec stay empty
  bool scc = false;
  WaveState state = WaveState::Ready;
  u8 id = 0;      // in its workgroup
  i32 lane = -1;  // the lane whose memory is being accessed
  u32 mode = 0;
  const Code* current = nullptr;
  Workgroup* group = nullptr;
  Program* program = nullptr;
  Checks* checks = nullptr;  // looks for mistakes; null if that is not asked for
  u8 asks = 0;               // what of instructions the checks look at: Concerns (checks/stretch.h)
  Counters* counters = nullptr;
  Broadcasts* spread = nullptr;
  u8* lds = nullptr;
  u32 lds_bytes = 0;
  u8* scratch = nullptr;      // private memory, dword-interleaved: dword d of lane l at (d * 64 + l) * 4
  u32 scratch_bytes = 0;      // per lane
  bool yielded = false;       // s_sleep: let others run first
  u64 signalled = kNoPhase;   // phase of the split barrier at which the wave has arrived last
  u32 lanes_from = kNoLanes;  // 4 times the first of the lanes that translated code accesses at once
  u64 group_address = 0;      // of `lane`, while several lanes are accessed at once
  u32 group_bytes = 0;        // of each of them; 0 otherwise

  u64 exec() const { return load_as<u64>(&s[kExec]); }
  void set_exec(u64 mask) { std::memcpy(&s[kExec], &mask, 8); }
  u64 sgpr64(u32 index) const { return load_as<u64>(&s[index]); }
  void set_sgpr64(u32 index, u64 value) { std::memcpy(&s[index], &value, 8); }
  /// Writes a mask of lanes: one register for 32 lanes, two for 64.
  void set_mask(u32 index, u64 mask) {
    s[index] = static_cast<u32>(mask);
    if (lanes == kLanes) s[index + 1] = static_cast<u32>(mask >> 32);
  }
  u64 vcc() const { return lanes == kLanes ? sgpr64(kVcc) : s[kVcc]; }
  /// Ends the time slice after this instruction.
  void stop() { budget = 0; }
};

}  // namespace ckemu
