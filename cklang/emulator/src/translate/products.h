// SPDX-License-Identifier: MIT
//
// Matrix products that wait to be executed together. What comes between them and has nothing to do with them is
// executed before.
#pragma once

#include <memory>

#include "checks/stretch.h"
#include "ops/matrix_run.h"

namespace ckemu::translate {

class Products {
 public:
  bool empty() const { return run_ == nullptr; }
  /// Whether an instruction must be executed behind those that wait.
  bool meets(const Code& code) const;
  /// Takes a product up; false if it must wait for those before.
  bool add(const Code& code);
  std::unique_ptr<MatrixRun> take();

 private:
  u32 panel_of(const Source& source, Type type);
  bool has_room(const MatrixShape& shape) const;

  std::unique_ptr<MatrixRun> run_;
  RegisterSet operands_, added_, written_;  // rows of A and B, of C where a chain begins, and of results
  u32 elements_ = 0;            // of the panels
};

}  // namespace ckemu::translate
