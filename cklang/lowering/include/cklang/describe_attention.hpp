// SPDX-License-Identifier: MIT
// What the host shim of an attention kernel answers: the argument and the grid for a problem, after
// everything has been checked that the device takes for granted. No CK Tile here: all that is
// asked of the kernel is in its Shape.
#pragma once

#include <cstring>
#include <type_traits>

#include "cklang/attention_args.hpp"
#include "cklang/attention_host.h"

namespace cklang {

/// What the host knows of a kernel.
struct AttentionShape
{
    int64_t tile_q, tile_k, tile_d, tile_dv;
    bool pad_q, pad_k, pad_d, pad_dv;
    int64_t vector; // elements that one access moves along a head
    int64_t bytes;  // of an element of q, k and v
    int64_t bytes_o;
    int64_t bytes_bias;
    int64_t threads;
    Score score;
    Mask mask;
    bool lse, dropout, packed, split, paged;
};

class DescribeAttention
{
    public:
    DescribeAttention(const AttentionShape& shape, const ck_attention_problem& problem)
        : shape_(shape), p_(problem)
    {
        normalise();
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const AttentionArgs args = arguments(p_, shape_.tile_q);
        answer(launch, p_.batch * p_.heads * args.tiles * parts(), shape_.threads, args);
    }

    /// How to launch as many workgroups with `args`.
    template <typename Args>
    static void answer(ck_gemm_launch& launch, int64_t blocks, int64_t threads, const Args& args)
    {
        static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
        static_assert(std::is_trivially_copyable_v<Args>);
        launch.grid[0]  = static_cast<uint32_t>(blocks);
        launch.block[0] = static_cast<uint32_t>(threads);
        launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
        launch.lds_bytes                                                    = 0;
        launch.workspace_bytes = launch.zeroed_bytes = 0;
        launch.kernarg_bytes                         = sizeof(args);
        std::memcpy(launch.kernarg, &args, sizeof(args));
    }

    static AttentionTensor tensor(const ck_attention_tensor& given)
    {
        return {const_cast<void*>(given.data),
                given.stride_batch,
                given.stride_head,
                given.stride_seq};
    }

    /// The kernel's argument; a workgroup has `tile_q` queries.
    static AttentionArgs arguments(const ck_attention_problem& p, int64_t tile_q)
    {
        const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
        AttentionArgs args{};
        args.q            = tensor(p.q);
        args.k            = tensor(p.k);
        args.v            = tensor(p.v);
        args.o            = tensor(p.o);
        args.bias         = tensor(p.bias);
        args.lse          = tensor(p.lse);
        args.random       = tensor(p.random);
        args.slopes       = tensor(p.slopes);
        args.starts_q     = static_cast<const int32_t*>(p.starts_q);
        args.starts_k     = static_cast<const int32_t*>(p.starts_k);
        args.lengths_k    = static_cast<const int32_t*>(p.lengths_k);
        args.pages        = {static_cast<const int32_t*>(p.pages),
                             static_cast<const int32_t*>(p.page_starts),
                             p.pages_stride,
                             i32(p.page_size)};
        args.partial_o    = tensor(p.partial_o);
        args.partial_lse  = tensor(p.partial_lse);
        args.stride_split_o   = p.stride_split_o;
        args.stride_split_lse = p.stride_split_lse;
        args.splits       = i32(p.splits);
        args.batch        = i32(p.batch);
        args.heads        = i32(p.heads);
        args.heads_per_kv = i32(p.heads / p.kv_heads);
        args.seqlen_q     = i32(p.seqlen_q);
        args.seqlen_k     = i32(p.seqlen_k);
        args.hdim_q       = i32(p.hdim_q);
        args.hdim_v       = i32(p.hdim_v);
        args.tiles        = i32((p.seqlen_q - 1) / tile_q + 1);
        args.scale        = static_cast<float>(p.scale);
        args.soft_cap     = static_cast<float>(p.soft_cap);
        args.scale_p      = static_cast<float>(p.scale_p);
        args.scale_o      = static_cast<float>(p.scale_o);
        args.left         = i32(p.left);
        args.right        = i32(p.right);
        args.from_bottom_right = i32(p.from_bottom_right);
        args.sink              = i32(p.sink);
        // In f32, as CK Tile rounds.
        const auto kept        = static_cast<float>(1.0 - static_cast<float>(p.dropout));
        args.keep_scale        = 1.0f / kept;
        args.keep              = static_cast<int32_t>(kept * 255.0f);
        args.seed              = static_cast<const int32_t*>(p.seed);
        args.offset            = static_cast<const int32_t*>(p.offset);
        args.min_seqlen_q      = static_cast<const int32_t*>(p.min_seqlen_q);
        for(int i = 0; i < CK_ATTENTION_MAX_OPERANDS; ++i)
        {
            args.operands[i].data = p.operands[i].data;
            for(int axis = 0; axis < CK_ATTENTION_MAX_RANK; ++axis)
            {
                args.operands[i].extent[axis] = i32(p.operands[i].extent[axis]);
                args.operands[i].stride[axis] = i32(p.operands[i].stride[axis]);
            }
        }
        return args;
    }

