// SPDX-License-Identifier: MIT
// The gradient of attention: which keys of which head a workgroup has, the windows through which
// it sees their queries, and CK Tile's backward pipeline with our position encoding and mask.
#pragma once

#include "cklang/attention.hpp"

#include "cklang/attention_grad_args.hpp"

#include "ck_tile/ops/fmha/pipeline/block_fmha_bwd_pipeline_problem.hpp"

namespace cklang {

/// A mask as the backward pipeline asks it: that alone, and no variant. Rows beyond the last one
/// are masked too: what a score function says of them need not be finite.
template <typename Base, Mask mask>
struct GradMask : Base
{
    At at;

    CK_TILE_DEVICE GradMask(const Base& base, const At& at_) : Base(base), at(at_) {}

    template <index_t rows, index_t columns>
    CK_TILE_DEVICE bool
    IsEdgeTile(index_t row, index_t column, number<rows>, number<columns>) const
    {
        return row + rows > at.seqlen_q ||
               Base::IsEdgeTile(row, column, number<rows>{}, number<columns>{});
    }

    CK_TILE_DEVICE bool IsOutOfBound(index_t row, index_t column) const
    {
        const bool out = (row >= at.seqlen_q) | Base::IsOutOfBound(row, column);
        return out | !lets_through<mask>(at, row, column);
    }
};

template <Mask mask, Score score>
using GradMaskType = GradMask<WholeMask<mask, score>, mask>;

/// What a pipeline that stores dq, dk and dv itself calls to do so: rounds them once.
struct GradStore
{
    template <typename Window, typename Tile>
    CK_TILE_DEVICE void operator()(Window& to, const Tile& tile, std::nullptr_t) const
    {
        using T = typename Window::DataType;
        ck_tile::store_tile(
            to, ck_tile::tile_elementwise_in([](auto x) { return narrow<T>(x); }, tile));
    }
};

/// The device side. A workgroup has a tile of keys, and all of them add to dq, or, if the result is
/// to be the same each time, each stores a part of its own. With `whole`, a workgroup has all
/// queries of a head and walks over the keys: nobody else stores its dq. dk and dv are those of a
/// query head.
template <typename Pipeline_, Mask mask, Score score, index_t vector, bool whole>
struct AttentionGradKernel
{
    using Pipeline = Pipeline_;
    using Type     = typename Pipeline::QDataType;
    using KGrad    = typename Pipeline::KGradDataType;
    using VGrad    = typename Pipeline::VGradDataType;

    static constexpr index_t block_size = Pipeline::kBlockSize;
    static constexpr index_t m0         = Pipeline::kM0;
    static constexpr index_t n0         = Pipeline::kN0;
    static constexpr index_t width_q    = Pipeline::kQKHeaddim;
    static constexpr index_t width_v    = Pipeline::kVHeaddim;
    static constexpr bool pad_q         = Pipeline::kPadHeadDimQ > 0;
    static constexpr bool pad_v         = Pipeline::kPadHeadDimV > 0;
    static constexpr bool dropping      = Pipeline::FmhaDropout::IsDropout;

    CK_TILE_DEVICE static void run(const AttentionGradArgs& args)
    {
        using namespace ck_tile;

        __shared__ char shared[Pipeline::GetSmemSize()];

        const index_t block = blockIdx.x;
        const index_t head  = amd_wave_read_first_lane(block % args.heads);
        const index_t rest  = amd_wave_read_first_lane(block / args.heads);
        const index_t batch = amd_wave_read_first_lane(rest / args.tiles);
        const index_t tile  = amd_wave_read_first_lane(rest % args.tiles);

        At at{batch,
              head,
              amd_wave_read_first_lane(head / args.heads_per_kv),
              args.seqlen_q,
              args.seqlen_k,
              function_tensors()};
        index_t start_q = 0, start_k = 0;
        if constexpr(Pipeline::kIsGroupMode)
        {
            start_q     = amd_wave_read_first_lane(args.starts_q[batch]);
            start_k     = amd_wave_read_first_lane(args.starts_k[batch]);
            at.seqlen_q = amd_wave_read_first_lane(args.starts_q[batch + 1]) - start_q;
            at.seqlen_k = amd_wave_read_first_lane(args.starts_k[batch + 1]) - start_k;
        }
        if(tile * n0 >= at.seqlen_k)
            return;
        // Of a packed sequence without queries there is no row to make a window of.
        if(Pipeline::kIsGroupMode && at.seqlen_q == 0)
            clear(args, at, start_k, tile * n0);
        else
            keys(args, at, start_q, start_k, tile, shared);
    }

