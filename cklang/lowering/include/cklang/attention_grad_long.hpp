// SPDX-License-Identifier: MIT
// The gradient of attention for heads of any size, over CK Tile's block products. Scores and the
// gradients by weights are summed over steps along the head, for which queries and keys pass
// through LDS, so no tile holds a whole head. A workgroup has some columns of dq, dk and dv, as
// many as its registers take; further columns are those of another workgroup, which computes the
// scores again.
#pragma once

#include "cklang/attention_grad.hpp"
#include "cklang/attention_launched.hpp"

#include "ck_tile/ops/fmha/pipeline/block_fmha_bwd_pipeline_default_policy.hpp"

namespace cklang {

/// A pipeline as AttentionGradKernel calls one that stores all gradients itself. A workgroup has
/// `columns` of a head, and blockIdx.y counts those that share it. The head size of the problem's
/// shape is a step along the head, alike for q and v: what CK Tile's policy says of queries holds
/// for the gradient of o as well, and what it says of keys for values.
template <typename Problem_,
          index_t columns,
          typename Policy = ck_tile::BlockFmhaBwdPipelineDefaultPolicy>
struct LongHeadsGrad
{
    using Problem       = Problem_;
    using Layouts       = ck_tile::BlockFmhaBwdPipelineDefaultPolicy;
    using Shape         = typename Problem::BlockFmhaShape;
    using QDataType     = typename Problem::QDataType; // of all operands of products
    using KGradDataType = typename Problem::KGradDataType;
    using VGradDataType = typename Problem::VGradDataType;
    using BiasDataType  = typename Problem::BiasDataType;
    using FmhaDropout   = typename Problem::FmhaDropout;

    static constexpr index_t kBlockSize    = Problem::kBlockSize;
    static constexpr index_t kM0           = Shape::kM0;
    static constexpr index_t kN0           = Shape::kN0;
    static constexpr index_t kK4           = Shape::kK4;
    static constexpr index_t kQKHeaddim    = Shape::kQKHeaddim; // a step
    static constexpr index_t kVHeaddim     = Shape::kVHeaddim;
    static constexpr index_t kPadHeadDimQ  = Problem::kPadHeadDimQ;
    static constexpr index_t kPadHeadDimV  = Problem::kPadHeadDimV;
    static constexpr auto BiasEnum         = Problem::BiasEnum;
    static constexpr bool kIsGroupMode     = Problem::kIsGroupMode;
    static constexpr bool kHasBiasGrad     = Problem::kHasBiasGrad;
    static constexpr bool kIsDeterministic = Problem::kIsDeterministic;

    static_assert(kQKHeaddim == kVHeaddim && columns % kQKHeaddim == 0);
    static_assert(!FmhaDropout::IsDropout);

    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        return staged_size + Layouts::template GetSmemSizeSGrad<Problem>();
    }

    template <typename Q, typename K, typename V, typename Bias, typename Random, typename OGrad,
              typename Line, typename DQ, typename DK, typename DV, typename BGrad, typename Store,
              typename Visible, typename Encoding>
    CK_TILE_DEVICE void
    operator()(char* shared, const Q& q_at, const K& k_at, const V& v_at, const Bias& bias_at,
               const Random&, const OGrad& o_grad_at, const Line& lse_at, const Line& d_at,
               const DQ& dq_at, const DK& dk_at, const DV& dv_at, const BGrad& b_grad_at, Store,
               Store, Store store, const Visible& visible, const Encoding& encoding,
               float raw_scale, float scale, float, float, const FmhaDropout&) const
    {
        using namespace ck_tile;

        constexpr auto of_keys = Layouts::template GetSGradTQTBlockGemm<Problem>();
        const index_t key      = k_at.get_window_origin().at(number<0>{});
        const index_t width_q = width(k_at), width_v = width(v_at);
        const auto dq_view = view_of_dq(dq_at, key);
        const auto scaled  = [&](float& x) { x *= raw_scale; };

        array<decltype(of_keys.MakeCBlockTile()), own_steps> dk, dv;
        static_for<0, own_steps, 1>{}([&](auto step) {
            clear_tile(dk(step));
            clear_tile(dv(step));
        });

        const auto rows_seen = visible.GetTileRangeAlongY(key, number<kM0>{}, number<kN0>{});
        const index_t end    = rows_seen.at(number<1>{});
        for(index_t row = rows_seen.at(number<0>{}); row < end; row += kM0)
        {
            const auto s = products(shared, q_at, row, k_at, key);
            const auto p = weights(s, lse_at, bias_at, visible, encoding, scale, row, key);
            const auto ds =
                by_scores(p, products(shared, o_grad_at, row, v_at, key), d_at, row);
            if constexpr(kHasBiasGrad)
                if(blockIdx.y == 0)
                {
                    auto to = moved(b_grad_at, row, key);
                    store_tile(to, cast_tile<BiasDataType>(ds));
                }

            const auto ds_operand = cast_tile<QDataType>(ds);
            const auto p_turned   = turned_scores(cast_tile<QDataType>(p));
            const auto ds_turned  = turned_scores(ds_operand);
            auto ds_lds           = scores_lds(shared);
            store_tile(ds_lds, ds_operand); // read behind the barriers of `turned`
            static_for<0, own_steps, 1>{}([&](auto step) {
                const index_t column = column_of(step);
                if(column < width_v)
                    of_keys(dv(step), p_turned, turned<Queries>(shared, o_grad_at, row, column));
                if(column < width_q)
                {
                    of_keys(dk(step), ds_turned, turned<Queries>(shared, q_at, row, column));
                    auto dq = of_queries(ds_lds, turned<Keys>(shared, k_at, key, column));
                    auto to =
                        make_tile_window(dq_view, dq_at.get_window_lengths(), {row, column});
                    tile_elementwise_inout(scaled, dq);
                    update_tile(to, dq);
                }
            });
        }
        static_for<0, own_steps, 1>{}([&](auto step) {
            const index_t column = column_of(step);
            auto to_k            = moved(dk_at, key, column);
            auto to_v            = moved(dv_at, key, column);
            tile_elementwise_inout(scaled, dk(step));
            if(column < width_q)
                store(to_k, dk[step], nullptr);
            if(column < width_v)
                store(to_v, dv[step], nullptr);
        });
    }

