// SPDX-License-Identifier: MIT
// Scales of blocks of A and B: a source with scales, and the scales of one block of K as a thread
// applies them to its sums.
#pragma once

#include "cklang/source.hpp"

namespace cklang {

/// Scales that are numbers: the product of two rounds once.
struct F32Scale
{
    using Stored = float;

    CK_TILE_DEVICE static float read(Stored value) { return value; }
    CK_TILE_DEVICE static float product(float x, float y) { return x * y; }
    CK_TILE_DEVICE static float scaled(float sum, float scale) { return sum * scale; }
};

/// Scales that are powers of two, 2^(byte - 127), or nan: products are sums of exponents.
struct E8m0Scale
{
    using Stored = ck_tile::int8_t;

    static constexpr int nan = 1 << 12; // above any exponent that a product has

    CK_TILE_DEVICE static int read(Stored value)
    {
        const int byte = static_cast<unsigned char>(value);
        return byte == 255 ? nan : byte - 127;
    }
    CK_TILE_DEVICE static int product(int x, int y) { return x + y; }
    CK_TILE_DEVICE static float scaled(float sum, int exponent)
    {
        return exponent > nan / 2 ? __builtin_nanf("") : __builtin_ldexpf(sum, exponent);
    }
};

/// One scale for each block of `block` rows of A, or columns of B, by `block_k` along K.
template <typename Number_, index_t block_, index_t block_k_>
struct BlockScale
{
    using Number                     = Number_;
    using Stored                     = typename Number::Stored;
    static constexpr index_t block   = block_;
    static constexpr index_t block_k = block_k_;

    const void* data;
    index_t stride, stride_k; // elements from one block to the next

    /// What a thread needs of the scales of block `at_k` of K for its part of a tile of sums, which
    /// begins at element `at` of `extent`: one number where the tile lies in one block, else
    /// a number for each of its rows (axis 0) or columns (axis 1).
    template <typename Acc, index_t axis, index_t tile>
    CK_TILE_DEVICE auto load(index_t extent, index_t at, index_t at_k) const
    {
        using namespace ck_tile;
        const auto* first =
            static_cast<const Stored*>(data) + static_cast<int64_t>(at_k) * stride_k;
        if constexpr(block % tile == 0)
        {
            // No kernel writes its scales: a scalar load, which waits for no tile.
            using Constant = const __attribute__((address_space(4))) Stored;
            return Number::read(((Constant*)first)[static_cast<int64_t>(at / block) * stride]);
        }
        else
        {
            constexpr auto distribution =
                make_static_tile_distribution(detail::make_reduce_tile_distribution_encoding(
                    Acc::Type::get_tile_distribution().get_static_tile_distribution_encoding(),
                    sequence<1 - axis>{}));
            const auto stored = load_tile(make_tile_window(
                view(first, extent), make_tuple(number<tile>{}), {at}, distribution));
            using Read        = decltype(Number::read(Stored{}));
            auto read         = make_static_distributed_tensor<Read>(distribution);
            static_for<0, decltype(read)::get_thread_buffer_size(), 1>{}([&](auto i) {
                read.get_thread_buffer()(i) = Number::read(stored.get_thread_buffer()[i]);
            });
            return read;
        }
    }

    private:
    /// The scales seen from the rows or columns: each repeats for a block.
    CK_TILE_DEVICE auto view(const Stored* first, index_t extent) const
    {
        using namespace ck_tile;
        const index_t blocks = integer_divide_ceil(extent, block);
        const auto lengths   = make_tuple(blocks, number<block>{});
        const auto repeated  = make_naive_tensor_view<address_space_enum::global>(
            first, lengths, make_tuple(stride, number<0>{}), number<1>{}, number<-1>{});
        return transform_tensor_view(repeated,
                                     make_tuple(make_merge_transform_v3_division_mod(lengths)),
                                     make_tuple(sequence<0, 1>{}),
                                     make_tuple(sequence<0>{}));
    }
};

/// A source whose blocks have scales. `k_is_inner` says whether K is the inner axis of its windows.
template <typename Source, typename Scale_, bool k_is_inner_>
struct Scaled
{
    using DataType                   = typename Source::DataType;
    using Scale                      = Scale_;
    static constexpr bool k_is_inner = k_is_inner_;
    static constexpr index_t arrays  = Source::arrays + 1;

    Source source;
    Scale scale;

    template <index_t vector, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        return source.template window<vector, tile_outer, tile_inner, pad_outer, pad_inner>(
            outer, inner, at_outer, at_inner);
    }

    CK_TILE_DEVICE Scaled moved(const std::array<int64_t, arrays>& elements) const
    {
        std::array<int64_t, Source::arrays> own{};
        for(index_t i = 0; i < Source::arrays; ++i)
            own[i] = elements[i];
        const auto* data =
            static_cast<const typename Scale::Stored*>(scale.data) + elements[Source::arrays];
        return {source.moved(own), {data, scale.stride, scale.stride_k}};
    }

    CK_TILE_HOST static Scaled make(const ck_gemm_operand* operands)
    {
        const auto& given = operands[Source::arrays];
        return {Source::make(operands),
                {given.data, static_cast<index_t>(given.outer), static_cast<index_t>(given.inner)}};
    }
};

/// What the sums of a block are multiplied by if an operand has no scales.
struct NoScale
{
};

template <typename Source>
struct ScaleOf
{
    using Type                       = NoScale;
    static constexpr index_t block_k = 0;

    CK_TILE_DEVICE static Type get(const Source&) { return {}; }
};

template <typename Source, typename Scale, bool k_is_inner>
struct ScaleOf<Scaled<Source, Scale, k_is_inner>>
{
    using Type                       = Scale;
    static constexpr index_t block_k = Scale::block_k;

    CK_TILE_DEVICE static const Type& get(const Scaled<Source, Scale, k_is_inner>& source)
    {
        return source.scale;
    }
};

} // namespace cklang
