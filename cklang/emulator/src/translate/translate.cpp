// SPDX-License-Identifier: MIT
#include "translate/translate.h"

#include <sys/mman.h>

#include <cstddef>

#include "core/cpu.h"
#include "core/environment.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "translate/piece.h"

namespace ckemu {

using namespace x86;
using namespace translate;

namespace {

constexpr u32 kHot = 16;                // times that control must arrive
constexpr size_t kChunk = size_t{1} << 20;

struct Choice {
  u8 value = environment().translate;
};
Choice& choice() { return immortal<Choice>(); }

constexpr Reg kSaved[] = {rbp, rbx, r12, r13, r14, r15};

}  // namespace

Translate translation() {
  return vector_bits() == 512 ? static_cast<Translate>(__atomic_load_n(&choice().value, __ATOMIC_RELAXED)) : Translate::Off;
}
void set_translation(Translate how) { __atomic_store_n(&choice().value, static_cast<u8>(how), __ATOMIC_RELAXED); }

// Two more than instructions: the shortest program has an open segment, and one that may follow.
Translation::Translation(Program& program, bool checked) : program_(program), checked_(checked), capacity_(program.dwords() + 2) {}

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
  const u32 heat = __atomic_load_n(&code.heat[checked_], __ATOMIC_RELAXED), hot = how == Translate::All ? 1 : kHot;
  if (heat >= hot) return;
  __atomic_store_n(&code.heat[checked_], heat + 1, __ATOMIC_RELAXED);
  if (heat + 1 == hot) translate(code);
}

/// Writes how translated code is entered and left.
static void write_frame(Assembler& enter, Assembler& leave, size_t first_segment) {
  for (const Reg reg : kSaved) enter.push(reg);
  enter.alu(5, rsp, 8, true);
  enter.move(kWave, rdi);
  enter.load(kVectors, {kWave, kNoIndex, offsetof(Wave, v)}, true);
  enter.load(rax, {kWave, kNoIndex, offsetof(Wave, counters)}, true);
  enter.load(kSegments, {rax, kNoIndex, offsetof(Counters, segments)}, true);
  if (first_segment != 0) enter.alu(0, kSegments, static_cast<i32>(8 * first_segment), true);
  enter.jump_register(rsi);
  leave.vzeroupper();
  leave.alu(0, rsp, 8, true);
  for (int n = 5; n >= 0; --n) leave.pop(kSaved[n]);
  leave.ret();
}

void Translation::translate(const Code& code) {
  struct Lock {
    explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~Lock() { pthread_mutex_unlock(&mutex_); }
    pthread_mutex_t& mutex_;
  } const lock(lock_);
  if (code.translated[checked_] != nullptr) return;
  if (enter_ == nullptr) {
    Assembler enter, leave;
    write_frame(enter, leave, checked_ ? capacity_ : 0);
    const u8* entry = publish(enter.code());
    leave_ = publish(leave.code());
    if (entry == nullptr || leave_ == nullptr) return;
    enter_ = reinterpret_cast<Enter>(const_cast<u8*>(entry));
  }
  Piece piece(program_, code, checked_, leave_, segments_.size(), capacity_);
  if (!piece.write()) return;
  const u8* place = publish(piece.code());
  if (place == nullptr) return;
  for (const Segment& segment : piece.segments()) segments_.push_back(segment);
  __atomic_store_n(&code.translated[checked_], place, __ATOMIC_RELEASE);
}

void Translation::spread(const std::vector<u64>& counts, std::vector<u64>& executed) const {
  const u64* own = counts.data() + (checked_ ? capacity_ : 0);
  for (size_t n = 0; n < capacity_; ++n) {
    if (own[n] == 0) continue;
    const Segment& segment = segments_[n];
    for (u32 k = 0; k < segment.count; ++k) executed[segment.first[k].slot] += own[n];
  }
}

}  // namespace ckemu
