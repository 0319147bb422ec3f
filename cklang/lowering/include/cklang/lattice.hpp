// SPDX-License-Identifier: MIT
// A tensor of many axes seen as a matrix: its outer and its inner index are split into digits, one
// for each axis, and the element lies at the sum of digit times stride. A condition on the digits
// says where there is an element at all; elsewhere CK Tile loads zero and stores nothing.
//
// For CK Tile this is one coordinate transform at the bottom of a tensor descriptor, so everything
// that takes a tile window takes it: every pipeline, direct loads to LDS, stores.
#pragma once

#include "cklang/gemm_args.hpp"

namespace cklang {

/// A number to divide by, known before the kernel starts.
struct Divisor
{
    index_t divisor;
    uint32_t multiplier, shift;

    CK_TILE_HOST_DEVICE static constexpr Divisor of(index_t divisor)
    {
        const auto magic = ck_tile::magic_division::calculate_magic_numbers(
            static_cast<uint32_t>(divisor));
        return {divisor, magic[number<0>{}], magic[number<1>{}]};
    }

    CK_TILE_HOST_DEVICE constexpr index_t quotient(index_t dividend) const
    {
        return ck_tile::magic_division::do_magic_division(dividend, multiplier, shift);
    }
};

/// An index as n digits, the most significant first; none if nothing depends on it.
template <index_t n>
struct Digits
{
    std::array<Divisor, n> extents; // that of the first digit is not asked for

    CK_TILE_HOST_DEVICE constexpr std::array<index_t, n> split(index_t index) const
    {
        std::array<index_t, n> digits{};
        // An array of no element has an operator[] that devices lack.
        if constexpr(n > 0)
        {
#pragma unroll
            for(index_t i = n - 1; i > 0; --i)
            {
                const index_t rest = extents[i].quotient(index);
                digits[i]          = index - rest * extents[i].divisor;
                index              = rest;
            }
            digits[0] = index;
        }
        return digits;
    }
};

/// There is an element for every index.
struct Everywhere
{
    template <typename Outer, typename Inner>
    CK_TILE_HOST_DEVICE constexpr bool holds(const Outer&, const Inner&) const
    {
        return true;
    }
};

/// An image under a window: along each spatial axis, outer digit 1 + axis says where the window
/// is, inner digit axis which tap of it, and the position must lie inside the image.
template <index_t spatial>
struct Inside
{
    std::array<index_t, spatial> step, spread, shift, extent;

    template <typename Outer, typename Inner>
    CK_TILE_HOST_DEVICE constexpr bool holds(const Outer& outer, const Inner& inner) const
    {
        bool inside = true;
#pragma unroll
        for(index_t axis = 0; axis < spatial; ++axis)
        {
            const index_t at = outer[1 + axis] * step[axis] + inner[axis] * spread[axis] + shift[axis];
            inside &= static_cast<uint32_t>(at) < static_cast<uint32_t>(extent[axis]);
        }
        return inside;
    }
};

/// Weights of several groups in one matrix: blocks on its diagonal, nothing beside them.
template <index_t outer_digit, index_t inner_digit>
struct Diagonal
{
    template <typename Outer, typename Inner>
    CK_TILE_HOST_DEVICE constexpr bool holds(const Outer& outer, const Inner& inner) const
    {
        return outer[outer_digit] == inner[inner_digit];
    }
};

/// Where the element (outer, inner) lies. With `dense`, the last inner digit's stride is 1.
template <index_t outer_digits_, index_t inner_digits_, typename Condition_, bool dense = true>
struct Lattice
{
    using Condition = Condition_;

    static constexpr index_t outer_digits = outer_digits_, inner_digits = inner_digits_;

    Digits<outer_digits> outer;
    Digits<inner_digits> inner;
    std::array<index_t, outer_digits> outer_strides;
    std::array<index_t, inner_digits> inner_strides;
    index_t base; // the offset where all digits are 0
    Condition condition;

    CK_TILE_HOST_DEVICE constexpr index_t offset(index_t at_outer, index_t at_inner) const
    {
        const auto o   = outer.split(at_outer);
        const auto i   = inner.split(at_inner);
        index_t offset = base;
        if constexpr(outer_digits > 0)
        {
#pragma unroll
            for(index_t axis = 0; axis < outer_digits; ++axis)
                offset += o[axis] * outer_strides[axis];
        }
        if constexpr(inner_digits > 0)
        {
#pragma unroll
            for(index_t axis = 0; axis < inner_digits; ++axis)
                offset += dense && axis == inner_digits - 1 ? i[axis] : i[axis] * inner_strides[axis];
        }
        return inseparable(offset);
    }

    /// The offset as one value. The compiler would move a constant of the sum into the
    /// instruction, and the rest may be negative, as it is where digits carry: the hardware, which
    /// takes it for unsigned and does not wrap, would then find the element out of range.
    CK_TILE_HOST_DEVICE static constexpr index_t inseparable(index_t offset)
    {
#if defined(__HIP_DEVICE_COMPILE__)
        if(!__builtin_is_constant_evaluated())
            asm("" : "+v"(offset));
#endif
        return offset;
    }

