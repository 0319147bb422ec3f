// SPDX-License-Identifier: MIT
#include "core/demangle.h"

#include <dlfcn.h>

#include <cstdlib>

namespace ckemu {

namespace {

constexpr size_t kMostLetters = 160;

using Demangle = char* (*)(const char* symbol, char* buffer, size_t* size, int* status);

/// The function of the C++ library, which ours is linked without.
Demangle demangler() {
  static const Demangle function = [] {
    void* address = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    for (const char* name : {"libstdc++.so.6", "libc++abi.so.1"}) {
      if (address != nullptr) break;
      void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
      if (library != nullptr) address = dlsym(library, "__cxa_demangle");
    }
    return reinterpret_cast<Demangle>(address);
  }();
  return function;
}

}  // namespace

std::string readable(const std::string& symbol) {
  if (symbol.compare(0, 2, "_Z") != 0 || demangler() == nullptr) return symbol;
  int status = 0;
  char* const text = demangler()(symbol.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return symbol;
  std::string name = text;
  std::free(text);
  if (name.size() > kMostLetters) name = name.substr(0, kMostLetters) + "...";
  return name;
}

}  // namespace ckemu
