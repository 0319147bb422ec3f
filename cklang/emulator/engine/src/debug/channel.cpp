// SPDX-License-Identifier: MIT
#include "debug/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "debug/requests.h"

namespace ckemu {

namespace {

constexpr int kClosed = -1;
constexpr u64 kLongest = u64{1} << 32;  // bytes of a request

struct Attached {
  Mutex lock;  // of the launch under control
  void (*launched)(void*) = nullptr;
  void* context = nullptr;
  int socket = kClosed;
  pid_t process = 0;  // that has connected; a fork of it connects anew
  bool gone = false;  // the debugger has closed the connection
  Debugger* debugger = nullptr;
  const char* gpu = "";
};
Attached& attached() { return immortal<Attached>(); }

bool connect_to(const std::string& path, int& connection) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection == kClosed) return false;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  close(connection);
  return false;
}

/// Connects this process, once.
bool connected() {
  Attached& all = attached();
  if (all.process != getpid()) {
    all.process = getpid();
    all.gone = !connect_to(environment().debugger, all.socket);
    if (all.gone) {
      std::fprintf(stderr, "libamdhip64 (emulated): no debugger answers at CKLANG_DEBUGGER=%s\n",
                   environment().debugger.c_str());
    }
  }
  return !all.gone;
}

bool put(int connection, const void* data, u64 size) {
  for (const u8* from = static_cast<const u8*>(data); size != 0;) {
    const ssize_t sent = send(connection, from, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    from += sent;
    size -= static_cast<u64>(sent);
  }
  return true;
}

bool get(int connection, void* data, u64 size) {
  for (u8* to = static_cast<u8*>(data); size != 0;) {
    const ssize_t got = recv(connection, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<u64>(got);
  }
  return true;
}

bool put_message(int connection, const std::vector<u8>& bytes) {
  const u64 size = bytes.size();
  return put(connection, &size, sizeof size) && put(connection, bytes.data(), size);
}

bool get_message(int connection, std::vector<u8>& bytes) {
  u64 size = 0;
  if (!get(connection, &size, sizeof size) || size < sizeof(u64) || size > kLongest) return false;
  bytes.resize(size);
  return get(connection, bytes.data(), size);
}

/// A request that comes while the launch runs can only be one to stop.
bool interrupted() {
  const Attached& all = attached();
  pollfd waiting = {all.socket, POLLIN, 0};
  return all.launched == nullptr && poll(&waiting, 1, 0) > 0;
}

/// Answers requests until the debugger lets the launch go, or is gone.
void serve_socket(Debugger& debugger, const char* gpu) {
  Attached& all = attached();
  std::vector<u8> request, answer;
  bool more = put_message(all.socket, {});  // a launch begins
  while (more) {
    more = get_message(all.socket, request);
    const u64 kind = more ? load_as<u64>(request.data()) : 0;
    if (!more || kind == static_cast<u64>(Request::Interrupt)) continue;
    answer.clear();
    if (!answer_request(debugger, gpu, request.data(), request.size(), answer)) break;
    more = put_message(all.socket, answer);
    if (kind == static_cast<u64>(Request::Release)) return;
  }
  all.gone = true;
  close(all.socket);
}

}  // namespace

bool debugging() {
  const Attached& all = attached();
  return __atomic_load_n(&all.launched, __ATOMIC_RELAXED) != nullptr || !environment().debugger.empty();
}

bool run_debugged(const Launch& launch, const char* gpu, LaunchResult& result) {
  Attached& all = attached();
  const Guard guard(all.lock);
  if (all.launched == nullptr && (environment().debugger.empty() || !connected())) return false;
  Debugger debugger(launch, interrupted);
  all.debugger = &debugger;
  all.gpu = gpu;
  if (all.launched != nullptr) {
    all.launched(all.context);
  } else {
    serve_socket(debugger, gpu);
  }
  all.debugger = nullptr;
  if (debugger.execution.steps() == 0 && debugger.execution.fault().kind == FaultKind::None) {
    return false;  // at its beginning: without control it is faster
  }
  debugger.run({Until::End});
  debugger.execution.finish(result);
  return true;
}

void attach_debugger(void (*launched)(void*), void* context) {
  Attached& all = attached();
  const Guard guard(all.lock);
  all.context = context;
  __atomic_store_n(&all.launched, launched, __ATOMIC_RELAXED);
}

bool debug_request(const u8* bytes, size_t size, std::vector<u8>& answer) {
  const Attached& all = attached();
  return all.debugger != nullptr && answer_request(*all.debugger, all.gpu, bytes, size, answer);
}

}  // namespace ckemu