    private:
    /// The keys of one tile.
    CK_TILE_DEVICE static void keys(const AttentionGradArgs& args,
                                    const At& at,
                                    index_t start_q,
                                    index_t start_k,
                                    index_t tile,
                                    char* shared)
    {
        using namespace ck_tile;

        const index_t key  = tile * n0;
        const index_t rows = at.seqlen_q, columns = at.seqlen_k;

        const auto q = window<Type, m0, width_q, pad_q>(
            place(args.q, at, at.head, start_q), rows, args.hdim_q, args.q.stride_seq, 0);
        const auto k = window<Type, n0, width_q, pad_q>(
            place(args.k, at, at.kv_head, start_k), columns, args.hdim_q, args.k.stride_seq, key);
        const auto v = window<Type, n0, width_v, pad_v>(
            place(args.v, at, at.kv_head, start_k), columns, args.hdim_v, args.v.stride_seq, key);
        const auto o_grad = window<Type, m0, width_v, pad_v>(
            place(args.grad_o, at, at.head, start_q), rows, args.hdim_v, args.grad_o.stride_seq, 0);
        const auto lse    = line(args.lse, at, start_q);
        const auto d      = line(args.d, at, start_q);
        const auto bias   = square<score == Score::bias>(args.bias, at, start_q, key);
        const auto b_grad = square<Pipeline::kHasBiasGrad>(args.grad_bias, at, start_q, key);
        const auto random = make_null_tile_window(make_tuple(number<m0>{}, number<n0>{}));
        const auto dq     = window_dq(args, at, start_q, tile);

        const GradMaskType<mask, score> visible{make_mask<mask, score>(args, at), at};
        auto dropout      = make_dropout(args, at);
        const float scale = score == Score::function ? args.scale : args.scale * log2e_v<float>;
        const float keep  = dropping ? args.keep_scale : 1.0f;

        auto dk = window<KGrad, n0, width_q, pad_q>(
            place<KGrad>(args.grad_k, at, at.head, start_k), columns, args.hdim_q,
            args.grad_k.stride_seq, key);
        auto dv = window<VGrad, n0, width_v, pad_v>(
            place<VGrad>(args.grad_v, at, at.head, start_k), columns, args.hdim_v,
            args.grad_v.stride_seq, key);
        const auto encoding = make_encoding<score>(args, at);
        constexpr GradStore stored{};
        if constexpr(whole)
            Pipeline{}(shared, q, k, v, bias, random, o_grad, lse, d, dq, dk, dv, b_grad, stored,
                       stored, stored, visible, encoding, args.scale, scale, keep,
                       args.scale * keep, dropout);
        else
        {
            const auto [of_k, of_v] =
                Pipeline{}(shared, q, k, v, bias, random, o_grad, lse, d, dq, b_grad, visible,
                           encoding, args.scale, scale, keep, args.scale * keep, dropout);
            stored(dk, of_k, nullptr);
            stored(dv, of_v, nullptr);
        }
    }

    /// Zeros for the keys of one tile.
    CK_TILE_DEVICE static void
    clear(const AttentionGradArgs& args, const At& at, index_t start_k, index_t key)
    {
        KGrad* dk = place<KGrad>(args.grad_k, at, at.head, start_k);
        VGrad* dv = place<VGrad>(args.grad_v, at, at.head, start_k);
        for(index_t j = key; j < ck_tile::min(key + n0, at.seqlen_k); ++j)
        {
            for(index_t e = threadIdx.x; e < args.hdim_q; e += block_size)
                dk[j * args.grad_k.stride_seq + e] = KGrad{0};
            for(index_t e = threadIdx.x; e < args.hdim_v; e += block_size)
                dv[j * args.grad_v.stride_seq + e] = VGrad{0};
        }
    }

