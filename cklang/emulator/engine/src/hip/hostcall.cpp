// SPDX-License-Identifier: MIT
#include "hip/hostcall.h"

#include <cstdio>

#include "core/progress.h"
#include "hip/device_printf.h"

namespace ckemu {

namespace {

constexpr u32 kServicePrintf = 2;
constexpr u32 kPending = 1;  // Packet::control

/// The first word of a message's slot.
constexpr u64 kBegin = 1, kEnd = 2;
constexpr u32 kCountShift = 5, kIdShift = 8;
constexpr u64 kCountMask = 7;

constexpr u64 kToStderr = 1;                 // in the first word of a printf message
constexpr size_t kLongestMessage = 1 << 17;  // words

Interrupt g_interrupt = nullptr;

}  // namespace

void set_interrupt(Interrupt interrupt) { __atomic_store_n(&g_interrupt, interrupt, __ATOMIC_RELEASE); }
void interrupt_host(u32 event) {
  if (const Interrupt interrupt = __atomic_load_n(&g_interrupt, __ATOMIC_ACQUIRE)) interrupt(event);
}

void Signal::tell() const {
  if (mailbox == 0) return;
  __atomic_store_n(reinterpret_cast<u64*>(mailbox), event, __ATOMIC_RELEASE);
  interrupt_host(event);
}

Hostcall::Hostcall(u64 foreign) : foreign_(reinterpret_cast<Buffer*>(foreign)) {}

/// Rings the other runtime's doorbell.
void Hostcall::wake_foreign() {
  const u64 ready = __atomic_load_n(&foreign_->ready, __ATOMIC_ACQUIRE);
  if (ready == 0 || __atomic_exchange_n(&woken_, ready, __ATOMIC_ACQ_REL) == ready) return;
  Signal& signal = *reinterpret_cast<Signal*>(foreign_->doorbell);
  __atomic_add_fetch(&signal.value, 1, __ATOMIC_ACQ_REL);
  signal.tell();
}

Hostcall::Hostcall() : payloads_(new Payload[kPackets]) {
  constexpr u64 first_use = kPackets;  // names are (use count, packet number) and never 0
  for (u32 n = 0; n < kPackets; ++n) packets_[n] = {n == 0 ? 0 : first_use | (n - 1), 0, 0, 0};
  buffer_ = {packets_, payloads_.get(), reinterpret_cast<u64>(&signal_), first_use | (kPackets - 1), 0, 1};
}

u64 Hostcall::address() const { return reinterpret_cast<u64>(&buffer_); }

bool Hostcall::owns(u64 address) const {
  return address - reinterpret_cast<u64>(this) < sizeof *this ||
         address - reinterpret_cast<u64>(payloads_.get()) < kPackets * sizeof(Payload);
}

void Hostcall::serve() {
  if (foreign_ != nullptr) return wake_foreign();
  if (__atomic_load_n(&buffer_.ready, __ATOMIC_RELAXED) == 0) return;
  const Guard guard(lock_);
  u32 order[kPackets];
  u32 count = 0;
  for (u64 name = __atomic_exchange_n(&buffer_.ready, 0, __ATOMIC_ACQUIRE); name != 0 && count < kPackets;) {
    order[count] = name % kPackets;
    name = packets_[order[count++]].next;
  }
  while (count != 0) {  // the last pushed came out first
    const u32 number = order[--count];
    answer(packets_[number], payloads_[number]);
    __atomic_and_fetch(&packets_[number].control, ~kPending, __ATOMIC_RELEASE);
    note_progress();
  }
}

void Hostcall::answer(const Packet& packet, Payload& payload) {
  for (u32 lane = 0; lane < 64; ++lane) {
    if ((packet.active >> lane & 1) == 0) continue;
    u64* slot = payload.slots[lane];
    slot[0] = packet.service == kServicePrintf ? receive(slot) : 0;
    slot[1] = 0;
  }
}

/// Adds a slot to its message; the message's descriptor from now on.
u64 Hostcall::receive(u64* slot) {
  const u64 descriptor = slot[0];
  u64 id = descriptor >> kIdShift;
  if ((descriptor & kBegin) != 0) id = ++last_id_;
  std::vector<u64>& words = messages_[id];
  const u64 count = descriptor >> kCountShift & kCountMask;
  if (words.size() < kLongestMessage) words.insert(words.end(), slot + 1, slot + 1 + count);
  if ((descriptor & kEnd) != 0) {
    print(words);
    messages_.erase(id);
  }
  return id << kIdShift;
}

void Hostcall::print(const std::vector<u64>& words) {
  if (words.empty() || muted_) return;
  const bool complaint = (words[0] & kToStderr) != 0;
  std::string text = format_printf(words.data() + 1, words.size() - 1);
  std::FILE* file = complaint ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
  if (!complaint) return;
  complaint_.clear();
  complaint_.add("%s", text.c_str());
}

}  // namespace ckemu
