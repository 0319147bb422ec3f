// SPDX-License-Identifier: MIT
//
// A vector that never moves what it has: it takes blocks, and no copy is made when it grows.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base.h"

namespace ckemu {

/// Values one after the other that stay where they are while more come.
template <class T>
class Appended {
 public:
  void push_back(const T& value) {
    if (next_ == end_) [[unlikely]]
      add_block();
    *next_++ = value;
  }
  size_t size() const {
    return before_ + (blocks_.empty() ? 0 : blocks_.back().size - static_cast<size_t>(end_ - next_));
  }
  /// Calls `visit` with one piece after the other: where it begins, and how many values it has.
  template <class Visit>
  void each_piece(Visit visit) const {
    for (const Block& block : blocks_)
      visit(block.values.get(), block.size - (&block == &blocks_.back() ? static_cast<size_t>(end_ - next_) : 0));
  }

 private:
  static constexpr size_t kSmallest = 64, kLargest = 8192;
  struct Block {
    std::unique_ptr<T[]> values;
    size_t size;
  };
  void add_block() {
    const size_t size = blocks_.empty() ? kSmallest : std::min(kLargest, 2 * blocks_.back().size);
    before_ = this->size();
    blocks_.push_back({std::unique_ptr<T[]>(new T[size]), size});
    next_ = blocks_.back().values.get();
    end_ = next_ + size;
  }

  std::vector<Block> blocks_;
  T* next_ = nullptr;
  T* end_ = nullptr;
  size_t before_ = 0;  // values in the blocks before the last
};

}  // namespace ckemu
