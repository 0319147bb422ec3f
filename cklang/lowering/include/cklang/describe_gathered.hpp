// SPDX-License-Identifier: MIT
// What the host shim says of a matrix whose rows are read at indices.
#pragma once

#if !defined(__HIP_DEVICE_COMPILE__)

#include "cklang/describe.hpp"
#include "cklang/gathered.hpp"

namespace cklang {

template <typename T, typename Index>
const char* refuse_source(const Gathered<T, Index>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t vector,
                          const Complaints& complaints)
{
    const ck_gemm_operand &table = operands[0], &indices = operands[1];
    if(indices.inner < 1 || indices.inner > INT32_MAX)
        return "A is read at indices of a table without rows, or of more than 2^31";
    if(!addressable(indices.inner, inner, table.outer, size_of<T>) ||
       !addressable(outer, 1, indices.outer, size_of<Index>))
        return complaints.span;
    if(!aligned(table.data, table.outer, vector, size_of<T>) ||
       !aligned(indices.data, indices.outer, 1, size_of<Index>))
        return complaints.alignment;
    return nullptr;
}

template <typename T, typename Index>
void normalise_source(const Gathered<T, Index>*, ck_gemm_operand*, int64_t, int64_t)
{
}

} // namespace cklang

#endif
