// SPDX-License-Identifier: MIT
// What the host shim of a convolution kernel answers: how to launch it for a problem, or why the
// kernel cannot compute it.
#pragma once

#include "cklang/conv_refusals.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

#include <numeric>

namespace cklang {

/// `Host` is CK Tile's kernel of the same parts.
template <typename Conv,
          typename Host,
          typename Pipeline,
          bool persistent,
          Work work,
          Reduction reduction,
          typename... Ds>
struct DescribeConv
{
    using Direction   = typename Conv::Direction;
    using Shape       = typename Direction::Shape;
    using Tile        = typename Conv::Shape;
    using Partitioner = typename Conv::Partitioner;
    using Space       = Workspace<Tile, typename Conv::Acc::DataType>;
    using One         = typename Conv::Args;
    using Args        = std::conditional_t<work == Work::tiles, One, SharedArgs<One>>;
    using Tensors     = ConvTensors<Shape>;
    using A           = typename One::ASource::DataType;
    using B           = typename One::BSource::DataType;
    using E           = typename One::ETarget::DataType;

    static constexpr Pass pass        = Direction::pass;
    static constexpr int operands     = sizeof...(Ds);
    static constexpr index_t spatial  = Shape::spatial;
    static constexpr int skip         = Tensors::skip;
    static constexpr int64_t merged   = Shape::merged;
    static constexpr int64_t vector_a = Pipeline::GetVectorSizeA();
    static constexpr int64_t vector_b = Pipeline::GetVectorSizeB();
    static constexpr int64_t vector_e = Conv::Epilogue::GetVectorSizeC();

    static_assert(operands <= CK_GEMM_MAX_OPERANDS);
    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_conv_problem& given, ck_gemm_launch& launch)
    {
        constexpr auto each_d   = std::make_index_sequence<operands>{};
        const ck_conv_problem problem = normalise(given);
        launch.refusal                = refuse(problem);
        if(launch.refusal)
            return;
        Cut cut = cuts(problem, each_d);
        launch.refusal = refuse_part(cut.part, each_d);
        if(launch.refusal)
            return;
        const One one        = arguments(cut, problem, each_d);
        const int64_t each   = Partitioner::GridSize(one.M, one.N);
        const int64_t tiles  = each * one.items;
        const int64_t steps  = one.K > 0 ? (one.K - 1) / Tile::kK + 1 : 1;
        const int64_t most   = work == Work::stream_k ? tiles * steps : tiles;
        if(most > INT32_MAX)
        {
            launch.refusal = "the tiles, or the steps along K of all of them, are more than 2^31";
            return;
        }
        const bool limited   = persistent || work == Work::stream_k;
        const int64_t blocks = limited ? std::min(problem.blocks, most) : most;
        const dim3 block     = Host::BlockSize();

        launch.grid[0]         = static_cast<uint32_t>(blocks);
        launch.grid[1]         = 1;
        launch.grid[2]         = static_cast<uint32_t>(problem.split_k);
        launch.block[0]        = block.x;
        launch.block[1]        = block.y;
        launch.block[2]        = block.z;
        launch.lds_bytes       = Host::GetSmemSize();
        launch.workspace_bytes = 0;
        launch.zeroed_bytes    = 0;
        Args args{};
        static_cast<One&>(args) = one;
        if constexpr(work != Work::tiles)
        {
            const int64_t own =
                work == Work::split_k ? tiles * problem.split_k : blocks * slots_per_block;
            const bool together    = reduction == Reduction::atomic;
            const int64_t counters = reduction == Reduction::tree ? own : tiles;
            launch.workspace_bytes = Space::bytes(counters, together ? tiles : own);
            launch.zeroed_bytes = together ? launch.workspace_bytes : Space::counter_bytes(counters);
            args.workspace      = problem.workspace;
            args.parts          = i32(problem.split_k);
        }
        launch.kernarg_bytes = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }

    private:
    /// The parts of a problem that are products of their own: batches in pieces, images in bands of
    /// output rows.
    struct Cut
    {
        ck_conv_problem part;
        int64_t pieces = 1, bands = 1;
    };

