// SPDX-License-Identifier: MIT
#include "ops/handlers.h"

#include "core/program.h"

namespace ckemu {

namespace {

constexpr size_t kOps = 1 << 16;

struct Table {
  Handler fn[kOps] = {};
  Table() {
    for (const HandlerRows rows : {scalar_handlers(),
                                   scalar_bit_handlers(),
                                   control_handlers(),
                                   scalar_memory_handlers(),
                                   f32_handlers(),
                                   integer_handlers(),
                                   carry_handlers(),
                                   half_handlers(),
                                   wide_handlers(),
                                   packed_handlers(),
                                   compare_handlers(),
                                   convert_handlers(),
                                   division_handlers(),
                                   transcendental_handlers(),
                                   cross_lane_handlers(),
                                   lds_handlers(),
                                   lds_transpose_handlers(),
                                   lds_atomic_handlers(),
                                   convert_scaled_handlers(),
                                   sums_handlers(),
                                   buffer_handlers(),
                                   flat_handlers(),
                                   buffer_format_handlers(),
                                   fork_handlers(),
                                   trig_preop_handlers(),
                                   rdna_scalar_handlers(),
                                   rdna_scalar_float_handlers(),
                                   rdna_control_handlers(),
                                   rdna_vector_handlers(),
                                   rdna_cross_lane_handlers(),
                                   rdna_memory_handlers(),
                                   rdna_block_handlers()}) {
      for (const HandlerRow& row : rows) fn[static_cast<u16>(row.op)] = row.fn;
    }
    for (const RenamedOp& row : rdna_names()) fn[static_cast<u16>(row.name)] = fn[static_cast<u16>(row.plain)];
  }
};

}  // namespace

Handler handler_of(Op op) {
  static const Table table;
  return table.fn[static_cast<u16>(op)];
}

}  // namespace ckemu
