// SPDX-License-Identifier: MIT
//
// A copy of memory by some threads: the bound of what benchmarks/emulator.py measures of copies.
#include <immintrin.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

namespace {

struct Part {
  char* to;
  const char* from;
  size_t bytes;
  bool streaming;
};

void* copy_part(void* argument) {
  const Part& part = *static_cast<Part*>(argument);
  if (!part.streaming) {
    memcpy(part.to, part.from, part.bytes);
    return nullptr;
  }
  for (size_t at = 0; at < part.bytes; at += 32) {
    const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(part.from + at));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(part.to + at), value);
  }
  _mm_sfence();
  return nullptr;
}

}  // namespace

/// Seconds that a copy takes on so many threads, at most 64. Streaming stores go past the caches; `to` is then a
/// multiple of 32, and `bytes` one of 32 for each thread.
extern "C" double copy_memory(char* to, const char* from, size_t bytes, int threads, bool streaming) {
  pthread_t running[64];
  Part parts[64];
  timespec start, end;
  const size_t each = bytes / static_cast<size_t>(threads);
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int n = 0; n < threads; ++n) {
    const size_t at = each * static_cast<size_t>(n);
    parts[n] = {to + at, from + at, each, streaming};
    if (pthread_create(&running[n], nullptr, copy_part, &parts[n]) != 0) return -1;
  }
  for (int n = 0; n < threads; ++n) pthread_join(running[n], nullptr);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return static_cast<double>(end.tv_sec - start.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}