    static bool too_large(const char* reason)
    {
        return reason && (reason == complaints_a.far || reason == complaints_b.far ||
                          reason == complaints_e.far || reason == complaints_d.far ||
                          reason == too_many);
    }

    /// As few equal pieces as can be addressed, then as few bands of an image. The sums of the
    /// gradient of w go over all of a batch.
    template <std::size_t... I>
    static Cut cuts(const ck_conv_problem& p, std::index_sequence<I...> each_d)
    {
        Cut cut{p};
        if(pass == Pass::grad_weight)
            return cut;
        for(; cut.pieces <= p.n; ++cut.pieces)
        {
            cut.part.n = p.n / cut.pieces;
            if(p.n % cut.pieces == 0 && !too_large(refuse_part(cut.part, each_d)))
                return cut;
        }
        cut.pieces = p.n;
        if(pass != Pass::forward || Shape::packed)
            return cut;
        for(; cut.bands <= p.out[skip]; ++cut.bands)
        {
            const int64_t rows = p.out[skip] / cut.bands;
            const int64_t read =
                (rows - 1) * p.stride[skip] + (p.window[skip] - 1) * p.dilation[skip] + 1;
            cut.part.out[skip] = rows;
            cut.part.in[skip]  = std::min(p.in[skip], read);
            if(p.out[skip] % cut.bands == 0 && !too_large(refuse_part(cut.part, each_d)))
                return cut;
        }
        cut.bands = p.out[skip];
        return cut;
    }

    static constexpr const char* too_many = "M, N or K of a product is more than 2^30";

    static const int64_t* e_extents(const ck_conv_problem& p)
    {
        return pass == Pass::forward ? p.out : p.in;
    }

    /// Extents of the axes of x, w and y.
    static std::array<int64_t, 6> image(const ck_conv_problem& p, const int64_t* space, int64_t last)
    {
        return {p.n, space[0], space[1], space[2], p.g, last};
    }
    static std::array<int64_t, 6> weights(const ck_conv_problem& p)
    {
        return {p.g, p.k, p.window[0], p.window[1], p.window[2], p.c};
    }
    static std::array<int64_t, 6> result(const ck_conv_problem& p)
    {
        if(pass == Pass::grad_weight)
            return weights(p);
        return image(p, e_extents(p), pass == Pass::forward ? p.k : p.c);
    }

    /// Axes of extent 1 take no step; the last one is contiguous then.
    static void settle(int64_t* strides, const std::array<int64_t, 6>& extents, int64_t last)
    {
        for(int i = 0; i < 6; ++i)
            if(extents[i] == 1)
                strides[i] = i == 5 ? last : 0;
    }

    static ck_conv_problem normalise(ck_conv_problem p)
    {
        settle(p.input_strides, image(p, p.in, p.c), 1);
        settle(p.weight_strides, weights(p), 1);
        settle(p.output_strides, image(p, p.out, p.k), 1);
        constexpr std::array<Kind, operands> kinds{Ds::kind...};
        for(int i = 0; i < operands; ++i)
            settle(p.d_strides[i],
                   result(p),
                   kinds[i] == Kind::full || kinds[i] == Kind::row);
        return p;
    }

    static const char* refuse(const ck_conv_problem& p)
    {
        const char* reason = refuse_extents(p);
        return reason ? reason : refuse_built_for(p);
    }

    template <std::size_t... I>
    static const char* refuse_part(const ck_conv_problem& p, std::index_sequence<I...>)
    {
        const char* reason = refuse_counts(p);
        if(!reason)
            reason = refuse_images(p);
        ((reason = reason ? reason : refuse_d<Ds>(p, p.d[I], p.d_strides[I])), ...);
        return reason;
    }

