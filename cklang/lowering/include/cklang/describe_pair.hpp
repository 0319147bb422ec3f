// SPDX-License-Identifier: MIT
// What the host shim says of two matrices that are read as one.
#pragma once

#include "cklang/describe.hpp"
#include "cklang/pair.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

template <typename T, index_t waves, bool n_is_inner>
const char* refuse_source(const Pair<T, waves, n_is_inner>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t vector,
                          const Complaints& complaints)
{
    constexpr const Strided<T>* each = nullptr;
    const char* reason = refuse_source(each, operands, outer, inner, vector, complaints);
    return reason ? reason
                  : refuse_source(each, operands + 1, outer, inner, vector, complaints);
}

template <typename T, index_t waves, bool n_is_inner>
void normalise_source(const Pair<T, waves, n_is_inner>*, ck_gemm_operand* operands, int64_t outer, int64_t inner)
{
    constexpr const Strided<T>* each = nullptr;
    normalise_source(each, operands, outer, inner);
    normalise_source(each, operands + 1, outer, inner);
}

} // namespace cklang

#endif
