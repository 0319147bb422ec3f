// SPDX-License-Identifier: MIT
// An attention kernel: which rows of which head a workgroup computes, the windows through which it
// sees them, and CK Tile's pipeline with position encoding, variant and mask of our own, through
// which the user's functions reach every score.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/attention_at.hpp"
#include "cklang/narrow.hpp"
#include "cklang/paged.hpp"

namespace cklang {

/// CK Tile's window, beside which the first keys are seen by all queries that the right edge lets.
/// Its tiles between those keys and the window are computed and masked.
struct WindowMask : ck_tile::GenericAttentionMask<true, true>
{
    using Base = ck_tile::GenericAttentionMask<true, true>;

    index_t right_edge; // the first key that query 0 does not see
    index_t queries;
    index_t keys;
    index_t sink;

    CK_TILE_DEVICE WindowMask(index_t y, index_t x, index_t queries_, index_t keys_, index_t sink_)
        : Base(y, x, queries_, keys_), right_edge(x), queries(queries_), keys(keys_), sink(sink_)
    {
    }

    template <index_t rows, index_t columns>
    CK_TILE_DEVICE auto GetTileRangeAlongX(index_t row, number<rows>, number<columns>) const
    {
        const auto [start, end] = Base::GetTileRangeAlongX(row, number<rows>{}, number<columns>{});
        return ck_tile::make_tuple(sink > 0 ? 0 : start, end);
    }

    /// The queries that see a key of a tile.
    template <index_t rows, index_t columns>
    CK_TILE_DEVICE auto GetTileRangeAlongY(index_t column, number<rows>, number<columns>) const
    {
        const auto [start, end] =
            Base::GetTileRangeAlongY(column, number<rows>{}, number<columns>{});
        return ck_tile::make_tuple(start, column < sink ? queries : end);
    }

    /// Without branches: where several lead to the store of -inf, clang 22 can lose it
    /// (docs/emulator.md, "A store that clang loses").
    CK_TILE_DEVICE bool IsOutOfBound(index_t row, index_t column) const
    {
        const bool seen = (column < sink) & (column < keys) & (column < row + right_edge);
        const bool out  = Base::IsOutOfBound(row, column);
        return out & !seen;
    }
};

/// A window through which the user's function looks: every tile may have an edge.
struct FunctionMask : WindowMask
{
    using WindowMask::WindowMask;

    template <index_t rows, index_t columns>
    CK_TILE_DEVICE constexpr bool
    IsEdgeTile(index_t, index_t, number<rows>, number<columns>) const
    {
        return true;
    }
};

/// No mask, but scores may be -inf: rows that see nothing are looked after.
struct GuardedMask : ck_tile::GenericAttentionMask<false>
{
    static constexpr bool IsMasking = true;

    using ck_tile::GenericAttentionMask<false>::GenericAttentionMask;
};

/// The part of the keys that one of several workgroups takes: whole tiles, shared out evenly.
template <typename Base>
struct SplitMask : Base
{
    index_t split;
    index_t splits;

    CK_TILE_DEVICE SplitMask(const Base& base, index_t split_, index_t splits_)
        : Base(base), split(split_), splits(splits_)
    {
    }

    template <index_t rows, index_t columns>
    CK_TILE_DEVICE auto GetTileRangeAlongX(index_t row, number<rows>, number<columns>) const
    {
        using namespace ck_tile;
        const auto [start, end] = Base::GetTileRangeAlongX(row, number<rows>{}, number<columns>{});
        const index_t tiles     = end > start ? integer_divide_ceil(end - start, columns) : 0;
        const index_t share     = integer_divide_ceil(tiles, splits) * columns;
        const index_t first     = start + split * share;
        return make_tuple(first, min(end, first + share));
    }
};

template <Mask mask, Score score>
using WholeMask = std::conditional_t<
    mask == Mask::function,
    FunctionMask,
    std::conditional_t<
        mask == Mask::window,
        WindowMask,
        std::conditional_t<mask == Mask::causal,
                           ck_tile::GenericAttentionMask<true>,
                           std::conditional_t<score == Score::bias || score == Score::function,
                                              GuardedMask,
                                              ck_tile::GenericAttentionMask<false>>>>>;

template <Mask mask, Score score, bool split>
using MaskType =
    std::conditional_t<split, SplitMask<WholeMask<mask, score>>, WholeMask<mask, score>>;

/// The mask of one sequence.
template <Mask mask, Score score>
CK_TILE_DEVICE auto make_mask(const AttentionArgs& args, const At& at)
{
    using Type = WholeMask<mask, score>;
    if constexpr(mask == Mask::none)
        return Type{at.seqlen_q, at.seqlen_k};
    else
    {
        const auto corner = ck_tile::make_generic_attention_mask_coordinates_from_lr_window(
            args.left, args.right, at.seqlen_q, at.seqlen_k, !args.from_bottom_right);
        const index_t y = corner.at(number<0>{});
        const index_t x = corner.at(number<1>{});
        if constexpr(mask == Mask::causal)
            return Type{y, x, at.seqlen_q, at.seqlen_k};
        else
            return Type{y, x, at.seqlen_q, at.seqlen_k, args.sink};
    }
}

/// CK Tile hands each scaled score and its place to a position encoding. Scores go on in units in
/// which exp is exp2, natural ones go through the user's function. Padding asks for the last place.
struct FunctionEncoding
{
    At at;

