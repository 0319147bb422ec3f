// SPDX-License-Identifier: MIT
#include "core/environment.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "checks/checks.h"
#include "core/immortal.h"
#include "translate/translate.h"

namespace ckemu {

namespace {

constexpr const char* kNumerics[] = {"fma", "exact", "cdna3"};
constexpr const char* kFaults[] = {"abort", "continue"};
constexpr long kMostGpus = 16;  // of hip/device.h
constexpr u64 kMostSeconds = 1000000000;
constexpr u64 kPeerTimeout = 60000;  // milliseconds
constexpr long kMostProfiled = 1 << 20;

const char* text_of(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

/// The words between commas, without spaces and in lower case.
std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words(1);
  for (; *text != '\0'; ++text) {
    if (*text == ',') {
      words.emplace_back();
    } else if (*text != ' ') {
      words.back() += *text >= 'A' && *text <= 'Z' ? static_cast<char>(*text - 'A' + 'a') : *text;
    }
  }
  return words;
}

/// The place of `word` in a table of legal ones; the process ends if it is in none.
template <size_t count>
size_t number_of(const char* name, const std::string& word, const char* const (&legal)[count]) {
  for (size_t n = 0; n < count; ++n) {
    if (word == legal[n]) return n;
  }
  Text<256> problem;
  problem.add("\"%s\" is none of", word.c_str());
  for (size_t n = 0; n < count; ++n) problem.add("%s %s", n != 0 ? "," : "", legal[n]);
  refuse_setting(name, text_of(name), problem.c_str());
}

u64 number_of(const char* name) {
  const char* text = text_of(name);
  if (text == nullptr) return 0;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*end != '\0' || number < 0) refuse_setting(name, text, "must be a number, 0 or more");
  return static_cast<u64>(number);
}

u64 milliseconds_of(const char* name, u64 usual = 0) {
  const char* text = text_of(name);
  if (text == nullptr) return usual;
  char* end = nullptr;
  const long seconds = std::strtol(text, &end, 10);
  if (*end != '\0' || seconds < 1 || static_cast<u64>(seconds) > kMostSeconds) {
    refuse_setting(name, text, "must be a number of seconds, 1 or more");
  }
  return static_cast<u64>(seconds) * 1000;
}

/// Variables of ROCm: anything but 0 is on.
bool is_on(const char* name) {
  const char* text = text_of(name);
  return text != nullptr && std::string_view(text) != "0";
}

/// Names of GPUs; `gfx942*8` is eight of a kind.
std::vector<std::string> gpus_of(const char* name) {
  std::vector<std::string> gpus;
  const char* text = text_of(name);
  if (text == nullptr) return gpus;
  for (const std::string& word : words_of(text)) {
    const size_t star = word.find('*');
    const long count = star == std::string::npos ? 1 : std::strtol(word.c_str() + star + 1, nullptr, 10);
    if (count < 1 || count > kMostGpus) refuse_setting(name, text, "a number behind * must be 1 to 16");
    gpus.insert(gpus.end(), static_cast<size_t>(count), word.substr(0, star));
  }
  if (gpus.size() > kMostGpus) refuse_setting(name, text, "at most 16 GPUs");
  return gpus;
}

/// `2:/tmp/records` is two workgroups of each launch, and the folder.
void read_profile(const char* name, Environment& found) {
  const char* text = text_of(name);
  if (text == nullptr) return;
  char* end = nullptr;
  const long count = std::strtol(text, &end, 10);
  if (count < 1 || count > kMostProfiled || *end != ':' || end[1] == '\0') {
    refuse_setting(name, text, "must be a number of workgroups, a colon and a folder");
  }
  found.profiled = static_cast<u32>(count);
  found.profile = end + 1;
}

Environment read() {
  Environment found;
  if (const char* text = text_of("CKLANG_SANITIZE")) {
    for (const std::string& word : words_of(text)) {
      const size_t number = number_of("CKLANG_SANITIZE", word, kCheckNames);
      found.checks |= word == "all" ? u32{kCheckAll} : 1u << number;
    }
  }
  if (const char* text = text_of("CKLANG_NUMERICS")) {
    found.numerics = static_cast<u8>(number_of("CKLANG_NUMERICS", words_of(text).front(), kNumerics));
  }
  if (const char* text = text_of("CKLANG_TRANSLATE")) {
    found.translate = static_cast<u8>(number_of("CKLANG_TRANSLATE", words_of(text).front(), kTranslateNames));
  }
  if (const char* text = text_of("CKLANG_FAULT")) {
    const bool abort = number_of("CKLANG_FAULT", words_of(text).front(), kFaults) == 0;
    found.fault = abort ? AfterFault::Abort : AfterFault::Report;
  }
  found.xnack = is_on("HSA_XNACK");
  found.launches_wait = is_on("HIP_LAUNCH_BLOCKING");
  found.schedule = number_of("CKLANG_SCHEDULE");
  found.resident = number_of("CKLANG_RESIDENT");
  found.timeout = milliseconds_of("CKLANG_TIMEOUT");
  found.peer_timeout = milliseconds_of("CKLANG_PEER_TIMEOUT", kPeerTimeout);
  const std::pair<const char*, std::string*> paths[] = {{"CKLANG_REPORTS", &found.reports},
                                                        {"CKLANG_SUPPRESSIONS", &found.suppressions},
                                                        {"CKLANG_DEBUGGER", &found.debugger}};
  for (const auto& [name, path] : paths) {
    if (const char* text = text_of(name)) *path = text;
  }
  found.gpus = gpus_of("CKLANG_GPUS");
  read_profile("CKLANG_PROFILE", found);
  return found;
}

struct Choices {
  bool embedded = false, runtime = false;
  AfterFault fault = environment().fault;
  u64 timeout = environment().timeout;
  u64 resident = environment().resident;
};
Choices& choices() { return immortal<Choices>(); }

}  // namespace

void refuse_setting(const char* name, const char* text, const char* problem) {
  std::fprintf(stderr, "libamdhip64 (emulated): %s=%s: %s\n", name, text, problem);
  std::fflush(stderr);
  std::_Exit(2);
}

const Environment& environment() {
  static const Environment& one = *new Environment(read());
  return one;
}

void embed() {
  choices().embedded = true;
  choices().fault = AfterFault::Report;
}
bool embedded() { return choices().embedded; }
void serve_runtime() {
  embed();
  choices().runtime = true;
}
bool serves_runtime() { return choices().runtime; }
AfterFault after_fault() { return choices().fault; }
void set_after_fault(AfterFault choice) { choices().fault = choice; }
bool host_memory_reachable() { return embedded() || environment().xnack; }

u64 timeout() { return __atomic_load_n(&choices().timeout, __ATOMIC_RELAXED); }
void set_timeout(u64 milliseconds) { __atomic_store_n(&choices().timeout, milliseconds, __ATOMIC_RELAXED); }

u64 resident_limit() { return __atomic_load_n(&choices().resident, __ATOMIC_RELAXED); }
void set_resident_limit(u64 workgroups) { __atomic_store_n(&choices().resident, workgroups, __ATOMIC_RELAXED); }

}  // namespace ckemu
