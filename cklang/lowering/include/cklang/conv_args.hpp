// SPDX-License-Identifier: MIT
// A convolution as matrix products, one for each group (or several groups) and, for the gradient
// of the input, each phase of the stride: what the matrices of each direction are made of.
//
//                 M              N             K
//   forward       N x output     features      taps x channels
//   grad_input    N x input      channels      taps x features     (of one phase)
//   grad_weight   features       taps x chan.  N x output
#pragma once

#include "cklang/lattice.hpp"
#include "cklang/operand.hpp"

namespace cklang {

enum class Special
{
    ordinary,
    pointwise,        // windows of one tap, no padding
    pointwise_packed, // stride 1 too: a matrix product
    depthwise,        // 3 taps along each axis, one channel and one feature a group
};

enum class Pass
{
    forward,
    grad_input,
    grad_weight,
};

constexpr index_t depthwise_taps = 3;

/// What a kernel of a direction was built for: spatial axes, groups in one tile.
template <index_t spatial_, index_t merged_, Special special_>
struct ConvShape
{
    static constexpr index_t spatial = spatial_;
    static constexpr index_t merged  = merged_;
    static constexpr Special special = special_;

    static constexpr bool blocks    = merged > 1; // weights are blocks on a diagonal
    static constexpr bool packed    = special == Special::pointwise_packed;
    static constexpr bool pointwise = packed || special == Special::pointwise;

    /// Digits of a pixel: image of the batch, then position.
    static constexpr index_t pixel = packed ? 1 : 1 + spatial;
    /// Digits of a tap and channel.
    static constexpr index_t tap = pointwise ? 1 : spatial + 1;

    using Covered = std::conditional_t<pointwise, Everywhere, Inside<spatial>>;
    using Pixels  = Lattice<pixel, 1, Everywhere>;
    using Windows = Lattice<pixel, tap, Covered>;

    /// What a depthwise kernel knows of digits, so that nothing is divided at run time.
    template <typename Windows>
    CK_TILE_DEVICE static void fix_windows(Windows& windows)
    {
        if constexpr(special == Special::depthwise)
        {
#pragma unroll
            for(index_t i = 0; i < spatial; ++i)
                windows.inner.extents[i] = Divisor::of(depthwise_taps);
            windows.inner.extents[spatial] = Divisor::of(merged);
        }
    }

    template <typename Filter>
    CK_TILE_DEVICE static void fix_filter(Filter& filter)
    {
        if constexpr(special == Special::depthwise && blocks)
        {
            filter.outer.extents[1] = filter.inner.extents[2] = Divisor::of(1);
            filter.inner.extents[1] = Divisor::of(merged);
        }
    }
};

/// Weights as a matrix whose rows are features and whose columns are taps and channels.
template <typename Shape>
using FilterRows = std::conditional_t<Shape::blocks,
                                      Lattice<2, 3, Diagonal<0, 1>>, // group, feature; tap, group, channel
                                      Lattice<1, 1, Everywhere>>;

/// Weights as a matrix whose rows are taps and features and whose columns are channels.
template <typename Shape>
using FilterTaps = std::conditional_t<
    Shape::blocks,
    Lattice<Shape::tap + 1, 2, Diagonal<Shape::tap - 1, 0>>, // taps, group, feature; group, channel
    Lattice<Shape::tap, 1, Everywhere>>;

/// Elements of a tensor from one group (or merged groups) to the next, and from one piece of the
/// batch to the next. A batch that spans too many bytes for one product is several.
struct Steps
{
    int64_t group, piece;

    CK_TILE_HOST_DEVICE constexpr int64_t to(index_t at_group, index_t at_piece) const
    {
        return at_group * group + at_piece * piece;
    }
};

/// One D in the arguments: the strides of its digits, the outer ones first.
struct ConvOperand
{
    static constexpr index_t most = 8;

    const void* data;
    Steps steps;
    int64_t moved; // elements from `data` to its own, in the arguments of one product
    index_t span, base;
    std::array<index_t, most> strides;
};

template <typename A_, typename B_, typename E_, index_t operands_, index_t wide_>
struct ConvArgs
{
    using ASource                     = A_;
    using BSource                     = B_;
    using ETarget                     = E_;
    static constexpr index_t operands = operands_;

    ASource a;
    BSource b;
    ETarget e;
    index_t M, N, K;
    index_t groups, items; // products of a piece, products
    Steps steps_a, steps_b, steps_e;
    Digits<wide_> wide; // E's inner index with a digit for each axis
    std::array<ConvOperand, operands> ds;

    static constexpr index_t wide_digits = wide_;

