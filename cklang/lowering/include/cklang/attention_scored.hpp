// SPDX-License-Identifier: MIT
// Scores in CK Tile's pipelines for CDNA4, which have no hook for them. Both ask the mask about
// every element of an edge tile and store -inf by set_tile_if where it says so. Here the mask's
// answer also says what becomes of the score, every tile is one with an edge, and set_tile_if has an
// overload for such answers. Scores go on in units in which exp is exp2, so that the pipelines
// scale them by 1 and the lse that v3 stores, which lacks the scale, lacks nothing.
#pragma once

#include "cklang/attention_transposed.hpp"

namespace cklang {

/// A soft cap as CK Tile's variant takes it.
struct SoftCap
{
    float sm_scale, logits_soft_cap, logits_soft_cap_rcp;
};

/// What becomes of the products of queries and keys.
template <typename Encoding>
struct Scoring
{
    Encoding encoding;
    float scale;
    SoftCap cap; // 0: there is none

    template <Score score>
    CK_TILE_DEVICE float apply(float x, index_t row, index_t column) const
    {
        if constexpr(score == Score::soft_cap)
            return ck_tile::LogitsSoftCap<true>{}.LogitsTransform(cap, x, 0, 0, 0);
        else
        {
            float scaled = x * scale;
            if constexpr(score == Score::function)
                encoding.update(scaled, row, column);
            return scaled;
        }
    }
};

template <Score score>
using ScoringOf = Scoring<std::conditional_t<score == Score::function,
                                             FunctionEncoding,
                                             ck_tile::EmptyPositionEncoding<float>>>;

/// A mask of whole sequences and what becomes of scores.
template <Mask mask, Score score, bool split>
struct Visible : MaskType<mask, score, split>
{
    ScoringOf<score> scoring;

    CK_TILE_DEVICE Visible(const MaskType<mask, score, split>& base, const ScoringOf<score>& how)
        : MaskType<mask, score, split>(base), scoring(how)
    {
    }
};

/// The mask's answer about one element.
template <Score score>
struct Verdict
{
    bool is_out;
    index_t row, column;
    const ScoringOf<score>& scoring;

    CK_TILE_DEVICE float operator()(float x, float out) const
    {
        const float scored = scoring.template apply<score>(x, row, column);
        return is_out ? out : scored;
    }
};

template <typename T>
constexpr bool is_verdict = false;
template <Score score>
constexpr bool is_verdict<Verdict<score>> = true;

template <Mask mask, Score score, bool split>
struct ScoredMask : PlacedMask<Visible<mask, score, split>, mask>
{
    using Base = PlacedMask<Visible<mask, score, split>, mask>;

    static constexpr bool IsMasking = true;

    using Base::Base;

    template <index_t rows, index_t columns>
    CK_TILE_DEVICE constexpr bool
    IsEdgeTile(index_t, index_t, number<rows>, number<columns>) const
    {
        return true;
    }

    CK_TILE_DEVICE Verdict<score> IsOutOfBound(index_t row, index_t column) const
    {
        return {Base::IsOutOfBound(row, column), row, column, this->scoring};
    }
};

/// A pipeline that asks such a mask.
template <typename Pipeline, Mask mask, Score score, bool split>
struct Scored : Pipeline
{
    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q, Same, const K& k, Same, const V& v, Same, const Bias& bias, Same,
               const Random& random, Lse& lse, Same, Same, Same, Same, const MaskAll& visible,
               const Encoding& encoding, float scale, const Variant& variant,
               const Params& params, const Indices& indices, char* shared,
               const Dropout& dropout) const
    {
        const SoftCap cap = [&]() -> SoftCap {
            if constexpr(score == Score::soft_cap)
                return {params.sm_scale, params.logits_soft_cap, params.logits_soft_cap_rcp};
            else
                return {};
        }();
        const Visible<mask, score, split> scored{visible, {encoding, scale, cap}};
        const Same same{};
        const Pipeline& pipeline = *this;
        return pipeline(q, same, k, same, v, same, bias, same, random, lse, same, same, same, same,
                        scored, encoding, 1.f, variant, params, indices, shared, dropout);
    }
};

} // namespace cklang

namespace ck_tile {

/// Where the mask answers with a verdict, it is asked about every score.
template <typename Distribution, typename Predicate>
    requires cklang::is_verdict<
        remove_cvref_t<std::invoke_result_t<Predicate, const array<index_t, 2>&>>>
CK_TILE_DEVICE void set_tile_if(static_distributed_tensor<float, Distribution>& scores,
                                float out,
                                Predicate predicate)
{
    constexpr auto spans = static_distributed_tensor<float, Distribution>::get_distributed_spans();
    sweep_tile_span(spans[number<0>{}], [&](auto along_rows) {
        sweep_tile_span(spans[number<1>{}], [&](auto along_keys) {
            constexpr auto element = make_tuple(along_rows, along_keys);
            const auto place = get_x_indices_from_distributed_indices(Distribution{}, element);
            scores(element)  = predicate(place)(scores[element], out);
        });
    });
}

} // namespace ck_tile
