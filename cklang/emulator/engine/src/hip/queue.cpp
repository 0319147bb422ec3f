// SPDX-License-Identifier: MIT
#include "hip/queue.h"

#include <algorithm>

#include "core/clock.h"
#include "core/environment.h"
#include "core/immortal.h"
#include "core/pool.h"
#include "core/progress.h"
#include "core/thread.h"
#include "hip/capture.h"
#include "hip/device.h"

namespace ckemu {

namespace {

constexpr u32 kMostThreads = 64;
// How long a thread without work sleeps while commands come: most are run by the thread that waits for them
// before it looks again, and waking it would take longer than a small kernel.
constexpr long kNap = 100;  // microseconds
// A thread without work takes what nobody has begun for so long: a caller that waits will have, and would
// have to be woken by this thread.
constexpr u64 kPatience = 20000;  // nanoseconds

int g_host_work = 0;

u32 host_work_count() { return static_cast<u32>(__atomic_load_n(&g_host_work, __ATOMIC_RELAXED)); }

thread_local bool t_waits_soon = false;

}  // namespace

Queue::Queue(Device& gpu, bool blocks, u32 its_flags, int its_priority)
    : device(gpu), blocking(blocks), flags(its_flags), priority(its_priority) {}
Queue::~Queue() = default;

/// All queues of the process and the threads that work on them.
class Machine {
 public:
  Machine() {
    prepare_to_share();  // its handlers come first, so they run after these: a kernel that runs needs its lock
    pthread_atfork([] { immortal<Machine>().before_fork(); }, [] { immortal<Machine>().after_fork_in_parent(); },
                   [] { immortal<Machine>().after_fork(); });
  }

  Ref<Queue> open(Device& gpu, bool blocking, u32 flags, int priority) {
    Ref<Queue> queue = Ref<Queue>::make(gpu, blocking, flags, priority);
    const Guard guard(lock_);
    open_.push_back(queue);
    return queue;
  }
  void close(const Ref<Queue>& queue) {
    const Guard guard(lock_);
    queue->closed_ = true;
    drop_if_over(*queue);
  }
  Ref<Queue> null(Device& gpu) {
    const Guard guard(lock_);
    return null_of(gpu);
  }

  Point add(const Ref<Queue>& queue, Command&& command) {
    const Guard guard(lock_);
    put_legacy_order(*queue, command);
    command.since = nanoseconds();
    queue->commands_.push_back(static_cast<Command&&>(command));
    ++queue->enqueued_;
    ++added_;
    if (queue->commands_.size() == 1 && !queue->running_) busy_.push_back(queue);
    if (!t_waits_soon) call_for_help();  // waking a thread takes longer than all else that a launch does
    return {queue, queue->enqueued_};
  }
  Point now(const Ref<Queue>& queue) {
    const Guard guard(lock_);
    return {queue, queue->enqueued_};
  }
  bool reached(const Point& point) {
    const Guard guard(lock_);
    return over(point);
  }
  void promise_to_wait(bool promised) {
    const bool broken = t_waits_soon && !promised;
    t_waits_soon = promised;
    if (!broken) return;
    const Guard guard(lock_);
    call_for_help();
  }
  /// A thread that waits to fork may have waited for what has now become a callback.
  void note_host_work() {
    const Guard guard(lock_);
    if (forking_) done_.wake_all();
  }
  void await(const Point& point) {
    t_waits_soon = false;
    const Guard guard(lock_);
    while (!over(point)) {
      const Ref<Queue> next = towards(point.queue);
      if (next) {
        run_one(next);
      } else {
        done_.wait(lock_);
      }
    }
    call_for_help();
  }
  void run_alone(const Action& action) {
    before_fork();
    action();
    after_fork_in_parent();
  }
  std::vector<Point> points(const Device& gpu) {
    const Guard guard(lock_);
    std::vector<Point> all;
    const auto add_one = [&](const Ref<Queue>& queue) {
      if (&queue->device == &gpu) all.push_back({queue, queue->enqueued_});
    };
    for (const Ref<Queue>& queue : null_) add_one(queue);
    for (const Ref<Queue>& queue : open_) add_one(queue);
    return all;
  }

