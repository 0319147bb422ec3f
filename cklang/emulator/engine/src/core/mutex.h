// SPDX-License-Identifier: MIT
//
// A lock and a condition to wait for under it.
#pragma once

#include <pthread.h>
#include <time.h>

namespace ckemu {

class Mutex {
 public:
  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  friend class Condition;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

struct Guard {
  explicit Guard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Guard() { mutex_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Mutex& mutex_;
};

class Condition {
 public:
  void wait(Mutex& held) { pthread_cond_wait(&condition_, &held.mutex_); }
  void wait_for(Mutex& held, long microseconds) {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000 * microseconds;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
    pthread_cond_timedwait(&condition_, &held.mutex_, &until);
  }
  void wake_one() { pthread_cond_signal(&condition_); }
  void wake_all() { pthread_cond_broadcast(&condition_); }
  /// Forgets who waits: after a fork they are no more.
  void reset() { condition_ = PTHREAD_COND_INITIALIZER; }

 private:
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace ckemu
