// SPDX-License-Identifier: MIT
// The gradient of attention whose score is any function of the product. CK Tile's backward
// pipelines compute with scores and weights as with floats. Here each has the derivative of its
// score beside it, and what they compute of a weight is the gradient by the product.
#pragma once

#include "cklang/attention_grad.hpp"

#include "ck_tile/ops/fmha/pipeline/block_fmha_bwd_pipeline_default_policy.hpp"

// The derivative of the score that the user's function gives: an open hole in a stencil.
extern "C" __device__ float ck_derivative(float s, CK_ATTENTION_PARAMS);

namespace cklang {

/// A score with its derivative by the product, or the weight made of it with this times the weight.
/// Where nothing is dropped the weight itself is not needed any more once it is rounded.
struct Derived
{
    float value;
    float slope;

    Derived() = default;

    CK_TILE_DEVICE constexpr Derived(float value_, float slope_ = 0.f)
        : value(value_), slope(slope_)
    {
    }

    CK_TILE_DEVICE Derived& operator*=(float factor)
    {
        value *= factor;
        return *this;
    }
};

CK_TILE_DEVICE Derived operator-(const Derived& score, float shift)
{
    return {score.value - shift, score.slope};
}

/// The weight. Without any, a key has no gradient, whatever the derivative is there.
CK_TILE_DEVICE Derived exp2(const Derived& score)
{
    const float weight = ck_tile::exp2(score.value);
    return {weight, weight == 0.f ? 0.f : weight * score.slope};
}

/// A weight that is dropped.
CK_TILE_DEVICE Derived operator-(const Derived& weight) { return {-weight.value, -weight.slope}; }

CK_TILE_DEVICE bool operator>=(const Derived& weight, int bound) { return weight.value >= bound; }

CK_TILE_DEVICE bool operator>(const Derived& weight, float bound) { return weight.value > bound; }

/// The gradient by the product.
CK_TILE_DEVICE float operator*(const Derived& weight, float by_weight)
{
    return weight.slope * by_weight;
}

/// The weight alone, as the product that gives dv takes it.
template <typename T>
CK_TILE_DEVICE T type_convert(const Derived& weight)
{
    return ck_tile::type_convert<T>(weight.value);
}

template <typename Distribution>
using DerivedTile = ck_tile::static_distributed_tensor<Derived, Distribution>;

/// The weights alone, in another type.
template <typename T, typename Distribution>
CK_TILE_DEVICE auto cast_tile(const DerivedTile<Distribution>& weights)
{
    auto values          = ck_tile::make_static_distributed_tensor<float>(Distribution{});
    constexpr auto count = DerivedTile<Distribution>::get_thread_buffer_size();
    ck_tile::static_for<0, count, 1>{}([&](auto element) {
        values.get_thread_buffer()(element) = weights.get_thread_buffer()[element].value;
    });
    return ck_tile::cast_tile<T>(values);
}

/// CK Tile's function of the same name, whose tiles have elements of the value's type.
template <typename Distribution, typename Predicate>
CK_TILE_DEVICE void
set_tile_if(DerivedTile<Distribution>& scores, float value, const Predicate& predicate)
{
    ck_tile::set_tile_if(scores, Derived{value}, predicate);
}

/// The product of queries and keys, as scores whose derivatives are yet to come.
template <typename Base>
struct DerivedProduct : Base
{
    CK_TILE_DEVICE static constexpr auto MakeCBlockTile()
    {
        return ck_tile::make_static_distributed_tensor<Derived>(
            decltype(Base::MakeCBlockTile())::get_tile_distribution());
    }

    template <typename Queries, typename Keys>
    CK_TILE_DEVICE auto operator()(const Queries& queries, const Keys& keys) const
    {
        const auto products = Base::operator()(queries, keys);
        auto scores         = MakeCBlockTile();
        ck_tile::static_for<0, decltype(products)::get_thread_buffer_size(), 1>{}(
            [&](auto element) {
                scores.get_thread_buffer()(element) = products.get_thread_buffer()[element];
            });
        return scores;
    }
};

/// A policy of CK Tile's pipelines with this product, and with room in LDS for the gradient of what
/// scores read, which CK Tile reserves for a bias of its own alone.
template <typename Base>
struct DerivedPolicy : Base
{
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto GetQKBlockGemm()
    {
        return DerivedProduct<decltype(Base::template GetQKBlockGemm<Problem>())>{};
    }

    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        constexpr index_t own = Base::template GetSmemSize<Problem>();
        if constexpr(Problem::kHasBiasGrad)
        {
            constexpr index_t scores = Base::template GetSmemSizeSGrad<Problem>();
            constexpr index_t read =
                sizeof(typename Problem::BiasGradDataType) *
                Base::template MakeBiasLdsBlockDescriptor<Problem>().get_element_space_size();
            return own + (read > scores ? read - scores : 0);
        }
        else
            return own;
    }
};

/// Where a pipeline asks for the position encoding of a score: the user's functions.
struct DerivedEncoding
{
    At at;

    CK_TILE_DEVICE void update(Derived& x, index_t row, index_t column) const
    {
        const index_t i = ck_tile::min(row, at.seqlen_q - 1);
        const index_t j = ck_tile::min(column, at.seqlen_k - 1);
        x.slope         = ck_derivative(x.value, CK_ATTENTION_ARGS(at, i, j));
        x.value         = ck_tile::log2e_v<float> * ck_score(x.value, CK_ATTENTION_ARGS(at, i, j));
    }
};

/// A pipeline with such a policy, which is given the encoding of one without.
template <typename Base>
struct DerivedScores : Base
{
    template <typename... Args>
    CK_TILE_DEVICE auto operator()(Args&&... args) const
    {
        return Base::operator()(derived(std::forward<Args>(args))...);
    }

    private:
    template <typename Arg>
    CK_TILE_DEVICE static decltype(auto) derived(Arg&& arg)
    {
        if constexpr(std::is_same_v<std::remove_cvref_t<Arg>, FunctionEncoding>)
            return DerivedEncoding{arg.at};
        else
            return std::forward<Arg>(arg);
    }
};

} // namespace cklang
