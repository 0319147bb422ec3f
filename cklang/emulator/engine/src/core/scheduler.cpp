// SPDX-License-Identifier: MIT
//
// Workgroups over threads. Up to `resident` workgroups are under way at a time; each runs for a
// slice and then queues up again, so that workgroups that wait for each other all get time. A thread
// takes several brief workgroups at a time, since what threads share costs them time.
#include <algorithm>
#include <deque>
#include <memory>

#include <immintrin.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/environment.h"
#include "core/launch.h"
#include "core/pool.h"
#include "core/progress.h"
#include "core/workgroup.h"
#include "hip/hostcall.h"
#include "hip/peers.h"
#include "hip/queue.h"
#include "translate/translate.h"

namespace ckemu {

namespace {

constexpr u64 kLeastPatience = 16;  // slices of each workgroup, however many there are
// A launch that is over sooner runs on one thread: waking another takes as long.
constexpr u64 kBrief = 20000;  // nanoseconds
// Workgroups that a thread takes at a time last about as long. The lock costs a hundredth of that.
constexpr u64 kTurn = 20000;
// Of the workgroups that are left a thread takes a part of its share, so that all end together.
constexpr u64 kParts = 4;

/// Workgroups under way at a time: as many as the GPU holds, or fewer if that is asked for.
u64 under_way(const Launch& launch) {
  const u64 limit = resident_limit();
  return limit == 0 || launch.together ? launch.resident : std::min<u64>(limit, launch.resident);
}

class Scheduler {
 public:
  Scheduler(const Launch& launch, LaunchResult& result)
      // Another order is one that can be repeated: one thread.
      : launch_(launch), result_(result), alone_(launch.schedule != 0 || launch.total() == 1) {}

  /// Runs the launch, on this thread and those that help.
  void run() {
    SharedWork shared(enter, this);
    shared_ = &shared;
    const u64 cost = launch_.program->cost();
    if (!alone_ && (cost == 0 || cost * launch_.total() > kBrief)) invite();
    work();
  }

  /// What each participating thread does until the launch is over.
  void work() {
    FaultFrame frame;
    Counters counters;
    Broadcasts spread;
    std::vector<u64> executed(launch_.program->dwords());
    counters.executed = executed.data();
    counters.lanes_at_hand = lanes_;
    Translation& plain = launch_.program->translation(false, lanes_);
    Translation& checked = launch_.program->translation(true, lanes_);  // of recorded waves, too
    const bool both = launch_.checked() || launch_.record != nullptr;
    std::vector<u64> segments(how_ != Translate::Off ? (both ? 2 : 1) * plain.capacity() : 0);
    if (how_ != Translate::Off) counters.segments = segments.data();
    counters.eager = how_ == Translate::All;
    fault_frame() = &frame;
    lock_.lock();
    for (Turn turn = take(); turn.group != nullptr; turn = take()) {
      lock_.unlock();
      const u32 before = _mm_getcsr();
      _mm_setcsr(0x1f80);
      const u64 before_run = counters.progress;
      const bool fine = run(turn, counters, spread, frame);
      _mm_setcsr(before);
      lock_.lock();
      Workgroup& group = *turn.group;
      give_back(turn, fine, frame);
      if (fine && !group.done) {
        const bool silent = counters.progress == before_run;
        if (silent) note_silence(group);
        else note_progress();
        note_time();
        if (silent && have_peers()) leave_time();
      }
      if (!alone_ && !invited_ && nanoseconds() - start_ > kBrief) invite();
    }
    plain.spread(segments, executed);
    checked.spread(segments, executed);
    for (size_t n = 0; n < executed.size(); ++n) result_.executed[n] += executed[n];
    result_.bytes_loaded += counters.bytes_loaded;
    result_.bytes_stored += counters.bytes_stored;
    lock_.unlock();
    fault_frame() = nullptr;
  }
  /// Completes the report once no thread runs any more.
  void finish() {
    if (result_.fault.kind == FaultKind::None) {
      launch_.program->note_cost((nanoseconds() - start_) * (invited_ ? helpers_ + 1 : 1) / launch_.total() + 1);
    }
    for (std::unique_ptr<Workgroup>& group : spare_) keep_spare(static_cast<std::unique_ptr<Workgroup>&&>(group));
    if (result_.fault.kind != FaultKind::Deadlock || !result_.fault.message.empty()) return;
    if (late_) return describe_timeout(live_, limit_, result_.fault.message);
    describe_deadlock(live_, unstarted(), result_.fault.message);
    if (!no_help_.empty()) result_.fault.message.add("\n  %s", no_help_.c_str());
  }

