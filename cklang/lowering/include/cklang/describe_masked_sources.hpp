// SPDX-License-Identifier: MIT
// What describe_masked.hpp says, where A or B is not one matrix: A may be rows of a table at indices,
// and then it is the table that is addressed; B may be two matrices.
#pragma once

#include "cklang/describe_masked.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes the product.
template <typename One, typename A, typename B, int64_t tile_k, bool is_table, bool is_pair>
struct DescribeMaskedSources : One
{
    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        One::run(given, launch);
        ck_gemm_problem matrices = given;
        if constexpr(is_table)
            matrices.m = given.a[1].inner;
        limit(matrices, launch);
        if constexpr(is_pair)
        {
            matrices.b[0] = given.b[1];
            limit(matrices, launch);
        }
    }

    private:
    /// The layouts of the product, and no description: what is left are the limits of its loads.
    struct Layouts
    {
        static constexpr bool a_rows = One::a_rows, b_rows = One::b_rows;

        static void run(const ck_gemm_problem&, ck_gemm_launch&) {}
    };

    static void limit(const ck_gemm_problem& matrices, ck_gemm_launch& launch)
    {
        if(!launch.refusal)
            DescribeMasked<Layouts, A, B, tile_k>::run(matrices, launch);
    }
};

} // namespace cklang

#endif
