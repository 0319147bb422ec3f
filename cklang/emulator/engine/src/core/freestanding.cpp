// SPDX-License-Identifier: MIT
//
// What a C++ runtime library would give us. Linking without one keeps the first build of the
// emulator about a minute shorter where the toolchain would have to compile its libc++ first.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

void* operator new(size_t size) {
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  std::fputs("ckemu: out of memory\n", stderr);
  std::abort();
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, std::align_val_t align) {
  const size_t unit = static_cast<size_t>(align);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  std::fputs("ckemu: out of memory\n", stderr);
  std::abort();
}
void* operator new[](size_t size, std::align_val_t align) { return operator new(size, align); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

// Local statics are initialised under one recursive lock. The first byte of a guard says it is done.
namespace {
pthread_mutex_t* guard_lock() {
  static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  return &lock;
}
}  // namespace
extern "C" int __cxa_guard_acquire(char* guard) {
  pthread_mutex_lock(guard_lock());
  if (*guard == 0) return 1;
  pthread_mutex_unlock(guard_lock());
  return 0;
}
extern "C" void __cxa_guard_release(char* guard) {
  __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(guard_lock());
}

// Destructors of thread-local objects: the C library has the call under another name.
extern "C" int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* library);
extern "C" int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) {
  return __cxa_thread_atexit_impl(destroy, object, library);
}

#ifdef _LIBCPP_VERSION
#include <cstdarg>

namespace std {
inline namespace _LIBCPP_ABI_NAMESPACE {
[[noreturn]] void __libcpp_verbose_abort(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::abort();
}
template class basic_string<char>;
}  // namespace _LIBCPP_ABI_NAMESPACE
}  // namespace std
#endif
