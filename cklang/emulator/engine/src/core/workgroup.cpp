// SPDX-License-Identifier: MIT
#include "core/workgroup.h"

#include <algorithm>
#include <new>

#include "checks/reports.h"
#include "core/execute.h"
#include "core/immortal.h"
#include "core/mutex.h"

namespace ckemu {

namespace {

// Instructions before another wave of the group gets its turn. Few, since a GPU's waves go on side by
// side: hand-written kernels reuse local memory without a barrier where no wave can be far behind.
constexpr i64 kWaveShare = 32;

/// kernel_code_properties: which user SGPRs the kernel asks for, in order.
enum Property : u32 {
  kPrivateSegmentBuffer = 1 << 0,
  kDispatchPtr = 1 << 1,
  kQueuePtr = 1 << 2,
  kKernargPtr = 1 << 3,
  kDispatchId = 1 << 4,
  kFlatScratchInit = 1 << 5,
  kPrivateSegmentSize = 1 << 6,
};

// What is kept of workgroups of launches that are over.
constexpr size_t kMostSpares = 64, kMostSpareBytes = size_t{32} << 20;

struct Spares {
  Mutex lock;
  std::vector<std::unique_ptr<Workgroup>> groups;
  size_t bytes = 0;
};
Spares& spares() { return immortal<Spares>(); }

size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Writes SGPRs one after the other.
class SgprWriter {
 public:
  explicit SgprWriter(Wave& wave) : wave_(wave) {}
  void put(u32 value) { wave_.s[next_++] = value; }
  void put64(u64 value) {
    put(static_cast<u32>(value));
    put(static_cast<u32>(value >> 32));
  }
  void skip_to(u32 index) { next_ = std::max(next_, index); }