    CK_TILE_DEVICE void update(float& x, index_t row, index_t column) const
    {
        const index_t i = ck_tile::min(row, at.seqlen_q - 1);
        const index_t j = ck_tile::min(column, at.seqlen_k - 1);
        x = ck_tile::log2e_v<float> * ck_score(x, CK_ATTENTION_ARGS(at, i, j));
    }
};

/// The position encoding of one head; positions take up to 32 bits.
template <Score score>
CK_TILE_DEVICE auto make_encoding(const AttentionArgs& args, const At& at)
{
    if constexpr(score == Score::function)
        return FunctionEncoding{at};
    else if constexpr(score == Score::alibi)
    {
        const float slope = static_cast<const float*>(
            args.slopes.data)[at.batch * args.slopes.stride_batch +
                              at.head * args.slopes.stride_head];
        return ck_tile::Alibi<float, true, 32>{
            static_cast<float>(slope * ck_tile::log2e_v<>), // in double, as CK Tile
            at.seqlen_q,
            at.seqlen_k,
            args.from_bottom_right ? ck_tile::AlibiMode::FROM_BOTTOM_RIGHT
                                   : ck_tile::AlibiMode::FROM_TOP_LEFT};
    }
    else
        return ck_tile::EmptyPositionEncoding<float>{};
}

/// Whether the user's mask, if there is one, lets a query see a key. Padding asks for the last
/// place.
template <Mask mask>
CK_TILE_DEVICE bool lets_through(const At& at, index_t row, index_t column)
{
    if constexpr(mask == Mask::function)
    {
        const index_t i = ck_tile::min(row, at.seqlen_q - 1);
        const index_t j = ck_tile::min(column, at.seqlen_k - 1);
        int seen        = ck_mask(CK_ATTENTION_ARGS(at, i, j));
        asm("" : "+v"(seen)); // a value, whatever branches the function has
        return seen;
    }
    else
        return true;
}

/// CK Tile's variant; of a mask function it asks that too.
template <Mask mask, Score score>
struct Variant : std::conditional_t<score == Score::soft_cap,
                                    ck_tile::LogitsSoftCap<true>,
                                    ck_tile::StandardAttention>
{
    template <typename Params>
    CK_TILE_DEVICE bool LogitsMask(const Params& params,
                                   uint32_t,
                                   uint32_t row,
                                   uint32_t column,
                                   uint32_t,
                                   uint32_t) const
    {
        const bool out = params.impl_mask.IsOutOfBound(row, column);
        return lets_through<mask>(params.at, row, column) & !out;
    }
};

template <typename Base>
struct VariantParams : Base
{
    At at;

    template <typename... Args>
    CK_TILE_DEVICE VariantParams(const At& at_, const Args&... args) : Base(args...), at(at_)
    {
    }
};

/// The device side. `vector` elements of Q, K, V and O are moved at once, if the pipeline likes to.
/// Where workgroups `split` the keys of a row, each stores its part of o and lse. With `output` the
/// user's function makes of o what is stored.
template <typename Pipeline_,
          Mask mask,
          Score score,
          index_t vector,
          bool split,
          bool paged,
          bool output>
struct AttentionKernel
{
    using Pipeline = Pipeline_;
    using Problem  = typename Pipeline::Problem;
    using QType    = typename Pipeline::QDataType;
    using KType    = typename Pipeline::KDataType;
    using VType    = typename Pipeline::VDataType;
    using OType    = typename Pipeline::ODataType;