    static const char* refuse_extents(const ck_conv_problem& p)
    {
        constexpr int64_t most = INT32_MAX / 2;
        if(p.n < 1 || p.g < 1 || p.k < 1 || p.c < 1)
            return "images, groups, features and channels must be 1 or more";
        for(int i = 0; i < space_axes; ++i)
        {
            if(p.in[i] < 1 || p.out[i] < 1 || p.window[i] < 1)
                return "extents of images and windows must be 1 or more";
            if(p.stride[i] < 1 || p.dilation[i] < 1 || p.pad_before[i] < 0 || p.pad_after[i] < 0)
                return "strides and dilations must be 1 or more, padding 0 or more";
            const int64_t covered = (p.window[i] - 1) * p.dilation[i] + 1;
            const int64_t padded  = p.in[i] + p.pad_before[i] + p.pad_after[i];
            if(padded < covered || (padded - covered) / p.stride[i] + 1 != p.out[i])
                return "the output has not the extent that input, window and padding give";
            if(padded > most || covered > most || p.stride[i] > 46340)
                return "an axis is longer than 2^30, or a stride greater than 46340";
            if(i < skip && (p.in[i] != 1 || p.out[i] != 1 || p.window[i] != 1))
                return "the problem has more axes in space than the kernel";
        }
        if(work == Work::split_k ? p.split_k < 1 || p.split_k > 65535 : p.split_k != 1)
            return "K is split by split-K kernels only, into 1 to 65535 parts";
        if((persistent || work == Work::stream_k) && p.blocks < 1)
            return "this kernel needs a workgroup or more";
        return nullptr;
    }

    static const char* refuse_counts(const ck_conv_problem& p)
    {
        constexpr int64_t most = INT32_MAX / 2;
        const auto many        = [&](std::initializer_list<int64_t> extents) {
            int64_t all = 1;
            for(int64_t extent : extents)
                if((all *= extent) > most)
                    return true;
            return false;
        };
        if(many({p.n, p.in[0], p.in[1], p.in[2]}) || many({p.n, p.out[0], p.out[1], p.out[2]}) ||
           many({p.window[0], p.window[1], p.window[2], std::max(p.c, p.k), merged}))
            return too_many;
        return nullptr;
    }

    /// Whether the problem is one of those the kernel was made for.
    static const char* refuse_built_for(const ck_conv_problem& p)
    {
        if(p.g % merged != 0)
            return "the groups are not a multiple of those that the kernel merges in a tile";
        for(int i = skip; i < space_axes; ++i)
        {
            if(Shape::pointwise && (p.window[i] != 1 || p.pad_before[i] != 0 || p.pad_after[i] != 0))
                return "the kernel is for windows of one tap without padding";
            if(Shape::packed && p.stride[i] != 1)
                return "the kernel is for windows of one tap without padding and stride 1";
            if(Shape::special == Special::depthwise && p.window[i] != 3)
                return "the kernel is for windows of three taps along each axis";
        }
        if(Shape::special == Special::depthwise && (p.c != 1 || p.k != 1))
            return "the kernel is for groups of one channel and one feature";
        return nullptr;
    }

    static const char* refuse_images(const ck_conv_problem& p)
    {
        const Tensors tensors{p};
        const auto x = [&](int64_t vector, auto type, const void* data, const auto& complaints) {
            return refuse_image<decltype(type)>(
                p, data, tensors.pixels(p.input_strides, p.in),
                tensors.channels(p.input_strides, p.c), p.input_strides[4], vector, complaints);
        };
        const auto y = [&](int64_t vector, auto type, const void* data, const auto& complaints) {
            return refuse_image<decltype(type)>(
                p, data, tensors.pixels(p.output_strides, p.out),
                tensors.channels(p.output_strides, p.k), p.output_strides[4], vector, complaints);
        };
        const auto w = [&](int64_t vector, auto type, const void* data, const auto& complaints) {
            return refuse_filter<decltype(type)>(tensors, data, vector, complaints);
        };
        const char* reason = nullptr;
        const auto check   = [&](const char* other) { reason = reason ? reason : other; };
        if constexpr(pass == Pass::forward)
        {
            check(x(vector_a, A{}, p.a, complaints_a));
            check(w(vector_b, B{}, p.b, complaints_b));
            check(y(vector_e, E{}, p.e, complaints_e));
        }
        else if constexpr(pass == Pass::grad_input)
        {
            check(y(vector_a, A{}, p.a, complaints_a));
            check(w(vector_b, B{}, p.b, complaints_b));
            check(x(vector_e, E{}, p.e, complaints_e));
        }
        else
        {
            check(y(vector_a, A{}, p.a, complaints_a));
            check(x(vector_b, B{}, p.b, complaints_b));
            check(w(vector_e, E{}, p.e, complaints_e));
        }
        return reason;
    }

