// SPDX-License-Identifier: MIT
// Tiles of 8-bit elements, loaded from LDS a vector at a time. CK Tile writes what it loads into a
// lane's registers element by element. The optimiser joins two halves of a register again, but of
// bytes it keeps each in a register of its own all through the main loop: a tile of 128x128x128
// took 492 registers of a lane, and one of 256x256x128 spilled 1,745.
#pragma once

#include "cklang/core.hpp"
#include "ck_tile/core/tensor/load_tile.hpp"
#include "ck_tile/core/tensor/tile_window.hpp"

namespace cklang {

/// The places of the elements of a vector in the registers of a lane.
template <typename Window, typename Traits = typename Window::Base::Traits>
struct VectorPlaces
{
    template <index_t access, index_t element>
    static constexpr index_t at()
    {
        constexpr auto first = Traits::SFC_Ys::get_index(ck_tile::number<access>{});
        constexpr auto place = ck_tile::generate_tuple(
            [&](auto axis) {
                return axis == Traits::VectorDimY ? first[axis] + element : first[axis];
            },
            ck_tile::number<Window::Base::NDimY>{});
        return typename Window::Base::TileDstr{}.get_ys_to_d_descriptor().calculate_offset(place);
    }

    /// Whether each vector lies side by side, from a multiple of its length on.
    static constexpr bool side_by_side = [] {
        bool all = true;
        ck_tile::static_for<0, Traits::NumAccess, 1>{}([&](auto access) {
            constexpr index_t first = at<access, 0>();
            all = all && first % Traits::ScalarPerVector == 0 &&
                  at<access, Traits::ScalarPerVector - 1>() ==
                      first + Traits::ScalarPerVector - 1;
        });
        return all;
    }();
};

/// A window on whole bytes whose vectors can be stored as they are loaded.
template <typename Window>
concept WindowOfBytes = requires {
    typename Window::Base::Traits;
    typename Window::Base::TileDstr;
} && sizeof(typename Window::Base::DataType) == 1 && Window::Base::Traits::PackedSize == 1 &&
    (Window::Base::Traits::ScalarPerVector > 1) && VectorPlaces<Window>::side_by_side;

/// A vector as words: one of bytes that is carried round a loop would be split into its bytes.
template <typename Vector>
using Words =
    std::conditional_t<sizeof(Vector) % 4 == 0,
                       ck_tile::ext_vector_t<int32_t, ck_tile::max(1, int(sizeof(Vector) / 4))>,
                       Vector>;

/// Calls `visit` with each access of a window: the place of its vector in the registers of a lane, in
/// vectors, and in memory.
template <typename Window, typename Visit>
CK_TILE_DEVICE void each_vector(const Window& window, Visit visit)
{
    using namespace ck_tile;
    using Base   = typename Window::Base;
    using Traits = typename Base::Traits;

    auto coordinates = window.pre_computed_coords_[number<0>{}];
    auto& in_window  = coordinates.template at<0>();
    auto& in_memory  = coordinates.template at<1>();
    static_for<0, Traits::NumAccess, 1>{}([&](auto step) {
        constexpr index_t place = VectorPlaces<Window>::template at<step, 0>();
        visit(number<place / Traits::ScalarPerVector>{}, in_memory);
        if constexpr(step != Traits::NumAccess - 1)
        {
            constexpr auto no_thread =
                generate_tuple([](auto) { return number<0>{}; }, number<Base::NDimP>{});
            window.move_window_adaptor_and_bottom_tensor_thread_coordinate(
                in_window,
                in_memory,
                container_concat(no_thread, Traits::SFC_Ys::get_forward_step(step)));
        }
    });
}

} // namespace cklang

// Where these and CK Tile's own fit, these are taken, since they ask for more.
namespace ck_tile {

/// Load a tile of bytes.
template <typename Tile, typename Window, index_t access = -1, bool checks_bounds = true>
    requires cklang::WindowOfBytes<Window>
CK_TILE_DEVICE auto
load_tile(Tile& tile, const Window& window, number<access> = {}, bool_constant<checks_bounds> = {})
{
    using Vector = typename Window::Base::Traits::vector_t;
    using Words  = cklang::Words<Vector>;
    cklang::each_vector(window, [&](auto place, const auto& in_memory) {
        tile.get_thread_buffer().template set_as<Words>(
            place,
            bit_cast<Words>(
                window.get_bottom_tensor_view().template get_vectorized_elements<Vector>(
                    in_memory, 0, bool_constant<checks_bounds>{})));
    });
}

template <typename Window, index_t access = -1, bool checks_bounds = true>
    requires cklang::WindowOfBytes<Window>
CK_TILE_DEVICE auto
load_tile(const Window& window, number<access> = {}, bool_constant<checks_bounds> checks = {})
{
    using Base = typename Window::Base;
    auto tile =
        make_static_distributed_tensor<typename Base::DataType>(typename Base::TileDstr{});
    load_tile(tile, window, number<-1>{}, checks);
    return tile;
}

/// Store a tile of bytes.
template <typename View, typename Lengths, typename Distribution, index_t coordinates, typename T>
    requires cklang::WindowOfBytes<
        tile_window_with_static_distribution<View, Lengths, Distribution, coordinates>>
CK_TILE_DEVICE void
store_tile(tile_window_with_static_distribution<View, Lengths, Distribution, coordinates>& window,
           const static_distributed_tensor<T, Distribution>& tile)
{
    using Window      = remove_cvref_t<decltype(window)>;
    using Vector      = typename Window::Base::Traits::vector_t;
    using Words       = cklang::Words<Vector>;
    const auto& bytes = tile.get_thread_buffer();
    using All         = std::array<Words, sizeof(bytes) / sizeof(Words)>;
    if constexpr(sizeof(All) == sizeof(bytes))
    {
        const auto words = bit_cast<All>(bytes);
        cklang::each_vector(window, [&](auto place, const auto& in_memory) {
            window.get_bottom_tensor_view().template set_vectorized_elements<Vector>(
                in_memory, 0, bit_cast<Vector>(words[place]));
        });
    }
    else
        window.store(tile);
}

template <typename View, typename Lengths, typename Distribution, typename T>
    requires(sizeof(T) == 1)
CK_TILE_DEVICE void store_tile(tile_window_with_static_lengths<View, Lengths>& to,
                               const static_distributed_tensor<T, Distribution>& tile)
{
    auto window = make_tile_window(to.get_bottom_tensor_view(),
                                   to.get_window_lengths(),
                                   to.get_window_origin(),
                                   Distribution{});
    store_tile(window, tile);
}

} // namespace ck_tile
