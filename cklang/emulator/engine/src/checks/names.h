// SPDX-License-Identifier: MIT
//
// What the names of operations say.
#pragma once

#include <cstddef>
#include <cstring>

namespace ckemu {

inline bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

template <size_t count>
bool has_any(const char* name, const char* const (&parts)[count]) {
  for (const char* part : parts) {
    if (has(name, part)) return true;
  }
  return false;
}

}  // namespace ckemu
