// SPDX-License-Identifier: MIT
#include "checks/reports.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "checks/checks.h"
#include "core/environment.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "core/program.h"
#include "core/workgroup.h"
#include "decode/lines.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

constexpr const char* kHost = "(host)";  // in place of a kernel

/// A line of the file: a check, or `*`, and a pattern of kernels or of places.
struct Suppression {
  std::string check, pattern;
};

struct SourcePlace {
  std::string kernel, file;
  u32 line = 0;
  u64 pc = 0;
};

std::vector<Suppression> read_suppressions() {
  std::vector<Suppression> rows;
  const std::string& path = environment().suppressions;
  if (path.empty()) return rows;
  FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) refuse_setting("CKLANG_SUPPRESSIONS", path.c_str(), "the file cannot be read");
  char line[1024], check[64], pattern[768];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (line[0] == '#' || line[0] == '\n') continue;
    if (std::sscanf(line, "%63s %767s", check, pattern) != 2) {
      refuse_setting("CKLANG_SUPPRESSIONS", path.c_str(),
                     "each line must be a check, or *, and a pattern of kernels or source lines");
    }
    rows.push_back({check, pattern});
  }
  std::fclose(file);
  return rows;
}

struct Reports {
  const std::vector<Suppression> suppressions = read_suppressions();
  Mutex lock;
  std::set<std::string> written;  // causes
};
Reports& reports() { return immortal<Reports>(); }

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string decimal(u64 number) {
  Text<32> text;
  text.add("%llu", static_cast<unsigned long long>(number));
  return text.c_str();
}

std::string text_of_line(const SourcePlace& place) { return place.file + ":" + decimal(place.line); }

bool suppressed(const Fault& fault, const SourcePlace& place) {
  for (const auto& [check, pattern] : reports().suppressions) {
    if (check != "*" && check != fault.check) continue;
    if (matches(pattern, place.kernel) || (!place.file.empty() && matches(pattern, text_of_line(place)))) return true;
  }
  return false;
}

std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != '\0'; ++text) {
    const u8 letter = static_cast<u8>(*text);
    if (letter == '\n') {
      out += "\\n";
    } else if (letter < 0x20) {
      out += ' ';
    } else {
      if (letter == '"' || letter == '\\') out += '\\';
      out += *text;
    }
  }
  return out + "\"";
}

SourcePlace place_of(const Program& program, const Code* code) {
  SourcePlace place{program.kernel().name, "", 0, 0};
  SourceLine line;
  if (code == nullptr) return place;
  place.pc = code->pc - program.kernel().entry;
  if (find_line(program.object(), code->pc, line)) {
    place.file = line.file.c_str();
    place.line = line.line;
  }
  return place;
}

/// A line for each cause: a check at an instruction of a kernel, or what the host does.
void write_line(const Fault& fault, const SourcePlace& place) {
  const Guard guard(reports().lock);
  const std::string cause = std::string(fault.check) + ' ' + place.kernel + ' ' +
                            (place.kernel == kHost ? fault.message.c_str() : decimal(place.pc));
  if (!reports().written.insert(cause).second) return;
  const std::string line = "{\"check\": " + quoted(fault.check) + ", \"kernel\": " + quoted(place.kernel.c_str()) +
                           ", \"pc\": " + decimal(place.pc) + ", \"file\": " + quoted(place.file.c_str()) +
                           ", \"line\": " + decimal(place.line) + ", \"address\": " + decimal(fault.address) +
                           ", \"message\": " + quoted(fault.message.c_str()) + "}\n";
  const int file = open(environment().reports.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    refuse_setting("CKLANG_REPORTS", environment().reports.c_str(), "the file cannot be written");
  }
  close(file);
}

bool passes_at(const Fault& fault, const SourcePlace& place) {
  if (*fault.check == '\0') return false;  // memory that is not there ends every kernel
  if (suppressed(fault, place)) return true;
  if (environment().reports.empty()) return false;
  write_line(fault, place);
  return true;
}

}  // namespace

bool reports_may_pass() {
  static const bool may = !environment().reports.empty() || !environment().suppressions.empty();
  return may;
}

bool passes(const Fault& fault, const Wave& wave, const Code& code) {
  Fault complete = fault;
  if (complete.address != 0) describe_address(complete.address, complete.message);
  return passes_at(complete, place_of(*wave.program, &code));
}

bool passes(const Fault& fault, const Program& program) { return passes_at(fault, place_of(program, nullptr)); }

bool passes(const Fault& fault) { return passes_at(fault, SourcePlace{kHost, "", 0, 0}); }

void report_call(const Message& text, u64 address) {
  if ((checks_asked() & kCheckMemory) == 0 || after_fault() == AfterFault::Quiet) return;
  Fault fault;
  fault.check = "memory";
  fault.address = address;
  fault.message = text;
  if (reports_may_pass() && passes(fault)) return;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", fault.message.c_str());
}

void write_down(const Fault& fault, const Program& program) {
  if (environment().reports.empty()) return;
  Fault named = fault;
  if (*named.check == '\0') named.check = "fault";
  write_line(named, place_of(program, nullptr));
}

}  // namespace ckemu
