// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace ckemu {

/// The name of a kernel for people: `touch(int*, int)` for `_Z5touchPii`, of C++ templates the beginning. The symbol
/// itself if it is none of C++, or if this machine has no C++ library.
std::string readable(const std::string& symbol);

}  // namespace ckemu
