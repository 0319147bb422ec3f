// SPDX-License-Identifier: MIT
//
// Why some operations are not emulated, and never will be in a compute kernel's engine.
#include "core/program.h"

namespace ckemu {

namespace {

constexpr const char* kGlobalShare = "there is no global data share, nor its wave sync";
constexpr const char* kTrapHandler = "only a trap handler may use it, and there is none";
constexpr const char* kGraphics = "it belongs to graphics";
constexpr const char* kNamedBarrier = "what named barriers do is not in the manual of these GPUs";
constexpr const char* kDynamicRegisters = "a kernel of HIP has its registers from the start, and cannot ask for more";
constexpr const char* kDebugger = "it only marks code for debuggers";
constexpr const char* kHost = "it stops the wave until a debugger or the driver goes on, and there is none";

struct Refusal {
  Op op;
  const char* reason;
};
constexpr Refusal kRefusals[] = {
    {Op::ds_gws_init, kGlobalShare},
    {Op::ds_gws_barrier, kGlobalShare},
    {Op::ds_gws_sema_v, kGlobalShare},
    {Op::ds_gws_sema_br, kGlobalShare},
    {Op::ds_gws_sema_p, kGlobalShare},
    {Op::ds_gws_sema_release_all, kGlobalShare},
    {Op::s_rfe_b64, kTrapHandler},
    {Op::s_rfe_restore_b64, kTrapHandler},
    {Op::s_endpgm_saved, kTrapHandler},
    {Op::s_endpgm_ordered_ps_done, kGraphics},
    {Op::v_screen_partition_4se_b32, kGraphics},
    {Op::ds_add_gs_reg_rtn, kGraphics},
    {Op::ds_sub_gs_reg_rtn, kGraphics},
    {Op::ds_ordered_count, kGlobalShare},
    {Op::global_atomic_ordered_add_b64, kGraphics},
    {Op::ds_bvh_stack_rtn_b32, kGraphics},
    {Op::ds_bvh_stack_push4_pop1_rtn_b32, kGraphics},
    {Op::ds_bvh_stack_push8_pop1_rtn_b32, kGraphics},
    {Op::ds_bvh_stack_push8_pop2_rtn_b64, kGraphics},
    {Op::s_barrier_init, kNamedBarrier},
    {Op::s_barrier_join, kNamedBarrier},
    {Op::s_barrier_leave, kNamedBarrier},
    {Op::s_alloc_vgpr, kDynamicRegisters},
    {Op::s_code_end, kDebugger},
    {Op::s_sendmsghalt, kHost},
    {Op::s_sethalt, kHost},
    {Op::s_setkill, kHost},
};

}  // namespace

const char* refusal_reason(Op op) {
  for (const Refusal& refusal : kRefusals) {
    if (refusal.op == op) return refusal.reason;
  }
  return nullptr;
}

}  // namespace ckemu
