// SPDX-License-Identifier: MIT
#include "translate/piece.h"

#include <algorithm>
#include <cstddef>

#include "checks/checks.h"
#include "ops/handlers.h"
#include "translate/scalar_ops.h"

namespace ckemu {

using namespace x86;

namespace translate {

namespace {

bool lists(HandlerRows rows, Op op) {
  for (const HandlerRow& row : rows) {
    if (row.op == op) return true;
  }
  return false;
}

bool is_branch(Op op) {
  switch (op) {
    case Op::s_branch:
    case Op::s_cbranch_scc0:
    case Op::s_cbranch_scc1:
    case Op::s_cbranch_vccz:
    case Op::s_cbranch_vccnz:
    case Op::s_cbranch_execz:
    case Op::s_cbranch_execnz: return true;
    default: return false;
  }
}
bool stops(Op op) { return op == Op::s_barrier || op == Op::s_endpgm || op == Op::s_sleep; }

bool does_nothing(const Code& code) {
  for (const Op op : {Op::s_waitcnt, Op::s_delay_alu, Op::v_nop}) {
    if (code.fn == handler_of(op)) return true;
  }
  return false;
}

/// Whether a scalar memory operation does nothing but load registers.
bool loads_scalars(const Code& code) { return code.dst_kind == Kind::Sgpr && code.src[2].kind == Kind::None; }

Way scalar_way(const Code& code) {
  const Op op = code.inst->op;
  for (const HandlerRows rows :
       {scalar_handlers(), scalar_bit_handlers(), rdna_scalar_handlers(), rdna_scalar_float_handlers()}) {
    if (lists(rows, op) || lists(rows, plain_name(op))) return Way::Scalar;
  }
  return Way::Interpret;
}

}  // namespace

Way way_of(const Code& code, u32 lanes) {
  if (code.inst == nullptr) return Way::Interpret;
  if (does_nothing(code)) return Way::Nothing;
  if (vector_row(code, lanes) != nullptr) return Way::Vector;
  if (joins_run(code)) return Way::Product;
  const Op op = code.inst->op;
  const bool usual = code.fn == handler_of(op);
  switch (code.inst->enc) {
    case Encoding::SOPP: return usual && is_branch(op) ? Way::Branch : usual && stops(op) ? Way::Stop : Way::Interpret;
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK: return usual ? scalar_way(code) : Way::Interpret;
    case Encoding::SMEM: return usual && loads_scalars(code) ? Way::Scalar : Way::Call;
    default: return usual && op == Op::v_readfirstlane_b32 ? Way::FirstLane : Way::Call;
  }
}

}  // namespace translate

using namespace translate;

namespace {

constexpr u32 kMost = 512;  // instructions of a piece: no wave shall be far ahead of others

template <class T>
Mem member(T offset) {
  return {kWave, kNoIndex, static_cast<i32>(offset)};
}

}  // namespace

Piece::Piece(Program& program, const Code& leader, PieceKind kind, const u8* leave, size_t first_segment,
             size_t capacity)
    : program_(program),
      leader_(leader),
      kind_(kind),
      leave_(leave),
      first_segment_(first_segment),
      capacity_(capacity),
      a_(kind.lanes),
      section_(a_, rare_, program.kernel().wave_size, program.family()),
      start_(a_.label()),
      next_(&leader) {}

bool Piece::write() {
  if (full() || way_of(leader_, kind_.lanes) == Way::Interpret) return false;
  a_.bind(start_);
  a_.alu(7, member(offsetof(Wave, budget)), 0, true);
  a_.jump_if(kLessEqual, exit_to(leader_));
  open_segment();
  while (write_one(*next_)) {}
  if (length_ == 0 || section_.too_few()) return false;  // control would go round in an empty one
  close_segment();
  for (const Rare& rare : rare_) {
    a_.bind(rare.enter);
    rare.emit(a_, rare.registers);
    a_.jump(rare.back);
  }
  for (const Unusual& unusual : section_.unusual()) {
    a_.bind(unusual.enter);
    for (const Code* code : unusual.codes) call_handler(*code);
    a_.jump(unusual.back);
  }
  write_exits();
  a_.finish();
  return true;
}

/// Writes an instruction; false if the piece ends with it, or before it.
bool Piece::write_one(const Code& code) {
  if (code.inst == nullptr && code.link != nullptr) {  // code that was decoded before
    close_segment();
    next_ = code.link;
    if (!full()) {
      open_segment();
      return true;
    }
  }
  const Way way = way_of(*next_, kind_.lanes);
  if (way == Way::Interpret || length_ >= kMost || full()) {
    settle();
    a_.jump(exit_to(*next_));
    return false;
  }
  const Code& now = *next_;
  if (kind_.checked) write_check(now, way);
  other_lanes_ = kind_.checked && writes_exec(now);
  ++segments_.back().count;
  ++length_;
  next_ = &now + 1;
  switch (way) {
    case Way::Nothing: return true;
    case Way::Vector:
      meet_products(now);
      section_.add(now, *vector_row(now, kind_.lanes));
      return true;
    case Way::Product: write_product(now); return true;
    case Way::Scalar: write_scalar(now); return true;
    case Way::Branch: return write_branch(now);
    case Way::FirstLane: write_first_lane(now); return true;
    case Way::Call: write_call(now); return true;
    default: break;
  }
  write_call(now);
  a_.move(rax, reinterpret_cast<u64>(next_));
  a_.store(member(offsetof(Wave, next)), rax, true);
  a_.move(rax, reinterpret_cast<u64>(leave_));
  a_.jump_register(rax);
  return false;
}

/// How many instructions of the stretch that begins at `code` are in the piece.
u32 Piece::stretch_of(const Code& code) const {
  const u32 longest = std::min(program_.stretches().from(code).count, kMost - length_);
  u32 count = 1;
  while (count < longest && way_of((&code)[count], kind_.lanes) != Way::Interpret) ++count;
  return count;
}

/// Calls the checks of a stretch where it begins. They look at memory, so that what comes before is executed first.
void Piece::write_check(const Code& code, Way way) {
  if (behind_check_ != 0) {
    --behind_check_;
    return;
  }
  const Stretch& stretch = program_.stretches().part(code, stretch_of(code));
  behind_check_ = stretch.count - 1;
  if (other_lanes_ || (!stretch.plain && way != Way::Nothing)) settle();
  const Label unasked = a_.label();
  a_.load_byte(rax, member(offsetof(Wave, asks)));
  a_.alu(4, rax, stretch.concerns, false);
  a_.jump_if(kZero, unasked);
  a_.move(rsi, reinterpret_cast<u64>(&stretch));
  a_.move(rdi, kWave);
  a_.move(rax, reinterpret_cast<u64>(check_stretch));
  a_.call(rax);
  a_.bind(unasked);
}

void Piece::write_scalar(const Code& code) {
  ScalarSet reads, writes;
  for (const Source& source : code.src) {
    if (source.kind == Kind::Sgpr) reads.add(source.index, source.dwords);
    if (source.kind == Kind::Special) reads.add(kVcc, 2);
  }
  writes.add(code.dst, std::max<u32>(code.dst_dwords, 1));
  reads.join(writes);
  const bool plain = code.inst->enc == Encoding::SMEM || lists(scalar_handlers(), code.inst->op);
  const bool reads_stored = code.inst->enc == Encoding::SMEM && section_.stores_globally();
  if (!plain || reads_stored || section_.waits(reads, writes)) section_.flush();
  if (!emit_scalar(a_, code)) call_handler(code);
}

void Piece::write_call(const Code& code) {
  settle();
  call_handler(code);
}

/// Vector instructions taken up may wait behind the call if it touches scalar registers alone.
void Piece::call_handler(const Code& code) {
  a_.move(rsi, reinterpret_cast<u64>(&code));
  a_.move(rdi, kWave);
  a_.store(member(offsetof(Wave, current)), rsi, true);
  a_.move(rax, reinterpret_cast<u64>(code.fn));
  a_.call(rax);
}

void Piece::write_first_lane(const Code& code) {
  const Source& source = code.src[0];
  if (source.kind != Kind::Vgpr) return write_call(code);
  section_.flush();
  if (products_.meeting(code) != Meeting::Nothing) write_products();
  a_.load(rax, scalar_at(kExec), true);
  a_.alu(6, rcx, rcx, false);
  a_.count_zeros(rdx, rax, true);
  a_.test(rax, rax, true);
  a_.move_if(kNonZero, rcx, rdx, false);
  a_.shift(4, rcx, 2, false);
  a_.load(rax, {kVectors, rcx, 256 * source.index}, false);
  a_.store(scalar_at(code.dst), rax, false);
}

void Piece::write_product(const Code& code) {
  if (products_.add(code)) return;
  settle();
  products_.add(code);
}

/// Lets an instruction go before the products that wait, as far as it has nothing to do with them.
void Piece::meet_products(const Code& code) {
  const Meeting meeting = products_.meeting(code);
  if (meeting == Meeting::Needs) settle();
  if (meeting == Meeting::Overwrites) {
    section_.flush();
    a_.move(rdx, products_.end_part());
    a_.move(rsi, reinterpret_cast<u64>(&products_.run()));
    a_.move(rdi, kWave);
    a_.move(rax, reinterpret_cast<u64>(begin_part));
    a_.call(rax);
  }
  products_.pass(code);
}

void Piece::write_products() {
  if (products_.empty()) return;
  runs_.push_back(products_.take());
  a_.move(rsi, reinterpret_cast<u64>(runs_.back().get()));
  a_.move(rdi, kWave);
  a_.move(rax, reinterpret_cast<u64>(execute_run));
  a_.call(rax);
}

/// Writes a branch; false if control never falls through.
bool Piece::write_branch(const Code& code) {
  settle();
  const i64 offset = i64{code.pc} + 4 + i64{4} * code.offset;
  const Code* target = program_.at_address(program_.image() + static_cast<u64>(offset));
  const Op op = code.inst->op;
  if (target == nullptr) {  // the interpreter says so when it gets there
    --segments_.back().count;
    a_.jump(exit_to(code));
    return false;
  }
  const Label exit = target == &leader_ ? start_ : exit_to(*target);
  if (op == Op::s_branch) {
    a_.jump(exit);
    return false;
  }
  const bool wide = program_.kernel().wave_size == kLanes;
  if (op == Op::s_cbranch_scc0 || op == Op::s_cbranch_scc1) {
    a_.load_byte(rax, scc_place());
    a_.test(rax, rax, false);
  } else if (op == Op::s_cbranch_vccz || op == Op::s_cbranch_vccnz) {
    a_.alu(7, scalar_at(kVcc), 0, wide);
  } else {
    a_.alu(7, scalar_at(kExec), 0, true);
  }
  const bool on_zero = op == Op::s_cbranch_scc0 || op == Op::s_cbranch_vccz || op == Op::s_cbranch_execz;
  a_.jump_if(on_zero ? kZero : kNonZero, exit);
  close_segment();
  if (full()) {
    a_.jump(exit_to(*next_));
    return false;
  }
  open_segment();
  return true;
}

void Piece::open_segment() {
  a_.alu(5, member(offsetof(Wave, budget)), 0, true);
  open_at_ = a_.code().size() - 4;
  const size_t number = first_segment_ + segments_.size();
  a_.increment({kSegments, kNoIndex, static_cast<i32>(8 * number)});
  segments_.push_back({next_, 0});
  open_ = true;
}

void Piece::close_segment() {
  if (open_) a_.patch(open_at_, segments_.back().count);
  open_ = false;
}

Label Piece::exit_to(const Code& target) {
  exits_.push_back({a_.label(), &target});
  return exits_.back().label;
}

/// An exit goes on in the piece that begins at its target, if there is one.
void Piece::write_exits() {
  for (const Exit& exit : exits_) {
    const Label leave = a_.label();
    a_.bind(exit.label);
    if (exit.target != &leader_) {
      a_.move(rax, reinterpret_cast<u64>(&exit.target->translated[kind_.number()]));
      a_.load(rax, {rax}, true);
      a_.test(rax, rax, true);
      a_.jump_if(kZero, leave);
      a_.jump_register(rax);
    }
    a_.bind(leave);
    a_.move(rax, reinterpret_cast<u64>(exit.target));
    a_.store(member(offsetof(Wave, next)), rax, true);
    a_.move(rax, reinterpret_cast<u64>(leave_));
    a_.jump_register(rax);
  }
}

}  // namespace ckemu
