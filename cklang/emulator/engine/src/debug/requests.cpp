// SPDX-License-Identifier: MIT
#include "debug/requests.h"

#include <algorithm>

#include "checks/recording.h"
#include "core/packer.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

constexpr size_t kWords = 5;              // arguments of the longest request
constexpr u64 kMostBytes = u64{1} << 30;  // of memory in one answer

/// A request without its array.
struct Words {
  u64 kind = 0;
  u64 argument[kWords] = {};
};

u32 slot_of(const Execution& execution, const Wave& wave) {
  const bool failed = execution.fault().kind != FaultKind::None && &wave == execution.wave_at_turn();
  const Code* code = failed || wave.state == WaveState::Ended ? wave.current : wave.next;
  return code != nullptr ? code->slot : 0;
}

void pack_stop(const Debugger& debugger, Packer& out) {
  const Execution& execution = debugger.execution;
  const Wave* wave = execution.wave_at_turn();
  out.number(static_cast<u64>(debugger.stop().reason));
  out.number(debugger.stop().breakpoint);
  out.number(execution.steps());
  out.number(wave != nullptr ? execution.turn().number : kAny);
  out.number(wave != nullptr ? wave->id : kAny);
  Message message = execution.fault().message;
  if (execution.fault().address != 0) describe_address(execution.fault().address, message);
  out.text(message.c_str());
}

void pack_launch(const Debugger& debugger, const char* gpu, Packer& out) {
  const Launch& launch = debugger.execution.launch();
  const Program& program = *launch.program;
  const Kernel& kernel = program.kernel();
  pack_code(RecordedCode(program), out);
  pack_facts(*describe_launch(launch, gpu), out);
  out.number(program.image() + program.base());
  out.number((kernel.entry - program.base()) / 4);
  out.number(kernel.accum_offset);
  out.number(reinterpret_cast<u64>(launch.kernarg));
  out.number(kernel.arguments.size());
  for (const KernelArgument& argument : kernel.arguments) {
    out.number(argument.offset);
    out.number(argument.size);
    out.text(argument.kind);
  }
}

void pack_waves(const Execution& execution, Packer& out) {
  u64 count = 0;
  for (const auto& each : execution.groups()) count += each->group.waves.size();
  out.number(execution.begun());
  out.number(count);
  for (const auto& each : execution.groups()) {
    for (const Wave& wave : each->group.waves) {
      const u64 facts[] = {each->number,
                           wave.id,
                           static_cast<u64>(wave.state),
                           slot_of(execution, wave),
                           each->executed[wave.id],
                           wave.exec(),
                           wave.vcc(),
                           wave.scc,
                           wave.mode};
      for (const u64 fact : facts) out.number(fact);
    }
  }
}

const Wave* wave_of(const Execution& execution, const Words& words) {
  const LiveGroup* group = execution.live(words.argument[0]);
  const u64 number = words.argument[1];
  return group != nullptr && number < group->group.waves.size() ? &group->group.waves[number] : nullptr;
}

void pack_rows(const Wave* wave, u64 first, u64 count, Packer& out) {
  const u64 rows = wave != nullptr ? wave->rows : 0;
  const u64 end = std::min(rows, first + std::min(count, rows));
  for (u64 row = std::min(first, end); row < end; ++row) out.raw(wave->v[row], sizeof(Row64));
}

void pack_local(const LiveGroup* group, u64 offset, u64 size, Packer& out) {
  if (group == nullptr) return;
  const Wave& any = group->group.waves.front();
  const u64 begin = std::min<u64>(offset, any.lds_bytes);
  out.raw(any.lds + begin, std::min(size, any.lds_bytes - begin));
}

void pack_scratch(const Wave* wave, const Words& words, Packer& out) {
  const u64 lane = words.argument[2] % kLanes;
  for (u64 at = words.argument[3];
       wave != nullptr && at < words.argument[3] + words.argument[4] && at < wave->scratch_bytes; ++at) {
    out.raw(wave->scratch + (at / 4 * kLanes + lane) * 4 + at % 4, 1);
  }
}

struct Reading {
  const u8* from;
  u64 size;
  Packer* out;
  u64 done;
};

/// Reads as far as there is memory.
void pack_memory(u64 address, u64 size, Packer& out) {
  Reading reading{reinterpret_cast<const u8*>(address), std::min(size, kMostBytes), &out, 0};
  survives(
      [](void* context) {
        Reading& each = *static_cast<Reading*>(context);
        for (; each.done < each.size; ++each.done) {
          const u8 byte = *static_cast<const volatile u8*>(each.from + each.done);
          each.out->bytes.push_back(byte);
        }
      },
      &reading);
}

void pack_allocations(Packer& out) {
  const std::vector<Allocation> all = all_allocations();
  out.number(all.size());
  for (const Allocation& each : all) {
    for (const u64 fact : {each.base, u64{each.size}, static_cast<u64>(each.device), each.number}) out.number(fact);
  }
}

template <class T>
std::vector<T> array_of(const u8* bytes, size_t size) {
  std::vector<T> values(size / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes, values.size() * sizeof(T));
  return values;
}

}  // namespace

bool answer_request(Debugger& debugger, const char* gpu, const u8* bytes, size_t size, std::vector<u8>& answer) {
  Words words;
  if (size < sizeof words) return false;
  std::memcpy(&words, bytes, sizeof words);
  const u8* array = bytes + sizeof words;
  const size_t rest = size - sizeof words;
  const Execution& execution = debugger.execution;
  const u64* argument = words.argument;
  Packer out;
  switch (static_cast<Request>(words.kind)) {
    case Request::Launch: pack_launch(debugger, gpu, out); break;
    case Request::Breakpoints: debugger.conditions.set_breakpoints(array_of<Breakpoint>(array, rest)); break;
    case Request::Lines: debugger.conditions.set_lines(array_of<u32>(array, rest)); break;
    case Request::Run:
      debugger.run({static_cast<Until>(argument[0]), argument[1], argument[2], argument[3]});
      pack_stop(debugger, out);
      break;
    case Request::Where: pack_stop(debugger, out); break;
    case Request::Waves: pack_waves(execution, out); break;
    case Request::Scalars:
      if (const Wave* wave = wave_of(execution, words)) out.raw(wave->s, 128 * sizeof(u32));
      break;
    case Request::Rows: pack_rows(wave_of(execution, words), argument[2], argument[3], out); break;
    case Request::Local: pack_local(execution.live(argument[0]), argument[1], argument[2], out); break;
    case Request::Scratch: pack_scratch(wave_of(execution, words), words, out); break;
    case Request::Memory: pack_memory(argument[0], argument[1], out); break;
    case Request::Allocations: pack_allocations(out); break;
    case Request::Release:
    case Request::Interrupt: break;
    default: return false;
  }
  answer = static_cast<std::vector<u8>&&>(out.bytes);
  return true;
}

}  // namespace ckemu
