// SPDX-License-Identifier: MIT
#include "core/late.h"

#include <algorithm>
#include <cstring>

#include "decode/decode.h"

namespace ckemu {

namespace {

bool is_memory(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::DS:
    case Encoding::SMEM:
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
    case Encoding::MUBUF:
    case Encoding::MTBUF: return true;
    default: return false;
  }
}

/// Whether it reads memory into registers and changes nothing else.
bool only_loads(const Code& c) {
  const char* name = mnemonic(c.inst->op);
  const bool load = std::strstr(name, "load") != nullptr || std::strstr(name, "ds_read") != nullptr;
  return load && c.dst_kind == Kind::Vgpr && !c.inst->lds && std::strstr(name, "lds") == nullptr;
}

bool is_barrier(Op op) {
  return op == Op::s_barrier || op == Op::s_barrier_signal || op == Op::s_barrier_signal_isfirst;
}

u32 rows_of(u32 dwords) { return std::max<u32>(dwords, 1); }

/// Whether a register is one that the operation writes.
bool is_result(const Code& c, Kind kind, u32 index) {
  return c.dst_kind == kind && index >= c.dst && index < c.dst + rows_of(c.dst_dwords);
}

}  // namespace

Late::Lane Late::queue_of(const Inst& inst) {
  if (inst.enc == Encoding::SMEM) return kScalarMemory;
  return inst.enc == Encoding::DS ? kLocalMemory : kVectorMemory;
}

Late::Operation Late::snapshot(const Wave& w, const Code& c, u64 number) {
  Operation operation{&c, number, w.exec(), w.s[kM0], only_loads(c), false, {}, {}};
  for (const Source& source : c.src) {
    if (source.kind != Kind::Vgpr && source.kind != Kind::Sgpr) continue;
    for (u32 index = source.index; index < source.index + rows_of(source.dwords); ++index) {
      const u32* begin = source.kind == Kind::Vgpr ? w.v[index] : w.s + index;
      const u32 count = source.kind == Kind::Vgpr ? u32{kLanes} : 1;
      operation.registers.push_back({source.kind, index, std::vector<u32>(begin, begin + count)});
    }
  }
  return operation;
}

/// Puts back the registers that the operation reads, and keeps what is there now.
void Late::enter(Wave& w, Operation& operation) {
  for (Register& each : operation.registers) swap(w, each);
  swap_masks(w, operation);
}

/// The reverse, in reverse order: a register may be read twice. Of results what is there now stays.
void Late::leave(Wave& w, Operation& operation, bool keep_results) {
  for (size_t n = operation.registers.size(); n-- > 0;) {
    Register& each = operation.registers[n];
    if (!keep_results || !is_result(*operation.code, each.kind, each.index)) swap(w, each);
  }
  swap_masks(w, operation);
}

void Late::swap_masks(Wave& w, Operation& operation) {
  const u64 exec = w.exec();
  w.set_exec(operation.exec);
  operation.exec = exec;
  std::swap(w.s[kM0], operation.m0);
}

void Late::swap(Wave& w, Register& each) {
  if (each.kind == Kind::Sgpr) return std::swap(w.s[each.index], each.value[0]);
  std::swap_ranges(each.value.begin(), each.value.end(), w.v[each.index]);
}

void Late::execute(Wave& w, Operation& operation) {
  if (operation.has_read) return deliver(w, operation);
  const Code* current = w.current;
  w.current = operation.code;  // for the report of a fault
  enter(w, operation);
  operation.code->fn(w, *operation.code);
  leave(w, operation, true);
  w.current = current;
}

/// Reads memory twice into registers of other contents: the bits that agree are the result.
void Late::read(Wave& w, Operation& operation) {
  const Code& c = *operation.code;
  const u32 count = rows_of(c.dst_dwords) * kLanes;
  u32* row = w.v[c.dst];
  const std::vector<u32> before(row, row + count);
  const auto once = [&](u32 filling) {
    enter(w, operation);
    const std::vector<u32> sources(row, row + count);
    for (u32 n = 0; n < count; ++n) row[n] = filling;
    // Sources among the results are read by the handler, so they stay; all of their bits count as results.
    for (const Register& each : operation.registers) {
      if (!is_result(c, each.kind, each.index)) continue;
      std::copy_n(sources.data() + (each.index - c.dst) * kLanes, kLanes, w.v[each.index]);
    }
    c.fn(w, c);
    const std::vector<u32> result(row, row + count);
    std::copy(sources.begin(), sources.end(), row);
    leave(w, operation, false);
    return result;
  };
  const Code* current = w.current;
  w.current = operation.code;
  operation.result.bits = once(0);
  operation.result.mask = once(~0u);
  for (u32 n = 0; n < count; ++n) operation.result.mask[n] = ~(operation.result.bits[n] ^ operation.result.mask[n]);
  std::copy(before.begin(), before.end(), row);
  operation.has_read = true;
  w.current = current;
}

void Late::deliver(Wave& w, const Operation& operation) {
  u32* row = w.v[operation.code->dst];
  const auto& [bits, mask] = operation.result;
  for (size_t n = 0; n < bits.size(); ++n) row[n] = (row[n] & ~mask[n]) | (bits[n] & mask[n]);
}

void Late::empty(Wave& w, Queue& queue) {
  for (; !queue.empty(); queue.pop_front()) execute(w, queue.front());
}

/// Executes an operation that has been put off, and what comes before it.
void Late::finish(Wave& w, u64 number) {
  for (Queue& queue : queues_) {
    const bool here =
        std::any_of(queue.begin(), queue.end(), [&](const Operation& each) { return each.number == number; });
    for (bool done = !here; !done; queue.pop_front()) {
      Operation& first = queue.front();
      done = first.number == number;
      if (first.code->inst->enc == Encoding::FLAT) empty(w, queues_[kLocalMemory]);
      execute(w, first);
    }
  }
}

/// Lets loads read memory, as far as they need not wait for a store.
void Late::read_all(Wave& w) {
  for (Queue& queue : queues_) {
    for (Operation& operation : queue) {
      if (!operation.load) break;
      if (!operation.has_read) read(w, operation);
    }
  }
}

bool Late::before(Wave& w, const Code& c) {
  const InFlight::Counting counting = InFlight::counting_of(c, w.program->family());
  const auto finished = [&](const InFlight::Operation& operation) { finish(w, operation.number); };
  under_way_.wait_for(counting.limits, finished);
  if (is_barrier(c.inst->op)) read_all(w);
  if (c.inst->op == Op::s_endpgm) {
    for (Queue& queue : queues_) empty(w, queue);
  }
  if (counting.counts.counters == 0 || !is_memory(*c.inst)) return false;
  const u64 number = under_way_.start(c, counting.counts, finished);
  queues_[queue_of(*c.inst)].push_back(snapshot(w, c, number));
  if (!always_ && dice_.below(2) != 0) finish(w, number);
  return true;
}

}  // namespace ckemu