    /// The arguments of product `item` alone; the groups of a piece follow each other.
    CK_TILE_DEVICE ConvArgs product(index_t item) const
    {
        const index_t piece = ck_tile::amd_wave_read_first_lane(item / groups);
        const index_t group = item - piece * groups;
        ConvArgs one        = *this;
        one.a               = a.moved({steps_a.to(group, piece)});
        one.b               = b.moved({steps_b.to(group, piece)});
        one.e               = e.moved({steps_e.to(group, piece)});
#pragma unroll
        for(auto& d : one.ds)
            d.moved = d.steps.to(group, piece);
        return one;
    }
};

/// An image that spans too many bytes for one product is several bands of output rows, along the
/// first axis in space.
template <typename Base>
struct BandedArgs : Base
{
    index_t bands, rows;  // bands of an image, output rows of a band
    index_t step, shift;  // input rows from one output row to the next, where the first one begins
    int64_t row_a, row_e; // elements from one row to the next

    CK_TILE_DEVICE BandedArgs product(index_t item) const
    {
        return {Base::product(item), bands, rows, step, shift, row_a, row_e};
    }

    /// Narrow the arguments of an image to one band. Data begins at the first row that is there.
    CK_TILE_DEVICE void enter(index_t band)
    {
        const index_t row   = band * rows;
        const index_t low   = shift + row * step;
        const index_t first = ck_tile::max(low, 0);
        this->a             = this->a.moved({first * row_a});
        this->e             = this->e.moved({row * row_e});
        auto& lattice       = this->a.lattice;
        lattice.base += (low - first - shift) * static_cast<index_t>(row_a);
        if constexpr(requires { lattice.condition.shift; })
        {
            lattice.condition.shift[0] = low - first;
            lattice.condition.extent[0] -= first;
        }
#pragma unroll
        for(auto& d : this->ds)
            d.moved += static_cast<int64_t>(row) * d.strides[1];
    }
};

/// y = x convolved with w.
template <typename Shape_, typename A, typename B, typename E, index_t operands>
struct Forward
{
    static constexpr Pass pass = Pass::forward;

    using Shape   = Shape_;
    using ASource = Grid<A, typename Shape::Windows>;
    using BSource = Grid<B, FilterRows<Shape>>;
    using ETarget = Grid<E, typename Shape::Pixels>;
    using Args    = BandedArgs<ConvArgs<ASource, BSource, ETarget, operands, 1>>;

    CK_TILE_DEVICE static Args at(const Args& args, index_t item)
    {
        const index_t product = ck_tile::amd_wave_read_first_lane(item / args.bands);
        Args one              = args.product(product);
        if constexpr(!Shape::packed)
            one.enter(item - product * args.bands);
        Shape::fix_windows(one.a.lattice);
        Shape::fix_filter(one.b.lattice);
        return one;
    }
};

/// The gradient of w: products of y's gradient and x.
template <typename Shape_, typename A, typename B, typename E, index_t operands>
struct GradWeight
{
    static constexpr Pass pass = Pass::grad_weight;

    using Shape   = Shape_;
    using ASource = Grid<A, typename Shape::Pixels>;
    using BSource = Grid<B, typename Shape::Windows>;
    using ETarget = Grid<E, FilterRows<Shape>>;
    using Args    = ConvArgs<ASource, BSource, ETarget, operands, Shape::tap + Shape::blocks>;

    CK_TILE_DEVICE static Args at(const Args& args, index_t item)
    {
        Args one = args.product(item);
        Shape::fix_windows(one.b.lattice);
        Shape::fix_filter(one.e.lattice);
        return one;
    }
};

/// One axis of x in the gradient of x. The elements of one phase have positions that are equal
/// modulo the stride: `phase`, `phase` + stride, and so on, numbered by i. Tap y reaches position x
/// from output o if o * stride = x + pad - y * dilation. With common = gcd(stride, dilation), the
/// taps that reach a phase at all are y = first + j * period, where period = stride / common, and
/// then o = i + shift - j * hop, where hop = dilation / common.
struct PhaseAxis
{
    index_t stride, dilation, pad, taps, extent;
    index_t phases; // that have elements
    index_t common, period, hop;
    index_t inverse; // of hop, modulo period
    Divisor rows[2]; // by extent / stride, and by one more
    Divisor hits[2]; // by taps / period, and by one more

    struct Phase
    {
        index_t rows, hits, first, shift;
        Divisor by_rows, by_hits;
    };

    CK_TILE_HOST_DEVICE constexpr Phase at(index_t phase) const
    {
        const index_t more = phase < extent % stride;
        Phase answer{extent / stride + more, 0, 0, 0, rows[more], hits[0]};
        if((phase + pad) % common != 0)
            return answer;
        answer.first = (phase + pad) / common % period * inverse % period;
        if(answer.first >= taps)
            return answer;
        const index_t last = answer.first < taps % period;
        answer.hits        = taps / period + last;
        answer.by_hits     = hits[last];
        answer.shift       = (phase + pad - answer.first * dilation) / stride;
        return answer;
    }
};

template <typename Base, index_t spatial>
struct PhasedArgs : Base
{
    std::array<PhaseAxis, spatial> axes;
    index_t images;   // N of x
    index_t features; // of the groups in a tile
    index_t phases;

