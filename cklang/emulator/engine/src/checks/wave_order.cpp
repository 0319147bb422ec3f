// SPDX-License-Identifier: MIT
#include "checks/wave_order.h"

#include <algorithm>

#include "core/workgroup.h"

namespace ckemu {

void WaveOrder::pass(One& one) {
  one.passed = static_cast<u32>(one.arrivals.size());
  const auto fewer = [](const One& a, const One& b) { return a.passed < b.passed; };
  passed_by_all_ = std::min_element(waves_.begin(), waves_.end(), fewer)->passed;
}

void WaveOrder::arrive(const Wave& w, Op barrier) {
  One& one = waves_[w.id];
  switch (barrier) {
    case Op::s_barrier: one.arrivals.push_back(one.under_way.ended()); return pass(one);
    case Op::s_barrier_signal:
    case Op::s_barrier_signal_isfirst: one.arrivals.push_back(one.under_way.ended()); return;
    case Op::s_barrier_wait:  // comes again if it has to wait
      if (w.group->phase != w.signalled) pass(one);
      return;
    default: return;
  }
}

void WaveOrder::before(const Wave& w, const Code& c, const InFlight::Counting& counting) {
  if (counting.barrier) return arrive(w, c.inst->op);
  One& one = waves_[w.id];
  const auto finished = [](const InFlight::Operation&) {};
  if (counting.waits) one.under_way.wait_for(counting.limits, finished);
  if (counting.counts.counters == 0) return;
  one.under_way.start(c, counting.counts, finished);
  one.counter = InFlight::reported(counting.counts.counters);
}

WaveMoment WaveOrder::now(const Wave& w, InFlight::Counter other) const {
  const One& one = waves_[w.id];
  const u8 counter = other != InFlight::kCounters ? static_cast<u8>(other) : one.counter;
  return {static_cast<u32>(one.arrivals.size()), one.under_way.begun().count[counter], w.id, counter};
}

WaveOrder::Order WaveOrder::order(const WaveMoment& earlier, u8 wave) const {
  const u32 passed = waves_[wave].passed;
  if (earlier.wave == wave) return Order::Before;
  if (earlier.arrived >= passed) return Order::NoBarrier;
  const One& other = waves_[earlier.wave];
  if (passed > other.arrivals.size()) return Order::Before;  // it had ended by then
  return other.arrivals[passed - 1].count[earlier.counter] >= earlier.number ? Order::Before : Order::NotWaited;
}

bool WaveOrder::over(const WaveMoment& earlier) const {
  if (earlier.arrived >= passed_by_all_) return false;
  return waves_[earlier.wave].arrivals[passed_by_all_ - 1].count[earlier.counter] >= earlier.number;
}

void WaveOrder::describe(Order order, const WaveMoment& earlier, Text<128>& out) const {
  if (order == Order::NoBarrier) {
    out.add("no barrier is between");
    return;
  }
  out.add("no %s of that wave covers it before the barrier",
          InFlight::name_of(static_cast<InFlight::Counter>(earlier.counter), family_));
}

}  // namespace ckemu
