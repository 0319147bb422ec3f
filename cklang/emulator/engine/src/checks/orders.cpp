// SPDX-License-Identifier: MIT
#include "checks/orders.h"

#include "checks/global_access.h"
#include "core/demangle.h"
#include "core/fault.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

constexpr u64 kOrders = 4;  // besides the usual one

u32* dword_at(u64 address) { return reinterpret_cast<u32*>(address); }

using Values = std::map<u64, u32>;

Values values_of(const Journal& journal) {
  Values values;
  for (const auto& [address, entry] : journal.entries()) values[address] = load_as<u32>(dword_at(address));
  return values;
}

/// Compares memory after one more run with what it was after the first; whether they differ.
bool differs(const Launch& launch, const Journal& journal, const Values& usual, u64 order, Fault& fault) {
  u64 count = 0;
  for (const auto& [address, entry] : journal.entries()) {
    const auto known = usual.find(address);
    const u32 expected = known != usual.end() ? known->second : entry.before, now = load_as<u32>(dword_at(address));
    if (now == expected || count++ != 0) continue;
    fault.kind = FaultKind::Instruction;
    fault.check = "schedule";
    fault.address = address;
    Text<768> writer;
    describe_code(*launch.program, *launch.program->at(entry.pc), writer);
    fault.message.add(
        "results depend on the order of execution: the dword at address 0x%llx becomes 0x%x in order %llu and 0x%x in "
        "the usual one\n  kernel %s, written at %s",
        static_cast<unsigned long long>(address), now, static_cast<unsigned long long>(order), expected,
        readable(launch.program->kernel().name).c_str(), writer.c_str());
  }
  if (count != 0) {
    fault.message.add("\n  %llu dwords differ; CKLANG_SCHEDULE=%llu repeats the order",
                      static_cast<unsigned long long>(count), static_cast<unsigned long long>(order));
  }
  return count != 0;
}

void run_one(const Launch& launch, u64 order, Journal& journal, LaunchResult& result) {
  Launch work = launch;
  work.schedule = order;
  work.checks = kCheckSchedule;
  work.races = nullptr;
  work.record = nullptr;
  work.journal = &journal;
  run_launch(work, result);
}

}  // namespace

void Journal::before(Wave& w, const Code& c) {
  if (!changes_memory(*c.inst)) return;
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    w.lane = piece.lane;  // for a fault: what follows reads the memory
    for (u64 at = piece.at & ~u64{3}; at < piece.at + piece.bytes; at += 4) {
      const u32 before = load_as<u32>(dword_at(at));
      const Guard guard(mutex_);
      entries_.try_emplace(at, Entry{before, 0}).first->second.pc = c.pc;
    }
    w.lane = -1;
  });
}

void note_writes(Journal& journal, Wave& wave, const Code& code) { journal.before(wave, code); }

void Journal::restore() const {
  for (const auto& [address, entry] : entries_) *dword_at(address) = entry.before;
}

void run_in_orders(const Launch& launch, LaunchResult& result) {
  Journal journal;
  Launch first = launch;
  first.journal = &journal;
  run_launch(first, result);
  if (result.fault.kind != FaultKind::None) return;
  const Values usual = values_of(journal);
  for (u64 order = 1; order <= kOrders && result.fault.kind == FaultKind::None; ++order) {
    journal.restore();
    LaunchResult other;
    run_one(launch, order, journal, other);
    if (other.fault.kind != FaultKind::None) {
      result.fault = other.fault;
      result.fault.message.add("\n  in order %llu, which CKLANG_SCHEDULE=%llu repeats; the usual order has no fault",
                               static_cast<unsigned long long>(order), static_cast<unsigned long long>(order));
    } else {
      differs(launch, journal, usual, order, result.fault);
    }
  }
  journal.restore();
  for (const auto& [address, value] : usual) *dword_at(address) = value;
}

}  // namespace ckemu
