// SPDX-License-Identifier: MIT
// Attention backwards on RDNA3: its matrix products, A and B in registers, and its sums of dq.
#pragma once

#include <tuple>
#include <utility>

#include "cklang/rdna3_product.hpp"

namespace ck_tile::impl {

template <>
struct WarpGemmDispatcher<half_t, half_t, float, 16, 16, 16, true>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<half_t, true>>;
};

template <>
struct WarpGemmDispatcher<half_t, half_t, float, 16, 16, 16, false>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<half_t, false>>;
};

template <>
struct WarpGemmDispatcher<bf16_t, bf16_t, float, 16, 16, 16, true>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<bf16_t, true>>;
};

template <>
struct WarpGemmDispatcher<bf16_t, bf16_t, float, 16, 16, 16, false>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<bf16_t, false>>;
};

} // namespace ck_tile::impl

namespace cklang {

/// A pipeline that adds no rows beyond the last one to dq. CK Tile adds floats without a buffer's
/// bounds on RDNA3, so only what the view calls padding is left out.
template <typename Base>
struct PaddedQueries : Base
{
    template <typename... Args>
    CK_TILE_DEVICE auto operator()(Args&&... args) const
    {
        using namespace ck_tile;
        const auto all = std::forward_as_tuple(args...);
        const auto& dq = std::get<grad_q>(all);
        const auto padded =
            make_tile_window(pad_tensor_view(dq.get_bottom_tensor_view(),
                                             dq.get_window_lengths(),
                                             sequence<true, false>{}),
                             dq.get_window_lengths(),
                             dq.get_window_origin());
        return [&]<std::size_t... before, std::size_t... after>(
                   std::index_sequence<before...>, std::index_sequence<after...>) {
            return Base::operator()(
                std::get<before>(all)..., padded, std::get<grad_q + 1 + after>(all)...);
        }(std::make_index_sequence<grad_q>{},
          std::make_index_sequence<sizeof...(Args) - grad_q - 1>{});
    }

    private:
    /// The place of dq among the arguments.
    static constexpr std::size_t grad_q = 9;
};

} // namespace cklang
