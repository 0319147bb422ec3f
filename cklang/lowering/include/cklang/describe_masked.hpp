// SPDX-License-Identifier: MIT
// What the host shim says of a product whose loads beyond K are moved by 2 GiB, out of the buffer's
// range. Those of rows and columns that are stored must not come round to its start.
#pragma once

#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes the product. The loop over K loads two tiles of `tile_k` beyond the last one.
template <typename One, typename A, typename B, int64_t tile_k>
struct DescribeMasked : One
{
    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        One::run(given, launch);
        if(launch.refusal)
            return;
        const int64_t tiles = std::max((given.k + tile_k - 1) / tile_k, INT64_C(1));
        const int64_t k     = (tiles + 2) * tile_k;
        if(!reaches<A>(One::a_rows, given.m, given.k, k, given.a[0].outer))
            launch.refusal = "A spans more than 2^31 bytes with the tiles loaded beyond K";
        else if(!reaches<B>(!One::b_rows, given.n, given.k, k, given.b[0].outer))
            launch.refusal = "B spans more than 2^31 bytes with the tiles loaded beyond K";
    }

    private:
    /// Whether `last` of K elements, of which `k` are stored, can be addressed in each of `others`.
    template <typename T>
    static bool
    reaches(bool k_is_inner, int64_t others, int64_t k, int64_t last, int64_t stride)
    {
        if(k_is_inner)
            return addressable(others, last, others == 1 ? 0 : stride, size_of<T>);
        return addressable(last, others, k < 2 ? others : stride, size_of<T>);
    }
};

} // namespace cklang

#endif