    CK_TILE_HOST_DEVICE constexpr bool holds(index_t at_outer, index_t at_inner) const
    {
        return condition.holds(outer.split(at_outer), inner.split(at_inner));
    }
};

/// A lattice of `rows` by `columns` as CK Tile's coordinate transform.
template <typename Lattice>
struct LatticeTransform : ck_tile::base_transform<1, 2>
{
    using LowerIndex = ck_tile::multi_index<1>;
    using UpperIndex = ck_tile::multi_index<2>;
    using UpLengths  = ck_tile::tuple<index_t, index_t>;

    Lattice lattice;
    index_t rows, columns;

    CK_TILE_HOST_DEVICE constexpr LatticeTransform() = default;

    CK_TILE_HOST_DEVICE constexpr LatticeTransform(const Lattice& lattice_,
                                                   index_t rows_,
                                                   index_t columns_)
        : lattice{lattice_}, rows{rows_}, columns{columns_}
    {
    }

    CK_TILE_HOST_DEVICE constexpr UpLengths get_upper_lengths() const
    {
        return ck_tile::make_tuple(rows, columns);
    }

    template <typename LowIdx, typename UpIdx>
    CK_TILE_HOST_DEVICE constexpr void calculate_lower_index(LowIdx& low, const UpIdx& up) const
    {
        low(number<0>{}) = lattice.offset(up[number<0>{}], up[number<1>{}]);
    }

    template <typename LowIdxDiff, typename UpIdxDiff, typename LowIdx, typename UpIdx>
    CK_TILE_HOST_DEVICE void
    update_lower_index(LowIdxDiff& step, const UpIdxDiff&, LowIdx& low, const UpIdx& up) const
    {
        const index_t before = low[number<0>{}];
        calculate_lower_index(low, up);
        step(number<0>{}) = low[number<0>{}] - before;
    }

    CK_TILE_HOST_DEVICE static constexpr bool
    is_valid_upper_index_always_mapped_to_valid_lower_index()
    {
        return false;
    }

    template <typename UpIdx>
    CK_TILE_HOST_DEVICE constexpr bool
    is_valid_upper_index_mapped_to_valid_lower_index(const UpIdx& up) const
    {
        bool valid = up[number<0>{}] < rows;
        valid &= up[number<1>{}] < columns;
        valid &= lattice.holds(up[number<0>{}], up[number<1>{}]);
        return valid;
    }

    CK_TILE_HOST_DEVICE static constexpr bool is_known_at_compile_time() { return false; }

    /// The inner axis has the vectors of memory: the host has seen that its last digit has them.
    template <typename LowVectorLengths, typename LowVectorStrides>
    CK_TILE_HOST_DEVICE static constexpr auto
    calculate_upper_dimension_safe_vector_length_strides(const LowVectorLengths& lengths,
                                                         const LowVectorStrides& strides)
    {
        return ck_tile::make_tuple(ck_tile::array<index_t, 2>{-1, lengths[number<0>{}]},
                                   ck_tile::array<index_t, 2>{-1, strides[number<0>{}]});
    }
};

/// A tensor in memory behind a lattice: where the main loop's A or B comes from (source.hpp), where E
/// goes, or a D.
template <typename T, typename Lattice_>
struct Grid
{
    using DataType                  = T;
    using Lattice                   = Lattice_;
    static constexpr index_t arrays = 1;

    const void* data;
    index_t span; // elements from `data` to beyond the last one
    Lattice lattice;

    /// Elements beyond `rows` and `columns` are none, so nothing else is padded.
    template <index_t vector, index_t tile_outer, index_t tile_inner, bool... pads>
    CK_TILE_DEVICE auto
    window(index_t rows, index_t columns, index_t at_outer, index_t at_inner) const
    {
        using namespace ck_tile;
        const auto memory = make_naive_tensor_descriptor(
            make_tuple(span), make_tuple(number<1>{}), number<vector>{}, number<1>{});
        const auto matrix = transform_tensor_descriptor(
            memory,
            make_tuple(LatticeTransform<Lattice>{lattice, rows, columns}),
            make_tuple(sequence<0>{}),
            make_tuple(sequence<0, 1>{}));
        // Whoever stores through the window has the right to: only sources never do.
        return make_tile_window(
            make_tensor_view<address_space_enum::global>(
                static_cast<T*>(const_cast<void*>(data)), matrix),
            make_tuple(number<tile_outer>{}, number<tile_inner>{}),
            {at_outer, at_inner});
    }

    CK_TILE_DEVICE Grid moved(const std::array<int64_t, arrays>& elements) const
    {
        return {static_cast<const T*>(data) + elements[0], span, lattice};
    }
};

} // namespace cklang
