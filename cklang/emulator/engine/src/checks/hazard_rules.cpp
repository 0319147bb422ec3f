// SPDX-License-Identifier: MIT
//
// Wait states that CDNA's hardware leaves to the program. Sources: the sections "Manually Inserted Wait
// States" of the ISA manuals of MI200, MI300 and CDNA4, and, for what they leave out (products of gfx950,
// the addends of products), LLVM's GCNHazardRecognizer, which inserts the s_nops of most compilers.
#include "checks/hazards.h"

#include "core/immortal.h"

namespace ckemu {

namespace {

using E = EarlierPart;
using L = LaterPart;

constexpr u32 kF64 = kHazardF64Small | kHazardF64Large;
constexpr u32 kNotXdl = kHazardF32Matrix | kF64;

constexpr HazardRule kRules[] = {
    // Scalar registers, exec, vcc, m0, hardware registers
    {kOnCdna, kHazardValu, E::Written, kHazardMemory, L::ReadScalar, 5, false, 0,
     "a vector instruction writes an SGPR that a memory instruction reads"},
    {kOnCdna, kHazardValu, E::Written, kHazardLane, L::Lane, 4, false, 0,
     "a vector instruction writes the lane number of v_readlane or v_writelane"},
    {kOnCdna, kHazardValu, E::Written, kHazardDivFmas, L::Vcc, 4, false, 0,
     "a vector instruction writes vcc and v_div_fmas reads it"},
    {kOnCdna, kHazardValu, E::Written, kHazardDpp, L::Exec, 5, false, 0, "a vector instruction writes exec before DPP"},
    {kOnCdna, kHazardValu, E::Written, kHazardMatrix, L::Exec, 4, false, 0,
     "a vector instruction writes exec before a matrix product"},
    {kOnCdna, kHazardSalu, E::Written, kHazardReadsM0, L::M0, 1, false, 0,
     "a scalar instruction writes m0 before one that reads it unnamed"},
    {kOnCdna, kHazardSetReg, E::Written, kHazardGetReg | kHazardSetReg, L::Hardware, 2, false, 0,
     "s_setreg writes a hardware register that the next one uses"},
    {kOnCdna, kHazardValu, E::Written, kHazardValu, L::ZeroFlags, 5, false, 0,
     "a vector instruction writes exec or vcc before execz or vccz is read"},
    {kFromGfx942, kHazardValu, E::Written, kHazardValu, L::ReadScalar, 2, false, 0,
     "a vector instruction writes an SGPR that another reads"},
    {kFromGfx942, kHazardValu, E::Written, kHazardAnyLane, L::Exec, 4, false, 0,
     "a vector instruction writes exec before a lane is read or written"},
    // Vector registers
    {kOnCdna, kHazardValu, E::Written, kHazardDpp, L::Read, 2, false, 0,
     "a vector instruction writes a VGPR that DPP reads"},
    {kFromGfx942, kHazardValu, E::Written, kHazardReadLane, L::FirstSource, 1, false, 0,
     "a vector instruction writes a VGPR of which a lane is read"},
    {kFromGfx942, kHazardTrans, E::Written, kHazardPlain, L::Read, 1, false, 0, "a transcendental result is read"},
    {kFromGfx942, kHazardShifted, E::Written, kHazardValu, L::Read, 1, false, 0,
     "a result that op_sel or SDWA has moved is read"},
    {kOnGfx90a, kHazardWideStore, E::Stored, kHazardVector, L::Written, 1, false, 0,
     "data of a store of more than 8 bytes are overwritten"},
    {kFromGfx942, kHazardWideStore, E::Stored, kHazardVector, L::Written, 2, false, 0,
     "data of a store of more than 8 bytes are overwritten"},
    {kOnGfx950, kHazardValu, E::Written, kHazardSwapLanes, L::Read, 2, false, 0,
     "a vector instruction writes a VGPR that v_permlane_swap reads"},
    {kOnGfx950, kHazardCompareExec, E::None, kHazardSwapLanes, L::None, 4, false, 0, "v_cmpx before v_permlane_swap"},
    // Dot products
    {kOnCdna, kHazardDot, E::Written, kHazardNoDot | kHazardData, L::Read, 3, false, 0,
     "the result of a dot product is read by another instruction"},
    {kOnCdna, kHazardDot, E::Written, kHazardNoDot | kHazardData, L::Written, 3, false, 0,
     "the result of a dot product is overwritten"},
    // What matrix products read
    {kOnCdna, kHazardNoDot, E::Written, kHazardMatrix, L::Read, 2, false, 0,
     "a vector instruction writes what a matrix product reads"},
    {kOnCdna, kHazardF64Small, E::Written, kHazardMatrix, L::Factors, 6, false, 0,
     "a matrix product's result is a factor of the next"},
    {kOnGfx90a | kOnGfx942, kHazardF64Large, E::Written, kHazardMatrix, L::Factors, 11, false, 0,
     "a matrix product's result is a factor of the next"},
    {kOnGfx950, kHazardF64Large, E::Written, kHazardMatrix, L::Factors, 19, false, 0,
     "a matrix product's result is a factor of the next"},
    {kOnGfx90a | kOnGfx942, kHazardXdl, E::Written, kHazardMatrix, L::Factors, 3, true, 0,
     "a matrix product's result is a factor of the next"},
    {kOnGfx950, kHazardXdl, E::Written, kHazardMatrix, L::Factors, 3, true, 1,
     "a matrix product's result is a factor of the next"},
    {kFromGfx942, kHazardF32Matrix, E::Written, kHazardMatrix, L::Factors, 2, true, 0,
     "a matrix product's result is a factor of the next"},
    {kFromGfx942, kHazardTwoPasses, E::Written, kHazardMatrix, L::SameAddend, 2, false, 0,
     "a matrix product's result is the addend of the next"},
    {kOnCdna, kHazardF64Small, E::Written, kHazardF64Small, L::SameAddend, 4, false, 0,
     "a matrix product's result is the addend of the next"},
    {kOnCdna, kHazardF64Small, E::Written, kNotXdl, L::OtherAddend, 4, false, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx90a | kOnGfx942, kHazardF64Large, E::Written, kNotXdl, L::OtherAddend, 9, false, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx950, kHazardF64Large, E::Written, kNotXdl, L::OtherAddend, 17, false, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx90a, kHazardXdl, E::Written, kHazardXdl, L::OtherAddend, 0, true, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx90a, kHazardXdl, E::Written, kF64, L::OtherAddend, 1, true, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx942, kHazardXdl, E::Written, kHazardMatrix, L::OtherAddend, 1, true, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx950, kHazardXdl, E::Written, kHazardXdl, L::OtherAddend, 2, true, 0,
     "a part of a matrix product's result is in the addend of the next"},
    {kOnGfx950, kHazardXdl, E::Written, kNotXdl, L::OtherAddend, 1, true, 1,
     "a part of a matrix product's result is in the addend of the next"},
    {kFromGfx942, kHazardF32Matrix, E::Written, kNotXdl, L::OtherAddend, 0, true, 0,
     "a part of a matrix product's result is in the addend of the next"},
    // Who reads and overwrites the results of matrix products
    {kOnCdna, kHazardF64Small, E::Written, kHazardValu, L::Read, 6, false, 0, "a matrix product's result is read"},
    {kOnCdna, kHazardF64Small, E::Written, kHazardData, L::Read, 9, false, 0, "a matrix product's result is read"},
    {kOnCdna, kHazardF64Small, E::Written, kHazardValu | kHazardData, L::Written, 6, false, 0,
     "a matrix product's result is overwritten"},
    {kOnGfx90a | kOnGfx942, kHazardF64Large, E::Written, kHazardValu, L::Read, 11, false, 0,
     "a matrix product's result is read"},
    {kOnGfx950, kHazardF64Large, E::Written, kHazardValu, L::Read, 19, false, 0, "a matrix product's result is read"},
    {kOnCdna, kHazardF64Large, E::Written, kHazardData, L::Read, 18, false, 0, "a matrix product's result is read"},
    {kOnCdna, kHazardF64Large, E::Written, kHazardValu | kHazardData, L::Written, 11, false, 0,
     "a matrix product's result is overwritten"},
    {kOnGfx90a | kOnGfx942, kHazardXdl, E::Written, kHazardValu | kHazardData, L::Read, 3, true, 0,
     "a matrix product's result is read"},
    {kOnGfx950, kHazardXdl, E::Written, kHazardValu | kHazardData, L::Read, 3, true, 1,
     "a matrix product's result is read"},
    {kOnGfx90a | kOnGfx942, kHazardXdl, E::Written, kHazardValu | kHazardData, L::Written, 3, true, 0,
     "a matrix product's result is overwritten"},
    {kOnGfx950, kHazardXdl, E::Written, kHazardValu | kHazardData, L::Written, 3, true, 1,
     "a matrix product's result is overwritten"},
    {kFromGfx942, kHazardF32Matrix, E::Written, kHazardValu | kHazardData, L::Read, 2, true, 0,
     "a matrix product's result is read"},
    {kFromGfx942, kHazardF32Matrix, E::Written, kHazardValu | kHazardData, L::Written, 2, true, 0,
     "a matrix product's result is overwritten"},
    {kOnCdna, kHazardXdl, E::Addend, kHazardValu | kHazardData, L::Written, -1, true, 0,
     "a matrix product's addend is overwritten"},
    {kOnCdna, kF64, E::None, kHazardFma64, L::None, 2, false, 0, "a product of f64 matrices before v_fma_f64"},
};

u8 gpu_of(Family family) {
  switch (family) {
    case Family::Cdna2: return kOnGfx90a;
    case Family::Cdna3: return kOnGfx942;
    case Family::Cdna4: return kOnGfx950;
    default: return 0;
  }
}

struct RulesByFamily {
  std::vector<HazardRule> of[5];
  RulesByFamily() {
    for (u32 n = 0; n < 5; ++n) {
      for (const HazardRule& rule : kRules) {
        if ((rule.gpus & gpu_of(static_cast<Family>(n))) != 0) of[n].push_back(rule);
      }
    }
  }
};

}  // namespace

const std::vector<HazardRule>& hazard_rules(Family family) {
  static const RulesByFamily& rules = *new RulesByFamily;
  return rules.of[static_cast<u32>(family)];
}

}  // namespace ckemu
