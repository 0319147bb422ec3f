// SPDX-License-Identifier: MIT
//
// One compute unit: waves that issue instructions to shared units. Time is in shader clock cycles.
//
// An event is a wave that tries to issue its next instruction. Events are taken in the order of time;
// of two at the same time the wave with the higher priority goes first, then the older one. A wave
// whose unit is busy tries again when the unit is free, so that an older wave may overtake it.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using i32 = int32_t;
using i64 = int64_t;
using u8 = uint8_t;

// The numbers of units, counters and constants are those of `machine.py`, which checks them.
enum Unit : i32 { Valu, Trans, Matrix, Salu, Smem, Vmem, Lds, Branch, Wait, Barrier, Internal, End, Store, kUnits };
// Why a wave does not issue: REASONS of `native.py`.
enum Reason : i32 {
  kNone,
  kLoad,
  kStore,
  kLocal,
  kScalarLoad,
  kOther,
  kBarrier,
  kMatrixResult,
  kVectorResult,
  kScalarResult,
  kVectorUnit,
  kMatrixUnit,
  kScalarUnit,
  kLocalUnit,
  kMemoryUnit,
  kNop,
  kFetch,
  kReasons
};
constexpr i32 kCounters = 6, kRanges = 10, kRegisters = 1280, kSimds = 4, kQueue = 64, kLoads = 1024;
constexpr i64 kNever = INT64_MAX / 4, kParts = 16;  // parts of a cycle
constexpr i32 kSlot = 2;  // the widest vector instruction: it has a slot beside none but the narrowest

struct Op {
  i32 unit;
  i32 issue;     // cycles until the wave may try the next instruction
  i32 busy;      // cycles of the unit
  i32 latency;   // from issue to result
  i32 counter;   // that the operation increments, or -1
  i32 bytes;     // of the wave
  i32 priority;  // that it sets, or -1
  i32 place;     // byte address of the instruction
  i32 ranges;
  i32 wait[kCounters];  // -1: none
  i32 first[kRanges], count[kRanges], writes[kRanges];
  i32 without;  // a bit for each reason that this instruction never waits for
  i32 width;    // of a vector instruction: what it takes of an issue slot that two share; -1: all
};

struct Machine {
  i32 turn;  // cycles between two issue slots of a SIMD
  i32 simds;
  i32 taken;      // cycles after a taken branch
  i32 barrier;    // from the last arrival to the first instruction behind
  i32 wait_exit;  // from the last result to the instruction behind a wait that had to wait
  i32 lds_latency;
  i32 lds_depth;  // operations of a SIMD that may be in the queue before the LDS
  i32 vmem_latency;
  i32 vmem_depth;
  i32 smem_latency;
  i32 store_latency;
  i32 return_256;              // cycles for 256 bytes that come from beyond L1, times 16
  i32 store_256;               // cycles for 256 bytes of stores, times 16
  i32 matrix_port;             // cycles that a matrix instruction takes the issue port of the VALU
  i32 valu_shared;             // whether matrix and transcendental instructions take the VALU's port
  i32 launch;                  // cycles between the end of a workgroup and the start of the next in its place
  i32 outstanding;             // bytes of loads of the compute unit that may be on their way
  i32 fetch_bytes;             // of instructions that come together; 0: fetching takes no time
  i32 fetch_cycles;            // between two such blocks
  i32 fetch_branch;            // from a branch to the block behind
  i32 smem_cold;               // latency of the first scalar load by a base register
  i32 burst;                   // cycles by which a compute unit that has not used its share may be ahead of it
  i32 adjust[kUnits][kUnits];  // [producer][consumer]: cycles beside the producer's latency; -1: no interlock
  i32 idle[kUnits];            // whether a unit's operands are waited for before the attempt (1) or after (0)
};