    CK_TILE_DEVICE PhasedArgs product(index_t item) const
    {
        return {Base::product(item), axes, images, features, phases};
    }
};

/// The gradient of x.
template <typename Shape_, typename A, typename B, typename E, index_t operands>
struct GradInput
{
    static constexpr Pass pass = Pass::grad_input;

    using Shape   = Shape_;
    using ASource = Grid<A, typename Shape::Windows>;
    using BSource = Grid<B, FilterTaps<Shape>>;
    using ETarget = Grid<E, typename Shape::Pixels>;
    using Args    = PhasedArgs<ConvArgs<ASource, BSource, ETarget, operands, 1>, Shape::spatial>;

    CK_TILE_DEVICE static Args at(const Args& args, index_t item)
    {
        const index_t product = ck_tile::amd_wave_read_first_lane(item / args.phases);
        Args one              = args.product(product);
        if constexpr(!Shape::packed)
            enter(one, item - product * args.phases);
        return one;
    }

    private:
    /// Narrow the arguments of all phases, in which digits and strides count whole axes, to one.
    CK_TILE_DEVICE static void enter(Args& args, index_t phase)
    {
        args.M = args.images;
        args.K = args.features;
        // The last axis of x is the fastest in the number of a phase.
#pragma unroll
        for(index_t axis = Shape::spatial - 1; axis >= 0; --axis)
        {
            const PhaseAxis& along = args.axes[axis];
            const index_t outer    = phase / along.phases;
            const index_t own      = ck_tile::amd_wave_read_first_lane(phase - outer * along.phases);
            phase                  = outer;
            narrow(args, axis, own, along.at(own));
        }
    }

    CK_TILE_DEVICE static void
    narrow(Args& args, index_t axis, index_t own, const PhaseAxis::Phase& phase)
    {
        const PhaseAxis& along = args.axes[axis];
        auto& a                = args.a.lattice;
        auto& b                = args.b.lattice;
        auto& e                = args.e.lattice;
        args.M *= phase.rows;
        args.K *= phase.hits;
        a.outer.extents[1 + axis] = e.outer.extents[1 + axis] = phase.by_rows;
        if constexpr(!Shape::pointwise)
        {
            a.base += phase.shift * a.outer_strides[1 + axis];
            a.condition.shift[axis] = phase.shift;
            a.inner.extents[axis] = b.outer.extents[axis] = phase.by_hits;
            b.base += phase.first * b.outer_strides[axis];
            b.outer_strides[axis] *= along.period;
        }
        e.base += own * e.outer_strides[1 + axis];
        e.outer_strides[1 + axis] *= along.stride;
#pragma unroll
        for(auto& d : args.ds)
        {
            d.base += own * d.strides[1 + axis];
            d.strides[1 + axis] *= along.stride;
        }
    }
};

/// D as a tensor that is read at E's place. Along an axis that its kind does not have there are no
/// digits, so its loads fold together.
template <typename D, typename Args>
CK_TILE_DEVICE auto operand(const ConvOperand& d, const Args& args)
{
    using Place                = typename Args::ETarget::Lattice;
    constexpr Kind kind        = D::kind;
    constexpr bool wide        = kind == Kind::strided;
    constexpr bool along_outer = kind != Kind::row && kind != Kind::scalar;
    constexpr bool along_inner = kind != Kind::column && kind != Kind::scalar;
    constexpr index_t outer    = Place::outer_digits;
    constexpr index_t inner    = wide ? Args::wide_digits : Place::inner_digits;

    Lattice<along_outer ? outer : 0, along_inner ? inner : 0, Everywhere, !wide> lattice{};
    lattice.base = d.base;
    if constexpr(along_outer)
    {
        lattice.outer = args.e.lattice.outer;
#pragma unroll
        for(index_t i = 0; i < outer; ++i)
            lattice.outer_strides[i] = d.strides[i];
    }
    if constexpr(along_inner)
    {
        if constexpr(wide)
            lattice.inner = args.wide;
        else
            lattice.inner = args.e.lattice.inner;
#pragma unroll
        for(index_t i = 0; i < inner; ++i)
            lattice.inner_strides[i] = d.strides[outer + i];
    }
    using T = typename D::DataType;
    return Grid<T, decltype(lattice)>{static_cast<const T*>(d.data) + d.moved, d.span, lattice};
}

} // namespace cklang