    static constexpr index_t block_size = Pipeline::kBlockSize;
    static constexpr index_t m0         = Pipeline::kM0;
    static constexpr index_t n0         = Pipeline::kN0;
    static constexpr index_t n1         = Pipeline::kN1;
    static constexpr bool pad_q         = Pipeline::kPadSeqLenQ;
    static constexpr bool pad_k         = Pipeline::kPadSeqLenK;
    static constexpr bool pad_d         = Pipeline::kPadHeadDimQ;
    static constexpr bool pad_dv        = Pipeline::kPadHeadDimV;

    /// Heads are neighbours, so that those that share keys run together; of masked kernels the
    /// tiles of most work come first.
    CK_TILE_DEVICE static void run(const AttentionArgs& args)
    {
        using namespace ck_tile;

        __shared__ char shared[Pipeline::GetSmemSize()];

        const index_t block = blockIdx.x;
        const index_t head  = amd_wave_read_first_lane(block % args.heads);
        index_t rest        = amd_wave_read_first_lane(block / args.heads);
        index_t part        = 0;
        if constexpr(split)
        {
            part = amd_wave_read_first_lane(rest % args.splits);
            rest = amd_wave_read_first_lane(rest / args.splits);
        }
        const index_t batch = amd_wave_read_first_lane(rest / args.tiles);
        index_t tile        = amd_wave_read_first_lane(rest % args.tiles);
        if constexpr(mask != Mask::none)
            tile = args.tiles - 1 - tile;

        At at{batch,
              head,
              amd_wave_read_first_lane(head / args.heads_per_kv),
              args.seqlen_q,
              args.seqlen_k,
              function_tensors()};
        index_t start_q = 0, start_k = 0;
        if constexpr(Problem::kIsGroupMode)
        {
            start_q     = amd_wave_read_first_lane(args.starts_q[batch]);
            at.seqlen_q = amd_wave_read_first_lane(args.starts_q[batch + 1]) - start_q;
            if(args.min_seqlen_q && at.seqlen_q <= amd_wave_read_first_lane(*args.min_seqlen_q))
                return;
            if constexpr(!paged)
            {
                start_k     = amd_wave_read_first_lane(args.starts_k[batch]);
                at.seqlen_k = amd_wave_read_first_lane(args.starts_k[batch + 1]) - start_k;
            }
        }
        if(args.lengths_k)
            at.seqlen_k = amd_wave_read_first_lane(args.lengths_k[batch]);
        const index_t row = tile * m0;
        if(row < at.seqlen_q)
            rows(args, at, start_q, start_k, row, part, shared);
    }

    private:
    /// Rows `row` to `row` + m0 of one head, with split `part` of their keys.
    CK_TILE_DEVICE static void rows(const AttentionArgs& args,
                                    const At& at,
                                    index_t start_q,
                                    index_t start_k,
                                    index_t row,
                                    index_t part,
                                    char* shared)
    {
        using namespace ck_tile;

        auto q = make_tile_window(view_q(pointer<const QType>(args.q, at, at.head, start_q),
                                         at.seqlen_q,
                                         args.hdim_q,
                                         args.q.stride_seq),
                                  tile_q(),
                                  {row, 0});
        auto k = make_tile_window(view_k(args, at, start_k), tile_k(), {0, 0});
        auto v = make_tile_window(view_v(args, at, start_k), tile_v(), {0, 0});
        auto bias   = square<typename Pipeline::BiasDataType, score == Score::bias>(
            args.bias, at, start_q, row);
        auto random = square<typename Pipeline::RandValOutputDataType, Pipeline::kHasDropout>(
            args.random, at, start_q, row);
        AttentionTensor o = args.o, lse_place = args.lse;
        if constexpr(split)
        {
            o         = moved<float>(args.partial_o, part * args.stride_split_o);
            lse_place = moved<float>(args.partial_lse, part * args.stride_split_lse);
        }
        auto lse = window_lse(lse_place, at, start_q, row);

        auto visible = [&] {
            const auto whole = make_mask<mask, score>(args, at);
            if constexpr(split)
                return SplitMask<WholeMask<mask, score>>{whole, part, args.splits};
            else
                return whole;
        }();
        auto dropout = make_dropout(args, at);

        const auto params = [&] {
            // The units in which exp is exp2; the user's function takes natural scores.
            if constexpr(score == Score::soft_cap)
            {
                using Params = LogitsSoftCapParams<decltype(visible), true>;
                return VariantParams<Params>{
                    at, visible, args.scale * log2e_v<float>, args.soft_cap};
            }
            else
            {
                using Params = StandardAttentionParams<decltype(visible)>;
                return VariantParams<Params>{at, visible, args.scale * log2e_v<float>};
            }
        }();
        const float scale =
            score == Score::function ? args.scale : args.scale * log2e_v<float>;
        const Indices indices{at.batch, at.head, at.kv_head};

        const auto same = identity{};
        const auto run  = [&](const auto& p_function, const auto& o_function) {
            return Pipeline{}(q, same, k, same, v, same, bias, same, random, lse, same, same,
                              p_function, o_function, visible, make_encoding<score>(args, at),
                              scale, Variant<mask, score>{}, params, indices, shared, dropout);
        };
        auto acc = [&] {
            if constexpr(Problem::kDoFp8StaticQuant)
                return run(scales{args.scale_p}, scales{args.scale_o});
            else
                return run(same, same);
        }();
        if constexpr(output)
            finish(acc, args.hdim_v, at, start_q, row);
        store(acc, o, args.hdim_v, at, start_q, row);
    }

