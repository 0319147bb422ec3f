// SPDX-License-Identifier: MIT
// Attributes of the HIP language for whole programs: what kernels of cklang use, and the rest.
#pragma once

#include_next <hip/attributes.h>

#define __align__(bytes) __attribute__((aligned(bytes)))

// Newer compilers have no macro for the lanes of a wave.
#if defined(__HIP__) && !defined(__AMDGCN_WAVEFRONT_SIZE)
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
#define __AMDGCN_WAVEFRONT_SIZE 32
#else
#define __AMDGCN_WAVEFRONT_SIZE 64
#endif
#define __AMDGCN_WAVEFRONT_SIZE__ __AMDGCN_WAVEFRONT_SIZE
#endif

// Device functions between these have no lines of their own: what is inlined from them is at the user's line, in
// reports, in the debugger and in profiles.
#if defined(__HIP_DEVICE_COMPILE__)
#define CKLANG_BEGIN_LIBRARY \
    _Pragma("clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))")
#define CKLANG_END_LIBRARY _Pragma("clang attribute pop")
#else
#define CKLANG_BEGIN_LIBRARY
#define CKLANG_END_LIBRARY
#endif
