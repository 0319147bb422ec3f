// SPDX-License-Identifier: MIT
#include "core/cpu.h"

#include <cpuid.h>

namespace ckemu {

namespace {

constexpr u32 kNarrow = 256, kWide = 512;

bool detect() {
  u32 a, b, c, d, low, high;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c >> 27 & 1) == 0) return false;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr u32 kSavedState = 0xe6, kNeeded = 3u << 16 | 3u << 30;
  if ((low & kSavedState) != kSavedState) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kNeeded) == kNeeded;
}

u32& chosen() {
  static u32 bits = cpu_has_avx512() ? kWide : kNarrow;
  return bits;
}

}  // namespace

bool cpu_has_avx512() {
  static const bool has = detect();
  return has;
}

u32 vector_bits() { return __atomic_load_n(&chosen(), __ATOMIC_RELAXED); }
bool set_vector_bits(u32 bits) {
  if (bits != kNarrow && (bits != kWide || !cpu_has_avx512())) return false;
  __atomic_store_n(&chosen(), bits, __ATOMIC_RELAXED);
  return true;
}

}  // namespace ckemu
