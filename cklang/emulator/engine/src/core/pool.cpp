// SPDX-License-Identifier: MIT
#include "core/pool.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "core/immortal.h"
#include "core/mutex.h"
#include "core/thread.h"

namespace ckemu {

class Pool {
 public:
  Pool() {
    pthread_atfork([] { immortal<Pool>().lock_.lock(); }, [] { immortal<Pool>().lock_.unlock(); },
                   [] { immortal<Pool>().after_fork(); });
  }
  void invite(SharedWork& work, u64 helpers) {
    const Guard guard(lock_);
    work.wanted_ = helpers;
    works_.push_back(&work);
    call();
  }
  void end(SharedWork& work) {
    const Guard guard(lock_);
    std::erase(works_, &work);
    while (work.inside_ != 0) left_.wait(lock_);
  }

 private:
  SharedWork* pick() const {
    const auto found =
        std::find_if(works_.begin(), works_.end(), [](const SharedWork* work) { return work->wanted_ != 0; });
    return found != works_.end() ? *found : nullptr;
  }
  /// Gets another thread if there is work for one; that one calls the next. Called locked.
  void call() {
    if (pick() == nullptr) return;
    if (idle_ != 0) {
      changed_.wake_one();
    } else if (threads_ + 1 < worker_count() && start_thread(enter, this)) {
      ++threads_;
    }
  }
  void serve() {
    const Guard guard(lock_);
    for (;;) {
      SharedWork* work = pick();
      if (work == nullptr) {
        ++idle_;
        changed_.wait(lock_);
        --idle_;
        continue;
      }
      --work->wanted_;
      ++work->inside_;
      call();
      lock_.unlock();
      work->work_(work->context_);
      lock_.lock();
      if (--work->inside_ == 0) left_.wake_all();
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
    works_.clear();
    lock_.unlock();
  }

  Mutex lock_;
  Condition changed_, left_;
  std::vector<SharedWork*> works_;
  u32 threads_ = 0, idle_ = 0;
};

u32 worker_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<u32>(std::max(1, CPU_COUNT(&set)));
}

void prepare_to_share() { immortal<Pool>(); }

void SharedWork::invite(u64 helpers) {
  invited_ = true;
  immortal<Pool>().invite(*this, helpers);
}
SharedWork::~SharedWork() {
  if (invited_) immortal<Pool>().end(*this);
}

}  // namespace ckemu
