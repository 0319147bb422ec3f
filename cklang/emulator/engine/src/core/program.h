// SPDX-License-Identifier: MIT
//
// A kernel's code, decoded once: each instruction is a handler and operands that are already row
// numbers, register numbers or constants spread over 64 lanes. Decoding happens run by run, when
// control first gets there, so data and padding in the text section are never looked at.
#pragma once

#include <pthread.h>

#include <map>
#include <memory>
#include <vector>

#include "core/base.h"
#include "core/ref.h"
#include "core/wave.h"
#include "decode/code_object.h"

namespace ckemu {

/// A resolved source operand.
struct Source {
  Kind kind = Kind::None;  // Agpr has become Vgpr
  u8 dwords = 0;
  u16 index = 0;             // row, scalar register or SpecialReg
  const u32* row = nullptr;  // Constant: low dwords in 64 lanes, high dwords in the next 64
};

struct Code {
  Handler fn = nullptr;
  u16 dst = 0, dst2 = 0;  // row or scalar register
  Kind dst_kind = Kind::None;
  u16 dst_dwords = 0;
  u32 pc = 0;      // offset in the image
  u32 slot = 0;    // dwords from the start of the code
  i32 offset = 0;  // immediate offset, or simm
  Source src[6];
  const Inst* inst = nullptr;
  const void* detail = nullptr;            // handler's own table row
  mutable const Code* link = nullptr;      // branch target, or the plain form of a modified instruction
  mutable const void* translated[4] = {};  // the piece of host code that begins here, by PieceKind::number
  mutable bool crowded = false;            // it needs more registers than AVX2 has
  mutable u32 heat[4] = {};                // how often control has jumped here
};

struct ModifierPlan;
struct DualPair;

class Translation;
class Stretches;
class HazardHistories;

class Program {
 public:
  Program(Ref<CodeObject> object, const Kernel& kernel, Family family);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The code at `offset` of the image; never null: what cannot be decoded raises when it runs.
  const Code* at(u64 offset);
  /// As `at`, for an absolute address that the kernel computed; null outside the code.
  const Code* at_address(u64 address);
  const Code* entry() { return at(kernel_.entry); }

  /// A number that no other program of the process has.
  u64 serial() const { return serial_; }
  /// Nanoseconds that a workgroup took in the last launch; 0 before the first.
  u64 cost() const { return __atomic_load_n(&cost_, __ATOMIC_RELAXED); }
  void note_cost(u64 nanoseconds) { __atomic_store_n(&cost_, nanoseconds, __ATOMIC_RELAXED); }

  const Kernel& kernel() const { return kernel_; }
  const CodeObject& object() const { return *object_; }
  Ref<CodeObject> shared_object() const { return object_; }
  Family family() const { return family_; }
  u64 image() const { return reinterpret_cast<u64>(object_->image()); }
  /// Dwords of code, the size of Counters::executed.
  size_t dwords() const { return index_.size(); }
  /// Vector registers, from the first on, among which are all that decoded instructions name.
  u32 named_rows() const { return __atomic_load_n(&named_rows_, __ATOMIC_ACQUIRE); }
  const Code* decoded(size_t slot) const { return index_[slot]; }
  u32 base() const { return base_; }
  /// What is translated, as it is or with checks, for so many lanes at a time.
  Translation& translation(bool checked, u32 lanes) { return *translations_[2 * (lanes != 16) + checked]; }
  Stretches& stretches() { return *stretches_; }
  HazardHistories& hazard_histories() { return *hazard_histories_; }

 private:
  const Code* decode_run(u64 offset);
  void resolve(const Inst& inst, Code& code);
  void choose_handler(const Inst& inst, Code& code);
  bool resolve_dual(const Inst& inst, Code& code);
  Source source(const Operand& operand, bool& valid);
  void name_rows(u32 count);
  Source result(const Operand& operand, bool& valid);
  bool writes_absent_exec(const Inst& inst) const;
  const u32* constant(u64 bits);
  void refuse(Code& code, const char* format, ...) __attribute__((format(printf, 3, 4)));

  const u64 serial_;
  u64 cost_ = 0;
  Ref<CodeObject> object_;
  const Kernel& kernel_;
  Family family_;
  u32 base_;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  u32 named_rows_ = 1;              // the work items' numbers
  std::vector<const Code*> index_;  // by dword; written under the lock, read without
  std::vector<std::unique_ptr<Code[]>> runs_;
  std::vector<std::unique_ptr<Inst>> insts_;
  std::vector<std::unique_ptr<Code>> inner_;
  std::vector<std::unique_ptr<DualPair>> pairs_;
  std::map<u64, u32*> constants_;
  std::vector<std::unique_ptr<ModifierPlan>> plans_;
  std::vector<std::unique_ptr<Text<320>>> refusals_;
  std::unique_ptr<Translation> translations_[4];
  std::unique_ptr<Stretches> stretches_;
  std::unique_ptr<HazardHistories> hazard_histories_;
};

/// The handler of an operation; null if the emulator lacks it.
Handler handler_of(Op op);

/// Why an operation without a handler will have none; null if there is no reason but that.
const char* refusal_reason(Op op);

/// Whether control never falls through.
bool ends_run(Op op);

}  // namespace ckemu
