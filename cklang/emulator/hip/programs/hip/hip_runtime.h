// SPDX-License-Identifier: MIT
// The HIP language for whole programs: what kernels of cklang use, and the rest of ROCm's functions.
#pragma once

#include <hip/attributes.h>

CKLANG_BEGIN_LIBRARY
#include_next <hip/hip_runtime.h>

#include <hip/device_convert.h>
#include <hip/device_heap.h>
#include <hip/device_integer.h>
#include <hip/device_lanes.h>
#include <hip/device_special.h>

#if defined(__HIP__)
#include <hip/device_surface.h>
#include <hip/device_texture.h>
#endif
CKLANG_END_LIBRARY