    private:
    static constexpr index_t own_steps = columns / kQKHeaddim;
    // Tiles of queries and of keys, or one of these turned.
    static constexpr index_t staged_size =
        ck_tile::max(Layouts::template GetSmemSizeQ<Problem>() +
                         Layouts::template GetSmemSizeK<Problem>(),
                     Layouts::template GetSmemSizeQT<Problem>(),
                     Layouts::template GetSmemSizeKT<Problem>());

    /// How a step of a tile of queries gets to registers, as it lies in memory and turned.
    struct Queries
    {
        static constexpr index_t rows = kM0;

        static constexpr auto loaded = Layouts::template MakeQDramTileDistribution<Problem>();
        static constexpr auto lds = Layouts::template MakeQLdsBlockDescriptor<Problem>();
        static constexpr auto read = Layouts::template MakeQRegSliceBlockDescriptor<Problem>();
        static constexpr auto shuffled =
            Layouts::template MakeShuffledQRegWriteBlockDescriptor<Problem>();
        static constexpr auto turned_write =
            Layouts::template MakeShuffledQLdsWriteBlockDescriptor<Problem>();
        static constexpr auto turned_lds =
            Layouts::template MakeQTLdsReadBlockDescriptor<Problem>();
        static constexpr auto turned_read =
            Layouts::template MakeQTRegSliceBlockDescriptor<Problem>();
    };

    /// The same for a tile of keys.
    struct Keys
    {
        static constexpr index_t rows = kN0;

        static constexpr auto loaded = Layouts::template MakeKDramTileDistribution<Problem>();
        static constexpr auto lds = Layouts::template MakeKLdsWriteBlockDescriptor<Problem>();
        static constexpr auto read = Layouts::template MakeKRegBlockDescriptor<Problem>();
        static constexpr auto shuffled =
            Layouts::template MakeShuffledKRegWriteBlockDescriptor<Problem>();
        static constexpr auto turned_write =
            Layouts::template MakeShuffledKLdsWriteBlockDescriptor<Problem>();
        static constexpr auto turned_lds =
            Layouts::template MakeKTLdsReadBlockDescriptor<Problem>();
        static constexpr auto turned_read = Layouts::template MakeKTRegBlockDescriptor<Problem>();
    };

    /// The first column of a step of the workgroup's own.
    CK_TILE_DEVICE static index_t column_of(index_t step)
    {
        return blockIdx.y * columns + step * kQKHeaddim;
    }

    /// The elements of a head, padded to steps.
    template <typename Window>
    CK_TILE_DEVICE static index_t width(const Window& at)
    {
        const auto descriptor = at.get_bottom_tensor_view().get_tensor_descriptor();
        return descriptor.get_lengths()[ck_tile::number<1>{}];
    }

    template <typename Window, typename... Distribution>
    CK_TILE_DEVICE static auto
    moved(const Window& at, index_t row, index_t column, const Distribution&... distribution)
    {
        return ck_tile::make_tile_window(at.get_bottom_tensor_view(),
                                         at.get_window_lengths(),
                                         {row, column},
                                         distribution...);
    }