    template <typename T>
    static const char* refuse_image(const ck_conv_problem& p,
                                    const void* data,
                                    const typename Tensors::Pixel& pixels,
                                    const std::array<Axis, 2>& channels,
                                    int64_t group,
                                    int64_t vector,
                                    const TensorComplaints& complaints)
    {
        const Axis row = joined(channels);
        if(row.extent == 0 || (Shape::packed && joined(pixels).extent == 0))
            return complaints.apart;
        std::array<Axis, Tensors::spatial + 2> axes{};
        std::copy(pixels.begin(), pixels.end(), axes.begin());
        axes.back() = {row.extent, row.extent == 1 ? 1 : row.stride};
        return refuse_tensor<T>(p.most_bytes, data, axes, merged * group, row.extent, vector, complaints);
    }

    template <typename T>
    static const char* refuse_filter(const Tensors& tensors,
                                     const void* data,
                                     int64_t vector,
                                     const TensorComplaints& complaints)
    {
        const ck_conv_problem& p = tensors.p;
        const auto axes          = tensors.filter(p.weight_strides);
        // As rows of features, taps have one stride, which goes on from the channels'.
        const Axis tap = joined(tensors.taps(p.weight_strides));
        if(pass != Pass::grad_input &&
           (tap.extent == 0 || (!Shape::blocks && tap.extent != 1 && tap.stride != p.c)))
            return complaints.apart;
        return refuse_tensor<T>(
            p.most_bytes, data, axes, merged * p.weight_strides[0], p.c, vector, complaints);
    }

    /// The strides of a D's digits, those of E's outer index first; extent 0 where they have none.
    template <typename D>
    static auto d_axes(const Tensors& tensors, const int64_t* strides)
    {
        using Place = typename One::ETarget::Lattice;
        constexpr bool wide = D::kind == Kind::strided || D::kind == Kind::column;
        constexpr index_t inner = wide ? One::wide_digits : Place::inner_digits;
        std::array<Axis, Place::outer_digits + inner> axes{};
        const ck_conv_problem& p = tensors.p;
        if constexpr(pass != Pass::grad_weight)
        {
            const auto pixels = tensors.pixels(strides, e_extents(p));
            if constexpr(Shape::packed)
                axes[0] = joined(pixels);
            else
                std::copy(pixels.begin(), pixels.end(), axes.begin());
            axes.back() = joined(tensors.channels(strides, pass == Pass::forward ? p.k : p.c));
        }
        else
        {
            const auto taps = tensors.taps(strides);
            if constexpr(Shape::blocks)
                axes[0] = {merged, strides[0]};
            axes[Place::outer_digits - 1] = {p.k, strides[1]};
            auto* at                      = axes.data() + Place::outer_digits;
            if constexpr(wide)
            {
                if constexpr(!Shape::pointwise)
                    at = std::copy(taps.begin(), taps.end(), at);
            }
            else if constexpr(Shape::blocks)
                *at++ = joined(taps);
            if constexpr(Shape::blocks)
                *at++ = {merged, 0};
            axes.back() = {p.c, strides[5]};
            if constexpr(!wide && !Shape::blocks)
            {
                std::array<Axis, spatial + 1> row{};
                std::copy(taps.begin(), taps.end(), row.begin());
                row.back()  = {p.c, strides[5]};
                axes.back() = joined(row);
            }
        }
        return axes;
    }

