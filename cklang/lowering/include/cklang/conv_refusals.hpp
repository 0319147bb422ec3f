// SPDX-License-Identifier: MIT
// Whether a convolution kernel can read or write a tensor, and the sentence that says why not.
#pragma once

#include "cklang/conv_tensors.hpp"
#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// What is said of a tensor that the kernel cannot read or write.
struct TensorComplaints
{
    const char *contiguous, *negative, *far, *unaligned, *narrow, *apart;
};

#define CKLANG_COMPLAINTS(name, a_name, access)                                                   \
    {                                                                                             \
        "the last axis of " name " is not contiguous", a_name " has a negative stride",           \
            a_name " spans more than 2^31 bytes",                                                 \
            "the address or a stride of " name " is not aligned for the kernel's vector " access, \
            "a vector access of " name " reaches beyond the channels it may",                     \
            "the kernel needs axes of " name " to have one stride, and they do not"               \
    }

constexpr TensorComplaints complaints_a = CKLANG_COMPLAINTS("A", "A", "loads");
constexpr TensorComplaints complaints_b = CKLANG_COMPLAINTS("B", "B", "loads");
constexpr TensorComplaints complaints_e = CKLANG_COMPLAINTS("E", "E", "stores");
constexpr TensorComplaints complaints_d = CKLANG_COMPLAINTS("a D operand", "a D operand", "loads");

#undef CKLANG_COMPLAINTS

/// Whether the strides can be taken and the last element can be reached.
template <typename T, std::size_t n>
const char* refuse_steps(int64_t most_bytes,
                         const void* data,
                         const std::array<Axis, n>& axes,
                         int64_t group,
                         int64_t vector,
                         const TensorComplaints& complaints)
{
    for(const Axis& axis : axes)
    {
        if(axis.stride < 0)
            return complaints.negative;
        if(axis.stride >= max_span_bytes)
            return complaints.far;
        if(&axis != &axes.back() && !aligned(data, axis.stride, vector, size_of<T>))
            return complaints.unaligned;
    }
    if(group < 0)
        return complaints.negative;
    if(!aligned(data, group, vector, size_of<T>))
        return complaints.unaligned;
    const int64_t elements = span(axes);
    if(elements > INT32_MAX || elements * size_of<T> > std::min(most_bytes, max_span_bytes))
        return complaints.far;
    return nullptr;
}

/// Whether vector accesses along the last of `axes` have places they can be at.
template <typename T, std::size_t n>
const char* refuse_tensor(int64_t most_bytes,
                          const void* data,
                          const std::array<Axis, n>& axes,
                          int64_t group,
                          int64_t row,
                          int64_t vector,
                          const TensorComplaints& complaints)
{
    if(axes.back().stride != 1)
        return complaints.contiguous;
    if(row % vector != 0)
        return complaints.narrow;
    return refuse_steps<T>(most_bytes, data, axes, group, vector, complaints);
}

} // namespace cklang

#endif
