// SPDX-License-Identifier: MIT
//
// The text of a printf whose format and values a kernel has sent as 64-bit words.
#pragma once

#include <string>

#include "core/base.h"

namespace ckemu {

/// Strings fill whole words and end with a zero byte; the first is the format. Floating-point values
/// are doubles. What the values do not suffice for is left out.
std::string format_printf(const u64* words, size_t count);

}  // namespace ckemu