struct Wave {
  const i32* line;     // of each executed instruction
  const i32* cycles;   // of the memory unit, of each executed instruction; null: the operation's
  const i32* latency;  // of memory, of each executed instruction; null: the machine's
  const i32* path;     // of the way behind the L1, of each executed instruction, in parts of a cycle; null: none
  i64* start;          // results, of each executed instruction: attempt,
  i32* stall;          // cycles until the issue,
  i32* length;         // and cycles until the wave may go on
  u8* reason;          // of the most cycles lost; null: not asked for
  i64 begin;           // before which it issues nothing
  i32 count, simd, group, after;
  i32 write_256;  // how many times as long as all stores and loads a store takes the way of writes, times 256
  i64 end;        // result
};

struct Running {
  i64 now, tried;  // next attempt; first attempt of the instruction
  i64 sent;        // when its stores have left for the memory behind the L1
  i64 block_at;    // when the next block of instructions is there
  i32 block;       // the newest block that has been read
  i32 place, priority, counted[kCounters], head[kCounters];
  i64 done[kCounters][kQueue];  // completion of the newest operations of each counter
  u8 kind[kCounters][kQueue];   // and what it is to wait for them, a Reason
  i32 lost[kReasons];           // cycles of the current instruction
  i64 ready[kRegisters];
  i32 ready_latency[kRegisters];
  u8 maker[kRegisters];
  bool waiting, started, over, dependent, delayed;

  void lose(i32 reason, i64 cycles) {
    lost[reason] += static_cast<i32>(cycles);
    delayed = true;
  }
};

struct Core {
  const Machine& machine;
  const Op* ops;
  Wave* waves;
  i32 count;
  Running* run;
  i64* lost;             // cycles by line and reason; null: not asked for
  i64* when;             // of each wave, its next attempt
  i64 came[kRegisters];  // by base register, when the data of its first scalar load come; 0: not loaded
  i64 port[kSimds], unit_free[kSimds][kUnits], lds_free, ta_free, return_free, store_free, path_free, write_free;
  i64 lds_started[kSimds][kQueue], vmem_started[kSimds][kQueue], lds_bus[kSimds], returned[kLoads];
  i32 lds_sent[kSimds], vmem_sent[kSimds], load_bytes[kLoads];
  i64 loads, oldest_load, flying;
  i32 next_simd, slot_left[kSimds];  // room for a second vector instruction beside that of `port`

  static bool waits_for(const Op& op, i32 reason) { return (op.without >> reason & 1) == 0; }

  static i32 result_of(i32 unit) {
    switch (unit) {
      case Matrix: return kMatrixResult;
      case Valu:
      case Trans: return kVectorResult;
      case Lds: return kLocal;
      case Vmem: return kLoad;
      case Smem: return kScalarLoad;
      default: return kScalarResult;
    }
  }

  static i32 queue_of(i32 unit) {
    switch (unit) {
      case Matrix: return kMatrixUnit;
      case Valu:
      case Trans: return kVectorUnit;
      case Lds: return kLocalUnit;
      case Vmem:
      case Store: return kMemoryUnit;
      default: return kScalarUnit;
    }
  }

  // When the operands are there, and what the last of them is the result of.
  i64 operands(const Running& r, const Op& op, i32& reason) const {
    i64 time = 0;
    for (i32 i = 0; i < op.ranges; ++i) {
      // A register that is overwritten is waited for only where the unit keeps the order of results.
      if (op.writes[i] != 0 && op.unit != Valu && op.unit != Trans && op.unit != Matrix) continue;
      for (i32 n = op.first[i], last = op.first[i] + op.count[i]; n < last; ++n) {
        if (r.ready[n] == 0) continue;
        const i32 adjust = machine.adjust[r.maker[n]][op.unit];
        if (adjust < 0) continue;
        const bool overwrites = op.writes[i] != 0;
        if (overwrites && r.maker[n] != Matrix) continue;
        const i64 at = r.ready[n] - r.ready_latency[n] + (adjust >= 1000 ? adjust - 1000 : r.ready_latency[n] + adjust);
        const i32 maker = result_of(r.maker[n]);
        if (at > time && waits_for(op, maker)) {
          time = at;
          reason = maker;
        }
      }
    }
    return time;
  }