 private:
  static void enter(void* scheduler) { static_cast<Scheduler*>(scheduler)->work(); }
  void invite() {
    invited_ = true;
    helpers_ = std::min<u64>(worker_count(), launch_.total()) - 1;
    if (helpers_ != 0) shared_->invite(helpers_);
  }
  struct Numbers {
    u64 next = 0, end = 0;
    bool empty() const { return next == end; }
  };
  /// What a thread runs before it asks again: a slice of a workgroup that is under way, or workgroups to
  /// begin, one after the other, in the memory of one.
  struct Turn {
    std::unique_ptr<Workgroup> group;
    Numbers numbers{};   // to begin
    bool first = false;  // the workgroup has had no slice before
  };
  /// The next turn, without a workgroup when there is nothing left to do. Called locked.
  Turn take() {
    for (;;) {
      if (result_.fault.kind != FaultKind::None) return {};
      if (launch_.record != nullptr) started_ = next_to_run(started_, launch_.total());
      if (unstarted() != 0 && running_ + waiting_.size() < resident_) {
        Turn turn{fresh(), numbers(), true};
        note_progress();
        ++running_;
        ++beginning_;
        return turn;
      }
      if (!waiting_.empty()) {
        if (launch_.schedule != 0)
          std::swap(waiting_.front(), waiting_[dice_.below(static_cast<u32>(waiting_.size()))]);
        Turn turn{static_cast<std::unique_ptr<Workgroup>&&>(waiting_.front())};
        waiting_.pop_front();
        ++running_;
        return turn;
      }
      if (running_ == 0) return {};
      changed_.wait(lock_);
    }
  }
  /// Workgroups that no thread has taken, or that were given back.
  u64 unstarted() const {
    u64 count = launch_.total() - started_;
    for (const Numbers& some : returned_) count += some.end - some.next;
    return count;
  }
  /// The lowest numbers that nobody has taken.
  Numbers numbers() {
    const auto lowest = std::min_element(returned_.begin(), returned_.end(),
                                         [](const Numbers& a, const Numbers& b) { return a.next < b.next; });
    if (lowest != returned_.end()) {
      const u64 number = lowest->next++;
      if (lowest->empty()) returned_.erase(lowest);
      return {number, number + 1};
    }
    const u64 first = started_;
    started_ += several();
    return {first, started_};
  }
  /// How many workgroups a thread takes. One where a workgroup has not ended in its first slice: it is
  /// long, or waits for one of a lower number, which should not be far behind.
  u64 several() const {
    const u64 cost = launch_.program->cost();
    if (!invited_ || launch_.record != nullptr || long_ || cost == 0) return 1;
    const u64 share = (launch_.total() - started_) / (kParts * (helpers_ + 1));
    return std::max<u64>(1, std::min(share, kTurn / cost));
  }
  std::unique_ptr<Workgroup> fresh() {
    if (spare_.empty()) {
      std::unique_ptr<Workgroup> kept = take_spare(*launch_.program);
      return kept != nullptr ? static_cast<std::unique_ptr<Workgroup>&&>(kept) : std::make_unique<Workgroup>();
    }
    std::unique_ptr<Workgroup> group = static_cast<std::unique_ptr<Workgroup>&&>(spare_.back());
    spare_.pop_back();
    return group;
  }
  void give_back(Turn& turn, bool fine, FaultFrame& frame) {
    --running_;
    if (turn.first) --beginning_;
    if (!turn.numbers.empty()) returned_.push_back(turn.numbers);
    Workgroup* const group = turn.group.get();
    if (fine && !group->done) {
      long_ = true;
      if (turn.first) live_.push_back(group);
      waiting_.push_back(static_cast<std::unique_ptr<Workgroup>&&>(turn.group));
    } else {
      if (!turn.first) std::erase(live_, group);
      note_progress();
      if (fine) spare_.push_back(static_cast<std::unique_ptr<Workgroup>&&>(turn.group));
      else if (result_.fault.kind == FaultKind::None) result_.fault = frame.fault;
    }
    changed_.wake_all();
  }
  /// Ends the launch if nobody can go on. Called locked; other threads, and other launches, run their
  /// groups meanwhile, but without progress of theirs so far, which a stuck group would need.
  void note_silence(Workgroup& group) {
    group.silence.note(group, progress());
    const bool full = beginning_ == 0 && (unstarted() == 0 || live_.size() >= resident_);
    const u64 slices = std::max(kLeastPatience, patience() / live_.size());
    if (!full || host_work_runs() || result_.fault.kind != FaultKind::None || !group.silence.stuck(progress(), slices))
      return;
    for (const Workgroup* other : live_) {
      if (!other->silence.stuck(progress(), slices)) return;
    }
    if (have_peers() && peers_.may_help(no_help_)) return;
    result_.fault.kind = FaultKind::Deadlock;
  }
  /// What a workgroup polls for may have to come from another process. Called locked.
  void leave_time() {
    lock_.unlock();
    pause_for_peers();
    lock_.lock();
  }
  /// Ends a launch that takes longer than is allowed.
  void note_time() {
    if (limit_ == 0 || result_.fault.kind != FaultKind::None || nanoseconds() - start_ < limit_ * 1000000) return;
    late_ = true;
    result_.fault.kind = FaultKind::Deadlock;
  }
  /// Runs a slice of a workgroup, and begins the next one of the turn each time that one ends.
  bool run(Turn& turn, Counters& counters, Broadcasts& spread, FaultFrame& frame) {
    Workgroup& group = *turn.group;
    do {
      if (!turn.numbers.empty()) group.begin(launch_, turn.numbers.next++);
      const bool fine = run(group, counters, spread, frame);
      if (launch_.hostcall != nullptr) launch_.hostcall->serve();
      if (!fine) return false;
      if (group.done) counted_.note_end();
    } while (group.done && !turn.numbers.empty());
    return true;
  }
  bool run(Workgroup& group, Counters& counters, Broadcasts& spread, FaultFrame& frame) {
    if (sigsetjmp(frame.landing, 0) != 0) return false;
    group.run(counters, spread, next_slice(launch_.schedule, dice_));
    frame.wave = nullptr;
    return true;
  }

