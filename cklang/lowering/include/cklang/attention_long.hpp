// SPDX-License-Identifier: MIT
// Attention for heads of any size, over CK Tile's block products. Scores are summed over steps along
// the head, for which Q and K pass through LDS, so no tile holds a whole head. A workgroup has all of
// o for its rows as far as registers go; further columns of v are another workgroup's, which computes
// the scores again.
#pragma once

#include "cklang/attention.hpp"
#include "cklang/attention_launched.hpp"

#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qs_ks_vs_default_policy.hpp"
#include "ck_tile/ops/reduce/block/block_reduce.hpp"

namespace cklang {

/// A pipeline as AttentionKernel calls it. `output`: the user's function makes of o what is stored;
/// it is called here because columns are counted from the first of the workgroup's own.
template <typename Problem_, Score score, bool output>
struct LongHeads
{
    using Problem               = Problem_;
    using Policy                = ck_tile::BlockFmhaPipelineQSKSVSDefaultPolicy;
    using Shape                 = typename Problem::BlockFmhaShape;
    using QDataType             = typename Problem::QDataType;
    using KDataType             = typename Problem::KDataType;
    using VDataType             = typename Problem::VDataType;
    using PDataType             = typename Problem::PDataType;
    using ODataType             = typename Problem::ODataType;
    using BiasDataType          = typename Problem::BiasDataType;
    using RandValOutputDataType = typename Problem::RandValOutputDataType;
    using LSEDataType           = typename Problem::LSEDataType;

    static constexpr index_t kBlockSize    = Problem::kBlockSize;
    static constexpr index_t kM0           = Shape::kM0;
    static constexpr index_t kN0           = Shape::kN0;
    static constexpr index_t kK0           = Shape::kK0;
    static constexpr index_t kN1           = Shape::kN1;
    static constexpr index_t kK1           = Shape::kK1;
    static constexpr index_t kSubQKHeaddim = kK0; // of a tile of Q
    static constexpr bool kQLoadOnce       = false;
    static constexpr bool kPadSeqLenQ      = Problem::kPadSeqLenQ;
    static constexpr bool kPadSeqLenK      = Problem::kPadSeqLenK;
    static constexpr bool kPadHeadDimQ     = Problem::kPadHeadDimQ;
    static constexpr bool kPadHeadDimV     = Problem::kPadHeadDimV;
    static constexpr bool kStoreLSE        = Problem::kStoreLSE;
    static constexpr bool kHasDropout      = Problem::kHasDropout;
    static constexpr bool masked           = Problem::FmhaMask::IsMasking;