    template <index_t rows, index_t width, typename Descriptor, typename... Distribution>
    CK_TILE_DEVICE static auto
    lds(char* shared, const Descriptor& descriptor, const Distribution&... distribution)
    {
        using namespace ck_tile;
        const auto view = make_tensor_view<address_space_enum::lds>(
            reinterpret_cast<QDataType*>(shared), descriptor);
        constexpr auto lengths = make_tuple(number<rows>{}, number<width>{});
        return make_tile_window(view, lengths, {0, 0}, distribution...);
    }

    CK_TILE_DEVICE static auto scores_lds(char* shared)
    {
        return lds<kM0, kN0>(shared + staged_size,
                             Layouts::template MakeSGradLdsBlockDescriptor<Problem>());
    }

    /// The sums along the head of the products of a tile of queries and a tile of keys.
    template <typename Rows, typename Columns>
    CK_TILE_DEVICE static auto products(
        char* shared, const Rows& rows_at, index_t row, const Columns& keys_at, index_t key)
    {
        using namespace ck_tile;
        constexpr auto product = Layouts::template GetQKBlockGemm<Problem>();
        auto sums              = product.MakeCBlockTile();
        clear_tile(sums);
        char* const keys_place = shared + Layouts::template GetSmemSizeQ<Problem>();
        auto rows_lds          = lds<kM0, kQKHeaddim>(shared, Queries::lds);
        auto keys_lds          = lds<kN0, kQKHeaddim>(keys_place, Keys::lds);
        for(index_t column = 0; column < width(keys_at); column += kQKHeaddim)
        {
            const auto rows = load_tile(moved(rows_at, row, column, Queries::loaded));
            const auto keys = load_tile(moved(keys_at, key, column, Keys::loaded));
            block_sync_lds(); // what was in LDS has been read
            store_tile(rows_lds, rows);
            store_tile(keys_lds, keys);
            block_sync_lds();
            product(sums,
                    load_tile(lds<kM0, kQKHeaddim>(shared, Queries::lds, Queries::read)),
                    load_tile(lds<kN0, kQKHeaddim>(keys_place, Keys::lds, Keys::read)));
        }
        return sums;
    }

    /// A step of a tile with its columns as rows, for products that sum along its rows.
    template <typename Tile, typename Window>
    CK_TILE_DEVICE static auto
    turned(char* shared, const Window& at, index_t row, index_t column)
    {
        using namespace ck_tile;
        const auto tile = load_tile(moved(at, row, column, Tile::loaded));
        auto shuffled   = make_static_distributed_tensor<QDataType>(Tile::shuffled);
        shuffle_tile(shuffled, tile);
        auto to = lds<Tile::rows, kQKHeaddim>(shared, Tile::turned_write);
        block_sync_lds(); // what was in LDS has been read
        store_tile(to, shuffled);
        block_sync_lds();
        return load_tile(
            lds<kQKHeaddim, Tile::rows>(shared, Tile::turned_lds, Tile::turned_read));
    }

    /// The products of the gradients by scores, which are in LDS, and a step of the keys, turned.
    template <typename Scores, typename Columns>
    CK_TILE_DEVICE static auto of_queries(const Scores& ds_lds, const Columns& keys)
    {
        using namespace ck_tile;
        constexpr auto product = Layouts::template GetSGradKTBlockGemm<Problem>();
        auto sums              = product.MakeCBlockTile();
        clear_tile(sums);
        static_for<0, kN0, kK4>{}([&](auto key) {
            const auto ds =
                make_tile_window(ds_lds.get_bottom_tensor_view(),
                                 make_tuple(number<kM0>{}, number<kK4>{}),
                                 {0, key},
                                 Layouts::template MakeSGradRegSliceBlockDescriptor<Problem>());
            product(
                sums,
                load_tile(ds),
                get_slice_tile(keys, sequence<0, key>{}, sequence<kQKHeaddim, key + kK4>{}));
        });
        return sums;
    }

    /// A tile of scores with keys as rows: these are in the same lanes already.
    template <typename Tile>
    CK_TILE_DEVICE static auto turned_scores(const Tile& tile)
    {
        auto turned = ck_tile::make_static_distributed_tensor<QDataType>(
            Layouts::template MakePTRegSliceBlockDescriptor<Problem>());
        Layouts::template PTFromGemm0CToGemm1A<Problem, decltype(turned), Tile>(turned, tile);
        return turned;
    }

    /// The number of each row of a tile of scores.
    template <typename Line>
    CK_TILE_DEVICE static auto of_rows(const Line& at, index_t row)
    {
        using namespace ck_tile;
        using Product = decltype(Layouts::template GetQKBlockGemm<Problem>());
        return load_tile(make_tile_window(
            at.get_bottom_tensor_view(),
            at.get_window_lengths(),
            {row},
            Layouts::template MakeLSEDLdsReadBlockDescriptor<Problem, Product>()));
    }

