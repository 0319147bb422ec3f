// SPDX-License-Identifier: MIT
//
// Kernel metadata from the AMDGPU note of a code object.
#pragma once

#include <map>
#include <string>

#include "core/base.h"
#include "decode/code_object.h"

namespace ckemu {

/// Reads the note records at `data` and fills in one Kernel for each described one.
bool read_kernel_metadata(const u8* data, u64 size, std::map<std::string, Kernel>& kernels, Message& error);

}  // namespace ckemu
