// SPDX-License-Identifier: MIT
// The host API for whole programs: what kernels of cklang need of it, and the rest.
#pragma once

#ifndef __cplusplus
#error "these headers of HIP are C++: compile this file with -x c++, or name it .cpp"
#else
#if defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
#include <hip/per_thread_stream.h>
#endif
#include_next <hip/hip_runtime_api.h>

#include <hip/channel_descriptor.h>
#include <hip/host_calls.h>
#endif