    template <typename D>
    static const char* refuse_d(const ck_conv_problem& p, const void* data, const int64_t* strides)
    {
        using Place         = typename One::ETarget::Lattice;
        using T             = typename D::DataType;
        constexpr bool rows = D::kind == Kind::full || D::kind == Kind::row;
        const auto axes     = d_axes<D>(Tensors{p}, strides);
        const int64_t group = merged * strides[pass == Pass::grad_weight ? 0 : 4];
        for(std::size_t i = 0; i < axes.size(); ++i)
        {
            const bool outer = i < Place::outer_digits;
            const bool has   = outer ? D::kind != Kind::row : D::kind != Kind::column;
            if(axes[i].extent == 0)
                return complaints_d.apart;
            if(axes[i].stride != 0 && axes[i].extent != 1 && (!has || D::kind == Kind::scalar))
                return "a D operand changes along an axis that operands of its kind do not have";
        }
        if constexpr(!rows)
            return refuse_steps<T>(p.most_bytes, data, axes, group, 1, complaints_d);
        auto settled = axes;
        if(settled.back().extent == 1)
            settled.back().stride = 1;
        const int64_t row = pass == Pass::grad_weight ? p.c : axes.back().extent;
        return refuse_tensor<T>(p.most_bytes, data, settled, group, row, D::vector, complaints_d);
    }

    template <std::size_t... I>
    static One arguments(const Cut& cut, const ck_conv_problem& whole, std::index_sequence<I...>)
    {
        const ck_conv_problem& p = cut.part;
        const Tensors tensors{p};
        One one{};
        one.groups = i32(p.g / merged);
        one.items  = i32(one.groups * cut.pieces * cut.bands);
        place(one, tensors);
        if constexpr(pass == Pass::forward)
        {
            one.bands = i32(cut.bands);
            one.rows  = i32(p.out[skip]);
            one.step  = i32(p.stride[skip]);
            one.shift = i32(-p.pad_before[skip]);
            one.row_a = p.input_strides[1 + skip];
            one.row_e = p.output_strides[1 + skip];
            if constexpr(requires { one.a.lattice.condition.extent; })
                one.a.lattice.condition.extent[0] = i32(whole.in[skip]);
        }
        one.a.data = p.a;
        one.b.data = p.b;
        one.e.data = p.e;
        if constexpr(pass == Pass::grad_weight)
        {
            std::array<Axis, One::wide_digits> wide{};
            auto* at = wide.data();
            if constexpr(!Shape::pointwise)
                for(const Axis& tap : tensors.taps(p.weight_strides))
                    *at++ = tap;
            if constexpr(Shape::blocks)
                *at++ = {merged, 0};
            *at      = {p.c, 1};
            one.wide = digits(wide);
        }
        ((one.ds[I] = d<Ds>(tensors, p.d[I], p.d_strides[I])), ...);
        return one;
    }