  void write(Running& r, const Op& op, i64 issued) const {
    for (i32 i = 0; i < op.ranges; ++i) {
      if (op.writes[i] == 0) continue;
      for (i32 n = op.first[i], last = op.first[i] + op.count[i]; n < last; ++n) {
        r.ready[n] = issued + op.latency;
        r.ready_latency[n] = op.latency;
        r.maker[n] = static_cast<u8>(op.unit);
      }
    }
  }

  // When all but `left` of the newest operations of a counter are complete.
  static i64 counted(const Running& r, const Op& op, i32 counter, i32& reason) {
    const i32 behind = r.counted[counter];
    i64 time = 0;
    for (i32 back = op.wait[counter]; back < behind && back < kQueue; ++back) {
      const i32 at = (r.head[counter] - 1 - back + 2 * kQueue) % kQueue;
      const i32 kind = r.kind[counter][at];
      if (r.done[counter][at] > time && waits_for(op, kind)) {
        time = r.done[counter][at];
        reason = kind;
      }
    }
    return time;
  }

  static void count_up(Running& r, i32 counter, i64 done, Reason kind) {
    r.done[counter][r.head[counter]] = done;
    r.kind[counter][r.head[counter]] = static_cast<u8>(kind);
    r.head[counter] = (r.head[counter] + 1) % kQueue;
    if (r.counted[counter] < kQueue) ++r.counted[counter];
  }

  static i64 later(i64 a, i64 b) { return a > b ? a : b; }

  // When so few bytes are on their way that a load may be added.
  i64 room_for(i32 bytes) const {
    i64 time = 0, left = flying;
    for (i64 n = oldest_load; n < loads && (left + bytes > machine.outstanding || loads - n >= kLoads); ++n) {
      time = returned[n % kLoads];
      left -= load_bytes[n % kLoads];
    }
    return time;
  }

  void add_load(i64 now, i32 bytes, i64 done) {
    while (oldest_load < loads && (returned[oldest_load % kLoads] <= now || loads - oldest_load >= kLoads)) {
      flying -= load_bytes[oldest_load++ % kLoads];
    }
    returned[loads % kLoads] = done;
    load_bytes[loads++ % kLoads] = bytes;
    flying += bytes;
  }

  // Whether a vector instruction may issue in the slot of another wave's.
  bool beside(const Op& op, i32 simd) const { return op.width >= 0 && op.width <= slot_left[simd]; }

  // The earliest time at which the unit takes the instruction.
  i64 unit_time(const Wave& w, const Op& op, i64 now) const {
    const i32 s = w.simd;
    switch (op.unit) {
      case Valu: return now >= port[s] || beside(op, s) ? now : port[s];
      case Trans:
      case Matrix: return later(later(now, machine.valu_shared != 0 ? port[s] : 0), unit_free[s][op.unit]);
      case Salu:
      case Branch:
      case Smem: return later(now, unit_free[s][op.unit]);
      case Lds: {
        const i64 oldest =
            lds_sent[s] < machine.lds_depth ? 0 : lds_started[s][(lds_sent[s] - machine.lds_depth) % kQueue];
        return later(later(now, lds_bus[s >> 1]), later(unit_free[s][Lds], oldest));
      }
      case Vmem:
      case Store: {
        const i64 oldest =
            vmem_sent[s] < machine.vmem_depth ? 0 : vmem_started[s][(vmem_sent[s] - machine.vmem_depth) % kQueue];
        return later(later(later(now, unit_free[s][Vmem]), oldest), op.unit == Vmem ? room_for(op.bytes) : 0);
      }
      default: return now;
    }
  }

  // When the lines of an access that are not in the L1 have come, but for the latency. Compute units
  // begin together, so none is ahead of its share at first.
  i64 behind(const Wave& w, const Running& r, i64 now) {
    const i32 parts = w.path != nullptr ? w.path[r.place] : 0;
    if (parts == 0) return now;
    const i64 ahead = machine.burst * kParts;
    path_free = later(path_free == 0 ? now * kParts + ahead : path_free, now * kParts) + parts;
    return later(now, path_free / kParts - machine.burst);
  }

