// SPDX-License-Identifier: MIT
// The matrix products of attention forwards on RDNA3: A is in registers, B in LDS.
#pragma once

#include "cklang/rdna3_product.hpp"

namespace ck_tile::impl {

/// Scores, and weights by values.
template <>
struct WarpGemmDispatcher<half_t, half_t, float, 16, 16, 16, true>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<half_t, true, true>>;
};

template <>
struct WarpGemmDispatcher<bf16_t, bf16_t, float, 16, 16, 16, true>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<bf16_t, true, true>>;
};

/// The places in which dropout draws its numbers: those of the gradients' scores.
template <>
struct WarpGemmDispatcher<half_t, half_t, float, 16, 16, 16, false>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<half_t, false>>;
};

template <>
struct WarpGemmDispatcher<bf16_t, bf16_t, float, 16, 16, 16, false>
{
    using Type = WarpGemmImpl<cklang::Rdna3Product<bf16_t, false>>;
};

} // namespace ck_tile::impl