 private:
  Wave& wave_;
  u32 next_ = 0;
};

/// A resource that swizzles dwords by lane over the wave's scratch.
void put_scratch_resource(SgprWriter& sgprs, const Wave& wave) {
  const u64 base = reinterpret_cast<u64>(wave.scratch);
  sgprs.put64(base | u64{1} << 63);                      // swizzle enabled, no stride
  sgprs.put(wave.scratch_bytes * kLanes);                // bytes
  sgprs.put(1u << 23 | 3u << 21 | 1u << 19 | 4u << 12);  // add lane, 64 lanes, dwords
}

void put_user_sgprs(SgprWriter& sgprs, Wave& wave, const Launch& launch) {
  const Kernel& kernel = launch.program->kernel();
  const u32 wanted = kernel.properties;
  const u64 kernarg = reinterpret_cast<u64>(launch.kernarg);
  if ((wanted & kPrivateSegmentBuffer) != 0) put_scratch_resource(sgprs, wave);
  if ((wanted & kDispatchPtr) != 0) sgprs.put64(reinterpret_cast<u64>(&launch.packet));
  if ((wanted & kQueuePtr) != 0) sgprs.put64(launch.queue);
  if ((wanted & kKernargPtr) != 0) sgprs.put64(kernarg);
  if ((wanted & kDispatchId) != 0) sgprs.put64(0);
  if ((wanted & kFlatScratchInit) != 0) sgprs.put64(0);
  if ((wanted & kPrivateSegmentSize) != 0) sgprs.put(wave.scratch_bytes);
  for (u32 n = 0; n < kernel.preload_dwords; ++n) {
    sgprs.put(load_as<u32>(launch.kernarg + 4 * (kernel.preload_offset + n)));
  }
  sgprs.skip_to(kernel.user_sgprs);
}

}  // namespace

Arena::~Arena() { operator delete[](memory_, std::align_val_t{64}); }

u8* Arena::reserve(size_t bytes, bool& fresh) {
  fresh = bytes > size_;
  if (fresh) {
    operator delete[](memory_, std::align_val_t{64});
    memory_ = static_cast<u8*>(operator new[](bytes, std::align_val_t{64}));
    size_ = bytes;
    std::memset(memory_, 0, bytes);
  }
  return memory_;
}

std::unique_ptr<Workgroup> take_spare(const Program& program) {
  Spares& all = spares();
  const Guard guard(all.lock);
  if (all.groups.empty()) return nullptr;
  const auto same = [&](const std::unique_ptr<Workgroup>& group) { return group->layout.program == program.serial(); };
  auto found = std::find_if(all.groups.begin(), all.groups.end(), same);
  if (found == all.groups.end()) found = all.groups.end() - 1;
  std::swap(*found, all.groups.back());
  std::unique_ptr<Workgroup> group = static_cast<std::unique_ptr<Workgroup>&&>(all.groups.back());
  all.groups.pop_back();
  all.bytes -= group->arena.size();
  return group;
}

void keep_spare(std::unique_ptr<Workgroup>&& group) {
  if (!group->checks.empty()) return;  // they know the launch
  Spares& all = spares();
  const Guard guard(all.lock);
  if (all.groups.size() == kMostSpares || all.bytes + group->arena.size() > kMostSpareBytes) return;
  all.bytes += group->arena.size();
  all.groups.push_back(static_cast<std::unique_ptr<Workgroup>&&>(group));
}

void Workgroup::place(u64 number) {
  id[0] = static_cast<u32>(number % launch->groups[0]);
  id[1] = static_cast<u32>(number / launch->groups[0] % launch->groups[1]);
  id[2] = static_cast<u32>(number / launch->groups[0] / launch->groups[1]);
}

/// Zeros. Of a workgroup of the same program before, what no instruction names has stayed zero.
u8* Workgroup::cleared_memory(const Layout& wanted) {
  const size_t wave = wanted.registers + wanted.scratch, bytes = wanted.lds + wanted.waves * wave + 64;
  bool fresh = false;
  u8* memory = arena.reserve(bytes, fresh);
  const bool same = wanted == layout;
  layout = wanted;
  if (fresh) return memory;
  if (!same) {
    std::memset(memory, 0, bytes);
    return memory;
  }
  std::memset(memory, 0, wanted.lds);
  const size_t named = sizeof(Row64) * launch->program->named_rows(), spare = sizeof(Row64) * kSpareRows;
  for (u32 n = 0; n < wanted.waves; ++n) {
    u8* own = memory + wanted.lds + n * wave;
    std::memset(own, 0, named);
    std::memset(own + wanted.registers - spare, 0, spare + wanted.scratch);
  }
  return memory;
}

void Workgroup::begin(const Launch& what, u64 number) {
  launch = &what;
  place(number);
  const Kernel& kernel = what.program->kernel();
  const u32 lanes = kernel.wave_size, count = (what.threads() + lanes - 1) / lanes;
  const size_t registers = sizeof(Row64) * (kernel.register_rows + kSpareRows);
  const size_t scratch = padded(size_t{what.scratch_bytes} * kLanes);
  const size_t lds = padded(what.lds_bytes);
  u8* memory = cleared_memory({what.program->serial(), lds, registers, scratch, count});
  waves.assign(count, Wave{});
  done = false;
  phase = arrived = 0;
  for (u32 n = 0; n < count; ++n) {
    Wave& wave = waves[n];
    wave.lds = memory;
    wave.lds_bytes = what.lds_bytes;
    u8* own = memory + lds + n * (registers + scratch);
    start_wave(n, own, own + registers);
  }
  begin_checks(number);
}

void Workgroup::begin_checks(u64 number) {
  const u32 asked = launch->checks, count = static_cast<u32>(waves.size());
  checks.clear();
  order = nullptr;
  const bool record = launch->record != nullptr && is_recorded(number, launch->total());
  dice_ = Dice(launch->schedule, number);
  if ((asked & ~u32{kCheckTiming}) == 0 && !record && launch->schedule == 0) return;
  checks.resize(count);
  const bool races = (asked & kCheckRaces) != 0 && count > 1, uninitialized = (asked & kCheckUninitialized) != 0;
  const bool bounds = (asked & kCheckMemory) != 0;
  const bool local = races || uninitialized || bounds;
  const bool ordered = count > 1 && (asked & (kCheckRaces | kCheckGlobalRaces)) != 0;
  order = ordered ? std::make_unique<WaveOrder>(count, launch->program->family()) : nullptr;
  const WaveOrder* among = races ? order.get() : nullptr;
  if (local) local_checks.begin(launch->lds_bytes, among, uninitialized, bounds);
  const bool looks_at_memory =
      launch->races != nullptr || (asked & (kCheckMemory | kCheckHost | kCheckUninitialized | kCheckUnwritten)) != 0;
  for (u32 n = 0; n < count; ++n) {
    if ((asked & kCheckWaits) != 0) checks[n].waits = std::make_unique<Waits>(waves[n].rows);
    checks[n].order = order.get();
    checks[n].local = local ? &local_checks : nullptr;
    checks[n].accesses = looks_at_memory ? &accesses : nullptr;
    checks[n].stepwise = launch->stepwise;
    checks[n].between = launch->races;
    checks[n].written = (asked & (kCheckUninitialized | kCheckUnwritten)) != 0;
    checks[n].journal = launch->journal;
    checks[n].range = (asked & kCheckRange) != 0;
    checks[n].barriers = (asked & kCheckBarriers) != 0;
    if (uninitialized && waves[n].scratch_bytes != 0)
      checks[n].own = std::make_unique<PrivateChecks>(waves[n].scratch_bytes);
    if ((asked & kCheckNumeric) != 0) checks[n].numeric = std::make_unique<Numeric>();
    if (launch->schedule != 0) checks[n].late = std::make_unique<Late>(launch->schedule, number, n);
    if ((asked & kCheckHazards) != 0) {
      checks[n].hazards = std::make_unique<Hazards>(*launch->program, waves[n].rows, waves[n].lanes);
    }
    if ((asked & (kCheckMemory | kCheckHost)) != 0) {
      if (global_checks == nullptr) global_checks = std::make_unique<GlobalChecks>(*launch, bounds);
      checks[n].global = global_checks.get();
    }
    if (record) checks[n].record = record_wave(*launch->record, number, n);
    checks[n].may_pass = reports_may_pass();
    waves[n].asks = checks[n].asked();
    waves[n].checks = &checks[n];
  }
}

void Workgroup::start_wave(u32 number, u8* registers, u8* scratch) {
  Wave& wave = waves[number];
  const Kernel& kernel = launch->program->kernel();
  wave.v = reinterpret_cast<Row64*>(registers);
  wave.rows = kernel.register_rows;
  wave.scratch = scratch;
  wave.scratch_bytes = launch->scratch_bytes;
  wave.id = static_cast<u8>(number);
  wave.group = this;
  wave.program = launch->program;
  wave.mode = kernel.mode;
  wave.next = launch->program->entry();
  wave.lanes = kernel.wave_size;
  const u32 first = number * wave.lanes;
  const u32 count = std::min<u32>(wave.lanes, launch->threads() - first);
  wave.set_exec(count == kLanes ? ~u64{0} : (u64{1} << count) - 1);
  SgprWriter sgprs(wave);
  put_user_sgprs(sgprs, wave, *launch);
  const bool in_traps = launch->program->family() == Family::Rdna4;
  if (in_traps) put_trap_registers(wave);
  for (int axis = 0; axis < 3 && !in_traps; ++axis) {
    if (kernel.group_id[axis]) sgprs.put(id[axis]);
  }
  if (kernel.group_info && !in_traps) sgprs.put(static_cast<u32>(waves.size()));
  const bool architected = launch->program->family() != Family::Cdna2;
  if (kernel.private_segment && !architected) sgprs.put(0);  // each wave has a resource of its own
  if (launch->block[0] == launch->threads()) {
    for (u32 l = 0; l < count; ++l) wave.v[0][l] = first + l;
    return;
  }
  u32 x = first % launch->block[0], y = first / launch->block[0] % launch->block[1];
  u32 z = first / launch->block[0] / launch->block[1];
  for (u32 l = 0; l < count; ++l) {
    wave.v[0][l] = x | (kernel.item_id_dims > 0 ? y << 10 : 0) | (kernel.item_id_dims > 1 ? z << 20 : 0);
    if (++x < launch->block[0]) continue;
    x = 0;
    if (++y == launch->block[1]) y = 0, ++z;
  }
}

/// gfx12 has the workgroup's and the wave's number in registers of the trap handler.
void Workgroup::put_trap_registers(Wave& wave) const {
  const bool* wanted = launch->program->kernel().group_id;
  wave.s[kTtmp0 + 7] = (wanted[1] ? id[1] : 0) | (wanted[2] ? id[2] << 16 : 0);
  wave.s[kTtmp0 + 8] = u32{wave.id} << 25;
  wave.s[kTtmp0 + 9] = id[0];
}

/// The wave has arrived at the split barrier; true if it is the first of its phase.
bool Workgroup::signal(Wave& wave) {
  wave.signalled = phase;
  const bool first = arrived++ == 0;
  complete_phase();
  return first;
}

u32 Workgroup::living() const {
  u32 count = 0;
  for (const Wave& wave : waves) count += wave.state != WaveState::Ended;
  return count;
}

/// Ends a phase of the split barrier at which all waves have arrived that have not ended.
void Workgroup::complete_phase() {
  if (arrived == 0 || arrived < living()) return;
  arrived = 0;
  ++phase;
  release_waiting();
}

void Workgroup::release_barrier() {
  if (phase != 0 || arrived != 0) return complete_phase();
  release_waiting();
}

void Workgroup::release_waiting() {
  for (Wave& wave : waves) {
    if (wave.state == WaveState::Barrier) wave.state = WaveState::Ready;
  }
}

i64 Workgroup::share() { return launch->schedule == 0 ? kWaveShare : i64{1} + dice_.below(4 * kWaveShare); }

u32 Workgroup::first_turn() { return launch->schedule == 0 ? 0 : dice_.below(static_cast<u32>(waves.size())); }

void Workgroup::run(Counters& counters, Broadcasts& spread, i64 budget) {
  const u32 count = static_cast<u32>(waves.size());
  while (budget > 0) {
    u32 ended = 0, waiting = 0, slept = 0;
    const u32 first = first_turn();
    for (u32 turn = 0; turn < count; ++turn) {
      Wave& wave = waves[(first + turn) % count];
      if (wave.state == WaveState::Ready) {
        fault_frame()->wave = &wave;
        wave.counters = &counters;
        wave.spread = &spread;
        budget -= run_wave(wave, share());
        slept += wave.yielded;
      }
      ended += wave.state == WaveState::Ended;
      waiting += wave.state == WaveState::Barrier;
    }
    budget -= 1;
    if (ended == waves.size()) {
      done = true;
      return;
    }
    if (ended + waiting == waves.size()) {
      release_barrier();
    } else if (ended + waiting + slept == waves.size()) {
      return;  // everyone sleeps or waits for a sleeper: let other workgroups go on
    }
  }
}

}  // namespace ckemu
