// SPDX-License-Identifier: MIT
#include "translate/translate.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

#include "core/environment.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "translate/piece.h"

namespace ckemu {

using namespace x86;
using namespace translate;

namespace {

constexpr u32 kHot = 16;  // times that control must arrive
constexpr size_t kChunk = size_t{1} << 20;

struct Choice {
  u8 value = environment().translate;
};
Choice& choice() { return immortal<Choice>(); }

struct Lock {
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  pthread_mutex_t& mutex_;
};

constexpr Reg kSaved[] = {rbp, rbx, r12, r13, r14, r15};

}  // namespace

Translate translation() { return static_cast<Translate>(__atomic_load_n(&choice().value, __ATOMIC_RELAXED)); }
void set_translation(Translate how) { __atomic_store_n(&choice().value, static_cast<u8>(how), __ATOMIC_RELAXED); }

// Two more than instructions: the shortest program has an open segment, and one that may follow.
Translation::Translation(Program& program, PieceKind kind)
    : program_(program), kind_(kind), capacity_(program.dwords() + 2) {}

Translation::~Translation() {
  for (u8* chunk : chunks_) munmap(chunk, kChunk);
}

const u8* Translation::publish(const std::vector<u8>& bytes) {
  const size_t size = (bytes.size() + 63) / 64 * 64;
  if (size > kChunk) return nullptr;
  if (chunks_.empty() || used_ + size > kChunk) {
    void* memory = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    chunks_.push_back(static_cast<u8*>(memory));
    used_ = 0;
  }
  u8* place = chunks_.back() + used_;
  std::memcpy(place, bytes.data(), bytes.size());
  used_ += size;
  return place;
}

void Translation::reach(const Code& code, Translate how) {
  const u32 heat = __atomic_load_n(&code.heat[kind_.number()], __ATOMIC_RELAXED),
            hot = how == Translate::All ? 1 : kHot;
  if (heat >= hot) return;
  __atomic_store_n(&code.heat[kind_.number()], heat + 1, __ATOMIC_RELAXED);
  if (heat + 1 == hot) translate(code);
}

/// Writes how translated code is entered and left.
static void write_frame(Assembler& enter, Assembler& leave, size_t first_segment) {
  constexpr i32 frame = 8 + kFrameMasks + kFrameVectors;
  for (const Reg reg : kSaved) enter.push(reg);
  enter.alu(5, rsp, frame, true);
  enter.move(kWave, rdi);
  enter.load(kVectors, {kWave, kNoIndex, offsetof(Wave, v)}, true);
  enter.load(rax, {kWave, kNoIndex, offsetof(Wave, counters)}, true);
  enter.load(kSegments, {rax, kNoIndex, offsetof(Counters, segments)}, true);
  if (first_segment != 0) enter.alu(0, kSegments, static_cast<i32>(8 * first_segment), true);
  enter.jump_register(rsi);
  leave.vzeroupper();
  leave.alu(0, rsp, frame, true);
  for (int n = 5; n >= 0; --n) leave.pop(kSaved[n]);
  leave.ret();
}

void Translation::translate(const Code& code) {
  const Lock lock(lock_);
  if (code.translated[kind_.number()] != nullptr) return;
  if (enter_ == nullptr) {
    Assembler enter, leave;
    write_frame(enter, leave, first_segment());
    const u8* entry = publish(enter.code());
    leave_ = publish(leave.code());
    if (entry == nullptr || leave_ == nullptr) return;
    enter_ = reinterpret_cast<Enter>(const_cast<u8*>(entry));
  }
  for (bool again = true; again;) {
    Piece piece(program_, code, kind_, leave_, segments_.size(), capacity_);
    const bool written = piece.write();
    again = !written && piece.too_few();
    const u8* place = written ? publish(piece.code()) : nullptr;
    if (place == nullptr) continue;
    for (const Segment& segment : piece.segments()) segments_.push_back(segment);
    for (std::unique_ptr<MatrixRun>& run : piece.runs())
      runs_.push_back(static_cast<std::unique_ptr<MatrixRun>&&>(run));
    __atomic_store_n(&code.translated[kind_.number()], place, __ATOMIC_RELEASE);
  }
}

void Translation::spread(const std::vector<u64>& counts, std::vector<u64>& executed) {
  const size_t first = first_segment();
  const Lock lock(lock_);  // another launch may translate
  for (size_t n = 0; n < segments_.size() && first + n < counts.size(); ++n) {
    const u64 count = counts[first + n];
    if (count == 0) continue;
    const Segment& segment = segments_[n];
    for (u32 k = 0; k < segment.count; ++k) executed[segment.first[k].slot] += count;
  }
}

}  // namespace ckemu
