// SPDX-License-Identifier: MIT
#include "hip/device_printf.h"

#include <string_view>

namespace ckemu {

namespace {

constexpr std::string_view kFlags = "-+ #0", kLengths = "hljztL";
constexpr std::string_view kSigned = "di", kUnsigned = "uoxXc", kFloats = "fFeEgGaA";

bool in(std::string_view set, char one) { return set.find(one) != std::string_view::npos; }

/// Takes values from the words one after the other.
class Words {
 public:
  Words(const u64* words, size_t count) : at_(words), end_(words + count) {}
  bool empty() const { return at_ == end_; }
  u64 next() { return at_ != end_ ? *at_++ : 0; }
  std::string string() {
    std::string text;
    while (at_ != end_) {
      const u64 word = *at_++;
      const char* bytes = reinterpret_cast<const char*>(&word);
      const size_t length = strnlen(bytes, sizeof word);
      text.append(bytes, length);
      if (length < sizeof word) break;
    }
    return text;
  }

 private:
  const u64 *at_, *end_;
};

template <class Value>
void put(std::string& out, const std::string& format, Value value) {
  char fixed[256];
  const int length = std::snprintf(fixed, sizeof fixed, format.c_str(), value);
  if (length < 0) return;
  if (static_cast<size_t>(length) < sizeof fixed) {
    out.append(fixed, static_cast<size_t>(length));
    return;
  }
  std::string longer(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(longer.data(), longer.size(), format.c_str(), value);
  out.append(longer.data(), static_cast<size_t>(length));
}

/// A conversion: "%", flags, width, precision, length, kind.
struct Conversion {
  std::string flags;  // with the width and precision, as C takes them
  std::string length;
  char kind = 0;
};

Conversion read_conversion(const std::string& format, size_t& at, Words& words) {
  Conversion conversion;
  conversion.flags = "%";
  const auto number = [&] {
    if (at < format.size() && format[at] == '*') {
      ++at;
      put(conversion.flags, "%d", static_cast<i32>(words.next()));
    }
    while (at < format.size() && format[at] >= '0' && format[at] <= '9') conversion.flags += format[at++];
  };
  while (at < format.size() && in(kFlags, format[at])) conversion.flags += format[at++];
  number();
  if (at < format.size() && format[at] == '.') {
    conversion.flags += format[at++];
    number();
  }
  while (at < format.size() && in(kLengths, format[at])) conversion.length += format[at++];
  if (at < format.size()) conversion.kind = format[at++];
  return conversion;
}

void convert(const Conversion& conversion, Words& words, std::string& out) {
  const std::string& flags = conversion.flags;
  const char kind = conversion.kind;
  const bool wide = in("ljzt", conversion.length.empty() ? ' ' : conversion.length[0]);
  if (kind == '%') {
    out += '%';
  } else if (words.empty()) {
    return;
  } else if (kind == 's') {
    put(out, flags + 's', words.string().c_str());
  } else if (kind == 'p') {
    put(out, flags + 'p', reinterpret_cast<void*>(words.next()));
  } else if (in(kFloats, kind)) {
    put(out, flags + kind, bits_as<double>(words.next()));
  } else if (kind == 'c') {
    put(out, flags + kind, static_cast<int>(words.next()));
  } else if (in(kSigned, kind) || in(kUnsigned, kind)) {
    if (wide) put(out, flags + "ll" + kind, words.next());
    else put(out, flags + conversion.length + kind, static_cast<u32>(words.next()));
  } else {
    out += flags + conversion.length + kind;  // as C libraries do with what they do not know
  }
}

}  // namespace

std::string format_printf(const u64* first, size_t count) {
  Words words(first, count);
  const std::string format = words.string();
  std::string out;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    const Conversion conversion = read_conversion(format, ++at, words);
    convert(conversion, words, out);
  }
  return out;
}

}  // namespace ckemu
