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