    /// The three matrices of `one`, without their data.
    static void place(One& one, const Tensors& tensors)
    {
        const ck_conv_problem& p = tensors.p;
        const auto x       = tensors.pixels(p.input_strides, p.in);
        const auto y       = tensors.pixels(p.output_strides, p.out);
        const auto product = [](const int64_t* extents) {
            return extents[0] * extents[1] * extents[2];
        };
        const index_t x_span = pixel_span(x, tensors.channels(p.input_strides, p.c));
        const index_t y_span = pixel_span(y, tensors.channels(p.output_strides, p.k));
        const index_t w_span = i32(span(tensors.filter(p.weight_strides)));
        const Steps x_steps{merged * p.input_strides[4], p.n * p.input_strides[0]};
        const Steps y_steps{merged * p.output_strides[4], p.n * p.output_strides[0]};
        const Steps w_steps{merged * p.weight_strides[0], 0};
        const int64_t taps    = product(p.window);
        const int64_t channels = merged * p.c, features = merged * p.k;
        int64_t shift[space_axes];
        for(int i = 0; i < space_axes; ++i)
            shift[i] = -p.pad_before[i];

        if constexpr(pass == Pass::forward)
        {
            one.a       = {nullptr, x_span, tensors.windows(x, p.c, p.stride, p.dilation, shift, p.out)};
            one.b       = {nullptr, w_span, tensors.filter_rows(p.weight_strides)};
            one.e       = {nullptr, y_span, tensors.pixel_rows(y, p.k)};
            one.steps_a = x_steps;
            one.steps_b = w_steps;
            one.steps_e = y_steps;
            one.M       = i32(p.n * product(p.out));
            one.N       = i32(features);
            one.K       = i32(taps * channels);
        }
        else if constexpr(pass == Pass::grad_weight)
        {
            one.a       = {nullptr, y_span, tensors.pixel_rows(y, p.k)};
            one.b       = {nullptr, x_span, tensors.windows(x, p.c, p.stride, p.dilation, shift, p.out)};
            one.e       = {nullptr, w_span, tensors.filter_rows(p.weight_strides)};
            one.steps_a = y_steps;
            one.steps_b = x_steps;
            one.steps_e = w_steps;
            one.M       = i32(features);
            one.N       = i32(taps * channels);
            one.K       = i32(p.n * product(p.out));
        }
        else
        {
            const int64_t none[space_axes] = {0, 0, 0}, once[space_axes] = {1, 1, 1};
            int64_t back[space_axes], rows = p.n;
            for(int i = 0; i < space_axes; ++i)
                back[i] = -(p.dilation[i] / std::gcd(p.dilation[i], p.stride[i]));
            one.images   = i32(p.n);
            one.features = i32(features);
            one.phases   = 1;
            for(index_t i = 0; i < spatial; ++i)
            {
                one.axes[i] = phase_axis(p, skip + i);
                if(!Shape::packed)
                    one.phases *= one.axes[i].phases;
                rows *= (p.in[skip + i] - 1) / p.stride[skip + i] + 1;
            }
            one.a       = {nullptr, y_span, tensors.windows(y, p.k, once, back, none, p.out)};
            one.b       = {nullptr, w_span, tensors.filter_taps(p.weight_strides)};
            one.e       = {nullptr, x_span, tensors.pixel_rows(x, p.c)};
            one.steps_a = y_steps;
            one.steps_b = w_steps;
            one.steps_e = x_steps;
            one.M       = i32(rows);
            one.N       = i32(channels);
            one.K       = i32(taps * features);
            one.items *= one.phases;
        }
    }

    static index_t pixel_span(const typename Tensors::Pixel& pixels,
                              const std::array<Axis, 2>& channels)
    {
        return i32(span(pixels) + span(channels) - 1);
    }

    static PhaseAxis phase_axis(const ck_conv_problem& p, int i)
    {
        const int64_t common = std::gcd(p.stride[i], p.dilation[i]);
        const int64_t period = p.stride[i] / common, hop = p.dilation[i] / common;
        int64_t inverse = 0;
        while(hop % period * inverse % period != 1 % period)
            ++inverse;
        const auto by = [](int64_t number) { return Divisor::of(i32(std::max<int64_t>(number, 1))); };
        return {i32(p.stride[i]),
                i32(p.dilation[i]),
                i32(p.pad_before[i]),
                i32(p.window[i]),
                i32(p.in[i]),
                i32(std::min(p.stride[i], p.in[i])),
                i32(common),
                i32(period),
                i32(hop),
                i32(inverse),
                {by(p.in[i] / p.stride[i]), by(p.in[i] / p.stride[i] + 1)},
                {by(p.window[i] / period), by(p.window[i] / period + 1)}};
    }

    template <typename D>
    static ConvOperand d(const Tensors& tensors, const void* data, const int64_t* given)
    {
        const auto axes     = d_axes<D>(tensors, given);
        const Steps steps{merged * given[pass == Pass::grad_weight ? 0 : 4], tensors.p.n * given[0]};
        ConvOperand made{data, steps, 0, i32(span(axes)), 0, {}};
        for(std::size_t i = 0; i < axes.size(); ++i)
            made.strides[i] = i32(axes[i].stride);
        return made;
    }
};

} // namespace cklang

#endif