    /// The sentence that says why the problem is refused, or null.
    const char* refuse() const
    {
        if(p_.batch < 1 || p_.heads < 1 || p_.seqlen_q < 1 || p_.seqlen_k < 0 ||
           p_.seqlen_q > most / 2 || p_.seqlen_k > most / 2)
            return "batch, heads and queries must be 1 or more, keys 0 or more, all below 2^30";
        if(p_.kv_heads < 1 || p_.heads % p_.kv_heads != 0)
            return "the number of heads must be a multiple of that of K and V";
        if(parts() < 1 || parts() > most / p_.heads ||
           p_.batch * p_.heads * parts() > most / ((p_.seqlen_q - 1) / shape_.tile_q + 1))
            return "the problem has more than 2^31 tiles";
        if(const char* reason = refuse_heads())
            return reason;
        if(const char* reason = refuse_lengths())
            return reason;
        if(const char* reason = refuse_tensors())
            return reason;
        if(const char* reason = refuse_score())
            return reason;
        return refuse_operands();
    }

    /// Whether rows of `width` elements can be addressed.
    static bool
    rows(const ck_attention_tensor& tensor, int64_t length, int64_t width, int64_t bytes)
    {
        if(length < 1 || width < 1)
            return true;
        if(tensor.stride_seq < 0 || tensor.stride_seq >= max_span)
            return false;
        return ((length - 1) * tensor.stride_seq + width) * bytes <= max_span;
    }

    /// Accesses of a dword or more start at whole dwords, smaller ones at whole elements.
    static bool aligned(const ck_attention_tensor& tensor, int64_t bytes, int64_t vector)
    {
        const int64_t unit = vector * bytes < 4 ? vector * bytes : 4;
        return reinterpret_cast<uintptr_t>(tensor.data) % unit == 0 &&
               tensor.stride_batch * bytes % unit == 0 && tensor.stride_head * bytes % unit == 0 &&
               tensor.stride_seq * bytes % unit == 0;
    }

    private:
    static constexpr int64_t most = INT32_MAX;
    // Buffer instructions take 32-bit byte offsets, of which CK Tile uses the lower half.
    static constexpr int64_t max_span = INT64_C(1) << 31;

    int64_t parts() const { return shape_.split ? p_.splits : 1; }

    /// Axes of extent 1 get stride 0, so that what is written there does not matter.
    void normalise()
    {
        const int64_t batch = shape_.packed ? 1 : p_.batch;
        settle(p_.q, batch, p_.heads, p_.seqlen_q);
        settle(p_.o, batch, p_.heads, p_.seqlen_q);
        // The strides of pages belong to no axis of the sequences.
        if(!shape_.paged)
        {
            settle(p_.k, batch, p_.kv_heads, p_.seqlen_k);
            settle(p_.v, batch, p_.kv_heads, p_.seqlen_k);
        }
        settle(p_.partial_o, batch, p_.heads, p_.seqlen_q);
        settle(p_.partial_lse, batch, p_.heads, p_.seqlen_q);
        settle(p_.lse, batch, p_.heads, p_.seqlen_q);
        settle(p_.bias, batch, p_.heads, p_.seqlen_q);
        settle(p_.random, batch, p_.heads, p_.seqlen_q);
        settle(p_.slopes, p_.batch, p_.heads, 1);
    }

    void settle(ck_attention_tensor& tensor, int64_t batch, int64_t heads, int64_t length) const
    {
        tensor.stride_batch = batch == 1 ? 0 : tensor.stride_batch;
        tensor.stride_head  = heads == 1 ? 0 : tensor.stride_head;
        // Packed sequences may be longer together than the longest one.
        tensor.stride_seq = length == 1 && !shape_.packed ? 0 : tensor.stride_seq;
    }

    const char* refuse_heads() const
    {
        if(p_.hdim_q < 1 || p_.hdim_v < 1 || p_.hdim_q % shape_.vector != 0 ||
           p_.hdim_v % shape_.vector != 0)
            return "the head size is not a multiple of the kernel's vector loads";
        if(p_.hdim_q > shape_.tile_d || p_.hdim_v > shape_.tile_dv)
            return "the head size is beyond the kernel's tile";
        if((!shape_.pad_d && p_.hdim_q != shape_.tile_d) ||
           (!shape_.pad_dv && p_.hdim_v != shape_.tile_dv))
            return "the head size is not the kernel's tile, and it does not pad";
        return nullptr;
    }

