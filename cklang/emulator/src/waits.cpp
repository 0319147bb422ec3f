// SPDX-License-Identifier: MIT
#include "waits.h"

#include "decode.h"
#include "disasm.h"
#include "fault.h"
#include "lines.h"

namespace ckemu {

namespace {

bool asked = false;

constexpr u32 kMostVectorMemory = 63;  // the counters go no further; issuing waits

/// The counters of an operation: which it counts in, and whether it finishes in order there.
struct Counts {
  bool vector_memory = false, local = false, ordered = true;
  bool any() const { return vector_memory || local; }
};
Counts counts_of(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::DS: return {.local = true};
    case Encoding::SMEM: return {.local = true, .ordered = false};
    case Encoding::FLAT: return {.vector_memory = true, .local = true, .ordered = false};
    case Encoding::MUBUF:
    case Encoding::MTBUF:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH: return {.vector_memory = (inst.row->flags & kFlagNocache) == 0};
    default: break;
  }
  if (inst.op == Op::s_sendmsg) return {.local = true, .ordered = false};
  return {};
}

u32 wanted_vector_memory(u32 simm) { return (simm & 15) | (simm >> 14 & 3) << 4; }
u32 wanted_local(u32 simm) { return simm >> 8 & 15; }

bool reads_vcc(Op op) { return op == Op::s_cbranch_vccz || op == Op::s_cbranch_vccnz; }

void name_register(const Wave& w, bool scalar, u32 index, Text<32>& out) {
  const u32 first = w.program->kernel().accum_offset;
  if (scalar) {
    out.add(index == kVcc ? "vcc_lo" : index == kVcc + 1 ? "vcc_hi" : "s%u", index);
  } else if (first != 0 && index >= first) {
    out.add("a%u", index - first);
  } else {
    out.add("v%u", index);
  }
}

/// pc, instruction and source line.
void name_load(const Program& program, const Code& code, Text<768>& out) {
  AsmText text;
  disasm(program.family(), *code.inst, text);
  out.add("pc 0x%llx: %s", static_cast<unsigned long long>(code.pc - program.kernel().entry), text.c_str());
  SourceLine line;
  if (find_line(program.object(), code.pc, line)) out.add(" (%s:%u)", line.file.c_str(), line.line);
}

}  // namespace

bool waits_checked() { return __atomic_load_n(&asked, __ATOMIC_RELAXED); }
void check_waits(bool on) { __atomic_store_n(&asked, on, __ATOMIC_RELAXED); }

void Waits::check(Wave& w, const Code& c, const Pending& pending, bool scalar, u32 index, const char* verb) const {
  if (pending.number == 0) return;
  Text<32> name;
  name_register(w, scalar, index, name);
  Text<768> load;
  name_load(*w.program, *pending.code, load);
  raise(w, FaultKind::Instruction, "missing wait: %s %s %s, but no s_waitcnt %s covers the load at %s",
        mnemonic(c.inst->op), verb, name.c_str(), pending.vector_memory ? "vmcnt" : "lgkmcnt", load.c_str());
}

void Waits::check_reads(Wave& w, const Code& c) const {
  for (const Source& source : c.src) {
    const bool scalar = source.kind == Kind::Sgpr;
    if (!scalar && source.kind != Kind::Vgpr) continue;
    const u32 dwords = source.dwords > 1 ? source.dwords : 1;
    for (u32 n = source.index; n < source.index + dwords; ++n) {
      check(w, c, scalar ? scalar_[n] : row_[n], scalar, n, "reads");
    }
  }
  if (!reads_vcc(c.inst->op)) return;
  for (u32 n = kVcc; n < kVcc + 2u; ++n) check(w, c, scalar_[n], true, n, "reads");
}

void Waits::check_writes(Wave& w, const Code& c) const {
  const Counts counts = counts_of(*c.inst);
  const bool scalar = c.dst_kind == Kind::Sgpr;
  if (scalar || c.dst_kind == Kind::Vgpr) {
    const u32 dwords = c.dst_dwords > 1 ? c.dst_dwords : 1;
    for (u32 n = c.dst; n < c.dst + dwords; ++n) {
      const Pending& pending = scalar ? scalar_[n] : row_[n];
      // Of two loads that finish in order the second may write the same register.
      const bool same = counts.any() && counts.ordered && pending.ordered && counts.vector_memory == pending.vector_memory;
      if (!same) check(w, c, pending, scalar, n, "overwrites");
    }
  }
  const Operand& second = c.inst->dst[1];
  if (second.kind != Kind::Sgpr) return;
  for (u32 n = c.dst2; n < c.dst2 + u32{second.dwords}; ++n) check(w, c, scalar_[n], true, n, "overwrites");
}

void Waits::start(const Code& c, bool vector_memory, bool local, bool ordered) {
  const Operation operation{&c, ++issued_, ordered};
  if (vector_memory) {
    if (vector_memory_.size() >= kMostVectorMemory) wait(vector_memory_, kMostVectorMemory - 1);
    vector_memory_.push_back(operation);
  }
  if (local) local_.push_back(operation);
  if (c.dst_kind == Kind::None || c.inst->lds) return;
  const u32 dwords = c.dst_dwords > 1 ? c.dst_dwords : 1;
  for (u32 n = c.dst; n < c.dst + dwords; ++n) {
    (c.dst_kind == Kind::Sgpr ? scalar_[n] : row_[n]) = {operation.number, &c, vector_memory, ordered};
  }
}

void Waits::finish(const Operation& operation) {
  for (const Queue* queue : {&vector_memory_, &local_}) {  // a flat operation is in both
    for (const Operation& other : *queue) {
      if (other.number == operation.number) return;
    }
  }
  const Code& c = *operation.code;
  if (c.dst_kind == Kind::None || c.inst->lds) return;
  const u32 dwords = c.dst_dwords > 1 ? c.dst_dwords : 1;
  for (u32 n = c.dst; n < c.dst + dwords; ++n) {
    Pending& pending = c.dst_kind == Kind::Sgpr ? scalar_[n] : row_[n];
    if (pending.number == operation.number) pending = {};
  }
}

void Waits::wait(Queue& queue, u32 left) {
  bool ordered = true;
  for (const Operation& operation : queue) ordered &= operation.ordered;
  if (left != 0 && !ordered) return;
  while (queue.size() > left) {
    const Operation operation = queue.front();
    queue.erase(queue.begin());
    finish(operation);
  }
}

void Waits::before(Wave& w, const Code& c) {
  if (is_rdna(w.program->family())) raise(w, FaultKind::Instruction, "waits are checked on gfx90a, gfx942 and gfx950 only");
  check_reads(w, c);
  check_writes(w, c);
  if (c.inst->op == Op::s_waitcnt) {
    wait(vector_memory_, wanted_vector_memory(static_cast<u32>(c.offset)));
    wait(local_, wanted_local(static_cast<u32>(c.offset)));
  }
  const Counts counts = counts_of(*c.inst);
  if (counts.any()) start(c, counts.vector_memory, counts.local, counts.ordered);
}

}  // namespace ckemu
