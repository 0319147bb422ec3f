// SPDX-License-Identifier: MIT
//
// Work of a device in order: a queue behind each stream. Enqueuing returns at once; a queue's commands
// run one after the other, those of different queues side by side, on threads of ours or on that of a
// caller who waits, whichever is there first.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "core/ref.h"
#include "hip/graph.h"
#include "hip/hip_types.h"

namespace ckemu {

struct Device;
struct CapturePlace;
class Queue;

/// The first `number` commands of a queue: something to wait for.
struct Point {
  Ref<Queue> queue;
  u64 number = 0;
};

/// A command: what to do once all of `after` is done.
struct Command {
  Action action;
  std::vector<Point> after;
  bool always = false;  // even if the device has failed
  u64 since = 0;        // when it was enqueued, in nanoseconds
};

class Queue {
 public:
  Queue(Device& gpu, bool blocking, u32 flags, int priority);
  ~Queue();

  Device& device;
  const bool blocking;  // takes turns with the device's null stream
  const u32 flags;
  const int priority;                      // the lower, the sooner
  std::unique_ptr<CapturePlace> captured;  // where commands go instead of running, if anywhere; see hip/capture.h
  bool capturing = false;                  // whether `captured` is set, to be asked without a lock

 private:
  friend class Machine;
  u64 enqueued_ = 0, done_ = 0;
  bool running_ = false;
  bool closed_ = false;
  std::deque<Command> commands_;
};

/// A new queue of `gpu`; `close_queue` lets it end when it is empty.
Ref<Queue> open_queue(Device& gpu, bool blocking, u32 flags, int priority);
void close_queue(const Ref<Queue>& queue);
/// The queue of the null stream.
Ref<Queue> null_queue(Device& gpu);

/// Appends a command, after what the rules of the null stream put before it; the point at which it is done.
Point enqueue(const Ref<Queue>& queue, Command&& command);
/// The calling thread says that it waits for what it enqueues from now on, or no longer says so. It runs these
/// commands itself while it waits, so no thread is woken for them; the word holds until its next wait.
void promise_to_wait(bool promised);
/// Whether launches from now on return when their kernels are done; at first HIP_LAUNCH_BLOCKING says so.
void let_launches_wait(bool wait);
bool launches_wait();
/// Where `queue` is now: all that was enqueued so far.
Point point_of(const Ref<Queue>& queue);
bool reached(const Point& point);
/// Returns when `point` is reached, and works on what it takes meanwhile.
void await(const Point& point);
/// Waits for everything enqueued on a device.
void await_device(Device& gpu);
bool device_idle(Device& gpu);

/// Calls `action` while no kernel and no copy runs, and none begins.
void run_alone(const Action& action);

/// Whether commands other than kernels run now (kernels may wait for what they do).
bool host_work_runs();
/// Marks the calling command as such.
struct HostWork {
  HostWork();
  ~HostWork();
};

}  // namespace ckemu
