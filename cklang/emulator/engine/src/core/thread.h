// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <signal.h>

namespace ckemu {

/// Starts a thread of ours, which no signal meant for the program reaches; false if there can be none.
inline bool start_thread(void* (*enter)(void*), void* argument) {
  sigset_t none, before;
  sigfillset(&none);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&none, fault);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, enter, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  return started;
}

}  // namespace ckemu
