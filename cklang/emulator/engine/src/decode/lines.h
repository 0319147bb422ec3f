// SPDX-License-Identifier: MIT
//
// Source lines of code offsets, from the DWARF line table that -gline-tables-only writes.
#pragma once

#include <functional>
#include <string>

#include "decode/code_object.h"

namespace ckemu {

struct SourceLine {
  std::string file;
  u32 line = 0;
};

/// A row of the table: the addresses from `begin` on, up to `end`, came from this line.
struct LineRow {
  u64 begin = 0, end = 0;
  const char* root = "";    // where the compiler ran
  const char* folder = "";  // of the file, relative to that if it is not absolute
  const char* file = "";
  u32 line = 0;
};

/// The file of a row as an absolute path, or relative to where the compiler ran if that is unknown.
std::string path_of(const LineRow& row);

/// Calls `visit` with the rows of the table until it returns true.
/// @return whether it did.
bool each_line(const CodeObject& object, const std::function<bool(const LineRow&)>& visit);

/// The line that the instruction at image offset `pc` came from; false without a line table.
bool find_line(const CodeObject& object, u64 pc, SourceLine& found);

}  // namespace ckemu

/// Calls `emit` with the rows of the line table of a code object for `arch`: from one byte of its text section up to
/// another, file and line. -1 if the object cannot be read.
extern "C" int ckemu_lines(const char* arch, const void* object, size_t bytes,
                           void (*emit)(void* context, uint64_t begin, uint64_t end, const char* file, uint32_t line),
                           void* context);
