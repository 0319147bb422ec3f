// SPDX-License-Identifier: MIT
//
// Dense MFMA: D = A * B + C with the numerics "fma": products are added to the accumulator one by
// one in the order of K, each with one rounding; denormals are kept.
#include "ops/matrix.h"

#include "core/cpu.h"
#include "core/fault.h"
#include "core/lanes.h"
#include "ops/matrix_kernels.h"
#include "ops/matrix_run.h"

namespace ckemu {

namespace {

constexpr MatrixKernels kNarrow = kernels_of<8>();

const MatrixKernels& kernels() { return vector_bits() == 512 ? wide_matrix_kernels() : kNarrow; }

template <bool integer>
Multiply multiply_for(int m) {
  if (m == 4) return multiply<std::conditional_t<integer, u32, float>, 4, 4>;
  return (integer ? kernels().i32 : kernels().f32)[m == 32];
}

/// The tables of the 8-bit float formats: [ocp][wide exponent].
struct Fp8Tables {
  Fp8Table table[2][2];
  Fp8Tables() {
    for (int ocp = 0; ocp < 2; ++ocp) {
      for (int wide = 0; wide < 2; ++wide) {
        const Fp8Kind kind{.wide_exponent = wide != 0, .ocp = ocp != 0, .saturate = false};
        for (u32 code = 0; code < 256; ++code) {
          const float value = from_fp8(code, kind);
          table[ocp][wide].value[code] = value;
          table[ocp][wide].upper[code] = static_cast<u16>(bits_as<u32>(value) >> 16);
        }
      }
    }
  }
};

}  // namespace

void unpack_operand(const Wave& w, Type type, const u32* rows, const PanelShape& shape, Panel& panel) {
  const MatrixKernels& some = shape.size == 4 ? kNarrow : kernels();
  if (type != Type::FP8 && type != Type::BF8) return some.unpack(type, rows, shape, panel);
  static const Fp8Tables tables;
  const bool ocp = w.program->family() >= Family::Cdna4;
  some.unpack_fp8(rows, shape, tables.table[ocp][type == Type::BF8], panel);
}

namespace {

/// A's blocks under CBSZ and ABID: groups of 2^CBSZ blocks all use the group's block ABID.
void broadcast_blocks(Panel& panel, const PanelShape& shape, int cbsz, int abid) {
  const int group = 1 << cbsz, words = shape.depth * shape.size;
  Panel old = panel;
  for (int block = 0; block < shape.blocks; ++block) {
    const int from = block / group * group + abid;
    std::memcpy(panel.element + block * words, old.element + from * words, 4u * words);
  }
}

/// The lane that lane `l` of B is taken from under BLGP.
int permuted_lane(int blgp, int l) {
  if (blgp == 1) return l % 32;
  if (blgp == 2) return 32 + l % 32;
  if (blgp == 3) return (l + 16) % kLanes;
  return blgp == 0 ? l : 16 * (blgp - 4) + l % 16;
}
void permute_lanes(const u32* rows, int count, int blgp, u32* out) {
  for (int row = 0; row < count; ++row) {
    for (int l = 0; l < kLanes; ++l) out[row * kLanes + l] = rows[row * kLanes + permuted_lane(blgp, l)];
  }
}

template <bool integer>
void mfma(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const PanelShape left{shape.m, shape.k, shape.blocks}, right{shape.n, shape.k, shape.blocks};
  Panel a, b;
  unpack_operand(w, shape.a, source_row(w, c, 0), left, a);
  const u32* b_rows = source_row(w, c, 1);
  alignas(64) u32 permuted[8 * kLanes];
  if (c.inst->blgp != 0) {
    permute_lanes(b_rows, c.src[1].dwords, c.inst->blgp, permuted);
    b_rows = permuted;
  }
  unpack_operand(w, shape.b, b_rows, right, b);
  if (c.inst->cbsz != 0) broadcast_blocks(a, left, c.inst->cbsz, c.inst->abid);
  const bool constant = c.src[2].kind == Kind::Constant;
  const Accumulator acc{w.v[c.dst], source_row(w, c, 2), constant ? size_t{0} : size_t{kLanes}};
  if (!integer && numerics_of(w) != Numerics::Fma) [[unlikely]] {
    return multiply_otherwise(w, *c.inst, a, b, shape.k, nullptr, acc);
  }
  const Step step{a.element, b.element};
  multiply_for<integer>(shape.m)(&step, 1, shape.k, shape.blocks, acc);
}

bool known_input(Type type) {
  return type == Type::F32 || type == Type::XF32 || type == Type::F16 || type == Type::BF16 || type == Type::FP8 ||
         type == Type::BF8;
}

}  // namespace

void multiply_f32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc) {
  const Step step{a.element, b.element};
  multiply_for<false>(m)(&step, 1, depth, blocks, acc);
}
void multiply_i32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc) {
  const Step step{a.element, b.element};
  multiply_for<true>(m)(&step, 1, depth, blocks, acc);
}

