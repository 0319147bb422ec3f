// SPDX-License-Identifier: MIT
#include "checks/deadlock.h"

#include <algorithm>

#include "core/clock.h"
#include "core/demangle.h"
#include "core/program.h"
#include "core/workgroup.h"
#include "decode/disasm.h"
#include "decode/lines.h"
#include "hip/ckemu.h"
#include "hip/hip_types.h"

namespace ckemu {

namespace {

constexpr u64 kCompareEvery = 16;  // silent slices from one look at the registers to the next
constexpr u64 kSilentWeight = 64;  // silent slices with new registers that count as one that repeats
constexpr size_t kSeen = 512;      // register contents that are remembered
constexpr u64 kDefaultPatience = 1024;
constexpr int kListed = 10;  // waves in a report

u64 g_patience = kDefaultPatience;

u64 mix(u64 hash, u64 value) { return (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29); }

/// A number for the contents of a workgroup's registers and where its waves are.
u64 fingerprint(const Workgroup& group) {
  u64 hash = 0;
  for (const Wave& wave : group.waves) {
    hash = mix(mix(hash, reinterpret_cast<u64>(wave.next)), u64{wave.scc} | u64{static_cast<u8>(wave.state)} << 1);
    for (u32 n = 0; n < 128; n += 2) hash = mix(hash, wave.sgpr64(n));
    const u8* registers = reinterpret_cast<const u8*>(wave.v);
    for (size_t at = 0; at < wave.rows * sizeof(Row64); at += 8) hash = mix(hash, load_as<u64>(registers + at));
  }
  return hash;
}

/// Where a wave is; `doing` says what a wave does that waits at no barrier.
void describe_wave(const Wave& wave, const char* doing, Message& out) {
  const Workgroup& group = *wave.group;
  out.add("\n  workgroup (%u, %u, %u), wave %u", group.id[0], group.id[1], group.id[2], wave.id);
  const Code* code = wave.current;
  if (code == nullptr || code->inst == nullptr) {
    out.add(" has not begun");
    return;
  }
  const Program& program = *wave.program;
  AsmText text;
  disasm(program.family(), *code->inst, text);
  out.add("%s", wave.state == WaveState::Barrier ? " waits at a barrier" : doing);
  out.add(", pc 0x%llx: %s", static_cast<unsigned long long>(code->pc - program.kernel().entry), text.c_str());
  SourceLine line;
  if (find_line(program.object(), code->pc, line)) out.add(" (%s:%u)", line.file.c_str(), line.line);
}

void list_waves(const std::vector<Workgroup*>& groups, const char* doing, Message& out) {
  int listed = 0;
  u64 left = 0;
  for (const Workgroup* group : groups) {
    for (const Wave& wave : group->waves) {
      if (wave.state == WaveState::Ended) continue;
      if (listed < kListed) {
        describe_wave(wave, doing, out);
        ++listed;
      } else {
        ++left;
      }
    }
  }
  if (left != 0) out.add("\n  and %llu more waves", static_cast<unsigned long long>(left));
}

}  // namespace

u64 patience() { return __atomic_load_n(&g_patience, __ATOMIC_RELAXED); }
void set_patience(u64 slices) { __atomic_store_n(&g_patience, slices, __ATOMIC_RELAXED); }

void Silence::note(const Workgroup& group, u64 epoch) {
  if (epoch_ != epoch) {
    *this = Silence{};
    epoch_ = epoch;
    since_ = milliseconds();
  }
  if (++silent_ % kCompareEvery != 0) return;
  const u64 now = fingerprint(group);
  if (std::find(seen_.begin(), seen_.end(), now) != seen_.end()) {
    repeated_ += kCompareEvery;
  } else if (seen_.size() < kSeen) {
    seen_.push_back(now);
  }
}

bool Silence::stuck(u64 epoch, u64 slices) const {
  const bool waited = epoch_ == epoch && silent_ != 0 && (repeated_ >= slices || silent_ / kSilentWeight >= slices);
  return waited && milliseconds() - since_ >= patience();
}

void describe_deadlock(const std::vector<Workgroup*>& groups, u64 unstarted, Message& out) {
  const Workgroup& first = *groups.front();
  out.add("deadlock: no workgroup of kernel %s makes progress", readable(first.launch->program->kernel().name).c_str());
  if (unstarted != 0) {
    out.add(", and %llu of %llu have no room to start beside the %zu that wait",
            static_cast<unsigned long long>(unstarted), static_cast<unsigned long long>(first.launch->total()),
            groups.size());
  }
  list_waves(groups, " repeats", out);
}

void describe_timeout(const std::vector<Workgroup*>& groups, u64 limit, Message& out) {
  const Workgroup& first = *groups.front();
  out.add("timeout: kernel %s has not ended in %llu seconds (CKLANG_TIMEOUT)",
          readable(first.launch->program->kernel().name).c_str(), static_cast<unsigned long long>(limit / 1000));
  list_waves(groups, " runs", out);
}

}  // namespace ckemu

CKEMU_EXPORT void ckemu_set_patience(uint64_t slices) { ckemu::set_patience(slices); }
