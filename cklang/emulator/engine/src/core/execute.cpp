// SPDX-License-Identifier: MIT
#include "core/execute.h"

#include <immintrin.h>

#include "checks/checks.h"
#include "core/fault.h"
#include "core/program.h"
#include "ops/half_flush.h"
#include "translate/translate.h"

namespace ckemu {

namespace {

// MODE[3:0] rounding and MODE[7:4] denormals, each first for f32 and then for f64 and f16.
constexpr u32 kFloatBits = 0xff, kUsualFloat = 0xf0;
constexpr u32 kKeepHalves = 0xc0;
constexpr u32 kUsualMxcsr = 0x1f80;

/// SSE control bits for two bits of rounding and two of denormals.
u32 mxcsr_of(u32 rounding, u32 denormals) {
  constexpr u32 direction[4] = {0, 2, 1, 3};  // nearest, up, down, toward zero
  const u32 flush_inputs = (denormals & 1) == 0 ? 0x0040 : 0;
  const u32 flush_results = (denormals & 2) == 0 ? 0x8000 : 0;
  return kUsualMxcsr | direction[rounding] << 13 | flush_inputs | flush_results;
}

/// Whether an operand of this type, or f16, follows MODE's fields for f64 and f16.
bool is_wide(Type type) { return type == Type::F64 || type == Type::F16; }

/// Results are rounded and flushed as the type of the destination asks, sources as theirs do. Matrix
/// products follow no mode.
void enter_float_mode(const Wave& w, const Inst& inst) {
  if (inst.matrix != nullptr) return _mm_setcsr(kUsualMxcsr);
  bool wide_source = false;
  for (const Operand& operand : inst.src) wide_source |= operand.type == Type::F64;
  const bool wide = is_wide(inst.dst[0].type);
  const u32 single = w.mode >> 4 & 3, twice = w.mode >> 6 & 3;
  const u32 denormals = (wide_source ? twice : single) & 1;
  _mm_setcsr(
      mxcsr_of(w.mode >> (wide ? 2 : 0) & 3, denormals | ((inst.dst[0].type == Type::F64 ? twice : single) & 2)));
}

/// Whether s_setvskip leaves out the instruction.
bool is_vector(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK:
    case Encoding::SOPP:
    case Encoding::SMEM: return false;
    default: return true;
  }
}

/// Runs one instruction with its vector registers numbered relative to m0.
void run_indexed(Wave& w, const Code& c) {
  if (c.dst_kind != Kind::Vgpr || c.inst->matrix != nullptr) return c.fn(w, c);
  if ((w.mode & kKeepHalves) != kKeepHalves && computes_halves(*c.inst)) {
    raise(w, FaultKind::Instruction, "indexed registers of f16 with flushed denormals are not emulated");
  }
  Code shifted = c;
  const u32 index = w.s[kM0] & 0xff, operands = w.s[kM0] >> 12 & 15;
  if (operands != 0 && c.link != nullptr) {
    raise(w, FaultKind::Instruction, "indexed registers with modifiers are not emulated");
  }
  const auto move = [&](u16& number, u32 dwords) {
    if (number + index + dwords > w.rows) {
      raise(w, FaultKind::Instruction, "register index %u is beyond the %u registers of the wave", number + index,
            w.rows);
    }
    number = static_cast<u16>(number + index);
  };
  for (u32 slot = 0; slot < 3; ++slot) {
    if ((operands >> slot & 1) != 0 && c.src[slot].kind == Kind::Vgpr)
      move(shifted.src[slot].index, c.src[slot].dwords);
  }
  if ((operands & 8) != 0) move(shifted.dst, c.dst_dwords);
  c.fn(w, shifted);
}

template <bool careful, bool checked>
void run_loop(Wave& w) {
  u64* executed = w.counters->executed;
  do {
    const Code& c = *w.next;
    w.next = &c + 1;
    w.current = &c;
    ++executed[c.slot];
    if constexpr (careful) {
      if (c.inst != nullptr) enter_float_mode(w, *c.inst);
      if ((w.mode & kModeSkip) != 0 && c.inst != nullptr && is_vector(*c.inst)) continue;
    }
    if (checked && c.inst != nullptr) {
      w.checks->before(w, c);
      if (w.checks->put_off(w, c)) continue;
    }
    if constexpr (careful) {
      if ((w.mode & kModeIndexed) != 0 && c.inst != nullptr) {
        run_indexed(w, c);
        continue;
      }
      if ((w.mode & kKeepHalves) != kKeepHalves && c.inst != nullptr && computes_halves(*c.inst)) {
        run_flushing(w, c, w.mode >> 6 & 3);
        continue;
      }
    }
    c.fn(w, c);
  } while (--w.budget > 0);
}

/// Whether the wave is where control arrives from elsewhere, and not just where its turn ended.
bool arrives(const Wave& w) {
  const Code* last = w.current;
  return last == nullptr || last + 1 != w.next || last->inst == nullptr || last->inst->enc == Encoding::SOPP;
}

/// Runs what is translated, and interprets the rest.
template <bool checked>
void run_translating(Wave& w) {
  u64* executed = w.counters->executed;
  Translation& translation = w.program->translation(checked, w.counters->lanes_at_hand);
  const Translate how = w.counters->eager ? Translate::All : Translate::Hot;
  const auto piece_at = [&](const Code& code) -> const void* {
    if (checked && w.checks->covers(code)) return nullptr;
    return translation.at(code);
  };
  if (arrives(w)) translation.reach(*w.next, how);
  for (;;) {
    if (const void* piece = piece_at(*w.next)) {
      translation.run(w, piece);
      if (w.state == WaveState::Ready) w.current = w.next;  // where reports say that it is
      if (w.budget <= 0) return;
      translation.reach(*w.next, how);
      if (piece_at(*w.next) != nullptr) continue;
    }
    const Code& one = *w.next;
    w.next = &one + 1;
    w.current = &one;
    ++executed[one.slot];
    if (checked && one.inst != nullptr) w.checks->before(w, one);
    one.fn(w, one);
    if (--w.budget <= 0) return;
    if (w.next != &one + 1) translation.reach(*w.next, how);
  }
}

/// Whether nothing keeps the wave from translated code but where it is.
bool translates(const Wave& w) {
  return w.counters->segments != nullptr && (w.checks == nullptr || !w.checks->by_instruction());
}

}  // namespace

i64 run_wave(Wave& w, i64 budget) {
  w.yielded = false;
  i64 left = budget;
  while (w.state == WaveState::Ready && !w.yielded && left > 0) {
    w.budget = left;
    const bool usual = (w.mode & kFloatBits) == kUsualFloat && (w.mode & (kModeIndexed | kModeSkip)) == 0;
    if (usual && translates(w)) {
      w.checks != nullptr ? run_translating<true>(w) : run_translating<false>(w);
      if (w.budget < -1) return budget - w.budget;  // a piece goes on to its end
    } else if (usual) {
      w.checks != nullptr ? run_loop<false, true>(w) : run_loop<false, false>(w);
    } else {
      w.checks != nullptr ? run_loop<true, true>(w) : run_loop<true, false>(w);
      _mm_setcsr(kUsualMxcsr);
    }
    if (w.budget == 0) return budget;  // the slice is over; stop() leaves -1
    left -= 1;
  }
  return budget - left;
}

}  // namespace ckemu
