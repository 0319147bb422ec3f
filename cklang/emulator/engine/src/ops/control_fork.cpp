// SPDX-License-Identifier: MIT
//
// Divergence by forks: the larger part of the lanes waits on a stack of exec masks and addresses in the
// SGPRs, from number 4 * MODE.CSP on, while the smaller one runs up to the join. And the branches of a
// debugger, which there is none of.
#include "ops/control.h"
#include "ops/handlers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

constexpr u32 kStackShift = 29;  // MODE[31:29]: the depth of the stack

u32 depth(const Wave& w) { return w.mode >> kStackShift; }
void set_depth(Wave& w, u32 value) { w.mode = (w.mode & ~(7u << kStackShift)) | (value & 7) << kStackShift; }

void wait_with(Wave& w, u64 address, u64 lanes) {
  const u32 at = 4 * depth(w);
  w.set_sgpr64(at, lanes);
  w.set_sgpr64(at + 2, address);
  set_depth(w, depth(w) + 1);
}

/// Lanes in `mask` go to `target`, the others go on.
void fork(Wave& w, const Code& c, u64 mask, u64 target) {
  const u64 exec = w.exec(), pass = mask & exec, fail = ~mask & exec;
  if (pass == exec) return jump_to(w, target);
  if (fail == exec) return;
  if (__builtin_popcountll(fail) < __builtin_popcountll(pass)) {
    w.set_exec(fail);
    return wait_with(w, target, pass);
  }
  w.set_exec(pass);
  wait_with(w, return_address(w, c), fail);
  jump_to(w, target);
}
void fork_to_register(Wave& w, const Code& c) { fork(w, c, scalar64(w, c.src[0]), scalar64(w, c.src[1])); }
void fork_to_label(Wave& w, const Code& c) {
  fork(w, c, scalar64(w, c.src[0]), return_address(w, c) + static_cast<u64>(i64{4} * c.offset));
}

/// Back at the depth before the fork all lanes have been here; else the part that waits comes.
void join(Wave& w, const Code& c) {
  if (depth(w) == (scalar32(w, c.src[0]) & 7)) return;
  set_depth(w, depth(w) - 1);
  const u32 at = 4 * depth(w);
  w.set_exec(w.sgpr64(at));
  jump_to(w, w.sgpr64(at + 2));
}

void not_taken(Wave&, const Code&) {}  // no debugger has set a condition

constexpr HandlerRow kControlForkRows[] = {
    {Op::s_cbranch_g_fork, fork_to_register},
    {Op::s_cbranch_i_fork, fork_to_label},
    {Op::s_cbranch_join, join},
    {Op::s_cbranch_cdbgsys, not_taken},
    {Op::s_cbranch_cdbguser, not_taken},
    {Op::s_cbranch_cdbgsys_and_user, not_taken},
    {Op::s_cbranch_cdbgsys_or_user, not_taken},
};

}  // namespace

HandlerRows fork_handlers() { return kControlForkRows; }

}  // namespace ckemu