 private:
  Ref<Queue> null_of(Device& gpu) {
    for (const Ref<Queue>& queue : null_) {
      if (&queue->device == &gpu) return queue;
    }
    null_.push_back(Ref<Queue>::make(gpu, true, 0u, 0));
    return null_.back();
  }
  static bool over(const Point& point) { return point.queue->done_ >= point.number; }
  bool ready(const Queue& queue) const {
    if (forking_ || queue.running_ || queue.commands_.empty()) return false;
    const std::vector<Point>& after = queue.commands_.front().after;
    return std::all_of(after.begin(), after.end(), over);
  }
  /// A queue whose next command must run before `queue` can go on, and can; none if others are at it.
  Ref<Queue> towards(Ref<Queue> queue) const {
    for (;;) {
      if (forking_ || queue->running_ || queue->commands_.empty()) return {};
      const std::vector<Point>& after = queue->commands_.front().after;
      const auto missing = std::find_if(after.begin(), after.end(), [](const Point& point) { return !over(point); });
      if (missing == after.end()) return queue;
      queue = Ref<Queue>(missing->queue);
    }
  }
  /// The null stream and the blocking streams of a device wait for each other.
  void put_legacy_order(const Queue& queue, Command& command) {
    const auto put_after = [&](const Ref<Queue>& other) {
      if (other->done_ < other->enqueued_) command.after.push_back({other, other->enqueued_});
    };
    const Ref<Queue> null = null_of(queue.device);
    if (null.get() != &queue) {
      if (queue.blocking) put_after(null);
      return;
    }
    for (const Ref<Queue>& other : open_) {
      if (&other->device == &queue.device && other->blocking) put_after(other);
    }
  }
  void drop_if_over(const Queue& queue) {
    if (!queue.closed_ || queue.done_ != queue.enqueued_) return;
    std::erase_if(open_, [&](const Ref<Queue>& other) { return other.get() == &queue; });
  }
  /// The queue to work on next, of those whose next command is from before `until`; none if none can go on.
  Ref<Queue> pick(u64 until = ~u64{0}) const {
    Ref<Queue> best;
    for (const Ref<Queue>& queue : busy_) {
      if (ready(*queue) && queue->commands_.front().since <= until && (!best || queue->priority < best->priority))
        best = queue;
    }
    return best;
  }
  /// Called locked; runs the next command of `queue` without the lock.
  void run_one(const Ref<Queue>& queue) {
    {
      Command command = static_cast<Command&&>(queue->commands_.front());
      queue->commands_.pop_front();
      queue->running_ = true;
      ++running_;
      lock_.unlock();
      if (command.action && (command.always || queue->device.failure() == hipSuccess)) command.action();
      command = Command{};
      lock_.lock();
    }
    --running_;
    end_command(*queue);
    note_progress();
    if (queue->commands_.empty()) {
      std::erase_if(busy_, [&](const Ref<Queue>& other) { return other.get() == queue.get(); });
      drop_if_over(*queue);
    }
    done_.wake_all();
  }
  static void end_command(Queue& queue) {
    queue.running_ = false;
    ++queue.done_;
  }
  /// Gets a thread to work if there is something to do. Called locked.
  void call_for_help() {
    if (napping_ != 0 || !pick()) return;
    if (idle_ != 0) {
      work_.wake_one();
    } else if (threads_ < kMostThreads && start_thread(enter, this)) {
      ++threads_;
    }
  }
  void serve() {
    const Guard guard(lock_);
    bool working = false;  // what is there has to wait no longer
    for (;;) {
      const Ref<Queue> queue = pick(working ? ~u64{0} : nanoseconds() - kPatience);
      working = static_cast<bool>(queue);
      if (queue) {
        queue->running_ = true;  // so that the next one picks another
        call_for_help();
        run_one(queue);
      } else if (napping_ == 0 && (added_ != looked_ || pick())) {
        looked_ = added_;
        ++napping_;
        work_.wait_for(lock_, pick() ? static_cast<long>(kPatience / 1000) : kNap);
        --napping_;
      } else {
        ++idle_;
        work_.wait(lock_);
        --idle_;
      }
    }
  }
  static void* enter(void* machine) {
    static_cast<Machine*>(machine)->serve();
    return nullptr;
  }
  /// Returns locked, when no kernel or copy runs: the thread that runs one would be missing in the child. Those
  /// that have not begun are in both processes, and each runs them on memory of its own. Callbacks are not
  /// waited for: they may need what the forking thread holds (Python's interpreter lock).
  void before_fork() {
    lock_.lock();
    forking_ = true;
    while (running_ > host_work_count()) {
      done_.wait(lock_);
      forking_ = true;  // a thread that came before has ended it
    }
  }
  void after_fork_in_parent() {
    forking_ = false;
    call_for_help();
    done_.wake_all();
    lock_.unlock();
  }
  void after_fork() {  // only the forking thread is left
    forking_ = false;
    threads_ = idle_ = napping_ = running_ = 0;
    for (const std::vector<Ref<Queue>>* queues : {&null_, &open_}) {
      for (const Ref<Queue>& queue : *queues) {
        if (queue->running_) end_command(*queue);  // a callback, which the parent runs
      }
    }
    work_.reset();
    done_.reset();
    lock_.unlock();
  }