bool joins_run(const Code& code) {
  const Inst* inst = code.inst;
  if (inst == nullptr || inst->matrix == nullptr || (code.fn != mfma<false> && code.fn != mfma<true>)) return false;
  const MatrixShape& shape = *inst->matrix;
  const Source &a = code.src[0], &b = code.src[1], &c = code.src[2];
  const bool plain = shape.blocks == 1 && inst->blgp == 0 && inst->cbsz == 0;
  const bool adds = c.kind == Kind::Constant ||
                    (c.kind == Kind::Vgpr &&
                     (c.index == code.dst || c.index + c.dwords <= code.dst || code.dst + code.dst_dwords <= c.index));
  return plain && adds && a.kind == Kind::Vgpr && b.kind == Kind::Vgpr;
}

void begin_part(Wave& w, const MatrixRun& run, u32 number) {
  const RunPart& part = run.parts[number];
  if (numerics_of(w) != Numerics::Fma) [[unlikely]] {  // then they are executed at once
    for (u32 n = part.codes[0]; n < part.codes[1]; ++n) {
      w.current = run.codes[n];
      w.current->fn(w, *w.current);
    }
    return;
  }
  const PanelShape shape{run.size, run.depth, 1};
  for (u32 n = part.operands[0]; n < part.operands[1]; ++n) {
    const RunOperand& operand = run.operands[n];
    unpack_operand(w, operand.type, w.v[operand.row], shape, *reinterpret_cast<Panel*>(w.spread->panels + operand.at));
  }
}

void execute_run(Wave& w, const MatrixRun& run) {
  begin_part(w, run, static_cast<u32>(run.parts.size()) - 1);
  if (numerics_of(w) != Numerics::Fma) [[unlikely]]
    return;
  const Multiply multiply = run.integer ? multiply_for<true>(run.size) : multiply_for<false>(run.size);
  const u32* panels = w.spread->panels;
  for (const RunChain& chain : run.chains) {
    Step steps[kMostSteps];
    const int count = static_cast<int>(chain.steps.size());
    for (int n = 0; n < count; ++n) steps[n] = {panels + chain.steps[n].a, panels + chain.steps[n].b};
    const bool constant = chain.c.kind == Kind::Constant;
    const u32* c = constant ? chain.c.row : w.v[chain.c.index];
    multiply(steps, count, run.depth, 1, {w.v[chain.d], c, constant ? size_t{0} : size_t{kLanes}});
  }
}

Handler matrix_handler(const Inst& inst) {
  const MatrixShape& shape = *inst.matrix;
  if (inst.enc == Encoding::VOP3P) return wave_matrix_handler(inst);
  if (shape.a == Type::F8F6F4) return mini_matrix_handler(inst);
  if (shape.m != shape.n || (shape.m != 32 && shape.m != 16 && shape.m != 4)) return nullptr;
  if (shape.a == Type::F64) return double_matrix_handler(inst);
  if (shape.sparse) return sparse_matrix_handler(inst);
  if (shape.a == Type::I8 && shape.b == Type::I8) return mfma<true>;
  return known_input(shape.a) && known_input(shape.b) && shape.d == Type::F32 ? mfma<false> : nullptr;
}

}  // namespace ckemu
