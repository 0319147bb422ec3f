// SPDX-License-Identifier: MIT
//
// Matrix products that wait to be executed together. What comes between them and has nothing to do with them is
// executed before.
#pragma once

#include <memory>

#include "checks/stretch.h"
#include "ops/matrix_run.h"

namespace ckemu::translate {

/// What an instruction between products has to do with those that wait.
enum class Meeting : u8 {
  Nothing,
  Overwrites,  // it overwrites operands: they must become panels before
  Needs,       // the products must be executed before
};

class Products {
 public:
  bool empty() const { return run_ == nullptr; }
  Meeting meeting(const Code& code) const;
  /// Notes that an instruction comes between them, after what its meeting asks for.
  void pass(const Code& code);
  /// Takes a product up; false if those before must be executed first.
  bool add(const Code& code);
  /// Ends a part, whose operands become panels now; its number.
  u32 end_part();
  const MatrixRun& run() const { return *run_; }
  /// Ends the last part, and the run.
  std::unique_ptr<MatrixRun> take();

 private:
  struct Known {
    u16 row;
    u8 dwords;
    Type type;
    u32 at;
  };
  u32 panel_of(const Source& source, Type type);
  bool has_room(const MatrixShape& shape) const;

  std::unique_ptr<MatrixRun> run_;
  RegisterSet operands_, added_,
      written_;               // rows of A and B that are no panels yet, of C where a chain begins, and of results
  std::vector<Known> known_;  // panels of registers that have not changed
  u32 elements_ = 0;          // of the panels
};

}  // namespace ckemu::translate
