// SPDX-License-Identifier: MIT
#include "translate/products.h"

#include <algorithm>

namespace ckemu::translate {

namespace {

RegisterSet rows_of(u32 first, u32 count) {
  RegisterSet set;
  for (u32 n = 0; n < count; ++n) set.add(false, first + n);
  return set;
}
RegisterSet rows_of(const Source& source) {
  return source.kind == Kind::Vgpr ? rows_of(source.index, source.dwords) : RegisterSet{};
}
RegisterSet results_of(const Code& code) {
  return code.dst_kind == Kind::Vgpr ? rows_of(code.dst, code.dst_dwords) : RegisterSet{};
}
void join(RegisterSet& set, const RegisterSet& other) {
  for (u32 n = 0; n < RegisterSet::kRowWords; ++n) set.rows[n] |= other.rows[n];
}

}  // namespace

Meeting Products::meeting(const Code& code) const {
  if (empty()) return Meeting::Nothing;
  const RegisterSet results = results_of(code);
  if (results.meets(added_) || results.meets(written_)) return Meeting::Needs;
  for (const Source& source : code.src) {
    if (rows_of(source).meets(written_)) return Meeting::Needs;
  }
  return results.meets(operands_) ? Meeting::Overwrites : Meeting::Nothing;
}

void Products::pass(const Code& code) {
  if (empty()) return;
  const RegisterSet results = results_of(code);
  std::erase_if(known_, [&](const Known& known) { return rows_of(known.row, known.dwords).meets(results); });
}

u32 Products::panel_of(const Source& source, Type type) {
  for (const Known& known : known_) {
    if (known.row == source.index && known.type == type) return known.at;
  }
  const u32 at = elements_;
  elements_ += static_cast<u32>(run_->size * run_->depth);
  run_->operands.push_back({source.index, type, at});
  known_.push_back({source.index, source.dwords, type, at});
  join(operands_, rows_of(source));
  return at;
}

bool Products::has_room(const MatrixShape& shape) const {
  const u32 most = 2u * shape.m * shape.k;
  return run_->size == shape.m && run_->depth == shape.k && run_->integer == (shape.a == Type::I8) &&
         elements_ + most <= kMostOfRun;
}

bool Products::add(const Code& code) {
  const MatrixShape& shape = *code.inst->matrix;
  const RegisterSet a = rows_of(code.src[0]), b = rows_of(code.src[1]), c = rows_of(code.src[2]), d = results_of(code);
  RunChain* chain = nullptr;
  if (!empty()) {
    if (!has_room(shape) || a.meets(written_) || b.meets(written_)) return false;
    for (RunChain& known : run_->chains) {
      const bool goes_on = known.d == code.dst && code.src[2].kind == Kind::Vgpr && code.src[2].index == code.dst;
      if (goes_on) chain = &known;
    }
    if (chain != nullptr && chain->steps.size() == kMostSteps) return false;
    if (chain == nullptr && (c.meets(written_) || d.meets(written_) || d.meets(added_))) return false;
  } else {
    run_ = std::make_unique<MatrixRun>();
    run_->size = shape.m;
    run_->depth = shape.k;
    run_->integer = shape.a == Type::I8;
  }
  if (chain == nullptr) {
    run_->chains.push_back({code.dst, code.src[2], {}});
    chain = &run_->chains.back();
    join(added_, c);
  }
  const u32 left = panel_of(code.src[0], shape.a), right = panel_of(code.src[1], shape.b);
  chain->steps.push_back({left, right});
  run_->codes.push_back(&code);
  join(written_, d);
  return true;
}

u32 Products::end_part() {
  const RunPart before = run_->parts.empty() ? RunPart{} : run_->parts.back();
  const u32 operands = static_cast<u32>(run_->operands.size()), codes = static_cast<u32>(run_->codes.size());
  run_->parts.push_back({{before.operands[1], operands}, {before.codes[1], codes}});
  operands_ = RegisterSet{};
  return static_cast<u32>(run_->parts.size()) - 1;
}

std::unique_ptr<MatrixRun> Products::take() {
  end_part();
  added_ = written_ = RegisterSet{};
  known_.clear();
  elements_ = 0;
  return static_cast<std::unique_ptr<MatrixRun>&&>(run_);
}

}  // namespace ckemu::translate