  const Launch& launch_;
  LaunchResult& result_;
  CountedGroups counted_{launch_.total()};
  const u64 resident_ = under_way(launch_);
  const bool alone_;      // no other thread may help
  bool invited_ = false;  // others may; until then this one is alone
  u64 helpers_ = 0;
  SharedWork* shared_ = nullptr;
  const u64 start_ = nanoseconds(), limit_ = timeout();  // nanoseconds, milliseconds
  const Translate how_ = translation();
  const u32 lanes_ = vector_bits() / 32;
  Dice dice_{launch_.schedule, ~u64{0}};
  bool late_ = false;
  PeerWatch peers_;
  Message no_help_;  // why other processes cannot let the launch go on
  Mutex lock_;
  Condition changed_;
  u64 started_ = 0;                     // lower numbers were taken
  std::vector<Numbers> returned_;       // but not begun
  bool long_ = false;                   // a workgroup has not ended in its first slice
  std::vector<Workgroup*> live_;        // have had a slice and are not done
  size_t running_ = 0, beginning_ = 0;  // turns under way; those of workgroups that have had no slice
  std::deque<std::unique_ptr<Workgroup>> waiting_;
  std::vector<std::unique_ptr<Workgroup>> spare_;
};

}  // namespace

void run_launch(const Launch& launch, LaunchResult& result) {
  const u64 start = nanoseconds();
  install_signal_handlers();
  result = LaunchResult{};
  result.executed.resize(launch.program->dwords());
  {
    Scheduler scheduler(launch, result);
    scheduler.run();
    scheduler.finish();
  }
  result.nanoseconds = nanoseconds() - start;
  result.numerics = launch.numerics;
}

}  // namespace ckemu
