// SPDX-License-Identifier: MIT
#include "checks/waits.h"

#include "core/fault.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

/// The halves of a register that a source or (slot 3) the destination of RDNA is.
u8 halves_of(const Inst& inst, const Operand& operand, u32 slot) {
  if (!operand.half) return 3;
  return (inst.op_sel >> slot & 1) != 0 ? 2 : 1;
}
/// The halves of its destination that an operation writes: RDNA's d16 loads keep the other one.
u8 written_halves(const Inst& inst, bool memory, Family family) {
  if (!memory) return halves_of(inst, inst.dst[0], 3);
  const char* name = mnemonic(inst.op);
  if (!is_rdna(family) || std::strstr(name, "d16") == nullptr || std::strstr(name, "format") != nullptr) return 3;
  return std::strstr(name, "d16_hi") != nullptr ? 2 : 1;
}

/// Which registers of a block of 32 the operation moves: of gfx12's block loads and stores those that m0 picks.
u32 moved(const Wave& w, Op op) {
  const bool block = op == Op::global_load_block || op == Op::global_store_block || op == Op::scratch_load_block ||
                     op == Op::scratch_store_block;
  return block ? w.s[kM0] : ~u32{0};
}

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

}  // namespace

void Waits::check(Wave& w, const Code& c, const Pending& pending, const Use& use) const {
  if (pending.number == 0) return;
  Text<32> name;
  name_register(w, use.scalar, use.index, name);
  Text<768> load;
  describe_code(*w.program, *pending.code, load);
  raise(w, FaultKind::Instruction, "missing wait: %s %s %s, but no %s covers the load at %s", mnemonic(c.inst->op),
        use.verb, name.c_str(), InFlight::name_of(pending.counter, w.program->family()), load.c_str());
}

/// Visits what is known of `dwords` registers, `halves` of each: bit 0 the lower ones, bit 1 the upper ones.
/// Of 32 registers those whose bit of `picked` is set.
template <class Visit>
void Waits::each_pending(bool scalar, u32 first, u32 dwords, u8 halves, u32 picked, Visit visit) {
  for (u32 n = first; n < first + (dwords > 1 ? dwords : 1); ++n) {
    if (dwords == 32 && (picked >> (n - first) & 1) == 0) continue;
    if (scalar) {
      visit(scalar_[n], n);
      continue;
    }
    if ((halves & 1) != 0) visit(row_[2 * n], n);
    if ((halves & 2) != 0) visit(row_[2 * n + 1], n);
  }
}

void Waits::check_reads(Wave& w, const Code& c) {
  const auto read = [&](bool scalar, u32 first, u32 dwords, u8 halves) {
    each_pending(scalar, first, dwords, halves, moved(w, c.inst->op),
                 [&](const Pending& pending, u32 n) { check(w, c, pending, {"reads", n, scalar}); });
  };
  for (u32 slot = 0; slot < 6; ++slot) {
    const Source& source = c.src[slot];
    if (source.kind != Kind::Sgpr && source.kind != Kind::Vgpr) continue;
    read(source.kind == Kind::Sgpr, source.index, source.dwords, halves_of(*c.inst, c.inst->src[slot], slot));
  }
  if (reads_vcc(c.inst->op)) read(true, kVcc, 2, 3);
}

void Waits::check_writes(Wave& w, const Code& c) {
  const Counts counts = InFlight::counts_of(*c.inst, w.program->family());
  const auto write = [&](bool scalar, u32 first, u32 dwords, u8 halves) {
    each_pending(scalar, first, dwords, halves, moved(w, c.inst->op), [&](const Pending& pending, u32 n) {
      // Of two loads that finish in order the second may write the same register.
      const bool same = counts.counters == 1u << pending.counter && counts.ordered && pending.ordered;
      if (!same) check(w, c, pending, {"overwrites", n, scalar});
    });
  };
  if (c.dst_kind == Kind::Sgpr || c.dst_kind == Kind::Vgpr) {
    write(c.dst_kind == Kind::Sgpr, c.dst, c.dst_dwords,
          written_halves(*c.inst, counts.counters != 0, w.program->family()));
  }
  const Operand& second = c.inst->dst[1];
  if (second.kind != Kind::None) write(second.kind == Kind::Sgpr, c.dst2, second.dwords, 3);
}

void Waits::start(const Wave& w, const Code& c, const Counts& counts) {
  const u64 number = under_way_.start(c, counts, [this](const Operation& operation) { finish(operation); });
  if (c.dst_kind == Kind::None || c.inst->lds) return;
  const Pending pending{number, &c, InFlight::reported(counts.counters), counts.ordered};
  each_pending(c.dst_kind == Kind::Sgpr, c.dst, c.dst_dwords, written_halves(*c.inst, true, w.program->family()),
               moved(w, c.inst->op), [&](Pending& place, u32 n) {
                 place = pending;
                 pending_.add(c.dst_kind == Kind::Sgpr, n);
               });
}

bool Waits::awaited(bool scalar, u32 index) const {
  return scalar ? scalar_[index].number != 0 : row_[2 * index].number != 0 || row_[2 * index + 1].number != 0;
}

void Waits::finish(const Operation& operation) {
  const Code& c = *operation.code;
  if (c.dst_kind == Kind::None || c.inst->lds) return;
  const bool scalar = c.dst_kind == Kind::Sgpr;
  each_pending(scalar, c.dst, c.dst_dwords, 3, ~u32{0}, [&](Pending& place, u32 n) {
    if (place.number == operation.number) place = {};
    if (!awaited(scalar, n)) pending_.remove(scalar, n);
  });
}

void Waits::before(Wave& w, const Stretch& one) {
  const Code& c = *one.first;
  if (concern(one.registers)) {
    check_reads(w, c);
    check_writes(w, c);
  }
  if (one.counting.waits)
    under_way_.wait_for(one.counting.limits, [this](const Operation& operation) { finish(operation); });
  if (one.counting.counts.counters != 0) start(w, c, one.counting.counts);
}

}  // namespace ckemu