  // When the data of a scalar load without an address come: loads by one base register are taken to be
  // of one structure, which the first of them, by any wave, brings into the scalar cache.
  i64 scalar_data(const Op& op, i64 t) {
    i32 n = 0;
    while (n < op.ranges && op.writes[n] != 0) ++n;
    i64& there = came[n < op.ranges ? op.first[n] : 0];
    if (there == 0) there = t + machine.smem_cold;
    return later(t + machine.smem_latency, there);
  }

  void occupy(Wave& w, Running& r, const Op& op, i64 t) {
    const i32 s = w.simd;
    const i32 cycles = w.cycles != nullptr && w.cycles[r.place] >= 0 ? w.cycles[r.place] : op.busy;
    const i32 given = w.latency != nullptr ? w.latency[r.place] : -1;
    switch (op.unit) {
      case Valu:
        if (t < port[s]) {
          slot_left[s] = -1;
          break;
        }
        port[s] = t + op.busy;
        slot_left[s] = op.width == 0 ? kSlot : op.width == 1 ? 1 : -1;
        break;
      case Trans:
        slot_left[s] = -1;
        port[s] = t + (machine.valu_shared != 0 ? op.issue : 1);
        unit_free[s][Trans] = t + op.busy;
        break;
      case Matrix:
        slot_left[s] = -1;
        port[s] = t + machine.matrix_port;
        unit_free[s][Matrix] = t + op.busy;
        break;
      case Salu:
      case Branch: unit_free[s][op.unit] = t + machine.turn; break;
      case Smem:
        unit_free[s][Smem] = t + machine.turn;
        count_up(r, op.counter, given >= 0 ? t + given : scalar_data(op, t), kScalarLoad);
        break;
      case Lds: {
        unit_free[s][Lds] = t + op.issue;
        if (op.issue > machine.turn) lds_bus[s >> 1] = t + op.issue;  // addresses and data of writes
        const i64 begin = later(t, lds_free);
        lds_free = begin + cycles;
        lds_started[s][lds_sent[s]++ % kQueue] = begin;
        if (op.counter >= 0) count_up(r, op.counter, lds_free + machine.lds_latency, kLocal);
        break;
      }
      case Vmem: {
        unit_free[s][Vmem] = t + op.issue;
        const i64 begin = later(t, ta_free);
        ta_free = begin + cycles;
        vmem_started[s][vmem_sent[s]++ % kQueue] = begin;
        const i32 latency = given >= 0 ? given : machine.vmem_latency;
        return_free = later(return_free + static_cast<i64>(op.bytes) * machine.return_256 / 4096,
                            behind(w, r, ta_free) + latency);
        add_load(t, op.bytes, return_free);
        if (op.counter >= 0) count_up(r, op.counter, return_free, kLoad);
        break;
      }
      case Store: {
        unit_free[s][Vmem] = t + op.issue;
        const i64 begin = later(t, later(ta_free, store_free));
        ta_free = later(t, ta_free) + cycles;
        store_free = begin + later(cycles, static_cast<i64>(op.bytes) * machine.store_256 / 4096);
        vmem_started[s][vmem_sent[s]++ % kQueue] = begin;
        const i64 parts = w.path != nullptr ? w.path[r.place] : 0;
        write_free = later(write_free, store_free * kParts) + parts * w.write_256 / 256;
        r.sent = later(behind(w, r, store_free), write_free / kParts);
        if (op.counter >= 0) count_up(r, op.counter, r.sent + (given >= 0 ? given : machine.store_latency), kStore);
        break;
      }
      default: break;
    }
  }

  void note_lost(Wave& w, Running& r) const {
    if (!r.delayed) return;
    i32 most = kNone;
    for (i32 reason = 1; reason < kReasons; ++reason) {
      if (r.lost[reason] > r.lost[most]) most = reason;
      if (lost != nullptr) lost[w.line[r.place] * kReasons + reason] += r.lost[reason];
    }
    if (w.reason != nullptr) w.reason[r.place] = static_cast<u8>(most);
    memset(r.lost, 0, sizeof r.lost);
    r.delayed = false;
  }

