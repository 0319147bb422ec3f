// SPDX-License-Identifier: MIT
//
// How a running kernel asks the host for something: packets in shared memory, in the layout that ROCm's
// device library and our own HIP headers write. Waves take a packet from a stack of free ones, fill in
// a slot of 8 words a lane, push it on a stack of ready ones and poll until it is answered. The one
// service is printing.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/base.h"
#include "core/mutex.h"

namespace ckemu {

/// What happens when a kernel interrupts the host, with the number of an event; nothing if it is null.
using Interrupt = void (*)(u32 event);
void set_interrupt(Interrupt interrupt);
void interrupt_host(u32 event);

/// A signal in memory, in HSA's layout.
struct Signal {
  i64 kind, value;
  u64 mailbox;
  u32 event, pad;
  u64 start, end, queue, reserved;

  /// Interrupts the host for those who wait for a new value, if any do.
  void tell() const;
};
static_assert(sizeof(Signal) == 64);

class Hostcall {
 public:
  Hostcall();
  /// A buffer that another runtime answers: it is woken when kernels ask, also by those that leave that to the
  /// emulator.
  explicit Hostcall(u64 foreign);
  Hostcall(const Hostcall&) = delete;
  Hostcall& operator=(const Hostcall&) = delete;

  /// What the kernel's hidden argument is.
  u64 address() const;
  /// Whether a kernel that asks may access `address`.
  bool owns(u64 address) const;
  /// Answers what kernels have asked so far. Any thread may call it.
  void serve();
  /// Whether what kernels print is dropped: it was printed before.
  void mute(bool muted) { muted_ = muted; }
  /// The last text a kernel wrote to stderr: what an assertion said.
  const Message& complaint() const { return complaint_; }

 private:
  struct Packet {
    u64 next, active;
    u32 service, control;
  };
  struct Payload {
    u64 slots[64][8];
  };
  /// ROCm's buffer_t. `index_bits` says how many low bits of a packet's name number it; the bits above
  /// count its uses. Libraries differ in whether it is that count or its mask: 1 is both.
  struct Buffer {
    Packet* packets;
    Payload* payloads;
    u64 doorbell, free, ready, index_bits;
  };
  static constexpr u32 kPackets = 2;

  void wake_foreign();
  void answer(const Packet& packet, Payload& payload);
  u64 receive(u64* slot);
  void print(const std::vector<u64>& words);

  Mutex lock_;
  Buffer buffer_ = {};
  Buffer* foreign_ = nullptr;
  u64 woken_ = 0;  // what was ready when the other runtime was woken last
  Packet packets_[kPackets];
  std::unique_ptr<Payload[]> payloads_;
  Signal signal_ = {};  // it wakes nobody
  u64 last_id_ = 0;
  bool muted_ = false;
  std::map<u64, std::vector<u64>> messages_;  // begun and not ended
  Message complaint_;
};

}  // namespace ckemu
