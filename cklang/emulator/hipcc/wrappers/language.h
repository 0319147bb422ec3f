// SPDX-License-Identifier: MIT
// What HIP sources have before their first include: attributes, math and memory of device code, as ROCm's
// compiler gives them.
#pragma once
#pragma clang system_header

#include <hip/attributes.h>

CKLANG_BEGIN_LIBRARY
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include <hip/device_heap.h>
#include <hip/device_special.h>
#include <hip/hip_version.h>
CKLANG_END_LIBRARY