  void finish(Wave& w, Running& r, const Op& op, i64 t, i64 length) {
    const i32 n = r.place;
    if (w.start != nullptr) {
      w.start[n] = r.tried;
      w.stall[n] = static_cast<i32>(t - r.tried);
      w.length[n] = static_cast<i32>(t + length - r.tried);
    }
    note_lost(w, r);
    i64 next = t + length;
    if (op.unit == Branch && n + 1 < w.count) {
      const bool taken = w.line[n + 1] != w.line[n] + 1;
      if (taken) next += machine.taken;
      r.block_at = t + machine.fetch_branch + (taken ? machine.fetch_cycles : 0);
      if (taken && machine.fetch_bytes > 0) r.block = ops[w.line[n + 1]].place / machine.fetch_bytes;
    }
    if (op.priority >= 0) r.priority = op.priority;
    ++r.place;
    r.now = next;
    r.started = false;
    if (r.place == w.count) {
      r.over = true;
      w.end = t + length;
    }
  }

  // The last wave of a workgroup has come to a barrier, or has ended.
  void release(i32 group) {
    i64 last = 0;
    for (i32 i = 0; i < count; ++i) {
      if (waves[i].group != group) continue;
      if (!run[i].waiting && !run[i].over) return;
      if (run[i].waiting && run[i].now > last) last = run[i].now;
    }
    for (i32 i = 0; i < count; ++i) {
      if (waves[i].group != group || !run[i].waiting) continue;
      run[i].waiting = false;
      const Op& op = ops[waves[i].line[run[i].place]];
      run[i].lose(kBarrier, last + machine.barrier - run[i].now);
      finish(waves[i], run[i], op, last + machine.barrier, 0);
    }
  }

  void fetch(Running& r, const Op& op) const {
    if (machine.fetch_bytes == 0) return;
    const i32 block = op.place / machine.fetch_bytes;
    if (block == r.block) return;
    r.block = block;
    const i64 at = later(r.now, r.block_at);
    if (waits_for(op, kFetch)) {
      r.lose(kFetch, at - r.now);
      r.now = at;
    }
    r.block_at += machine.fetch_cycles;
  }

  void step(i32 index) {
    Wave& w = waves[index];
    Running& r = run[index];
    const Op& op = ops[w.line[r.place]];
    if (!r.started) {
      r.started = true;
      r.dependent = false;
      fetch(r, op);
      r.tried = r.now;
    }
    if (!r.dependent) {
      r.dependent = true;
      i32 reason = kNone;
      const i64 at = operands(r, op, reason);
      if (at > r.now) {
        r.lose(reason, at - r.now);
        if (machine.idle[op.unit] != 0) r.tried = at;
        r.now = at;
        return;
      }
    }
    if (op.unit == Wait) {
      i64 at = 0;
      i32 reason = kNone;
      for (i32 c = 0; c < kCounters; ++c) {
        i32 kind = kNone;
        const i64 done = op.wait[c] >= 0 ? counted(r, op, c, kind) : 0;
        if (done > at) {
          at = done;
          reason = kind;
        }
      }
      const bool waits = at > r.now;
      const i64 t = waits ? at + machine.wait_exit : r.now;
      if (waits) r.lose(reason, t - r.now);
      // A counter that stands at n has no older operations that could still be waited for.
      for (i32 c = 0; c < kCounters; ++c) {
        if (op.wait[c] >= 0 && r.counted[c] > op.wait[c]) r.counted[c] = op.wait[c];
      }
      return finish(w, r, op, t + op.issue, 0);
    }
    if (op.unit == End && r.sent > r.now && waits_for(op, kStore)) {
      r.lose(kStore, r.sent - r.now);
      r.now = r.sent;
      return;
    }
    if (op.unit == Barrier && !waits_for(op, kBarrier)) return finish(w, r, op, r.now, 0);
    if (op.unit == Barrier) {
      r.waiting = true;
      return release(w.group);
    }
    if (op.unit == Internal) {
      const i32 cycles = waits_for(op, kNop) ? op.issue : 0;
      r.lose(kNop, cycles);
      return finish(w, r, op, r.now + cycles, 0);
    }
    const i32 queue = queue_of(op.unit);
    const i64 t = waits_for(op, queue) ? unit_time(w, op, r.now) : r.now;
    if (t > r.now) {
      r.lose(queue, t - r.now);
      r.now = t;
      return;
    }
    occupy(w, r, op, t);
    write(r, op, t);
    finish(w, r, op, t, op.issue);
    if (r.over) release(w.group);
  }

