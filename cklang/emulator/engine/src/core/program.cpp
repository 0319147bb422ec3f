// SPDX-License-Identifier: MIT
#include "core/program.h"

#include "checks/hazards.h"
#include "checks/stretch.h"
#include "core/fault.h"
#include "decode/decode.h"
#include "decode/disasm.h"
#include "ops/dual.h"
#include "ops/matrix.h"
#include "ops/modifiers.h"
#include "translate/translate.h"

namespace ckemu {

namespace {

/// Constants that are read as wide operands (MFMA's C excepted) have at most two rows.
constexpr size_t kConstantRows = 2;

struct Lock {
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  pthread_mutex_t& mutex_;
};

void refused(Wave& w, const Code& c) {
  raise(w, FaultKind::Instruction, "%s", static_cast<const Text<320>*>(c.detail)->c_str());
}

/// Joins a run to code that was decoded before.
void go_on(Wave& w, const Code& c) { w.next = c.link; }

u64 next_serial() {
  static u64 last = 0;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

bool is_mixed(Op op) { return op == Op::v_fma_mix_f32 || op == Op::v_fma_mixlo_f16 || op == Op::v_fma_mixhi_f16; }
bool is_float(Type type) { return type == Type::F16 || type == Type::F32 || type == Type::F64 || type == Type::BF16; }

}  // namespace

bool ends_run(Op op) {
  return op == Op::s_endpgm || op == Op::s_branch || op == Op::s_setpc_b64 || op == Op::s_swappc_b64 ||
         op == Op::s_call_b64;
}

Program::Program(Ref<CodeObject> object, const Kernel& kernel, Family family)
    : serial_(next_serial()),
      object_(std::move(object)),
      kernel_(kernel),
      family_(family),
      base_(static_cast<u32>(object_->text_begin())) {
  index_.resize((object_->text_end() - object_->text_begin()) / 4);
  for (const u32 lanes : {16u, 8u}) {
    for (const bool checked : {false, true}) {
      const PieceKind kind{checked, lanes};
      translations_[kind.number()] = std::make_unique<Translation>(*this, kind);
    }
  }
  stretches_ = std::make_unique<Stretches>(index_.size(), family);
  hazard_histories_ = std::make_unique<HazardHistories>();
}

Program::~Program() {
  for (auto& [bits, rows] : constants_) operator delete[](rows, std::align_val_t{64});
}

const Code* Program::at_address(u64 address) {
  const u64 offset = address - image();
  if (offset < object_->text_begin() || offset >= object_->text_end() || offset % 4 != 0) return nullptr;
  return at(offset);
}

const Code* Program::at(u64 offset) {
  const Code*& entry = index_[(offset - base_) / 4];
  if (const Code* found = __atomic_load_n(&entry, __ATOMIC_ACQUIRE)) return found;
  const Lock lock(lock_);
  if (entry != nullptr) return entry;
  return decode_run(offset);
}

const Code* Program::decode_run(u64 offset) {
  std::vector<Code> run;
  for (bool ended = false; !ended;) {
    Code code;
    code.pc = static_cast<u32>(offset);
    const size_t slot = (offset - base_) / 4;
    code.slot = static_cast<u32>(slot < index_.size() ? slot : 0);
    if (slot >= index_.size()) {
      refuse(code, "control runs past the end of the code");
      run.push_back(code);
      break;
    }
    if (index_[slot] != nullptr) {
      code.fn = go_on;
      code.link = index_[slot];
      run.push_back(code);
      break;
    }
    auto inst = std::make_unique<Inst>();
    DecodeError error;
    const u32* words = reinterpret_cast<const u32*>(object_->image() + offset);
    if (decode(family_, words, index_.size() - slot, *inst, error, kernel_.wave_size == 64)) {
      code.inst = inst.get();
      resolve(*inst, code);
      ended = ends_run(inst->op);
      offset += inst->bytes;
      insts_.push_back(std::move(inst));
    } else {
      refuse(code, "cannot decode 0x%08x 0x%08x: %s", error.words[0], error.word_count > 1 ? error.words[1] : 0,
             error.reason);
      ended = true;
    }
    run.push_back(code);
  }
  auto stored = std::make_unique<Code[]>(run.size());
  for (size_t n = 0; n < run.size(); ++n) stored[n] = run[n];
  const Code* first = stored.get();
  for (size_t n = run.size(); n-- > 0;) {
    if (run[n].fn == go_on) continue;
    const size_t slot = (run[n].pc - base_) / 4;
    if (slot < index_.size()) __atomic_store_n(&index_[slot], &stored[n], __ATOMIC_RELEASE);
  }
  runs_.push_back(std::move(stored));
  return first;
}

void Program::refuse(Code& code, const char* format, ...) {
  auto text = std::make_unique<Text<320>>();
  va_list arguments;
  va_start(arguments, format);
  text->add_list(format, arguments);
  va_end(arguments);
  code.fn = refused;
  code.detail = text.get();
  refusals_.push_back(std::move(text));
}

const u32* Program::constant(u64 bits) {
  u32*& rows = constants_[bits];
  if (rows == nullptr) {
    rows = static_cast<u32*>(operator new[](kConstantRows * sizeof(Row64), std::align_val_t{64}));
    for (int l = 0; l < kLanes; ++l) {
      rows[l] = static_cast<u32>(bits);
      rows[kLanes + l] = static_cast<u32>(bits >> 32);
    }
  }
  return rows;
}

void Program::name_rows(u32 count) {
  if (count > named_rows_) __atomic_store_n(&named_rows_, std::min(count, kernel_.register_rows), __ATOMIC_RELEASE);
}

Source Program::source(const Operand& operand, bool& valid) {
  Source source{.kind = operand.kind, .dwords = operand.dwords, .index = operand.index};
  switch (operand.kind) {
    case Kind::Agpr:
      source.kind = Kind::Vgpr;
      source.index = static_cast<u16>(operand.index + kernel_.accum_offset);
      [[fallthrough]];
    case Kind::Vgpr:
      valid &= source.index + u32{operand.dwords} <= kernel_.register_rows;
      name_rows(source.index + u32{operand.dwords});
      break;
    case Kind::Constant: source.row = constant(operand.bits); break;
    case Kind::Sgpr:
      valid &= operand.index + u32{operand.dwords} <= 128;
      if (!is_rdna(family_) || operand.index != kNull) break;
      source.kind = Kind::Constant;
      source.row = constant(0);
      break;
    case Kind::Special: valid &= operand.index != kLdsDirect; break;
    case Kind::None: break;
  }
  return source;
}

/// As `source`, for a destination.
Source Program::result(const Operand& operand, bool& valid) {
  const bool dropped = is_rdna(family_) && operand.kind == Kind::Sgpr && operand.index == kNull;
  if (dropped) return {.kind = Kind::Sgpr, .dwords = operand.dwords, .index = kDiscarded};
  return source(operand, valid);
}

/// Whether the instruction writes the upper half of exec, which waves of 32 lanes do not have.
bool Program::writes_absent_exec(const Inst& inst) const {
  if (!is_rdna(family_) || kernel_.wave_size == kLanes) return false;
  for (const Operand& operand : inst.dst) {
    if (operand.kind == Kind::Sgpr && operand.index <= kExec + 1 && operand.index + operand.dwords > kExec + 1)
      return true;
  }
  return std::strstr(mnemonic(inst.op), "exec_b64") != nullptr;
}

/// A dual instruction becomes two codes, and the order in which neither sees the other's result.
bool Program::resolve_dual(const Inst& inst, Code& code) {
  auto pair = std::make_unique<DualPair>();
  pair->x = pair->y = code;
  pair->x.fn = handler_of(inst.op);
  pair->y.fn = handler_of(inst.op_y);
  for (int n = 0; n < 3; ++n) pair->y.src[n] = code.src[3 + n];
  pair->y.dst = code.dst2;
  code.fn = dual_handler(*pair);
  if (code.fn == dual_through_spare) pair->x.dst = static_cast<u16>(kernel_.register_rows + kSpareResult);
  code.detail = pair.get();
  const bool known = pair->x.fn != nullptr && pair->y.fn != nullptr;
  if (!known) refuse(code, "instruction %s is not emulated", mnemonic(pair->x.fn == nullptr ? inst.op : inst.op_y));
  pairs_.push_back(std::move(pair));
  return known;
}

/// Whether an operation, or those that follow it, may number vector registers at run time.
static bool numbers_registers(Op op) {
  for (const char* part : {"gpr_idx", "movrel", "_block", "s_setreg"}) {
    if (std::strstr(mnemonic(op), part) != nullptr) return true;
  }
  return false;
}

void Program::resolve(const Inst& inst, Code& code) {
  bool valid = true;
  if (numbers_registers(inst.op)) name_rows(kernel_.register_rows);
  code.offset = inst.enc == Encoding::SOPP || inst.enc == Encoding::SOPK ? inst.simm : inst.offset;
  if (inst.enc == Encoding::SOP1 || inst.enc == Encoding::SOPC) code.offset = inst.simm;
  for (int n = 0; n < 6; ++n) code.src[n] = source(inst.src[n], valid);
  const Source first = result(inst.dst[0], valid), second = result(inst.dst[1], valid);
  code.dst = first.index;
  code.dst_kind = first.kind;
  code.dst_dwords = first.dwords;
  code.dst2 = second.index;
  if (!valid) {
    refuse(code, "%s uses a register that the kernel does not allocate (%u vector registers, AGPRs from %u)",
           mnemonic(inst.op), kernel_.register_rows, kernel_.accum_offset);
    return;
  }
  if (writes_absent_exec(inst)) {
    refuse(code, "%s writes exec_hi, which a wave of 32 lanes does not have", mnemonic(inst.op));
    return;
  }
  if (inst.op_y != Op::none) {
    resolve_dual(inst, code);
    return;
  }
  choose_handler(inst, code);
}

void Program::choose_handler(const Inst& inst, Code& code) {
  code.fn = inst.matrix != nullptr ? matrix_handler(inst) : handler_of(inst.op);
  if (code.fn == nullptr) {
    const char* reason = refusal_reason(inst.op);
    refuse(code, "instruction %s is not emulated%s%s", mnemonic(inst.op), reason != nullptr ? ": " : "",
           reason != nullptr ? reason : "");
    return;
  }
  const ModifierPlan plan = plan_modifiers(inst);
  if (plan.refusal != nullptr) {
    refuse(code, "%s on %s is not emulated", plan.refusal, mnemonic(inst.op));
    return;
  }
  const bool saturates = inst.clamp && !is_float(inst.dst[0].type) && code.dst_kind == Kind::Vgpr;
  if (saturates && saturating_handler(inst.op) != nullptr) code.fn = saturating_handler(inst.op);
  const bool finished = (inst.omod != 0 || inst.clamp) && is_float(inst.dst[0].type) && !is_mixed(inst.op);
  if (plan.prepared == 0 && !plan.redirected && !finished) return;
  auto plain = std::make_unique<Code>(code);
  for (u32 slot = 0; slot < 3; ++slot) {
    if ((plan.prepared >> slot & 1) == 0) continue;
    plain->src[slot].kind = Kind::Vgpr;
    plain->src[slot].index = static_cast<u16>(kernel_.register_rows + kSpareSource + 2 * slot);
  }
  if (plan.redirected) plain->dst = static_cast<u16>(kernel_.register_rows + kSpareResult);
  code.link = plain.get();
  code.fn = modified;
  plans_.push_back(std::make_unique<ModifierPlan>(plan));
  code.detail = plans_.back().get();
  inner_.push_back(std::move(plain));
}

}  // namespace ckemu
