// SPDX-License-Identifier: MIT
// What the host shim answers: CK Tile's own verdict and arguments for a problem, after the rules
// that CK Tile takes for granted have been checked.
#pragma once

#if !defined(__HIP_DEVICE_COMPILE__)

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cklang/block_scale.hpp"
#include "cklang/host.h"
#include "cklang/packed.hpp"
#include "cklang/prepared.hpp"
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

/// What is said of an operand that cannot be read.
struct Complaints
{
    const char* span;
    const char* alignment;
};

/// Why a D operand, or one of a computed matrix, cannot be read at m x n elements, or null.
template <typename Op>
const char* refuse_operand(const ck_gemm_operand& given,
                           int64_t m,
                           int64_t n,
                           const Complaints& complaints)
{
    constexpr bool along_m = Op::kind != Kind::row && Op::kind != Kind::scalar;
    constexpr bool along_n = Op::kind != Kind::column && Op::kind != Kind::scalar;
    constexpr int64_t size = size_of<typename Op::DataType>;
    const int64_t stride_m = along_m ? given.outer : 0;
    const int64_t stride_n = Op::kind == Kind::strided ? given.inner : 1;
    const int64_t columns  = along_n ? (n - 1) * stride_n + 1 : 1;
    if(stride_n < 0 || !addressable(m, n < 1 ? 0 : columns, stride_m, size))
        return complaints.span;
    if(!aligned(given.data, stride_m, Op::vector, size))
        return complaints.alignment;
    return nullptr;
}

/// Why a source cannot read its operands as an outer x inner matrix in accesses of `vector`, or
/// null.
template <typename T>
const char* refuse_source(const Strided<T>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t vector,
                          const Complaints& complaints)
{
    if(!addressable(outer, inner, operands[0].outer, size_of<T>))
        return complaints.span;
    if(!aligned(operands[0].data, operands[0].outer, vector, size_of<T>))
        return complaints.alignment;
    return nullptr;
}

/// Give a source strides with which axes of extent 1 take no step, and an empty matrix spans no
/// bytes, so that no address of it is ever touched.
template <typename T>
void normalise_source(const Strided<T>*, ck_gemm_operand* operands, int64_t outer, int64_t inner)
{
    if(outer == 1 || outer == 0)
        operands[0].outer = inner;
    else if(inner == 0)
        operands[0].outer = 0;
}

template <typename T, typename Function, typename... Ops>
const char* refuse_source(const Computed<T, Function, Ops...>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t,
                          const Complaints& complaints)
{
    const char* reason = nullptr;
    const auto refuse  = [&]<typename Op>(const Op*, const ck_gemm_operand& given) {
        if(!reason)
            reason = refuse_operand<Op>(given, outer, inner, complaints);
    };
    (refuse(static_cast<const Ops*>(nullptr), *operands++), ...);
    return reason;
}

template <typename T, typename Function, typename... Ops>
void normalise_source(const Computed<T, Function, Ops...>*,
                      ck_gemm_operand* operands,
                      int64_t outer,
                      int64_t inner)
{
    for(std::size_t i = 0; i < sizeof...(Ops); ++i)
    {
        operands[i].outer = outer <= 1 ? 0 : operands[i].outer;
        operands[i].inner = inner <= 1 ? 0 : operands[i].inner;
    }
}

template <typename T, typename Shape, index_t vector>
const char* refuse_source(const Prepared<T, Shape, vector>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t,
                          const Complaints& complaints)
{
    using Source       = Prepared<T, Shape, vector>;
    const int64_t rows = Source::blocks(outer);
    if(!addressable(rows, Source::row(inner), operands[0].outer, size_of<T>))
        return complaints.span;
    if(!aligned(operands[0].data, operands[0].outer, vector, size_of<T>))
        return complaints.alignment;
    return nullptr;
}

