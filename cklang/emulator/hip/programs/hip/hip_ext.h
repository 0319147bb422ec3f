// SPDX-License-Identifier: MIT
// AMD's extensions of the host API: launches between two events.
#pragma once

#include <hip/hip_runtime.h>

#include <tuple>
#include <utility>

extern "C" hipError_t hipExtModuleLaunchKernel(hipFunction_t function,
                                               uint32_t items_x,
                                               uint32_t items_y,
                                               uint32_t items_z,
                                               uint32_t block_x,
                                               uint32_t block_y,
                                               uint32_t block_z,
                                               size_t shared_bytes,
                                               hipStream_t stream,
                                               void** arguments,
                                               void** extra,
                                               hipEvent_t start = nullptr,
                                               hipEvent_t stop  = nullptr,
                                               uint32_t flags   = 0);

/// The older name of the same.
extern "C" hipError_t hipHccModuleLaunchKernel(hipFunction_t function,
                                               uint32_t items_x,
                                               uint32_t items_y,
                                               uint32_t items_z,
                                               uint32_t block_x,
                                               uint32_t block_y,
                                               uint32_t block_z,
                                               size_t shared_bytes,
                                               hipStream_t stream,
                                               void** arguments,
                                               void** extra,
                                               hipEvent_t start = nullptr,
                                               hipEvent_t stop  = nullptr);

/// Launches a kernel; `start` and `stop` are recorded before and after it. Arguments are converted to the
/// kernel's parameters, as in a launch with <<<>>>.
template <typename... Parameters, typename... Arguments>
inline void hipExtLaunchKernelGGL(void (*kernel)(Parameters...),
                                  const dim3& grid,
                                  const dim3& block,
                                  uint32_t shared_bytes,
                                  hipStream_t stream,
                                  hipEvent_t start,
                                  hipEvent_t stop,
                                  uint32_t flags,
                                  Arguments... arguments)
{
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "a kernel takes all of its parameters");
    std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
    std::apply(
        [&](auto&... value) {
            void* pointers[] = {static_cast<void*>(&value)..., nullptr};
            (void)hipExtLaunchKernel(reinterpret_cast<const void*>(kernel),
                                     grid,
                                     block,
                                     pointers,
                                     shared_bytes,
                                     stream,
                                     start,
                                     stop,
                                     static_cast<int>(flags));
        },
        values);
}