  bool begin(i32 index) {
    Wave& w = waves[index];
    Running& r = run[index];
    if (r.now != kNever || w.after < 0) return false;
    i64 last = 0;
    for (i32 i = 0; i < count; ++i) {
      if (waves[i].group != w.after) continue;
      if (!run[i].over) return false;
      last = later(last, waves[i].end);
    }
    r.now = later(last + machine.launch, w.begin);
    return true;
  }

  // Of waves at the same time: SIMDs in turn; of one SIMD the higher priority, then the older wave.
  bool goes_first(i32 a, i32 b) const {
    const Running &x = run[a], &y = run[b];
    if (x.now != y.now) return x.now < y.now;
    const i32 s = (waves[a].simd - next_simd) & (kSimds - 1), t = (waves[b].simd - next_simd) & (kSimds - 1);
    if (s != t) return s < t;
    return x.priority > y.priority;
  }

  // When a wave tries to issue; `kNever` if it has ended, waits for others or has no place yet.
  i64 attempt(i32 index) const {
    const Running& r = run[index];
    return r.over || r.waiting ? kNever : r.now;
  }

  // The waves from `first` on; `last` is behind those that have a place.
  void note_attempts(i32& first, i32& last) {
    for (i32 i = 0; i < count; ++i) when[i] = attempt(i);
    while (first < count && run[first].over) ++first;
    last = count;
    while (last > first && when[last - 1] >= kNever) --last;
  }

  i64 all() {
    i64 executed = 0;
    i32 first = 0, last = 0;
    note_attempts(first, last);
    for (;;) {
      i32 best = -1;
      i64 earliest = kNever;
      for (i32 i = first; i < last; ++i) {
        if (when[i] > earliest || when[i] >= kNever) continue;
        if (when[i] == earliest && !goes_first(i, best)) continue;
        best = i;
        earliest = when[i];
      }
      if (best < 0) break;
      next_simd = waves[best].simd + 1;
      const bool alone = ops[waves[best].line[run[best].place]].unit != Barrier;
      step(best);
      if (run[best].over) {
        for (i32 i = 0; i < count; ++i) begin(i);
      }
      if (alone && !run[best].over) when[best] = attempt(best);
      else note_attempts(first, last);
      ++executed;
    }
    return executed;
  }
};

}  // namespace

/// Runs the waves to their ends. Waves of one group share barriers; older waves come first.
/// `lost`, if it is not null, has the cycles that waves lose, by line and reason.
/// @return the number of attempts to issue, or -1 if there is no memory.
extern "C" i64 ck_compute_unit(const Machine* machine, const Op* ops, Wave* waves, i32 count, i64* lost) {
  auto* run = static_cast<Running*>(calloc(static_cast<size_t>(count), sizeof(Running)));
  auto* when = static_cast<i64*>(calloc(static_cast<size_t>(count), sizeof(i64)));
  if (run == nullptr || when == nullptr) {
    free(run);
    free(when);
    return -1;
  }
  Core core{*machine, ops, waves, count, run, lost, when};
  for (i32& left : core.slot_left) left = -1;
  for (i32 i = 0; i < count; ++i) {
    run[i].now = waves[i].after < 0 ? waves[i].begin : kNever;
    if (waves[i].count == 0) {
      run[i].over = true;
      waves[i].end = waves[i].begin;
    }
  }
  const i64 attempts = core.all();
  free(run);
  free(when);
  return attempts;
}
