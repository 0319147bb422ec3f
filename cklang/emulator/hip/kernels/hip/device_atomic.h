// SPDX-License-Identifier: MIT
// Atomic operations, relaxed, as HIP defines them: at device scope, `_system` at system scope,
// `_block` within a block.
#pragma once

#include <hip/attributes.h>

namespace cklang_hip {

/// A parameter that takes no part in finding out what T is.
template <typename T>
struct Same
{
    using type = T;
};

} // namespace cklang_hip

#define CKLANG_ATOMIC(name, builtin, scope)                                                       \
    template <typename T>                                                                         \
    __device__ __forceinline__ T name(T* address, typename cklang_hip::Same<T>::type value)       \
    {                                                                                             \
        return builtin(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_##scope);             \
    }

#define CKLANG_ATOMIC_SWAP(name, scope)                                                           \
    template <typename T>                                                                         \
    __device__ __forceinline__ T name(T* address,                                                 \
                                      typename cklang_hip::Same<T>::type expected,                \
                                      typename cklang_hip::Same<T>::type value)                   \
    {                                                                                             \
        __hip_atomic_compare_exchange_strong(address,                                             \
                                             &expected,                                           \
                                             value,                                               \
                                             __ATOMIC_RELAXED,                                    \
                                             __ATOMIC_RELAXED,                                    \
                                             __HIP_MEMORY_SCOPE_##scope);                         \
        return expected;                                                                          \
    }

#define CKLANG_ATOMICS(suffix, scope)                                                             \
    CKLANG_ATOMIC(atomicAdd##suffix, __hip_atomic_fetch_add, scope)                               \
    CKLANG_ATOMIC(atomicSub##suffix, __hip_atomic_fetch_sub, scope)                               \
    CKLANG_ATOMIC(atomicAnd##suffix, __hip_atomic_fetch_and, scope)                               \
    CKLANG_ATOMIC(atomicOr##suffix, __hip_atomic_fetch_or, scope)                                 \
    CKLANG_ATOMIC(atomicXor##suffix, __hip_atomic_fetch_xor, scope)                               \
    CKLANG_ATOMIC(atomicMin##suffix, __hip_atomic_fetch_min, scope)                               \
    CKLANG_ATOMIC(atomicMax##suffix, __hip_atomic_fetch_max, scope)                               \
    CKLANG_ATOMIC(atomicExch##suffix, __hip_atomic_exchange, scope)                               \
    CKLANG_ATOMIC_SWAP(atomicCAS##suffix, scope)

CKLANG_ATOMICS(, AGENT)
CKLANG_ATOMICS(_system, SYSTEM)
CKLANG_ATOMICS(_block, WORKGROUP)
CKLANG_ATOMIC(unsafeAtomicAdd, __hip_atomic_fetch_add, AGENT)
CKLANG_ATOMIC(safeAtomicAdd, __hip_atomic_fetch_add, AGENT)

#undef CKLANG_ATOMICS
#undef CKLANG_ATOMIC_SWAP
#undef CKLANG_ATOMIC

// Counters that wrap: up to `limit` and then to zero; down to zero and then to `limit`.
static __device__ __forceinline__ unsigned int atomicInc(unsigned int* address, unsigned int limit)
{
    return __builtin_amdgcn_atomic_inc32(address, limit, __ATOMIC_RELAXED, "agent");
}
static __device__ __forceinline__ unsigned int atomicDec(unsigned int* address, unsigned int limit)
{
    return __builtin_amdgcn_atomic_dec32(address, limit, __ATOMIC_RELAXED, "agent");
}
