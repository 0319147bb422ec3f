// SPDX-License-Identifier: MIT
//
// Shared ownership by counting: what std::shared_ptr is, without its run-time library.
#pragma once

#include <utility>

namespace ckemu {

template <class T>
class Ref {
 public:
  Ref() = default;
  template <class... Arguments>
  static Ref make(Arguments&&... arguments) {
    Ref ref;
    ref.box_ = new Box{1, T(std::forward<Arguments>(arguments)...)};
    return ref;
  }
  Ref(const Ref& other) : box_(other.box_) {
    if (box_ != nullptr) __atomic_add_fetch(&box_->count, 1, __ATOMIC_RELAXED);
  }
  Ref(Ref&& other) : box_(std::exchange(other.box_, nullptr)) {}
  Ref& operator=(Ref other) {
    std::swap(box_, other.box_);
    return *this;
  }
  ~Ref() {
    if (box_ != nullptr && __atomic_sub_fetch(&box_->count, 1, __ATOMIC_ACQ_REL) == 0) delete box_;
  }
  T* get() const { return box_ != nullptr ? &box_->value : nullptr; }
  T* operator->() const { return &box_->value; }
  T& operator*() const { return box_->value; }
  explicit operator bool() const { return box_ != nullptr; }

 private:
  struct Box {
    long count;
    T value;
  };
  Box* box_ = nullptr;
};

}  // namespace ckemu