    struct Indices
    {
        index_t batch_idx;
        index_t qo_head_idx;
        index_t kv_head_idx;
    };

    template <typename T>
    CK_TILE_DEVICE static T*
    pointer(const AttentionTensor& tensor, const At& at, index_t head, index_t start)
    {
        const int64_t batch = Problem::kIsGroupMode ? 0 : at.batch;
        return static_cast<T*>(tensor.data) + batch * tensor.stride_batch +
               head * tensor.stride_head + start * tensor.stride_seq;
    }

    /// `length` rows of `width` contiguous elements.
    template <typename T>
    CK_TILE_DEVICE static auto matrix(T* data, index_t length, index_t width, int64_t stride)
    {
        using namespace ck_tile;
        return make_naive_tensor_view<address_space_enum::global>(
            data,
            make_tuple(length, width),
            make_tuple(static_cast<index_t>(stride), 1),
            number<vector>{},
            number<1>{});
    }

    CK_TILE_DEVICE static constexpr auto tile_q()
    {
        using namespace ck_tile;
        return make_tuple(
            number<m0>{},
            number<Pipeline::kQLoadOnce ? Pipeline::kSubQKHeaddim : Pipeline::kK0>{});
    }

    CK_TILE_DEVICE static auto
    view_q(const QType* data, index_t length, index_t width, int64_t stride)
    {
        return ck_tile::pad_tensor_view(
            matrix(data, length, width, stride), tile_q(), ck_tile::sequence<pad_q, pad_d>{});
    }

    CK_TILE_DEVICE static constexpr auto tile_k()
    {
        return ck_tile::make_tuple(number<n0>{}, number<Pipeline::kK0>{});
    }

    CK_TILE_DEVICE static constexpr auto tile_v()
    {
        return ck_tile::make_tuple(number<n1>{}, number<Pipeline::kK1>{});
    }

    // Rows of K and V beyond the last one lie outside the buffer, so loads give zeros; pipelines
    // that load K past the registers need to be told.
    CK_TILE_DEVICE static auto view_k(const AttentionArgs& args, const At& at, index_t start)
    {
        using namespace ck_tile;
        if constexpr(paged)
            return in_pages<KType, pad_d>(args.k, args.pages, at, args.hdim_q);
        else
            return pad_tensor_view(matrix(pointer<const KType>(args.k, at, at.kv_head, start),
                                          at.seqlen_k,
                                          args.hdim_q,
                                          args.k.stride_seq),
                                   tile_k(),
                                   sequence<pad_k, pad_d>{});
    }

    /// Columns are keys: the pipeline takes V transposed.
    CK_TILE_DEVICE static auto view_v(const AttentionArgs& args, const At& at, index_t start)
    {
        using namespace ck_tile;
        const auto transposed = [&](const auto& view) {
            return transform_tensor_view(
                view,
                make_tuple(make_pass_through_transform(args.hdim_v),
                           make_pass_through_transform(at.seqlen_k)),
                make_tuple(sequence<1>{}, sequence<0>{}),
                make_tuple(sequence<0>{}, sequence<1>{}));
        };
        if constexpr(paged)
            return in_pages<VType, pad_dv>(args.v, args.pages, at, args.hdim_v).transposed();
        else
            return pad_tensor_view(
                transposed(matrix(pointer<const VType>(args.v, at, at.kv_head, start),
                                  at.seqlen_k,
                                  args.hdim_v,
                                  args.v.stride_seq)),
                tile_v(),
                sequence<pad_dv, pad_k>{});
    }