    /// Products become scores in units in which exp is exp2, and these weights. With a derivative,
    /// the policy's scores have it beside them.
    template <typename S, typename Line, typename Bias, typename Visible, typename Encoding>
    CK_TILE_DEVICE static auto weights(const S& products, const Line& lse_at, const Bias& bias_at,
                                       const Visible& visible, const Encoding& encoding,
                                       float scale, index_t row, index_t key)
    {
        using namespace ck_tile;
        using ck_tile::exp2; // not that of scores with a derivative alone
        auto p = Policy::template GetQKBlockGemm<Problem>().MakeCBlockTile();
        tile_elementwise_inout([&](auto& x, float product) { x = scale * product; }, p, products);
        if constexpr(BiasEnum == BlockAttentionBiasEnum::ELEMENTWISE_BIAS)
        {
            const auto bias = load_tile(moved(bias_at, row, key, p.get_tile_distribution()));
            tile_elementwise_inout(
                [](float& x, auto added) { x += log2e_v<float> * type_convert<float>(added); },
                p,
                bias);
        }
        else if constexpr(BiasEnum == BlockAttentionBiasEnum::ALIBI)
            each_element(p, [&](auto element, index_t i, index_t j) {
                encoding.update(p(element), row + i, key + j);
            });
        if(visible.IsEdgeTile(row, key, number<kM0>{}, number<kN0>{}))
            set_tile_if(p, -numeric<float>::infinity(), [&](auto place) {
                return visible.IsOutOfBound(row + place.at(number<0>{}),
                                            key + place.at(number<1>{}));
            });
        const auto lse = of_rows(lse_at, row);
        each_row(p, [&](auto i, const auto& each) {
            // A row that sees no key has the log-sum-exp -inf, and scores of -inf.
            const float sum   = lse[make_tuple(i)];
            const float shift = sum == -numeric<float>::infinity() ? 0.f : log2e_v<float> * sum;
            each([&](auto element) { p(element) = exp2(p[element] - shift); });
        });
        return p;
    }

    /// The gradient by the scores: a weight times its own gradient less D of its row.
    template <typename P, typename DP, typename Line>
    CK_TILE_DEVICE static auto
    by_scores(const P& p, DP by_weights, const Line& d_at, index_t row)
    {
        const auto d = of_rows(d_at, row);
        each_row(p, [&](auto i, const auto& each) {
            const float of_row = d[ck_tile::make_tuple(i)];
            each([&](auto element) {
                by_weights(element) = p[element] * (by_weights[element] - of_row);
            });
        });
        return by_weights;
    }

    /// Where what the workgroup gives of dq goes: added to that of all, or in a part of its own.
    template <typename Window>
    CK_TILE_DEVICE static auto view_of_dq(const Window& dq_at, index_t key)
    {
        using namespace ck_tile;
        constexpr auto way =
            kIsDeterministic ? memory_operation_enum::set : memory_operation_enum::atomic_add;
        const auto& view = dq_at.get_bottom_tensor_view();
        float* data      = view.get_buffer_view().p_data_;
        if constexpr(kIsDeterministic)
            data += key / kN0 *
                    static_cast<const CK_CONSTANT AttentionGradArgs&>(launched()).stride_split_q;
        return make_tensor_view<address_space_enum::global, way>(data,
                                                                 view.get_tensor_descriptor());
    }

    /// Call `function` with each row of a tile and what visits the elements of that row.
    template <typename Tile, typename Function>
    CK_TILE_DEVICE static void each_row(const Tile&, const Function& function)
    {
        using namespace ck_tile;
        constexpr auto spans = Tile::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto along_rows) {
            function(along_rows, [&](const auto& visit) {
                sweep_tile_span(spans[number<1>{}], [&](auto along_columns) {
                    visit(make_tuple(along_rows, along_columns));
                });
            });
        });
    }

    /// Call `function` with each element of a tile and its row and column there.
    template <typename Tile, typename Function>
    CK_TILE_DEVICE static void each_element(const Tile& tile, const Function& function)
    {
        each_row(tile, [&](auto, const auto& each) {
            each([&](auto element) {
                const auto place = ck_tile::get_x_indices_from_distributed_indices(
                    Tile::get_tile_distribution(), element);
                function(element, place.at(ck_tile::number<0>{}), place.at(ck_tile::number<1>{}));
            });
        });
    }
};

/// The kernel around it. One whose workgroups have all queries of a head leaves it to the pipeline
/// to store the gradients; nothing else sets the two apart on the device.
template <typename Pipeline, Mask mask, Score score, index_t vector>
using LongHeadsGradKernel = AttentionGradKernel<Pipeline, mask, score, vector, true>;

} // namespace cklang
