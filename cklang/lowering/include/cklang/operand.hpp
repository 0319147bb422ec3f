// SPDX-License-Identifier: MIT
// Epilogue operands: how D[m, n] is read. A D that broadcasts is never a matrix in memory: the
// stride of the axis it does not have is a compile-time zero, so its loads fold together.
#pragma once

#include "cklang/gemm_args.hpp"

namespace cklang {

enum class Kind
{
    full,    // D[m, n] at m * stride_m + n
    row,     // D[n]    at n
    column,  // D[m]    at m * stride_m
    scalar,  // D       at 0
    strided, // D[m, n] at m * stride_m + n * stride_n
};

/// One operand: its element type, its kind, and the elements one load moves along n.
template <typename DataType_, Kind kind_, index_t vector_>
struct Operand
{
    using DataType                  = DataType_;
    static constexpr Kind kind      = kind_;
    static constexpr index_t vector = vector_;

    static_assert(vector == 1 || kind == Kind::full || kind == Kind::row,
                  "only operands contiguous along n can be loaded several elements at a time");

    /// The operand as an M x N tensor view.
    CK_TILE_DEVICE static auto
    view(const void* pointer, index_t m, index_t n, index_t stride_m, index_t stride_n)
    {
        const auto* data   = static_cast<const DataType*>(pointer);
        const auto lengths = ck_tile::make_tuple(m, n);
        const auto make    = [&](const auto& strides) {
            return ck_tile::make_naive_tensor_view<ck_tile::address_space_enum::global>(
                data, lengths, strides, number<vector>{}, number<vector == 1 ? -1 : 1>{});
        };
        if constexpr(kind == Kind::full)
            return make(ck_tile::make_tuple(stride_m, number<1>{}));
        else if constexpr(kind == Kind::row)
            return make(ck_tile::make_tuple(number<0>{}, number<1>{}));
        else if constexpr(kind == Kind::column)
            return make(ck_tile::make_tuple(stride_m, number<0>{}));
        else if constexpr(kind == Kind::scalar)
            return make(ck_tile::make_tuple(number<0>{}, number<0>{}));
        else
            return make(ck_tile::make_tuple(stride_m, stride_n));
    }

    /// The `count` elements from (i, j) on along n, of an operand of an m x n function. What
    /// stands beyond the last element of the operand is read as zero.
    template <index_t count>
    CK_TILE_DEVICE static auto load(const void* pointer,
                                    index_t m,
                                    index_t n,
                                    index_t stride_m,
                                    index_t stride_n,
                                    index_t i,
                                    index_t j)
    {
        static_assert(count % vector == 0);
        using Part        = ck_tile::thread_buffer<DataType, vector>;
        const auto buffer = ck_tile::make_buffer_view<ck_tile::address_space_enum::global>(
            static_cast<const DataType*>(pointer), extent(m, n, stride_m, stride_n));
        const index_t first = i * step_m(stride_m) + j * step_n(stride_n);
        const auto part     = [&](index_t at) {
            return buffer.template get<Part>(at, 0, true, ck_tile::bool_constant<false>{});
        };
        ck_tile::thread_buffer<DataType, count> result;
        if constexpr(kind == Kind::column || kind == Kind::scalar)
        {
            const auto one = part(first);
            ck_tile::static_for<0, count, 1>{}([&](auto e) { result(e) = one[0]; });
        }
        else
            ck_tile::static_for<0, count, vector>{}([&](auto e) {
                const auto some = part(first + e * step_n(stride_n));
                ck_tile::static_for<0, vector, 1>{}([&](auto v) { result(e + v) = some[v]; });
            });
        return result;
    }

    private:
    CK_TILE_DEVICE static index_t step_m(index_t stride_m)
    {
        return kind == Kind::row || kind == Kind::scalar ? 0 : stride_m;
    }

    CK_TILE_DEVICE static index_t step_n(index_t stride_n)
    {
        if constexpr(kind == Kind::strided)
            return stride_n;
        else
            return kind == Kind::full || kind == Kind::row ? 1 : 0;
    }

    /// Elements from the first to the last of an m x n operand; none if it has none.
    CK_TILE_DEVICE static index_t
    extent(index_t m, index_t n, index_t stride_m, index_t stride_n)
    {
        const bool empty = m < 1 || n < 1;
        return empty ? 0 : 1 + (m - 1) * step_m(stride_m) + (n - 1) * step_n(stride_n);
    }
};

/// A value as the epilogue function takes it: float for every floating type, else as it is.
template <typename T>
CK_TILE_DEVICE auto widen(T value)
{
    if constexpr(std::is_integral_v<T> && sizeof(T) > 1)
        return value;
    else if constexpr(std::is_same_v<T, ck_tile::int8_t>)
        return static_cast<int32_t>(value);
    else if constexpr(ck_tile::is_any_of<T, ck_tile::fp8_t, ck_tile::bf8_t>::value)
        return ck_tile::type_convert<float>(value);
    else
        return static_cast<float>(value);
}

} // namespace cklang
