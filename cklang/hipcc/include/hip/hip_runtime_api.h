// SPDX-License-Identifier: MIT
// The host API for whole programs: what kernels of cklang need of it, and the rest.
#pragma once

#include_next <hip/hip_runtime_api.h>

#include <hip/host_calls.h>

#ifdef __cplusplus
#include <hip/channel_descriptor.h>
#endif
