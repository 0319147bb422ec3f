// SPDX-License-Identifier: MIT
// What the host shim says of a convolution whose loads of nothing are moved by 2 GiB, out of the
// buffer's range: those beyond K, and those of windows beside the image. They must not come round to
// where the tensor begins, so that it may span 2 GiB less what is read beside it.
#pragma once

#include "cklang/describe_conv.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `Conv` describes the convolution. The loop over K loads at most three tiles beyond its end.
template <typename Conv, int64_t tile_k>
struct DescribeMaskedConv
{
    static void run(const ck_conv_problem& given, ck_gemm_launch& launch)
    {
        ck_conv_problem problem = given;
        problem.most_bytes      = std::min(given.most_bytes, max_span_bytes - beside(given));
        Conv::run(problem, launch);
    }

    private:
    static constexpr int64_t beyond = 3 * tile_k;
    static constexpr int64_t merged = Conv::Shape::merged;

    /// Elements that windows reach over.
    static int64_t windows(const ck_conv_problem& p, const int64_t* strides)
    {
        int64_t elements = 0;
        for(int i = 0; i < space_axes; ++i)
            elements += strides[1 + i] * ((p.window[i] - 1) * p.dilation[i] + p.pad_before[i] +
                                          p.pad_after[i]);
        return elements;
    }

    /// The elements of an image, with the gaps in them.
    static int64_t image(const int64_t* extents, const int64_t* strides)
    {
        int64_t elements = 0;
        for(int i = 0; i < space_axes; ++i)
            elements += extents[i] * strides[1 + i];
        return std::max(elements, strides[0]);
    }

    /// The step from one tap to the next along the first axis, whose number goes on beyond K.
    static int64_t step(const ck_conv_problem& p, const int64_t* strides)
    {
        return p.dilation[Conv::skip] * strides[1 + Conv::skip];
    }

    /// Taps of a phase of the stride for each one along the first axis, at least.
    static int64_t taps(const ck_conv_problem& p)
    {
        int64_t number = 1;
        for(int i = Conv::skip + 1; i < space_axes; ++i)
            number *= std::max<int64_t>(p.window[i] / p.stride[i], 1);
        return number;
    }

    /// How many of `size` the loop goes on for beyond K.
    static int64_t more(int64_t size) { return beyond / std::max<int64_t>(size, 1) + 1; }

    /// Bytes beside A or B that are read, or would be.
    static int64_t beside(const ck_conv_problem& p)
    {
        const int64_t *x = p.input_strides, *y = p.output_strides, *w = p.weight_strides;
        const int64_t tap = std::max({w[2], w[3], w[4]});
        int64_t a = beyond, b = beyond;
        if constexpr(Conv::pass == Pass::forward)
        {
            a += windows(p, x) + more(p.c * merged * taps(p)) * step(p, x);
            b += more(p.c * merged) * tap;
        }
        else if constexpr(Conv::pass == Pass::grad_input)
        {
            a += 2 * windows(p, y) + more(p.k * merged * taps(p)) * step(p, y);
            b += more(p.k * merged) * tap + beyond * w[1] + more(p.k) * w[0];
        }
        else
        {
            const int64_t images = more(p.out[0] * p.out[1] * p.out[2]);
            a += images * image(p.out, y);
            b += images * image(p.in, x) + windows(p, x);
        }
        return std::max(a * size_of<typename Conv::A>, b * size_of<typename Conv::B>);
    }
};

} // namespace cklang

#endif