    static_assert(!kHasDropout && score != Score::bias);

    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        return Policy::template GetSmemSize<Problem>();
    }

    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q_at, Same, const K& k_at, Same, const V& v_at, Same, const Bias&, Same,
               const Random&, Lse& lse_at, Same, Same, Same, Same, const MaskAll& visible,
               const Encoding& encoding, float scale, const Variant& variant, const Params& params,
               const Indices& indices, char* shared, const Dropout&) const
    {
        using namespace ck_tile;

        constexpr auto gemm_0 = Policy::template GetQKBlockGemm<Problem>();
        constexpr auto gemm_1 = Policy::template GetKVBlockGemm<Problem>();
        constexpr float none  = -numeric<float>::infinity();
        const auto larger     = [](float a, float b) { return ck_tile::max(a, b); };
        const auto sum        = [](float a, float b) { return a + b; };

        auto q_lds = lds<QDataType>(shared,
                                    Policy::template MakeQLdsBlockDescriptor<Problem>(),
                                    make_tuple(number<kM0>{}, number<kK0>{}));
        auto k_lds = lds<KDataType>(shared + Policy::template GetSmemSizeQ<Problem>(),
                                    Policy::template MakeKLdsBlockDescriptor<Problem>(),
                                    make_tuple(number<kN0>{}, number<kK0>{}));
        auto v_lds = lds<VDataType>(shared,
                                    Policy::template MakeVLdsBlockDescriptor<Problem>(),
                                    make_tuple(number<kN1>{}, number<kK1>{}));

        auto s   = gemm_0.MakeCBlockTile();
        auto o   = gemm_1.MakeCBlockTile();
        auto m = block_tile_reduce<float>(s, sequence<1>{}, larger, none);
        auto l   = m;
        clear_tile(o);
        set_tile(m, none);
        clear_tile(l);

        const index_t row = q_at.get_window_origin().at(number<0>{});
        const auto [first_key, last_key] =
            visible.GetTileRangeAlongX(row, number<kM0>{}, number<kN0>{});
        const index_t steps =
            q_at.get_bottom_tensor_view().get_tensor_descriptor().get_lengths()[number<1>{}] / kK0;

        auto v_window = make_tile_window(v_at.get_bottom_tensor_view(),
                                         v_at.get_window_lengths(),
                                         {0, first_key},
                                         Policy::template MakeVDramTileDistribution<Problem>());
        for(index_t key = first_key; key < last_key; key += kN0)
        {
            scores(s, gemm_0, q_at, k_at, q_lds, k_lds, row, key, steps);
            auto v = load_tile(v_window);
            move_tile_window(v_window, {0, kK1});
            transform(s, row, key, encoding, scale, variant, params, indices);
            hide(s, row, key, visible, variant, params, indices);

            // Rows that have not met a key yet have the maximum -inf: 0 is subtracted there.
            auto m_new = block_tile_reduce<float>(s, sequence<1>{}, larger, none);
            block_tile_reduce_sync(m_new, larger, bool_constant<false>{});
            tile_elementwise_inout([](float& a, float b) { a = ck_tile::max(a, b); }, m_new, m);
            constexpr auto s_spans = decltype(s)::get_distributed_spans();
            sweep_tile_span(s_spans[number<0>{}], [&](auto i) {
                const float most = finite(m_new[make_tuple(i)]);
                sweep_tile_span(s_spans[number<1>{}], [&](auto j) {
                    s(make_tuple(i, j)) = ck_tile::exp2(s[make_tuple(i, j)] - most);
                });
            });
            auto l_new = block_tile_reduce<float>(s, sequence<1>{}, sum, 0.f);
            block_tile_reduce_sync(l_new, sum, bool_constant<false>{});
            constexpr auto o_spans = decltype(o)::get_distributed_spans();
            sweep_tile_span(o_spans[number<0>{}], [&](auto i) {
                constexpr auto at = make_tuple(i);
                const float less  = ck_tile::exp2(m[at] - finite(m_new[at]));
                l(at)             = less * l[at] + l_new[at];
                sweep_tile_span(o_spans[number<1>{}],
                                [&](auto j) { o(make_tuple(i, j)) *= less; });
            });
            m = m_new;

            const auto p             = cast_tile<PDataType>(s);
            constexpr index_t k1_all = kN0 / kK1;
            static_for<0, k1_all, 1>{}([&](auto step) {
                block_sync_lds(); // what was in LDS has been read
                store_v(v_lds, v);
                if constexpr(step < k1_all - 1)
                    v = load_tile(v_window);
                if constexpr(step < k1_all - 1)
                    move_tile_window(v_window, {0, kK1});
                block_sync_lds();
                gemm_1(o,
                       get_slice_tile(
                           p, sequence<0, step * kK1>{}, sequence<kM0, (step + 1) * kK1>{}),
                       v_lds);
            });
        }
        if constexpr(kStoreLSE)
            store_lse(lse_at, m, l);
        normalise(o, l);
        if constexpr(output)
            finish(o, params.at, row);
        return o;
    }

    private:
    template <typename T, typename Descriptor, typename Lengths>
    CK_TILE_DEVICE static auto
    lds(char* shared, const Descriptor& descriptor, const Lengths& lengths)
    {
        using namespace ck_tile;
        const auto view =
            make_tensor_view<address_space_enum::lds>(reinterpret_cast<T*>(shared), descriptor);
        return make_tile_window(view, lengths, {0, 0});
    }

    CK_TILE_DEVICE static float finite(float maximum)
    {
        return maximum == -ck_tile::numeric<float>::infinity() ? 0.f : maximum;
    }

    /// The products of a tile of rows and a tile of keys, `steps` steps along the head.
    template <typename S, typename Gemm, typename Q, typename K, typename QLds, typename KLds>
    CK_TILE_DEVICE static void scores(S& s, const Gemm& gemm, const Q& q_at, const K& k_at,
                                      QLds& q_lds, KLds& k_lds, index_t row, index_t key,
                                      index_t steps)
    {
        using namespace ck_tile;
        auto q_window = make_tile_window(q_at.get_bottom_tensor_view(),
                                         q_at.get_window_lengths(),
                                         {row, 0},
                                         Policy::template MakeQDramTileDistribution<Problem>());
        auto k_window = make_tile_window(k_at.get_bottom_tensor_view(),
                                         k_at.get_window_lengths(),
                                         {key, 0},
                                         Policy::template MakeKDramTileDistribution<Problem>());
        clear_tile(s);
        auto q = load_tile(q_window);
        auto k = load_tile(k_window);
        for(index_t step = 0; step < steps; ++step)
        {
            block_sync_lds(); // what was in LDS has been read
            store_tile(q_lds, q);
            store_tile(k_lds, k);
            if(step + 1 < steps)
            {
                move_tile_window(q_window, {0, kK0});
                move_tile_window(k_window, {0, kK0});
                q = load_tile(q_window);
                k = load_tile(k_window);
            }
            block_sync_lds();
            gemm(s, q_lds, k_lds);
        }
    }

    /// Products become scores, in units in which exp is exp2.
    template <typename S, typename Encoding, typename Variant, typename Params, typename Indices>
    CK_TILE_DEVICE static void transform(S& s, index_t row, index_t key, const Encoding& encoding,
                                         float scale, const Variant& variant, const Params& params,
                                         const Indices& indices)
    {
        using namespace ck_tile;
        if constexpr(score == Score::soft_cap)
            tile_elementwise_inout(
                [&](float& x) {
                    x = variant.LogitsTransform(params,
                                                variant.QueryTransform(params, x),
                                                indices.batch_idx,
                                                indices.qo_head_idx,
                                                indices.kv_head_idx);
                },
                s);
        else
            tile_elementwise_inout([&](float& x) { x *= scale; }, s);
        if constexpr(score == Score::function || score == Score::alibi)
            each_place(s, [&](auto element, index_t i, index_t j) {
                encoding.update(s(element), row + i, key + j);
            });
    }

    /// Scores that a mask or the end of the keys hides are -inf.
    template <typename S, typename MaskAll, typename Variant, typename Params, typename Indices>
    CK_TILE_DEVICE static void hide(S& s, index_t row, index_t key, const MaskAll& visible,
                                    const Variant& variant, const Params& params,
                                    const Indices& indices)
    {
        using namespace ck_tile;
        if constexpr(kPadSeqLenK || masked)
            if(visible.IsEdgeTile(row, key, number<kM0>{}, number<kN0>{}))
                set_tile_if(s, -numeric<float>::infinity(), [&](auto place) {
                    return !variant.LogitsMask(params,
                                               indices.batch_idx,
                                               row + place.at(number<0>{}),
                                               key + place.at(number<1>{}),
                                               indices.qo_head_idx,
                                               indices.kv_head_idx);
                });
    }

    /// Rows of V lie side by side in memory and apart in LDS: they are transposed in registers.
    template <typename VLds, typename Tile>
    CK_TILE_DEVICE static void store_v(VLds& v_lds, const Tile& v)
    {
        using namespace ck_tile;
        if constexpr(Shape::IsVLayoutRowMajor)
        {
            auto turned = make_static_distributed_tensor<VDataType>(
                Policy::template MakeShuffledVRegBlockDescriptor<Problem>());
            shuffle_tile(turned, v);
            store_tile(v_lds, turned);
        }
        else
            store_tile(v_lds, v);
    }

    /// Of the workgroups that share the columns of v, the first stores the rows' log-sum-exp.
    template <typename Lse, typename Rows>
    CK_TILE_DEVICE static void store_lse(Lse& lse_at, const Rows& m, const Rows& l)
    {
        using namespace ck_tile;
        if(blockIdx.y != 0)
            return;
        auto lse = make_static_distributed_tensor<LSEDataType>(m.get_tile_distribution());
        constexpr auto spans = decltype(lse)::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto i) {
            constexpr auto at = make_tuple(i);
            lse(at)           = m[at] / log2e_v<float> + ck_tile::log(l[at]);
        });
        store_tile(lse_at, lse);
    }

    template <typename O, typename Rows>
    CK_TILE_DEVICE static void normalise(O& o, const Rows& l)
    {
        using namespace ck_tile;
        constexpr auto spans = O::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto i) {
            const float total   = l[make_tuple(i)];
            const float inverse = total == 0.f ? 0.f : 1 / total;
            sweep_tile_span(spans[number<1>{}],
                            [&](auto j) { o(make_tuple(i, j)) *= inverse; });
        });
    }

    /// The user's function of each element. Padding asks for the last place.
    template <typename O>
    CK_TILE_DEVICE static void finish(O& o, const At& at, index_t row)
    {
        using namespace ck_tile;
        const auto& args    = launched();
        const index_t start = Problem::kIsGroupMode
                                  ? amd_wave_read_first_lane(args.starts_q[at.batch])
                                  : 0;
        const index_t first = blockIdx.y * kN1;
        each_place(o, [&](auto element, index_t i, index_t j) {
            const index_t query  = ck_tile::min(row + i, at.seqlen_q - 1) + start;
            const index_t column = ck_tile::min(first + j, args.hdim_v - 1);
            o(element) = ck_output(o[element], CK_ATTENTION_ARGS(at, query, column));
        });
    }

    /// Call `function` with each element of a tile and its row and column there.
    template <typename Tile, typename Function>
    CK_TILE_DEVICE static void each_place(const Tile& tile, const Function& function)
    {
        using namespace ck_tile;
        constexpr auto spans = Tile::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto along_rows) {
            sweep_tile_span(spans[number<1>{}], [&](auto along_columns) {
                constexpr auto element = make_tuple(along_rows, along_columns);
                const auto place =
                    get_x_indices_from_distributed_indices(tile.get_tile_distribution(), element);
                function(element, place.at(number<0>{}), place.at(number<1>{}));
            });
        });
    }
};

/// A kernel in which workgroups share the columns of v: blockIdx.y counts their tiles.
template <typename Kernel>
struct SharedColumns : Kernel
{
    CK_TILE_DEVICE static void run(const AttentionArgs& args)
    {
        using V             = typename Kernel::VType;
        using O             = typename Kernel::OType;
        const index_t first = blockIdx.y * Kernel::n1;
        AttentionArgs own   = args;
        own.v.data          = static_cast<V*>(args.v.data) + first;
        own.o.data          = static_cast<O*>(args.o.data) + first;
        own.partial_o.data  = static_cast<float*>(args.partial_o.data) + first;
        own.hdim_v          = ck_tile::min(args.hdim_v - first, Kernel::n1);
        Kernel::run(own);
    }
};

} // namespace cklang
