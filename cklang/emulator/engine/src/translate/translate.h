// SPDX-License-Identifier: MIT
//
// Translation of hot code to x86-64 with AVX-512 or AVX2. A piece begins where control has often arrived and
// follows the code, past conditional branches that fall through, to where it ends for good. Instructions
// that the translator does not know call the interpreter's handlers. Registers, scc and exec are as
// the interpreter keeps them at every call and at every end of a piece, so that the two may take turns
// anywhere. Writing a piece takes microseconds; nothing is compiled, nothing is kept on disk.
#pragma once

#include <pthread.h>

#include <memory>
#include <vector>

#include "core/program.h"
#include "ops/matrix_run.h"

namespace ckemu {

enum class Translate : u8 {
  Off,  // interpret everything
  Hot,  // translate what control has reached often
  All,  // translate what control reaches
};
constexpr const char* kTranslateNames[] = {"off", "hot", "all"};

/// What launches from now on do; CKLANG_TRANSLATE at first.
Translate translation();
void set_translation(Translate choice);

/// What a piece is for: vectors of 16 or 8 lanes, with checks or without.
struct PieceKind {
  bool checked;
  u32 lanes;
  /// Where Code keeps what there is of this kind.
  u32 number() const { return (lanes == 16 ? 0u : 2u) + u32{checked}; }
};

/// Instructions that a piece executes one after the other, counted together.
struct Segment {
  const Code* first;
  u32 count;
};

/// The translated pieces of a program.
class Translation {
 public:
  /// `checked` ones call the checks (checks/checks.h) before each stretch.
  Translation(Program& program, PieceKind kind);
  ~Translation();
  Translation(const Translation&) = delete;
  Translation& operator=(const Translation&) = delete;

  /// Notes that control has reached `code`, and translates what begins there once it is worth while.
  void reach(const Code& code, Translate how);
  /// What begins at `code`; null if that is not translated.
  const void* at(const Code& code) const { return __atomic_load_n(&code.translated[kind_.number()], __ATOMIC_ACQUIRE); }
  /// Runs a piece, and those that follow it.
  void run(Wave& wave, const void* piece) const { enter_(&wave, piece); }
  /// Adds how often segments were executed to the counts of their instructions. The segments with checks come
  /// behind those without.
  void spread(const std::vector<u64>& segments, std::vector<u64>& executed);
  /// Segments there are at most.
  size_t capacity() const { return capacity_; }

 private:
  friend class Piece;
  /// Where the counts of its segments begin: as many are of the pieces without checks.
  size_t first_segment() const { return kind_.checked ? capacity_ : 0; }
  void translate(const Code& code);
  /// Where the bytes lie that shall be executed; null if there is no memory for them.
  const u8* publish(const std::vector<u8>& bytes);

  using Enter = void (*)(Wave*, const void*);
  Program& program_;
  const PieceKind kind_;
  const size_t capacity_;
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<Segment> segments_;
  std::vector<u8*> chunks_;
  std::vector<std::unique_ptr<MatrixRun>> runs_;  // that pieces execute
  size_t used_ = 0;
  Enter enter_ = nullptr;
  const u8* leave_ = nullptr;
};

}  // namespace ckemu
