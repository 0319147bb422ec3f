// SPDX-License-Identifier: MIT
//
// One kernel launch: what it runs, on how many workgroups, and what came of it.
#pragma once

#include <vector>

#include "checks/checks.h"
#include "core/fault.h"
#include "core/program.h"
#include "core/schedule.h"
#include "ops/numerics.h"

namespace ckemu {

/// The packet that a kernel can reach through its dispatch pointer (HSA's layout).
struct DispatchPacket {
  u16 header = 0, setup = 3;
  u16 block[3] = {1, 1, 1};
  u16 reserved = 0;
  u32 grid[3] = {1, 1, 1};  // in work items
  u32 private_bytes = 0, group_bytes = 0;
  u64 kernel_object = 0, kernarg = 0, reserved2 = 0, signal = 0;
};
static_assert(sizeof(DispatchPacket) == 64);

class Hostcall;

struct Launch {
  Program* program = nullptr;
  u32 groups[3] = {1, 1, 1};
  u32 block[3] = {1, 1, 1};
  u32 lds_bytes = 0;      // static and dynamic
  u32 scratch_bytes = 0;  // per lane
  const u8* kernarg = nullptr;
  size_t kernarg_bytes = 0;
  DispatchPacket packet;
  u32 resident = 1;              // workgroups that the device holds at a time
  bool together = false;         // all workgroups must be under way at a time: a cooperative launch
  u64 queue = 0;                 // the queue that it came from, in HSA's layout; 0: none that a kernel may see
  Hostcall* hostcall = nullptr;  // where the kernel asks the host for services, if it does
  Numerics numerics = current_numerics();
  u32 checks = checks_asked();
  u64 schedule = ckemu::schedule();
  GlobalRaces* races = nullptr;    // while it runs, if they are asked for
  Journal* journal = nullptr;      // of what it writes, if it runs in several orders
  bool stepwise = false;           // under a debugger: each instruction is checked where it is executed
  LaunchRecord* record = nullptr;  // where waves note what they execute, if the clock asks

  /// Whether its waves are checked for anything.
  bool checked() const { return (checks & ~u32{kCheckTiming}) != 0; }
  u64 total() const { return u64{groups[0]} * groups[1] * groups[2]; }
  u32 threads() const { return block[0] * block[1] * block[2]; }
};

/// Statistics of a finished launch.
struct LaunchResult {
  Fault fault;
  std::vector<u64> executed;  // by code slot
  u64 bytes_loaded = 0, bytes_stored = 0;
  u64 nanoseconds = 0;
  Numerics numerics = Numerics::Fma;
};

/// Runs all workgroups of `launch` on the machine's cores and waits for them.
void run_launch(const Launch& launch, LaunchResult& result);

}  // namespace ckemu
