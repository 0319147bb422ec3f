// SPDX-License-Identifier: MIT
//
// The rows from which the table operation → handler is made, one list per file of handlers.
#pragma once

#include <span>

#include "core/wave.h"

namespace ckemu {

struct HandlerRow {
  Op op;
  Handler fn;
};
using HandlerRows = std::span<const HandlerRow>;

HandlerRows scalar_handlers();
HandlerRows scalar_bit_handlers();
HandlerRows control_handlers();
HandlerRows scalar_memory_handlers();
HandlerRows f32_handlers();
HandlerRows integer_handlers();
HandlerRows carry_handlers();
HandlerRows half_handlers();
HandlerRows wide_handlers();
HandlerRows packed_handlers();
HandlerRows packed_saturating_handlers();
HandlerRows compare_handlers();
HandlerRows convert_handlers();
HandlerRows division_handlers();
HandlerRows transcendental_handlers();
HandlerRows cross_lane_handlers();
HandlerRows lds_handlers();
HandlerRows lds_transpose_handlers();
HandlerRows convert_scaled_handlers();
HandlerRows sums_handlers();
HandlerRows lds_atomic_handlers();
HandlerRows buffer_handlers();
HandlerRows flat_handlers();
HandlerRows buffer_format_handlers();
/// RDNA's number of a pair of formats.
u32 unified_format(u32 data, u32 number);
HandlerRows fork_handlers();
HandlerRows trig_preop_handlers();
HandlerRows rdna_scalar_handlers();
HandlerRows rdna_scalar_float_handlers();
HandlerRows rdna_control_handlers();
HandlerRows rdna_vector_handlers();
HandlerRows rdna_cross_lane_handlers();
HandlerRows rdna_memory_handlers();
HandlerRows rdna_block_handlers();

/// RDNA has many of CDNA's operations under another name.
struct RenamedOp {
  Op name, plain;
};
std::span<const RenamedOp> rdna_names();
/// The operation whose handler serves `op`.
Op plain_name(Op op);

}  // namespace ckemu