    template <typename T = Type>
    CK_TILE_DEVICE static T*
    place(const AttentionTensor& tensor, const At& at, index_t head, index_t start)
    {
        const int64_t batch = Pipeline::kIsGroupMode ? 0 : at.batch;
        return static_cast<T*>(tensor.data) + batch * tensor.stride_batch +
               head * tensor.stride_head + start * tensor.stride_seq;
    }

    /// A tile of `length` rows of `width` contiguous elements. Rows beyond the last one lie outside
    /// the buffer: loads give zeros, and nothing is stored.
    template <typename T, index_t tile_rows, index_t tile_width, bool pad>
    CK_TILE_DEVICE static auto
    window(T* data, index_t length, index_t width, int64_t stride, index_t row)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<tile_rows>{}, number<tile_width>{});
        const auto view     = make_naive_tensor_view<address_space_enum::global>(
            data,
            make_tuple(length, width),
            make_tuple(static_cast<index_t>(stride), 1),
            number<vector>{},
            number<1>{});
        return make_tile_window(pad_tensor_view(view, tile, sequence<false, pad>{}), tile, {row, 0});
    }

    /// One number for each query.
    CK_TILE_DEVICE static auto line(const AttentionTensor& tensor, const At& at, index_t start)
    {
        using namespace ck_tile;
        const auto view = make_naive_tensor_view<address_space_enum::global>(
            static_cast<const float*>(place<float>(tensor, at, at.head, start)),
            make_tuple(at.seqlen_q),
            make_tuple(static_cast<index_t>(tensor.stride_seq)),
            number<1>{},
            number<1>{});
        return make_tile_window(view, make_tuple(number<m0>{}), {0});
    }

    /// A tile of a tensor of all scores, if there is one.
    template <bool present>
    CK_TILE_DEVICE static auto
    square(const AttentionTensor& tensor, const At& at, index_t start, index_t key)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<m0>{}, number<n0>{});
        if constexpr(present)
        {
            const auto view = make_naive_tensor_view<address_space_enum::global>(
                place<typename Pipeline::BiasDataType>(tensor, at, at.head, start),
                make_tuple(at.seqlen_q, at.seqlen_k),
                make_tuple(static_cast<index_t>(tensor.stride_seq), 1),
                number<1>{},
                number<1>{});
            return make_tile_window(
                pad_tensor_view(view, tile, sequence<false, true>{}), tile, {0, key});
        }
        else
            return make_null_tile_window(tile);
    }

    CK_TILE_DEVICE static auto
    window_dq(const AttentionGradArgs& args, const At& at, index_t start, index_t tile_of_keys)
    {
        using namespace ck_tile;
        constexpr bool apart = Pipeline::kIsDeterministic && !whole;
        constexpr auto tile  = make_tuple(number<m0>{}, number<width_q>{});
        float* data          = place<float>(args.grad_q, at, at.head, start);
        if constexpr(apart)
            data += tile_of_keys * args.stride_split_q;
        constexpr auto way =
            apart || whole ? memory_operation_enum::set : memory_operation_enum::atomic_add;
        const auto view = make_naive_tensor_view<address_space_enum::global, way>(
            data,
            make_tuple(at.seqlen_q, args.hdim_q),
            make_tuple(static_cast<index_t>(args.grad_q.stride_seq), 1),
            number<1>{},
            number<1>{});
        return make_tile_window(pad_tensor_view(view, tile, sequence<false, pad_q>{}), tile, {0, 0});
    }

    CK_TILE_DEVICE static auto make_dropout(const AttentionGradArgs& args, const At& at)
    {
        using Dropout = typename Pipeline::FmhaDropout;
        if constexpr(dropping)
            return Dropout{at.batch,
                           at.head,
                           args.heads,
                           static_cast<uint32_t>(*args.seed),
                           static_cast<uint32_t>(*args.offset),
                           args.keep_scale,
                           static_cast<uint8_t>(args.keep)};
        else
            return Dropout{};
    }
};

} // namespace cklang