template <typename T, index_t vector>
const char* refuse_source(const PackedRows<T, vector>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t,
                          const Complaints& complaints)
{
    if(!addressable(outer, PackedRows<T, vector>::row(inner), operands[0].outer, size_of<T>))
        return complaints.span;
    if(!aligned(operands[0].data, operands[0].outer / packed<T>, 1, sizeof(uint32_t)))
        return complaints.alignment;
    return nullptr;
}

template <typename T, index_t vector>
void normalise_source(const PackedRows<T, vector>*, ck_gemm_operand*, int64_t, int64_t)
{
}

template <typename T, typename Shape, index_t vector>
void normalise_source(const Prepared<T, Shape, vector>*, ck_gemm_operand*, int64_t, int64_t)
{
}

template <typename Source, typename Scale, bool k_is_inner>
const char* refuse_source(const Scaled<Source, Scale, k_is_inner>*,
                          const ck_gemm_operand* operands,
                          int64_t outer,
                          int64_t inner,
                          int64_t vector,
                          const Complaints& complaints)
{
    const ck_gemm_operand& scale = operands[Source::arrays];
    const auto blocks            = [](int64_t extent, int64_t size) { return (extent + size - 1) / size; };
    const int64_t along_k        = blocks(k_is_inner ? inner : outer, Scale::block_k);
    const int64_t others         = blocks(k_is_inner ? outer : inner, Scale::block);
    if(scale.inner < 0 ||
       !addressable(others, (along_k - 1) * scale.inner + 1, scale.outer, size_of<typename Scale::Stored>))
        return "a scale spans more than 2^31 bytes or has a negative stride";
    if(!aligned(scale.data, 0, 1, size_of<typename Scale::Stored>))
        return "a scale's address is not aligned";
    return refuse_source(
        static_cast<const Source*>(nullptr), operands, outer, inner, vector, complaints);
}

template <typename Source, typename Scale, bool k_is_inner>
void normalise_source(const Scaled<Source, Scale, k_is_inner>*,
                      ck_gemm_operand* operands,
                      int64_t outer,
                      int64_t inner)
{
    normalise_source(static_cast<const Source*>(nullptr), operands, outer, inner);
}

template <typename Kernel, bool persistent, Work work, Reduction reduction>
struct Describe;

template <typename Partitioner,
          typename Pipeline,
          typename ASource,
          typename BSource,
          typename Epilogue,
          typename... Ds,
          bool persistent,
          Work work,
          Reduction reduction>
