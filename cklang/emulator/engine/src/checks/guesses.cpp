// SPDX-License-Identifier: MIT
#include "checks/guesses.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "checks/global_access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr u32 kNear = 48;  // instructions

/// A dword, if it can be told ahead of time.
struct Value {
  u32 bits = 0;
  bool known = false;
};
/// Two of them.
struct Wide {
  u64 bits = 0;
  bool known = false;
};

/// The registers of a lane as instructions ahead make them of what they are now: of those by which addresses are
/// computed.
class Ahead {
 public:
  Ahead(const Wave& w, u32 lane) : wave_(w), lane_(lane) {}

  /// What an instruction accesses.
  Wide address(const Code& c) const {
    const bool scalar = c.inst->enc == Encoding::SMEM;
    if (!scalar && !is_global(*c.inst)) return {};
    const bool own = !scalar && c.src[1].kind == Kind::None;
    const Wide base = wide(c.src[scalar || own ? 0 : 1]);
    const Value rest = own || (scalar && c.src[1].kind == Kind::None) ? Value{0, true} : dword(c.src[scalar ? 1 : 0]);
    return {base.bits + rest.bits + static_cast<u64>(i64{c.offset}), base.known && rest.known};
  }
  void pass(const Code& c) {
    Wide result;
    Value carry;
    if (c.inst->form == Form::Plain && c.inst->op_y == Op::none) compute(c, result, carry);
    for (u32 n = 0; n < std::max<u32>(1, c.dst_dwords); ++n) {
      set(c.dst_kind, c.dst + n, {static_cast<u32>(result.bits >> 32 * n), result.known && n < 2});
    }
    const Kind second = c.inst->dst[1].kind;
    for (u32 n = 0; n < wave_.lanes / 32 && second != Kind::None; ++n) {  // a mask has a bit of each lane
      set(second, c.dst2 + n, {carry.bits << lane_ % 32, carry.known && n == lane_ / 32});
    }
  }

 private:
  Value dword(const Source& source, u32 n = 0) const {
    const u32 index = source.index + n;
    switch (source.kind) {
      case Kind::Constant: return {source.row[n * kLanes], true};
      case Kind::Vgpr: return now(rows_, index, wave_.v[index][lane_]);
      case Kind::Sgpr: return now(scalars_, index, wave_.s[index]);
      case Kind::Special: return {static_cast<u32>(special_value(wave_, source.index)), true};
      default: return {};
    }
  }
  Wide wide(const Source& source) const {
    const Value low = dword(source), high = dword(source, 1);
    return {low.bits | u64{high.bits} << 32, low.known && high.known};
  }
  void compute(const Code& c, Wide& result, Value& carry) const {
    const Op op = plain_name(c.inst->op);
    const Value a = dword(c.src[0]), b = dword(c.src[1]);
    switch (op) {
      case Op::v_mov_b32: result = {a.bits, a.known}; return;
      case Op::v_and_b32: result = {a.bits & b.bits, a.known && b.known}; return;
      case Op::v_add_u32: result = {a.bits + b.bits, a.known && b.known}; return;
      case Op::v_add_co_u32:
      case Op::v_addc_co_u32: {
        const Value mask = op == Op::v_addc_co_u32 ? dword(c.src[2], lane_ / 32) : Value{0, true};
        const u64 sum = u64{a.bits} + b.bits + (mask.bits >> lane_ % 32 & 1);
        result = {sum & ~u32{0}, a.known && b.known && mask.known};
        carry = {static_cast<u32>(sum >> 32), result.known};
        return;
      }
      case Op::v_lshl_add_u64: {
        const Wide x = wide(c.src[0]), y = wide(c.src[2]);
        result = {(x.bits << (b.bits & 7)) + y.bits, x.known && b.known && y.known};
        return;
      }
      default: return;
    }
  }
  using Values = std::map<u32, Value>;
  static Value now(const Values& values, u32 index, u32 present) {
    const auto changed = values.find(index);
    return changed != values.end() ? changed->second : Value{present, true};
  }
  void set(Kind kind, u32 index, Value value) {
    if (kind == Kind::Vgpr) rows_[index] = value;
    if (kind == Kind::Sgpr) scalars_[index] = value;
  }

  const Wave& wave_;
  const u32 lane_;
  Values rows_, scalars_;  // those that are written
};

}  // namespace

bool guesses_ahead(Wave& w, const Code& c) {
  if (w.exec() == 0) return false;
  Ahead ahead(w, static_cast<u32>(__builtin_ctzll(w.exec())));
  const Wide loaded = ahead.address(c);
  const u32 bytes = c.inst->enc == Encoding::SMEM ? 4 * std::max<u32>(1, c.dst_dwords) : global_op(c.inst->op).bytes;
  const auto same = [](const Source& one, const Source& other) {
    return one.kind == other.kind && one.index == other.index;
  };
  const Code* next = &c;
  for (u32 n = 0; n < kNear && next->inst != nullptr; ++n) {
    const Op op = next->inst->op;
    if (std::strstr(mnemonic(op), "cmpswap") != nullptr) {
      if (is_buffer(*next->inst))
        return is_buffer(*c.inst) && same(c.src[0], next->src[0]) && same(c.src[1], next->src[1]);
      const Wide swapped = ahead.address(*next);
      const bool known = loaded.known && swapped.known;
      return known && loaded.bits >= swapped.bits && loaded.bits + bytes <= swapped.bits + global_op(op).bytes;
    }
    if (op != Op::s_branch && ends_run(op)) return false;
    ahead.pass(*next);
    next = w.program->at(op == Op::s_branch ? next->pc + 4 + 4 * i64{next->offset} : next->pc + next->inst->bytes);
  }
  return false;
}

}  // namespace ckemu