    /// All rows of one head that lie in pages.
    template <typename T, bool pad>
    CK_TILE_DEVICE static auto
    in_pages(const AttentionTensor& tensor, const Pages& pages, const At& at, index_t width)
    {
        const int64_t first = pages.starts ? pages.starts[at.batch] : at.batch * pages.stride;
        return make_paged_view<T, vector, pad>(
            static_cast<const T*>(tensor.data) + at.kv_head * tensor.stride_head,
            pages.table + first,
            pages.size,
            tensor.stride_batch,
            tensor.stride_seq,
            at.seqlen_k,
            width);
    }

    template <typename T>
    CK_TILE_DEVICE static AttentionTensor moved(AttentionTensor tensor, int64_t elements)
    {
        tensor.data = static_cast<T*>(tensor.data) + elements;
        return tensor;
    }

    /// A tile of a tensor of all scores, if there is one.
    template <typename T, bool present>
    CK_TILE_DEVICE static auto
    square(const AttentionTensor& tensor, const At& at, index_t start_q, index_t row)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<m0>{}, number<n0>{});
        if constexpr(present)
        {
            const auto view = make_naive_tensor_view<address_space_enum::global>(
                pointer<T>(tensor, at, at.head, start_q),
                make_tuple(at.seqlen_q, at.seqlen_k),
                make_tuple(static_cast<index_t>(tensor.stride_seq), 1),
                number<1>{},
                number<1>{});
            return make_tile_window(
                pad_tensor_view(view, tile, sequence<pad_q, pad_k>{}), tile, {row, 0});
        }
        else
            return make_null_tile_window(tile);
    }

    CK_TILE_DEVICE static auto
    window_lse(const AttentionTensor& lse, const At& at, index_t start_q, index_t row)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<m0>{});
        if constexpr(Pipeline::kStoreLSE)
        {
            const auto view = make_naive_tensor_view<address_space_enum::global>(
                pointer<typename Pipeline::LSEDataType>(lse, at, at.head, start_q),
                make_tuple(at.seqlen_q),
                make_tuple(static_cast<index_t>(lse.stride_seq)),
                number<1>{},
                number<1>{});
            return make_tile_window(pad_tensor_view(view, tile, sequence<pad_q>{}), tile, {row});
        }
        else
            return make_null_tile_window(tile);
    }

    CK_TILE_DEVICE static auto make_dropout(const AttentionArgs& args, const At& at)
    {
        using namespace ck_tile;
        if constexpr(Pipeline::kHasDropout)
            return BlockDropout{at.batch,
                                at.head,
                                args.heads,
                                static_cast<uint32_t>(*args.seed),
                                static_cast<uint32_t>(*args.offset),
                                args.keep_scale,
                                static_cast<uint8_t>(args.keep),
                                args.random.data != nullptr};
        else
            return NullBlockDropout{};
    }

    /// The user's function of each element. Padding asks for the last place.
    template <typename Acc>
    CK_TILE_DEVICE static void
    finish(Acc& acc, index_t width, const At& at, index_t start_q, index_t row)
    {
        using namespace ck_tile;
        constexpr auto spans = Acc::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto along_rows) {
            sweep_tile_span(spans[number<1>{}], [&](auto along_head) {
                constexpr auto element = make_tuple(along_rows, along_head);
                const auto place       = get_x_indices_from_distributed_indices(
                    acc.get_tile_distribution(), element);
                const index_t i = min(row + place.at(number<0>{}), at.seqlen_q - 1) + start_q;
                const index_t j = min(place.at(number<1>{}), width - 1);
                acc(element)    = ck_output(acc[element], CK_ATTENTION_ARGS(at, i, j));
            });
        });
    }

    template <typename Acc>
    CK_TILE_DEVICE static void store(const Acc& acc,
                                     const AttentionTensor& o,
                                     index_t width,
                                     const At& at,
                                     index_t start_q,
                                     index_t row)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<m0>{}, number<n1>{});
        const auto view     = matrix(
            pointer<OType>(o, at, at.head, start_q), at.seqlen_q, width, o.stride_seq);
        auto window = make_tile_window(
            pad_tensor_view(view, tile, sequence<pad_q, pad_dv>{}), tile, {row, 0});
        store_tile(window, tile_elementwise_in([](auto x) { return narrow<OType>(x); }, acc));
    }
};

} // namespace cklang
