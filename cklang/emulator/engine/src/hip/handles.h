// SPDX-License-Identifier: MIT
//
// Handles: objects that callers hold by address. A handle that is none of ours, or was destroyed, is
// found out before it is looked at.
#pragma once

#include <algorithm>
#include <memory>
#include <set>

#include "core/mutex.h"

namespace ckemu {

template <class T>
class Handles {
 public:
  T* add(std::unique_ptr<T>&& item) {
    const Guard guard(lock_);
    items_.insert(item.get());
    return item.release();
  }
  /// The object behind `handle`; null if there is none.
  T* find(const void* handle) {
    const Guard guard(lock_);
    T* item = static_cast<T*>(const_cast<void*>(handle));
    return items_.count(item) != 0 ? item : nullptr;
  }
  /// Whether `holds` for one of them.
  template <class Predicate>
  bool any(Predicate holds) {
    const Guard guard(lock_);
    return std::any_of(items_.begin(), items_.end(), holds);
  }
  /// Calls `visit` with each of them.
  template <class Visit>
  void each(Visit visit) {
    const Guard guard(lock_);
    for (const T* item : items_) visit(*item);
  }
  /// Takes the object behind `handle` out; null if there is none.
  std::unique_ptr<T> remove(void* handle) {
    const Guard guard(lock_);
    T* item = static_cast<T*>(handle);
    return std::unique_ptr<T>(items_.erase(item) != 0 ? item : nullptr);
  }

 private:
  Mutex lock_;
  std::set<T*> items_;
};

}  // namespace ckemu
