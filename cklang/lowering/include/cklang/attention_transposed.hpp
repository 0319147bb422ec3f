// SPDX-License-Identifier: MIT
// CK Tile's pipelines for CDNA4, which read V from LDS transposed, behind the interface of its
// other ones. They have no hooks for scores, and ask a mask of none but their mask type: through
// that the user's function is called.
#pragma once

#include "cklang/attention.hpp"

namespace cklang {

/// A mask that asks the user's function itself.
template <typename Base, Mask mask>
struct PlacedMask : Base
{
    At at;

    CK_TILE_DEVICE PlacedMask(const Base& base, const At& at_) : Base(base), at(at_) {}

    CK_TILE_DEVICE bool IsOutOfBound(index_t row, index_t column) const
    {
        const bool out = Base::IsOutOfBound(row, column);
        return out | !lets_through<mask>(at, row, column);
    }
};

template <Mask mask, Score score, bool split>
using PlacedMaskType = PlacedMask<MaskType<mask, score, split>, mask>;

/// The same matrix with its axes exchanged.
template <typename View>
CK_TILE_DEVICE auto turned(const View& view)
{
    using namespace ck_tile;
    const auto lengths = view.get_tensor_descriptor().get_lengths();
    return transform_tensor_view(view,
                                 make_tuple(make_pass_through_transform(lengths[number<1>{}]),
                                            make_pass_through_transform(lengths[number<0>{}])),
                                 make_tuple(sequence<1>{}, sequence<0>{}),
                                 make_tuple(sequence<0>{}, sequence<1>{}));
}

/// Loads straight to LDS lay neighbours where they are found, so what is to lie elsewhere, lest
/// rows share banks, has to be found elsewhere: of each `groups` groups of `unit` elements of a
/// row, group c changes places with c ^ row. A row has `parts` times as many.
template <index_t parts, index_t groups, index_t unit, typename View>
CK_TILE_DEVICE auto exchanged(const View& view)
{
    using namespace ck_tile;
    const auto rows  = view.get_tensor_descriptor().get_lengths()[number<0>{}];
    const auto split = make_tuple(number<parts>{}, number<groups>{}, number<unit>{});
    const auto cut   = transform_tensor_view(
        view,
        make_tuple(make_pass_through_transform(rows), make_unmerge_transform(split)),
        make_tuple(sequence<0>{}, sequence<1>{}),
        make_tuple(sequence<0>{}, sequence<1, 2, 3>{}));
    const auto mixed = transform_tensor_view(
        cut,
        make_tuple(make_xor_transform(make_tuple(rows, number<groups>{})),
                   make_pass_through_transform(number<parts>{}),
                   make_pass_through_transform(number<unit>{})),
        make_tuple(sequence<0, 2>{}, sequence<1>{}, sequence<3>{}),
        make_tuple(sequence<0, 2>{}, sequence<1>{}, sequence<3>{}));
    return transform_tensor_view(
        mixed,
        make_tuple(make_pass_through_transform(rows), make_merge_transform_v3_division_mod(split)),
        make_tuple(sequence<0>{}, sequence<1, 2, 3>{}),
        make_tuple(sequence<0>{}, sequence<1>{}));
}

/// qr_async_trload: all tiles go through LDS, V is transposed as it is read. With many queries it
/// has two buffers each for K and V.
template <typename Base>
struct TransposedLoads : Base
{
    using Problem = typename Base::Problem;
    using Policy  = typename Base::Policy;

    static constexpr index_t m0    = Base::kM0;
    static constexpr index_t n0    = Base::kN0;
    static constexpr index_t head  = Base::kQKHeaddim;
    static constexpr bool buffered = m0 >= 128;

    CK_TILE_HOST_DEVICE static constexpr index_t bytes_k()
    {
        return Policy::template GetSmemSizeK<Problem, true>();
    }

    CK_TILE_HOST_DEVICE static constexpr index_t bytes_v()
    {
        return Policy::template GetSmemSizeV<Problem>();
    }

    /// Q lies where K and V come later.
    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        if constexpr(buffered)
            return ck_tile::max(Policy::template GetSmemSizeQ<Problem>(),
                                2 * (bytes_k() + bytes_v()));
        else
            return Policy::template GetSmemSize<Problem>();
    }

    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q, Same, const K& k, Same, const V& v, Same, const Bias& bias, Same,
               const Random&, Lse& lse, Same, Same, Same, Same, const MaskAll& visible,
               const Encoding& encoding, float scale, const Variant&, const Params& params,
               const Indices&, char* shared, const Dropout&) const
    {
        using namespace ck_tile;
        constexpr index_t unit   = 16 / sizeof(typename Base::KDataType);
        constexpr index_t step   = Base::kKLoadOnce ? head : Base::kK0;
        constexpr index_t unit_v = Base::BlockFmhaShape::Gemm1WarpTile::at(number<0>{});

        const auto whole = make_tuple(number<n0>{}, number<head>{});
        const auto q_at  = make_tile_window(exchanged<1, head / unit, unit>(q.get_bottom_tensor_view()),
                                           q.get_window_lengths(),
                                           q.get_window_origin());
        const auto k_at  = make_tile_window(
            exchanged<head / step, step / unit, unit>(pad_tensor_view(
                k.get_bottom_tensor_view(), whole, sequence<false, Base::kPadHeadDimQ>{})),
            k.get_window_lengths(),
            {0, 0});
        const auto v_at = make_tile_window(
            exchanged<1, Base::kN1 / unit_v, unit_v>(turned(v.get_bottom_tensor_view())),
            v.get_window_lengths(),
            {0, 0});
        const typename Base::FmhaMask mask{visible, params.at};
        const Base& base = *this;
        if constexpr(buffered)
            return base(q_at, k_at, v_at, bias, lse, mask, encoding, scale, shared,
                        shared + bytes_k(), shared + 2 * bytes_k(),
                        shared + 2 * bytes_k() + bytes_v());
        else
            return base(q_at, k_at, v_at, bias, lse, mask, encoding, scale, shared);
    }
};

/// v3: two groups of four waves take turns at the matrix units and at loading.
template <typename Base>
struct WaveGroups : Base
{
    using BiasDataType          = float;
    using RandValOutputDataType = uint8_t;

    static constexpr bool kHasDropout = false;
    static constexpr bool kQLoadOnce  = true;

    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q, Same, const K& k, Same, const V& v, Same, const Bias&, Same,
               const Random&, Lse& lse, Same, Same, Same, Same, const MaskAll& visible,
               const Encoding&, float scale, const Variant&, const Params& params,
               const Indices&, char* shared, const Dropout&) const
    {
        using namespace ck_tile;
        const auto v_at = make_tile_window(turned(v.get_bottom_tensor_view()),
                                           make_tuple(number<Base::kK1>{}, number<Base::kN1>{}),
                                           {0, 0});
        const typename Base::FmhaMask mask{visible, params.at};
        const Base& base = *this;
        return base(q, k, v_at, lse, mask, scale, shared);
    }
};

} // namespace cklang
