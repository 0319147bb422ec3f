/* SPDX-License-Identifier: MIT
 *
 * What the emulator tells beyond HIP. Plain C; every function may be called from any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last launches of a device. Instructions are counted per wave. */
struct ckemu_stats {
  uint64_t instructions;
  uint64_t valu, salu, mfma, lds, memory, scalar_memory;
  uint64_t workgroups, waves;
  uint64_t mfma_flops;
  uint64_t bytes_loaded, bytes_stored; /* buffer (in range), global, flat and scalar accesses */
  uint64_t nanoseconds;                /* wall time in the engine */
};

/* Registers and memory of a kernel, as its code object states them. */
struct ckemu_kernel {
  uint32_t sgprs, vgprs, agprs; /* agprs are included in vgprs on GPUs with one register file */
  uint32_t sgpr_spills, vgpr_spills;
  uint32_t lds_bytes, scratch_bytes, kernarg_bytes, max_threads;
};

/* The long text of the calling thread's last failed call or faulted launch; "" if none. */
const char* ckemu_last_error(void);

/* The text of the fault that made `device` fail; "" if it has not. */
const char* ckemu_fault(int device);

/* The sums over the device's last `launches` launches. 0, or -1 if there is no such device, it has not launched so
 * many, or they are more than CKEMU_PAST_LAUNCHES, which it remembers. */
#define CKEMU_PAST_LAUNCHES 8
int ckemu_get_stats(int device, unsigned launches, struct ckemu_stats* stats);

/* The calling thread says (1) that it waits for what it enqueues from now on, as by hipStreamSynchronize, or (0) that
 * it does not. As it runs these commands itself while it waits, no other thread is woken for them. The word holds
 * until its next wait. */
void ckemu_promise_to_wait(int promised);

/* How many workgroups the launches that run now have, and how many of them have ended. */
void ckemu_workgroups(uint64_t* ended, uint64_t* total);

/* Whether launches from now on, of any thread, return when their kernels are done (1) or at once (0). Returns what held
 * before; at first HIP_LAUNCH_BLOCKING says. */
int ckemu_let_launches_wait(int wait);

/* Calls `emit` with each distinct operation of the last launch and how often waves executed it. */
int ckemu_fidelity(int device, void (*emit)(void* context, const char* operation, uint64_t count), void* context);

/* How matrix products are rounded in launches from now on: 0 "fma", 1 "exact", 2 "cdna3". */
void ckemu_set_numerics(int numerics);

/* What launches from now on translate to host code: 0 nothing, 1 what they execute often, 2 all that they execute. */
void ckemu_set_translation(int what);

/* What launches from now on compute with: vectors of 256 or 512 bits; -1 where the CPU has no such vectors. With 256
   nothing is translated. */
int ckemu_set_vectors(int bits);

/* What launches from now on fail for: 1 missing waits, 2 races in local memory, 4 reads of local memory
   that nobody has written, 8 accesses behind the end of an allocation; or several. */
void ckemu_sanitize(unsigned checks);

/* In which order launches from now on execute, by its number: waves and workgroups take turns in another order, and
 * memory operations take effect later than they are issued, under 1 as late as waits allow. 0: the usual one. */
void ckemu_set_schedule(uint64_t number);

/* The process hosts the emulator and is no HIP program: all devices are visible whatever code it registers,
 * kernels may reach all of its memory, and faults are printed but not the end of it. To be called before
 * any HIP call. */
void ckemu_embed(void);

/* Prints no faults from now on: the host asks for them (ckemu_fault). */
void ckemu_quiet(void);

/* How many milliseconds a launch may take before it ends with where its waves stand; 0: any number. */
void ckemu_set_timeout(uint64_t milliseconds);

/* How many workgroups of a launch may be under way at a time; 0: as many as the GPU holds. Kernels whose
   workgroups wait for each other need those. */
void ckemu_set_resident(uint64_t workgroups);

/* The numerics of the device's last launch; -1 if it has launched nothing. */
int ckemu_last_numerics(int device);

/* How many time slices in a row, over all resident workgroups, and milliseconds may pass without any
 * progress before a launch ends with a deadlock; a slice is 2^18 instructions, or less for a wave that
 * sleeps. */
void ckemu_set_patience(uint64_t slices);

/* Calls `emit` with the operation of each instruction in `bytes` bytes of code for `arch`, and
 * whether the emulator executes it; "" where nothing can be decoded. -1 if `arch` is unknown. */
int ckemu_census(const char* arch, const void* code, size_t bytes,
                 void (*emit)(void* context, const char* operation, int emulated), void* context);

/* Records what `workgroups` workgroups of each launch execute, evenly spaced; 0: none. With `alone` no other
 * workgroup runs, so results are incomplete. Earlier recordings are dropped. */
void ckemu_record(unsigned workgroups, int alone);

/* Gives all recordings as bytes, in the layout of `src/checks/recording.cpp`, until ckemu_free_records gets what this
 * returns. To be called when launches have ended. */
void* ckemu_records(const void** bytes, uint64_t* size);
void ckemu_free_records(void* records);

/* While a function is attached, each launch calls it with `context` on the thread that runs the launch, which then
 * is under the control of ckemu_debug_request; the launch goes on to its end when the function returns. Null
 * detaches. */
void ckemu_debug_attach(void (*launched)(void* context), void* context);

/* Asks something of the launch under control, or something to be done with it, in the layout of
 * `src/debug/requests.cpp`, and calls `take` with the answer. To be called by the attached function. -1 where no launch
 * is under control or the request is none. */
int ckemu_debug_request(const void* bytes, uint64_t size, void (*take)(void* context, const void* bytes, uint64_t size),
                        void* context);

/* Facts of a kernel from its hipFunction_t; 0, or -1 if it is no function. */
int ckemu_get_kernel(void* function, struct ckemu_kernel* facts);

#ifdef __cplusplus
}
#endif
