// SPDX-License-Identifier: MIT
// The HIP language for clang without ROCm: attributes, host API, device builtins, device math.
// ROCm's own headers, where a machine has them, are used instead of this folder.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <hip/hip_runtime_api.h>

#include <hip/device_index.h>
#include <hip/device_sync.h>
#include <hip/device_atomic.h>
#include <hip/device_bits.h>
#include <hip/device_math.h>
#include <hip/device_printf.h>
