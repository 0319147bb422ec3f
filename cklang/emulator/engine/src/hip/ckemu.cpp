// SPDX-License-Identifier: MIT
#include "hip/ckemu.h"

#include <map>
#include <string>

#include "checks/checks.h"
#include "core/environment.h"
#include "debug/channel.h"
#include "decode/decode.h"
#include "hip/hip_types.h"
#include "hip/module.h"
#include "hip/queue.h"
#include "ops/matrix.h"
#include "core/cpu.h"
#include "core/progress.h"
#include "translate/translate.h"

namespace ckemu {

namespace {

/// Which counter an instruction belongs to.
uint64_t ckemu_stats::* counter_of(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPK:
    case Encoding::SOPC:
    case Encoding::SOPP: return &ckemu_stats::salu;
    case Encoding::SMEM: return &ckemu_stats::scalar_memory;
    case Encoding::DS: return &ckemu_stats::lds;
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
    case Encoding::MUBUF:
    case Encoding::MTBUF: return &ckemu_stats::memory;
    default: return inst.matrix != nullptr ? &ckemu_stats::mfma : &ckemu_stats::valu;
  }
}

/// Calls `body(inst, count)` for each instruction that a launch executed.
template <class Body>
void each_executed(const PastLaunch& launch, Body body) {
  for (size_t slot = 0; slot < launch.result.executed.size(); ++slot) {
    const u64 count = launch.result.executed[slot];
    const Code* code = count != 0 ? launch.program->decoded(slot) : nullptr;
    if (code != nullptr && code->inst != nullptr) body(*code->inst, count);
  }
}

void add_stats(const PastLaunch& launch, ::ckemu_stats& stats) {
  each_executed(launch, [&](const Inst& inst, u64 count) {
    stats.instructions += count;
    stats.*counter_of(inst) += count;
    if (inst.matrix != nullptr) stats.mfma_flops += count * matrix_flops(*inst.matrix);
  });
  stats.workgroups += launch.workgroups;
  stats.waves += launch.waves;
  stats.bytes_loaded += launch.result.bytes_loaded;
  stats.bytes_stored += launch.result.bytes_stored;
  stats.nanoseconds += launch.result.nanoseconds;
}

}  // namespace

CKEMU_EXPORT const char* ckemu_last_error() { return last_message().c_str(); }

CKEMU_EXPORT const char* ckemu_fault(int number) {
  const Device* gpu = device(number);
  return gpu != nullptr ? gpu->fault.c_str() : "";
}

CKEMU_EXPORT int ckemu_get_stats(int number, unsigned launches, ::ckemu_stats* stats) {
  *stats = ::ckemu_stats{};
  Device* gpu = device(number);
  if (gpu == nullptr) return -1;
  const Guard guard(gpu->lock);
  if (launches == 0 || launches > gpu->past.size()) return -1;
  for (unsigned back = 0; back < launches; ++back) add_stats(gpu->past[back], *stats);
  return 0;
}

CKEMU_EXPORT void ckemu_promise_to_wait(int promised) { promise_to_wait(promised != 0); }

CKEMU_EXPORT void ckemu_workgroups(uint64_t* ended, uint64_t* total) {
  *ended = __atomic_load_n(&g_groups_ended, __ATOMIC_RELAXED);
  *total = __atomic_load_n(&g_groups, __ATOMIC_RELAXED);
}

CKEMU_EXPORT int ckemu_let_launches_wait(int wait) {
  const bool before = launches_wait();
  let_launches_wait(wait != 0);
  return before;
}

CKEMU_EXPORT int ckemu_fidelity(int number, void (*emit)(void*, const char*, uint64_t), void* context) {
  std::map<std::string, u64> counts;
  Device* gpu = device(number);
  if (gpu == nullptr) return -1;
  {
    const Guard guard(gpu->lock);
    if (gpu->past.empty()) return -1;
    each_executed(gpu->past.front(), [&](const Inst& inst, u64 count) {
      counts[mnemonic(inst.op)] += count;
      if (inst.op_y != Op::none) counts[mnemonic(inst.op_y)] += count;
    });
  }
  for (const auto& [name, count] : counts) emit(context, name.c_str(), count);
  return 0;
}

CKEMU_EXPORT int ckemu_set_vectors(int bits) { return set_vector_bits(static_cast<u32>(bits)) ? 0 : -1; }
CKEMU_EXPORT void ckemu_set_translation(int what) { set_translation(static_cast<Translate>(what)); }
CKEMU_EXPORT void ckemu_set_numerics(int numerics) { set_numerics(static_cast<Numerics>(numerics)); }

CKEMU_EXPORT void ckemu_sanitize(unsigned checks) { ask_checks(checks); }

CKEMU_EXPORT void ckemu_record(unsigned workgroups, int alone) { record_launches(workgroups, alone != 0); }

CKEMU_EXPORT void* ckemu_records(const void** bytes, uint64_t* size) {
  auto* const records = new std::vector<u8>(packed_records());
  *bytes = records->data();
  *size = records->size();
  return records;
}

CKEMU_EXPORT void ckemu_free_records(void* records) { delete static_cast<std::vector<u8>*>(records); }

CKEMU_EXPORT void ckemu_set_schedule(uint64_t number) { set_schedule(number); }

CKEMU_EXPORT void ckemu_embed() { embed(); }

CKEMU_EXPORT void ckemu_quiet() { set_after_fault(AfterFault::Quiet); }

CKEMU_EXPORT void ckemu_set_timeout(uint64_t milliseconds) { set_timeout(milliseconds); }

CKEMU_EXPORT void ckemu_set_resident(uint64_t workgroups) { set_resident_limit(workgroups); }

CKEMU_EXPORT int ckemu_last_numerics(int number) {
  Device* gpu = device(number);
  if (gpu == nullptr) return -1;
  const Guard guard(gpu->lock);
  return gpu->past.empty() ? -1 : static_cast<int>(gpu->past.front().result.numerics);
}

CKEMU_EXPORT void ckemu_debug_attach(void (*launched)(void*), void* context) { attach_debugger(launched, context); }

CKEMU_EXPORT int ckemu_debug_request(const void* bytes, uint64_t size, void (*take)(void*, const void*, uint64_t),
                                     void* context) {
  std::vector<u8> answer;
  if (!debug_request(static_cast<const u8*>(bytes), size, answer)) return -1;
  take(context, answer.data(), answer.size());
  return 0;
}

CKEMU_EXPORT int ckemu_get_kernel(void* handle, ::ckemu_kernel* facts) {
  const Function* function = function_of(handle);
  if (function == nullptr) return -1;
  const Kernel& kernel = *function->kernel;
  *facts = {kernel.sgprs,     kernel.vgprs,         kernel.agprs,         kernel.sgpr_spills, kernel.vgpr_spills,
            kernel.lds_bytes, kernel.private_bytes, kernel.kernarg_bytes, kernel.max_threads};
  return 0;
}

}  // namespace ckemu
