// SPDX-License-Identifier: MIT
#include "debug/execution.h"

#include <algorithm>

#include "core/execute.h"
#include "hip/hostcall.h"

namespace ckemu {

Execution::Execution(const Launch& launch) : launch_(launch) {
  launch_.record = nullptr;
  launch_.stepwise = true;
  begin_counting();
}

void Execution::begin_counting() {
  dice_ = Dice(launch_.schedule, ~u64{0});
  counts_.assign(launch_.program->dwords(), 0);
  counters_ = Counters{};
  counters_.executed = counts_.data();
  counters_.ticks = &steps_;
  races_ = launch_.races != nullptr ? std::make_unique<GlobalRaces>(launch_) : nullptr;
  launch_.races = races_.get();
}

void Execution::restart() {
  journal_.restore();
  while (!groups_.empty()) {
    spare_.push_back(static_cast<std::unique_ptr<LiveGroup>&&>(groups_.back()));
    groups_.pop_back();
  }
  waiting_.clear();
  current_ = nullptr;
  begun_ = steps_ = 0;
  fault_ = Fault{};
  begin_counting();
}

LiveGroup* Execution::live(u64 number) const {
  for (const auto& each : groups_) {
    if (each->number == number) return each.get();
  }
  return nullptr;
}

void Execution::begin_group() {
  if (spare_.empty()) spare_.push_back(std::make_unique<LiveGroup>());
  groups_.push_back(static_cast<std::unique_ptr<LiveGroup>&&>(spare_.back()));
  spare_.pop_back();
  current_ = groups_.back().get();
  current_->number = begun_;
  current_->group.begin(launch_, begun_++);
  current_->executed.assign(current_->group.waves.size(), 0);
}

bool Execution::take() {
  if (begun_ < launch_.total() && groups_.size() < launch_.resident) {
    begin_group();
  } else if (!waiting_.empty()) {
    if (launch_.schedule != 0) std::swap(waiting_.front(), waiting_[dice_.below(static_cast<u32>(waiting_.size()))]);
    current_ = waiting_.front();
    waiting_.pop_front();
  } else {
    return false;
  }
  slice_ = next_slice(launch_.schedule, dice_);
  begin_round();
  return true;
}

void Execution::begin_round() {
  turn_ = ended_ = blocked_ = slept_ = 0;
  share_ = 0;
  first_ = current_->group.first_turn();
}

Wave* Execution::next() {
  if (fault_.kind != FaultKind::None) return nullptr;
  while (current_ != nullptr || take()) {
    if (turn_ == current_->group.waves.size()) {
      end_round();
      continue;
    }
    Wave& wave = turn_wave();
    if (wave.state == WaveState::Ready) {
      if (share_ == 0) share_ = current_->group.share();
      return &wave;
    }
    end_turn(wave);
  }
  return nullptr;
}

const Wave* Execution::wave_at_turn() const {
  const bool some = current_ != nullptr && turn_ < current_->group.waves.size();
  return some ? &turn_wave() : nullptr;
}

void Execution::step() {
  Wave& wave = turn_wave();
  wave.counters = &counters_;
  wave.spread = &spread_;
  wave.current = wave.next;  // where it fails, if what it writes is not there
  if (wave.next->inst != nullptr) journal_.before(wave, *wave.next);
  run_wave(wave, 1);
  ++steps_;
  --slice_;
  ++current_->executed[wave.id];
  if (wave.state != WaveState::Ready || wave.yielded || --share_ == 0) end_turn(wave);
}

void Execution::end_turn(const Wave& wave) {
  slept_ += wave.state == WaveState::Ready && wave.yielded;
  ended_ += wave.state == WaveState::Ended;
  blocked_ += wave.state == WaveState::Barrier;
  ++turn_;
  share_ = 0;
}

void Execution::end_round() {
  const u32 count = static_cast<u32>(current_->group.waves.size());
  const bool asleep = ended_ + blocked_ + slept_ == count;
  --slice_;
  if (ended_ == count) return retire();
  if (ended_ + blocked_ == count) current_->group.release_barrier();
  if ((asleep && ended_ + blocked_ != count) || slice_ <= 0) {
    waiting_.push_back(current_);
    current_ = nullptr;
  } else {
    begin_round();
  }
  if (launch_.hostcall == nullptr) return;
  furthest_ = std::max(furthest_, steps_);
  launch_.hostcall->mute(steps_ < furthest_);
  launch_.hostcall->serve();
}

void Execution::retire() {
  const auto place =
      std::find_if(groups_.begin(), groups_.end(), [&](const auto& each) { return each.get() == current_; });
  spare_.push_back(static_cast<std::unique_ptr<LiveGroup>&&>(*place));
  groups_.erase(place);
  current_ = nullptr;
}

void Execution::fail(const Fault& fault) { fault_ = fault; }

void Execution::finish(LaunchResult& result) const {
  result = LaunchResult{};
  result.executed = counts_;
  result.bytes_loaded = counters_.bytes_loaded;
  result.bytes_stored = counters_.bytes_stored;
  result.numerics = launch_.numerics;
  result.fault = fault_;
}

}  // namespace ckemu
