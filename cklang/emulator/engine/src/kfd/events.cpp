// SPDX-License-Identifier: MIT
#include <cerrno>
#include <map>

#include "core/clock.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "kfd/calls.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

constexpr u32 kMostEvents = 4096, kForever = ~u32{0};
constexpr long kMostMicroseconds = 100000;  // that one wait takes
enum WaitResult : u32 { kComplete = 0, kTimeout = 1 };

struct Event {
  u32 type = 0;
  bool auto_reset = false, signalled = false;
  u64 age = 1;  // how often it was signalled, and 1 more
  EventData data = {};
};
struct Events {
  Mutex lock;
  Condition changed;
  std::map<u32, Event> all;
  u32 last = 0;

  void raise(Event& event) {
    event.signalled = true;
    ++event.age;
    changed.wake_all();
  }
};
Events& events() { return immortal<Events>(); }

/// Calls `act` with an event; an error if there is none of this number.
template <class Act>
int with_event(u32 id, Act act) {
  Events& table = events();
  const Guard guard(table.lock);
  const auto found = table.all.find(id);
  if (found == table.all.end()) return -EINVAL;
  act(table, found->second);
  return 0;
}

/// Whether an event has come since the waiter looked; one that is gone has.
bool has_come(const EventData& wanted) {
  const auto found = events().all.find(wanted.id);
  if (found == events().all.end()) return true;
  const Event& event = found->second;
  return event.signalled || (event.type == kSignalEvent && wanted.age != 0 && wanted.age != event.age);
}

/// Tells the waiter what has come.
void take(EventData& wanted) {
  const auto found = events().all.find(wanted.id);
  if (found == events().all.end()) return;
  Event& event = found->second;
  if (!has_come(wanted)) return;
  if (event.auto_reset) event.signalled = false;
  if (event.type == kSignalEvent) {
    wanted.age = event.age;
  } else {
    wanted.fault = event.data.fault;
  }
}

}  // namespace

int create_event(CreateEvent& call) {
  Events& table = events();
  const Guard guard(table.lock);
  if (table.all.size() >= kMostEvents) return -ENOSPC;
  do { table.last = table.last % (kMostEvents - 1) + 1; } while (table.all.count(table.last) != 0);
  Event& event = table.all[table.last];
  event.type = call.type;
  event.auto_reset = call.auto_reset != 0;
  call.id = call.trigger = call.slot = table.last;
  call.page = kEventPage;
  return 0;
}

int destroy_event(EventNumber& call) {
  Events& table = events();
  const Guard guard(table.lock);
  const bool known = table.all.erase(call.id) != 0;
  table.changed.wake_all();
  return known ? 0 : -EINVAL;
}

int set_event(EventNumber& call) {
  return with_event(call.id, [](Events& table, Event& event) { table.raise(event); });
}
int reset_event(EventNumber& call) {
  return with_event(call.id, [](Events&, Event& event) { event.signalled = false; });
}
void raise_event(u32 id) {
  with_event(id, [](Events& table, Event& event) { table.raise(event); });
}

void raise_memory_fault(int gpu, u64 address) {
  Events& table = events();
  const Guard guard(table.lock);
  for (auto& [id, event] : table.all) {
    if (event.type != kMemoryEvent) continue;
    event.data.fault = {.not_present = 1,
                        .read_only = 0,
                        .no_execute = 0,
                        .imprecise = 0,
                        .address = address,
                        .gpu_id = kFirstGpu + static_cast<u32>(gpu),
                        .kind = 0};
    table.raise(event);
  }
}

int wait_events(WaitEvents& call) {
  EventData* const wanted = reinterpret_cast<EventData*>(call.events);
  Events& table = events();
  const Guard guard(table.lock);
  for (u32 n = 0; n < call.count; ++n) {
    if (table.all.count(wanted[n].id) == 0) return -EINVAL;
  }
  const u64 end = milliseconds() + call.milliseconds;
  for (;;) {
    u32 come = 0;
    for (u32 n = 0; n < call.count; ++n) come += has_come(wanted[n]);
    const bool enough = call.all != 0 ? come == call.count : come != 0;
    const u64 now = milliseconds();
    if (enough || (call.milliseconds != kForever && now >= end)) {
      for (u32 n = 0; enough && n < call.count; ++n) take(wanted[n]);
      call.result = enough ? kComplete : kTimeout;
      return 0;
    }
    const u64 left = call.milliseconds == kForever ? u64{kForever} : end - now;
    table.changed.wait_for(table.lock, static_cast<long>(std::min<u64>(1000 * left, kMostMicroseconds)));
  }
}

}  // namespace ckemu::kfd
