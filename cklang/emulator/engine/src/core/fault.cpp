// SPDX-License-Identifier: MIT
#include "core/fault.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "core/demangle.h"
#include "core/program.h"
#include "core/workgroup.h"
#include "decode/disasm.h"
#include "decode/lines.h"
#include "ops/buffer.h"
#include "ops/flat_address.h"

namespace ckemu {

namespace {

thread_local FaultFrame* t_frame = nullptr;
thread_local sigjmp_buf* t_refuge = nullptr;  // of code that may touch what is not there

struct sigaction g_previous[2];
constexpr int kSignals[2] = {SIGSEGV, SIGBUS};

/// Hands a signal that is not ours to whoever had it before.
void chain(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = g_previous[signal == SIGSEGV ? 0 : 1];
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    sigaction(signal, &previous, nullptr);  // returning repeats the access with the default action
  } else {
    previous.sa_handler(signal);
  }
}

bool canonical(u64 address) { return static_cast<u64>(static_cast<i64>(address << 16) >> 16) == address; }

/// The lanes' addresses of an access to global memory, or to a raw buffer.
Addresses accessed(Wave& wave, const Code& code) {
  if (code.inst->enc != Encoding::MUBUF) return addresses_of(wave, code);
  const Buffer buffer = buffer_of(wave, code);
  return {buffer.offset, nullptr, buffer.resource.base + buffer.scalar + buffer.immediate};
}

/// The first enabled lane of such an access whose bytes the fault is in.
i32 faulting_lane(Wave& wave, bool mapped_range, u64 address) {
  const Code& code = *wave.current;
  const u64 data = code.src[code.inst->enc == Encoding::MUBUF ? 3 : 2].dwords;
  const u64 bytes = code.inst->op == Op::global_load_ubyte ? 1 : 4 * std::max<u64>(code.dst_dwords, data);
  const Addresses at = accessed(wave, code);
  for (u32 l = wave.lanes_from / 4; l < wave.lanes; ++l) {
    const u64 from = at(static_cast<int>(l));
    const bool here = mapped_range ? address - from < bytes : !canonical(from);
    if ((wave.exec() >> l & 1) != 0 && here) return static_cast<i32>(l);
  }
  return static_cast<i32>(wave.lanes_from / 4);
}

/// Whether lanes behind the one that is noted may be accessed together with it: four dwords of four lanes at a time.
bool accesses_four(const Wave& wave) {
  const Inst* inst = wave.current != nullptr ? wave.current->inst : nullptr;
  const bool buffer = inst != nullptr &&
                      (inst->op == Op::buffer_load_dwordx4 || inst->op == Op::buffer_store_dwordx4) && inst->offen &&
                      !inst->idxen;
  const bool wide =
      buffer || (inst != nullptr && (inst->op == Op::global_load_dwordx4 || inst->op == Op::global_store_dwordx4));
  return wide && wave.lane >= 0 && wave.lanes_from == kNoLanes;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (t_refuge != nullptr) siglongjmp(*t_refuge, 1);
  FaultFrame* frame = t_frame;
  if (frame == nullptr || frame->wave == nullptr) {
    chain(signal, info, context);
    return;
  }
  Wave& wave = *frame->wave;
  frame->wave = nullptr;  // a fault while reporting goes to the previous handler
  const u64 address = reinterpret_cast<u64>(info->si_addr);
  const bool known = info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR;  // else it is not canonical
  if (accesses_four(wave)) wave.lanes_from = 4 * static_cast<u32>(wave.lane);
  if (wave.lanes_from != kNoLanes) wave.lane = faulting_lane(wave, known, address);
  if (wave.group_bytes != 0 && address > wave.group_address) {
    wave.lane += static_cast<i32>(std::min<u64>((address - wave.group_address) / wave.group_bytes, 7));
  }
  frame->fault.kind = FaultKind::Address;
  if (known) {
    frame->fault.address = reinterpret_cast<u64>(info->si_addr);
    frame->fault.message.add("memory access fault at address 0x%llx",
                             static_cast<unsigned long long>(reinterpret_cast<u64>(info->si_addr)));
  } else {
    frame->fault.message.add("memory access fault at an address that is not canonical");
  }
  describe_place(wave, frame->fault.message);
  siglongjmp(frame->landing, 1);
}

}  // namespace

FaultFrame*& fault_frame() { return t_frame; }

bool survives(void (*body)(void*), void* context) {
  install_signal_handlers();
  sigjmp_buf refuge;
  if (sigsetjmp(refuge, 1) != 0) {
    t_refuge = nullptr;
    return false;
  }
  t_refuge = &refuge;
  body(context);
  t_refuge = nullptr;
  return true;
}

void install_signal_handlers() {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  for (int n = 0; n < 2; ++n) {
    struct sigaction current;
    sigaction(kSignals[n], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_signal) continue;
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    g_previous[n] = current;
    sigaction(kSignals[n], &ours, nullptr);
  }
  pthread_mutex_unlock(&lock);
}

void describe_place(const Wave& wave, Message& out) {
  const Program& program = *wave.program;
  out.add("\n  kernel %s, workgroup (%u, %u, %u), wave %u", readable(program.kernel().name).c_str(), wave.group->id[0],
          wave.group->id[1], wave.group->id[2], wave.id);
  if (wave.lane >= 0) out.add(", lane %d", wave.lane);
  const Code* code = wave.current;
  if (code == nullptr) return;
  out.add("\n  pc 0x%llx", static_cast<unsigned long long>(code->pc - program.kernel().entry));
  if (code->inst != nullptr) {
    AsmText text;
    disasm(program.family(), *code->inst, text);
    out.add(": %s", text.c_str());
  }
  SourceLine line;
  if (find_line(program.object(), code->pc, line)) out.add("\n  at %s:%u", line.file.c_str(), line.line);
}

void describe_code(const Program& program, const Code& code, Text<768>& out) {
  AsmText text;
  disasm(program.family(), *code.inst, text);
  out.add("pc 0x%llx: %s", static_cast<unsigned long long>(code.pc - program.kernel().entry), text.c_str());
  SourceLine line;
  if (find_line(program.object(), code.pc, line)) out.add(" (%s:%u)", line.file.c_str(), line.line);
}

void raise_access(Wave& wave, u64 address, const Message& what) {
  t_frame->fault.address = address;
  raise(wave, FaultKind::Address, "%s", what.c_str());
}

void raise(Wave& wave, FaultKind kind, const char* format, ...) {
  FaultFrame* frame = t_frame;
  frame->wave = nullptr;
  frame->fault.kind = kind;
  frame->fault.check = frame->check;
  va_list arguments;
  va_start(arguments, format);
  frame->fault.message.add_list(format, arguments);
  va_end(arguments);
  describe_place(wave, frame->fault.message);
  siglongjmp(frame->landing, 1);
}

}  // namespace ckemu
