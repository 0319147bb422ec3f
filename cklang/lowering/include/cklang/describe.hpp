// SPDX-License-Identifier: MIT
// What the host face answers: CK Tile's own verdict and arguments for a problem, after the rules
// that CK Tile takes for granted have been checked.
#pragma once

#if !defined(__HIP_DEVICE_COMPILE__)

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cklang/host.h"
#include "cklang/shared_gemm.hpp"

// CK Tile asks the HIP runtime whether waves have 32 lanes. This library answers for the GPU
// generation it was compiled for, so it runs on machines without any GPU.
extern "C" __attribute__((visibility("hidden"))) hipError_t hipGetDevice(int* device)
{
    *device = 0;
    return hipSuccess;
}

extern "C" __attribute__((visibility("hidden"))) hipError_t
hipGetDeviceProperties(hipDeviceProp_t* properties, int)
{
    properties->major = CKLANG_GFX_MAJOR;
    return hipSuccess;
}

namespace cklang {

// Buffer instructions take 32-bit byte offsets, of which CK Tile uses the lower half.
constexpr int64_t max_span_bytes = INT64_C(1) << 31;

/// Whether a matrix of `outer` rows of `inner` elements can be addressed.
inline bool addressable(int64_t outer, int64_t inner, int64_t stride, int64_t element_bytes)
{
    if(outer <= 0 || inner <= 0)
        return true;
    if(stride < 0 || stride >= max_span_bytes)
        return false;
    return ((outer - 1) * stride + inner) * element_bytes <= max_span_bytes;
}

/// Whether each vector access of `vector` elements starts at an address the hardware accepts:
/// whole dwords for accesses of a dword or more, whole elements below.
inline bool aligned(const void* data, int64_t stride, int64_t vector, int64_t element_bytes)
{
    const int64_t bytes = vector * element_bytes < 4 ? vector * element_bytes : 4;
    return reinterpret_cast<uintptr_t>(data) % bytes == 0 && (stride * element_bytes) % bytes == 0;
}

template <typename T>
constexpr int64_t size_of = static_cast<int64_t>(sizeof(T));

template <typename Kernel, bool persistent, Work work, Reduction reduction>
struct Describe;

template <typename Partitioner,
          typename Pipeline,
          typename Epilogue,
          typename... Ds,
          bool persistent,
          Work work,
          Reduction reduction>
struct Describe<HostKernel<Partitioner, Pipeline, Epilogue, Ds...>, persistent, work, reduction>
{
    using RowMajor = ck_tile::tensor_layout::gemm::RowMajor;
    using Kernel   = HostKernel<Partitioner, Pipeline, Epilogue, Ds...>;
    using Shape    = typename Partitioner::BlockGemmShape;
    using Space    = Workspace<Shape, typename Epilogue::AccDataType>;
    using Args     = std::conditional_t<work == Work::tiles,
                                        GemmArgs<sizeof...(Ds)>,
                                        SharedArgs<sizeof...(Ds)>>;
    using A        = typename Kernel::ADataType;
    using B        = typename Kernel::BDataType;
    using E        = typename Kernel::EDataType;

    static constexpr int operands = sizeof...(Ds);
    static constexpr bool a_rows  = std::is_same_v<typename Pipeline::ALayout, RowMajor>;
    static constexpr bool b_rows  = std::is_same_v<typename Pipeline::BLayout, RowMajor>;

    static_assert(operands <= CK_GEMM_MAX_D);
    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        const ck_gemm_problem problem = normalise(given);
        launch.refusal                = refuse(problem, std::make_index_sequence<operands>{});
        if(launch.refusal)
            return;
        const Args args = arguments(problem, std::make_index_sequence<operands>{});
        refusal         = "CK Tile does not support these arguments";
        if(!Kernel::IsSupportedArgument(args))
        {
            launch.refusal = refusal;
            return;
        }
        const dim3 block = Kernel::BlockSize();

        const int64_t tiles = Partitioner::GridSize(args.M, args.N);
        const int64_t steps = args.K > 0 ? (args.K - 1) / Shape::kK + 1 : 1;
        const int64_t most  = work == Work::stream_k ? tiles * steps : tiles;
        const bool limited  = persistent || work == Work::stream_k;
        const int64_t blocks = limited ? std::min(problem.blocks, most) : most;

        launch.grid[0]         = static_cast<uint32_t>(blocks);
        launch.grid[1]         = 1;
        launch.grid[2]         = static_cast<uint32_t>(problem.k_batch);
        launch.block[0]        = block.x;
        launch.block[1]        = block.y;
        launch.block[2]        = block.z;
        launch.lds_bytes       = Kernel::GetSmemSize();
        launch.workspace_bytes = 0;
        launch.zeroed_bytes    = 0;
        if constexpr(work != Work::tiles)
        {
            const int64_t own =
                work == Work::split_k ? tiles * problem.k_batch : blocks * slots_per_block;
            const bool together    = reduction == Reduction::atomic;
            launch.workspace_bytes = Space::bytes(tiles, together ? tiles : own);
            launch.zeroed_bytes    = together ? launch.workspace_bytes : Space::counter_bytes(tiles);
        }
        launch.kernarg_bytes   = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }

