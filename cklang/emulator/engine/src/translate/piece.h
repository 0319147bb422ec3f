// SPDX-License-Identifier: MIT
//
// The translation of one piece of code: a run of instructions with one entry and several exits.
#pragma once

#include "translate/products.h"
#include "translate/section.h"
#include "translate/translate.h"

namespace ckemu::translate {

/// What the translator does with an instruction.
enum class Way : u8 {
  Nothing,    // waits and hints
  Vector,     // in a section
  Scalar,     // as x86 instructions, or a call that touches scalar registers alone
  FirstLane,  // v_readfirstlane
  Product,    // of matrices, together with others
  Call,       // the interpreter's handler
  Branch,     // always or on a condition
  Stop,       // the handler, after which the wave has stopped
  Interpret,  // what changes the control flow or the mode in its own way: the piece ends before it
};
Way way_of(const Code& code, u32 lanes);

}  // namespace ckemu::translate

namespace ckemu {

class Piece {
 public:
  Piece(Program& program, const Code& leader, PieceKind kind, const u8* leave, size_t first_segment, size_t capacity);
  /// False if it would be empty, the program has too many segments, or the CPU too few registers.
  bool write();
  /// Whether that was for too few registers: another attempt knows which instructions need more.
  bool too_few() const { return section_.too_few(); }
  const std::vector<u8>& code() const { return a_.code(); }
  const std::vector<Segment>& segments() const { return segments_; }
  /// What the code refers to: it must live as long.
  std::vector<std::unique_ptr<MatrixRun>>& runs() { return runs_; }

 private:
  struct Exit {
    x86::Label label;
    const Code* target;
  };
  bool write_one(const Code& code);
  void write_check(const Code& code, translate::Way way);
  u32 stretch_of(const Code& code) const;
  void write_scalar(const Code& code);
  void write_call(const Code& code);
  void call_handler(const Code& code);
  void write_first_lane(const Code& code);
  void write_product(const Code& code);
  void write_products();
  void meet_products(const Code& code);
  /// Writes all that waits, in the order in which it may be executed.
  void settle() {
    section_.flush();
    write_products();
  }
  bool write_branch(const Code& code);
  void write_exits();
  void open_segment();
  void close_segment();
  x86::Label exit_to(const Code& target);
  bool full() const { return first_segment_ + segments_.size() + 1 >= capacity_; }

  Program& program_;
  const Code& leader_;
  const PieceKind kind_;
  const u8* leave_;
  const size_t first_segment_, capacity_;
  x86::Assembler a_;
  std::vector<translate::Rare> rare_;
  translate::Section section_;
  translate::Products products_;  // that are executed behind the section
  std::vector<std::unique_ptr<MatrixRun>> runs_;
  std::vector<Segment> segments_;
  std::vector<Exit> exits_;
  x86::Label start_;
  const Code* next_;
  size_t open_at_ = 0;  // where the budget's immediate is
  bool open_ = false;
  u32 length_ = 0;
  bool other_lanes_ = false;  // the instruction before says which lanes are enabled
  u32 behind_check_ = 0;      // instructions that the last check covers
};

}  // namespace ckemu