  Mutex lock_;
  Condition work_, done_;
  std::vector<Ref<Queue>> null_, open_;
  std::vector<Ref<Queue>> busy_;  // with commands
  u32 threads_ = 0, idle_ = 0, napping_ = 0;
  u64 added_ = 0, looked_ = 0;  // commands, and those that there were when a thread last went to sleep
  u32 running_ = 0;             // commands, by whichever thread
  bool forking_ = false;        // a thread waits until no command runs: none begins
};

namespace {
Machine& machine() { return immortal<Machine>(); }
bool& waits_for_launches() {
  static bool wait = environment().launches_wait;
  return wait;
}
}  // namespace

Ref<Queue> open_queue(Device& gpu, bool blocking, u32 flags, int priority) {
  return machine().open(gpu, blocking, flags, priority);
}
void close_queue(const Ref<Queue>& queue) { machine().close(queue); }
Ref<Queue> null_queue(Device& gpu) { return machine().null(gpu); }
Point enqueue(const Ref<Queue>& queue, Command&& command) {
  return machine().add(queue, static_cast<Command&&>(command));
}
void promise_to_wait(bool promised) { machine().promise_to_wait(promised); }
void let_launches_wait(bool wait) { __atomic_store_n(&waits_for_launches(), wait, __ATOMIC_RELAXED); }
bool launches_wait() { return __atomic_load_n(&waits_for_launches(), __ATOMIC_RELAXED); }
Point point_of(const Ref<Queue>& queue) { return machine().now(queue); }
bool reached(const Point& point) { return machine().reached(point); }
void await(const Point& point) { machine().await(point); }
void await_device(Device& gpu) {
  for (const Point& point : machine().points(gpu)) machine().await(point);
}
bool device_idle(Device& gpu) {
  const std::vector<Point> points = machine().points(gpu);
  return std::all_of(points.begin(), points.end(), ckemu::reached);
}

void run_alone(const Action& action) { machine().run_alone(action); }

bool host_work_runs() { return host_work_count() != 0; }
HostWork::HostWork() {
  __atomic_add_fetch(&g_host_work, 1, __ATOMIC_RELAXED);
  machine().note_host_work();
}
HostWork::~HostWork() { __atomic_sub_fetch(&g_host_work, 1, __ATOMIC_RELAXED); }

}  // namespace ckemu
