// SPDX-License-Identifier: MIT
#include "core/pool.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "core/immortal.h"
#include "core/mutex.h"
#include "core/thread.h"

namespace ckemu {

namespace {

struct Job {
  void (*work)(void*);
  void* context;
  u64 wanted;      // helpers that may still come
  u32 inside = 0;  // helpers at work
};

class Pool {
 public:
  Pool() {
    pthread_atfork([] { immortal<Pool>().lock_.lock(); }, [] { immortal<Pool>().lock_.unlock(); },
                   [] { immortal<Pool>().after_fork(); });
  }
  void run(Job& job) {
    if (job.wanted == 0) {
      job.work(job.context);
      return;
    }
    {
      const Guard guard(lock_);
      jobs_.push_back(&job);
      for (u64 n = std::min<u64>(job.wanted, idle_); n != 0; --n) changed_.wake_one();
      for (u64 n = idle_; n < job.wanted && threads_ + 1 < worker_count() && start_thread(enter, this); ++n) ++threads_;
    }
    job.work(job.context);
    const Guard guard(lock_);
    std::erase(jobs_, &job);
    while (job.inside != 0) left_.wait(lock_);
  }

 private:
  Job* pick() const {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return job->wanted != 0; });
    return found != jobs_.end() ? *found : nullptr;
  }
  void serve() {
    const Guard guard(lock_);
    for (;;) {
      Job* job = pick();
      if (job == nullptr) {
        ++idle_;
        changed_.wait(lock_);
        --idle_;
        continue;
      }
      --job->wanted;
      ++job->inside;
      lock_.unlock();
      job->work(job->context);
      lock_.lock();
      if (--job->inside == 0) left_.wake_all();
    }
  }
  static void* enter(void* pool) {
    static_cast<Pool*>(pool)->serve();
    return nullptr;
  }
  void after_fork() {  // only the forking thread is left
    threads_ = idle_ = 0;
    changed_.reset();
    left_.reset();
    jobs_.clear();
    lock_.unlock();
  }

  Mutex lock_;
  Condition changed_, left_;
  std::vector<Job*> jobs_;
  u32 threads_ = 0, idle_ = 0;
};

}  // namespace

u32 worker_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<u32>(std::max(1, CPU_COUNT(&set)));
}

void prepare_to_share() { immortal<Pool>(); }

void run_shared(void (*work)(void*), void* context, u64 helpers) {
  Job job{work, context, helpers};
  immortal<Pool>().run(job);
}

}  // namespace ckemu
