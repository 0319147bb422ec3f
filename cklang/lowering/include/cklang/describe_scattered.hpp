// SPDX-License-Identifier: MIT
// What the host shim says of a product whose rows go to those of a table at indices.
#pragma once

#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes the product in rows one after the other. Its last operand, `place`, are the
/// indices; their `inner` is the number of rows of the table. A store moves `vector` elements of E.
template <typename One, std::size_t place, typename E, int64_t vector>
struct DescribeScattered
{
    using Args = typename One::Args;

    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        ck_gemm_problem stored = given;
        const int64_t table    = given.d[place].inner;
        stored.d[place].inner  = 0;
        stored.e.outer         = given.n;
        if(table < 1 || table > INT32_MAX)
            launch.refusal = "rows of E go to a table without rows, or of 2^31 or more";
        else if(given.e.outer < given.n)
            launch.refusal = "rows of E overlap: its stride is less than N";
        else if(!addressable(table, given.n, given.e.outer, size_of<E>))
            launch.refusal = "E spans more than 2^31 bytes or has a negative stride";
        else if(!aligned(given.e.data, given.e.outer, vector, size_of<E>))
            launch.refusal = "E's address or stride is not aligned for the kernel's vector stores";
        else
            One::run(stored, launch);
        if(launch.refusal)
            return;
        Args args{};
        std::memcpy(&args, launch.kernarg, sizeof(Args));
        args.stride_e           = static_cast<index_t>(given.e.outer);
        args.stride_ds_n[place] = static_cast<index_t>(table);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }
};

} // namespace cklang

#endif