struct Describe<HostKernel<Partitioner, Pipeline, ASource, BSource, Epilogue, Ds...>,
                persistent,
                work,
                reduction>
{
    using RowMajor = ck_tile::tensor_layout::gemm::RowMajor;
    using Kernel   = HostKernel<Partitioner, Pipeline, ASource, BSource, Epilogue, Ds...>;
    using Shape    = typename Partitioner::BlockGemmShape;
    using Space    = Workspace<Shape, typename Epilogue::AccDataType>;
    using One      = GemmArgs<ASource, BSource, sizeof...(Ds)>;
    using Args     = std::conditional_t<work == Work::tiles, One, SharedArgs<One>>;
    using E        = typename Kernel::EDataType;

    static constexpr int operands = sizeof...(Ds);
    static constexpr bool a_rows  = std::is_same_v<typename Pipeline::ALayout, RowMajor>;
    static constexpr bool b_rows  = std::is_same_v<typename Pipeline::BLayout, RowMajor>;

    static_assert(operands <= CK_GEMM_MAX_OPERANDS && ASource::arrays <= CK_GEMM_MAX_OPERANDS &&
                  BSource::arrays <= CK_GEMM_MAX_OPERANDS);
    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        const ck_gemm_problem problem = normalise(given);
        launch.refusal                = refuse(problem, std::make_index_sequence<operands>{});
        if(launch.refusal)
            return;
        refusal = "CK Tile does not support these arguments";
        if(!supported(problem, std::make_index_sequence<operands>{}))
        {
            launch.refusal = refusal;
            return;
        }
        const Args args  = arguments(problem, std::make_index_sequence<operands>{});
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
    static constexpr const ASource* a_source = nullptr; // name the type to overloads
    static constexpr const BSource* b_source = nullptr;

    /// Make strides of axes that take no step regular.
    static ck_gemm_problem normalise(ck_gemm_problem p)
    {
        if(p.m == 1)
            p.e.outer = p.n;
        normalise_source(a_source, p.a, a_rows ? p.m : p.k, a_rows ? p.k : p.m);
        normalise_source(b_source, p.b, b_rows ? p.k : p.n, b_rows ? p.n : p.k);
        for(int i = 0; i < operands; ++i)
        {
            p.d[i].outer = p.m == 1 ? 0 : p.d[i].outer;
            p.d[i].inner = p.n == 1 ? 0 : p.d[i].inner;
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
        if(p.e.outer < p.n)
            return "rows of E overlap: its stride is less than N";
        constexpr Complaints about_a{
            "A spans more than 2^31 bytes or has a negative stride",
            "A's address or stride is not aligned for the kernel's vector loads"};
        constexpr Complaints about_b{
            "B spans more than 2^31 bytes or has a negative stride",
            "B's address or stride is not aligned for the kernel's vector loads"};
        constexpr Complaints about_d{
            "a D operand spans more than 2^31 bytes or has a negative stride",
            "a D operand's address or stride is not aligned for the kernel's vector loads"};
        const char* reason = refuse_source(a_source,
                                           p.a,
                                           a_rows ? p.m : p.k,
                                           a_rows ? p.k : p.m,
                                           Pipeline::GetVectorSizeA(),
                                           about_a);
        if(!reason)
            reason = refuse_source(b_source,
                                   p.b,
                                   b_rows ? p.k : p.n,
                                   b_rows ? p.n : p.k,
                                   Pipeline::GetVectorSizeB(),
                                   about_b);
        if(reason)
            return reason;
        if(!addressable(p.m, p.n, p.e.outer, size_of<E>))
            return "E spans more than 2^31 bytes or has a negative stride";
        if(!aligned(p.e.data, p.e.outer, Epilogue::GetVectorSizeC(), size_of<E>))
            return "E's address or stride is not aligned for the kernel's vector stores";
        ((reason = reason ? reason : refuse_operand<Ds>(p.d[I], p.m, p.n, about_d)), ...);
        return reason;
    }

    static index_t i32(int64_t value) { return static_cast<index_t>(value); }

    /// CK Tile's verdict on plain operands of these extents and strides.
    template <std::size_t... I>
    static bool supported(const ck_gemm_problem& p, std::index_sequence<I...>)
    {
        const ck_tile::UniversalGemmHostArgs<1, 1, operands> host({p.a[0].data},
                                                                  {p.b[0].data},
                                                                  {p.d[I].data...},
                                                                  const_cast<void*>(p.e.data),
                                                                  1,
                                                                  i32(p.m),
                                                                  i32(p.n),
                                                                  i32(p.k),
                                                                  {i32(p.a[0].outer)},
                                                                  {i32(p.b[0].outer)},
                                                                  {i32(p.d[I].outer)...},
                                                                  i32(p.e.outer));
        return Kernel::IsSupportedArgument(Kernel::MakeKernelArgs(host));
    }

    template <std::size_t... I>
    static Args arguments(const ck_gemm_problem& p, std::index_sequence<I...>)
    {
        const One one{ASource::make(p.a),
                      BSource::make(p.b),
                      {p.d[I].data...},
                      const_cast<void*>(p.e.data),
                      i32(p.m),
                      i32(p.n),
                      i32(p.k),
                      {i32(p.d[I].outer)...},
                      {i32(p.d[I].inner)...},
                      i32(p.e.outer)};
        if constexpr(work == Work::tiles)
            return one;
        else
            return Args{one, p.workspace, i32(p.k_batch)};
    }
};

} // namespace cklang

#endif