    private:
    /// Give axes of extent 1 the stride of a packed matrix, and an empty K strides with which the
    /// operands span no bytes, so that no address of theirs is ever touched.
    static ck_gemm_problem normalise(ck_gemm_problem p)
    {
        if(p.m == 1)
            p.stride_e = p.n;
        if((a_rows ? p.m : p.k) == 1)
            p.stride_a = a_rows ? p.k : p.m;
        if((b_rows ? p.k : p.n) == 1)
            p.stride_b = b_rows ? p.n : p.k;
        if(p.k == 0)
        {
            p.stride_a = a_rows ? 0 : p.m;
            p.stride_b = b_rows ? p.n : 0;
        }
        for(int i = 0; i < operands; ++i)
        {
            p.d_stride_m[i] = p.m == 1 ? 0 : p.d_stride_m[i];
            p.d_stride_n[i] = p.n == 1 ? 0 : p.d_stride_n[i];
        }
        return p;
    }

    template <std::size_t... I>
    static const char* refuse(const ck_gemm_problem& p, std::index_sequence<I...>)
    {
        constexpr int64_t most = INT32_MAX;
        if(p.m < 1 || p.n < 1 || p.k < 0 || p.m > most || p.n > most || p.k > most)
            return "M and N must be 1 or more, K 0 or more, and all below 2^31";
        if(work == Work::split_k ? p.k_batch < 1 || p.k_batch > 65535 : p.k_batch != 1)
            return "K is split by split-K kernels only, into 1 to 65535 parts";
        if((persistent || work == Work::stream_k) && p.blocks < 1)
            return "this kernel needs a workgroup or more";
        if(work == Work::stream_k &&
           (p.k / Shape::kK + 1) > most / (((p.m - 1) / Shape::kM + 1) * ((p.n - 1) / Shape::kN + 1)))
            return "the steps along K of all tiles are more than 2^31";
        if(p.stride_e < p.n)
            return "rows of E overlap: its stride is less than N";
        if(!addressable(a_rows ? p.m : p.k, a_rows ? p.k : p.m, p.stride_a, size_of<A>))
            return "A spans more than 2^31 bytes or has a negative stride";
        if(!addressable(b_rows ? p.k : p.n, b_rows ? p.n : p.k, p.stride_b, size_of<B>))
            return "B spans more than 2^31 bytes or has a negative stride";
        if(!addressable(p.m, p.n, p.stride_e, size_of<E>))
            return "E spans more than 2^31 bytes or has a negative stride";
        if(!aligned(p.a, p.stride_a, Pipeline::GetVectorSizeA(), size_of<A>))
            return "A's address or stride is not aligned for the kernel's vector loads";
        if(!aligned(p.b, p.stride_b, Pipeline::GetVectorSizeB(), size_of<B>))
            return "B's address or stride is not aligned for the kernel's vector loads";
        if(!aligned(p.e, p.stride_e, Epilogue::GetVectorSizeC(), size_of<E>))
            return "E's address or stride is not aligned for the kernel's vector stores";
        const char* reason = nullptr;
        ((reason = reason ? reason : refuse_d<Ds>(p, I)), ...);
        return reason;
    }

    template <typename D>
    static const char* refuse_d(const ck_gemm_problem& p, std::size_t i)
    {
        constexpr bool along_m = D::kind != Kind::row && D::kind != Kind::scalar;
        constexpr bool along_n = D::kind != Kind::column && D::kind != Kind::scalar;
        constexpr int64_t size = size_of<typename D::DataType>;
        const int64_t stride_m = along_m ? p.d_stride_m[i] : 0;
        const int64_t stride_n = D::kind == Kind::strided ? p.d_stride_n[i] : 1;
        if(stride_n < 0 || !addressable(p.m, along_n ? (p.n - 1) * stride_n + 1 : 1, stride_m, size))
            return "a D operand spans more than 2^31 bytes or has a negative stride";
        if(!aligned(p.d[i], stride_m, D::vector, size))
            return "a D operand's address or stride is not aligned for the kernel's vector loads";
        return nullptr;
    }

    template <std::size_t... I>
    static Args arguments(const ck_gemm_problem& p, std::index_sequence<I...>)
    {
        const auto i32 = [](int64_t value) { return static_cast<index_t>(value); };
        const ck_tile::UniversalGemmHostArgs<1, 1, operands> host(
            {p.a},
            {p.b},
            {p.d[I]...},
            p.e,
            1,
            i32(p.m),
            i32(p.n),
            i32(p.k),
            {i32(p.stride_a)},
            {i32(p.stride_b)},
            {i32(p.d_stride_m[I])...},
            i32(p.stride_e));
        const GemmArgs<operands> args{Kernel::MakeKernelArgs(host), {i32(p.d_stride_n[I])...}};
        if constexpr(work == Work::tiles)
            return args;
        else
            return Args{args, p.workspace, i32(p.k_batch)};
    }
};

} // namespace cklang

#endif
