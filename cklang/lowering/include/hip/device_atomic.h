// SPDX-License-Identifier: MIT
// Atomic operations at device scope, relaxed order, as HIP defines them.
#pragma once

#include <hip/attributes.h>

#define CKLANG_ATOMIC(name, builtin)                                                          \
    template <typename T>                                                                     \
    __device__ __forceinline__ T name(T* address, std::type_identity_t<T> value)              \
    {                                                                                         \
        return builtin(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);           \
    }

CKLANG_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
CKLANG_ATOMIC(atomicSub, __hip_atomic_fetch_sub)
CKLANG_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
CKLANG_ATOMIC(atomicOr, __hip_atomic_fetch_or)
CKLANG_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
CKLANG_ATOMIC(atomicMin, __hip_atomic_fetch_min)
CKLANG_ATOMIC(atomicMax, __hip_atomic_fetch_max)
CKLANG_ATOMIC(atomicExch, __hip_atomic_exchange)

#undef CKLANG_ATOMIC

template <typename T>
__device__ __forceinline__ T
atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value)
{
    __hip_atomic_compare_exchange_strong(address,
                                         &expected,
                                         value,
                                         __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}