    const char* refuse_lengths() const
    {
        if(shape_.packed && (!p_.starts_q || (!p_.starts_k && !shape_.paged)))
            return "packed sequences need their starts";
        if(shape_.paged && (!p_.pages || p_.page_size < 1 || p_.page_size > most ||
                            (shape_.packed && !p_.lengths_k)))
            return "keys in pages need a table, a page size and, in packed sequences, lengths";
        if((shape_.packed || p_.lengths_k) && (!shape_.pad_q || !shape_.pad_k))
            return "sequences of different lengths need a kernel that pads lengths";
        if(!shape_.pad_q && p_.seqlen_q % shape_.tile_q != 0)
            return "the queries do not fill the kernel's tiles, and it does not pad";
        if(!shape_.pad_k && (p_.seqlen_k == 0 || p_.seqlen_k % shape_.tile_k != 0))
            return "the keys do not fill the kernel's tiles, and it does not pad";
        return nullptr;
    }

    const char* refuse_tensors() const
    {
        const int64_t keys = shape_.paged ? p_.page_size : p_.seqlen_k;
        const auto& o      = shape_.split ? p_.partial_o : p_.o;
        const auto& lse    = shape_.split ? p_.partial_lse : p_.lse;
        if(!rows(p_.q, p_.seqlen_q, p_.hdim_q, shape_.bytes) ||
           !rows(p_.k, keys, p_.hdim_q, shape_.bytes) ||
           !rows(p_.v, keys, p_.hdim_v, shape_.bytes) ||
           !rows(o, p_.seqlen_q, p_.hdim_v, shape_.bytes_o))
            return "one head of q, k, v or o spans more than 2^31 bytes or has a negative stride";
        if(!aligned(p_.q, shape_.bytes, shape_.vector) ||
           !aligned(p_.k, shape_.bytes, shape_.vector) ||
           !aligned(p_.v, shape_.bytes, shape_.vector) ||
           !aligned(o, shape_.bytes_o, shape_.vector))
            return "an address or stride of q, k, v or o is not aligned for vector accesses";
        if(p_.seqlen_q > 1 && o.stride_seq < p_.hdim_v)
            return "rows of o overlap: its stride is less than the head size";
        if(shape_.lse && (!lse.data || !rows(lse, p_.seqlen_q, 1, 4)))
            return "this kernel needs a place for lse of at most 2^31 bytes a head";
        if(shape_.score == Score::bias &&
           (!p_.bias.data || !rows(p_.bias, p_.seqlen_q, p_.seqlen_k, shape_.bytes_bias)))
            return "this kernel needs a bias of at most 2^31 bytes a head";
        if(shape_.dropout && !rows(p_.random, p_.seqlen_q, p_.seqlen_k, 1))
            return "the random values of a head span more than 2^31 bytes";
        return nullptr;
    }

    const char* refuse_score() const
    {
        if(shape_.score == Score::alibi && !p_.slopes.data)
            return "this kernel needs slopes";
        if(shape_.score == Score::soft_cap && !(p_.soft_cap > 0))
            return "the soft cap must be above 0";
        if(shape_.score != Score::function && !(p_.scale > 0))
            return "the scale must be above 0";
        if(shape_.mask == Mask::none && (p_.left >= 0 || p_.right >= 0))
            return "this kernel has no window";
        if(shape_.mask == Mask::causal && (p_.left >= 0 || p_.right != 0 || p_.sink != 0))
            return "this kernel's window is all keys up to the query";
        if(p_.left > most / 2 || p_.right > most / 2 || p_.sink < 0 || p_.sink > most / 2)
            return "a window must be below 2^30";
        if(shape_.dropout && (!p_.seed || !p_.offset || !(p_.dropout >= 0 && p_.dropout < 1)))
            return "dropout needs seed and offset and a probability from 0 up to 1";
        return nullptr;
    }

    const char* refuse_operands() const
    {
        for(const auto& operand : p_.operands)
        {
            int64_t last = 0;
            for(int axis = 0; operand.data && axis < CK_ATTENTION_MAX_RANK; ++axis)
            {
                if(operand.extent[axis] < 1 || operand.extent[axis] > most ||
                   operand.stride[axis] < -most || operand.stride[axis] > most)
                    return "an operand of the score or mask has extents or strides beyond 2^31";
                last += (operand.extent[axis] - 1) * (operand.stride[axis] < 0
                                                          ? -operand.stride[axis]
                                                          : operand.stride[axis]);
            }
            if(last > most)
                return "an operand of the score or mask spans more than 2^31 elements";
        }
        return nullptr;
    }

    AttentionShape shape_;
    ck_attention_problem p_;
};

} // namespace cklang

// The two functions of a host shim, which `Describe` answers of a kernel that the arguments describe.
#define CK_HOST_SHIM(name, Describe, ...)                                                          \
    extern "C" __attribute__((visibility("default"))) void name##_describe(                        \
        const name##_problem* problem, ck_gemm_launch* launch)                                     \
    {                                                                                              \
        Describe({__VA_ARGS__}, *problem).run(*launch);                                            \
    }                                                                                              \
    extern "C" __attribute__((visibility("default"))) uint32_t ck_attention_host_version()         \
    {                                                                                              \
        return CK_ATTENTION_HOST_VERSION;                                                          \
    }

#define CK_ATTENTION_HOST_SHIM(...)                                                                \
    CK_HOST_SHIM(ck_attention, cklang::DescribeAttention, __VA_ARGS__)
