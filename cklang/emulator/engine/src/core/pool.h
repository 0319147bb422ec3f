// SPDX-License-Identifier: MIT
//
// Threads that help a caller with work that any number of them can share.
#pragma once

#include "core/base.h"

namespace ckemu {

/// The number of threads that can run at a time.
u32 worker_count();

/// Calls of `work(context)` on threads that are free, beside the one that the owner makes itself.
class SharedWork {
 public:
  SharedWork(void (*work)(void*), void* context) : work_(work), context_(context) {}
  /// Returns when all threads that have come are done; no other one comes.
  ~SharedWork();
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;
  /// Lets up to `helpers` threads come. Once at most.
  void invite(u64 helpers);

 private:
  friend class Pool;
  void (*work_)(void*);
  void* context_;
  u64 wanted_ = 0;  // helpers that may still come
  u32 inside_ = 0;  // helpers at work
  bool invited_ = false;
};

/// Registers the handlers of `fork` that this part needs. Of those registered later the first runs earlier.
void prepare_to_share();

}  // namespace ckemu
