// SPDX-License-Identifier: MIT
//
// How clang's assembler spells registers, modifiers and messages. Only disasm.cpp includes this.
#pragma once

#include "core/base.h"
#include "decode/isa.h"

namespace ckemu {
namespace {

constexpr const char* kInlineFloatTexts[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
constexpr const char* kSelectors[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
constexpr const char* kOutputModifiers[] = {"", " mul:2", " mul:4", " div:2"};

struct NamedRegister {
  u16 index;
  u8 dwords;
  const char* name;
};
constexpr NamedRegister kNamedRegisters[] = {
    {kFlatScratch, 1, "flat_scratch_lo"},
    {kFlatScratch + 1, 1, "flat_scratch_hi"},
    {kFlatScratch, 2, "flat_scratch"},
    {kXnackMask, 1, "xnack_mask_lo"},
    {kXnackMask + 1, 1, "xnack_mask_hi"},
    {kXnackMask, 2, "xnack_mask"},
    {kVcc, 1, "vcc_lo"},
    {kVcc + 1, 1, "vcc_hi"},
    {kVcc, 2, "vcc"},
    {kM0, 1, "m0"},
    {kExec, 1, "exec_lo"},
    {kExec + 1, 1, "exec_hi"},
    {kExec, 2, "exec"},
};

struct NamedSource {
  u16 code;
  const char* name;
};
constexpr NamedSource kNamedSources[] = {
    {kSharedBase, "src_shared_base"},
    {kSharedLimit, "src_shared_limit"},
    {kPrivateBase, "src_private_base"},
    {kPrivateLimit, "src_private_limit"},
    {kPopsExitingWaveId, "src_pops_exiting_wave_id"},
    {kVccz, "src_vccz"},
    {kExecz, "src_execz"},
    {kScc, "src_scc"},
};

struct DppText {
  u16 first, last;
  const char* format;  // takes control - first + base
  u16 base;
};
constexpr DppText kDppTexts[] = {
    {0x101, 0x10f, " row_shl:%u", 1},    {0x111, 0x11f, " row_shr:%u", 1},    {0x121, 0x12f, " row_ror:%u", 1},
    {0x130, 0x130, " wave_shl:%u", 1},   {0x134, 0x134, " wave_rol:%u", 1},   {0x138, 0x138, " wave_shr:%u", 1},
    {0x13c, 0x13c, " wave_ror:%u", 1},   {0x140, 0x140, " row_mirror", 0},    {0x141, 0x141, " row_half_mirror", 0},
    {0x142, 0x142, " row_bcast:%u", 15}, {0x143, 0x143, " row_bcast:%u", 31}, {0x150, 0x15f, " row_newbcast:%u", 0},
};
constexpr DppText kRdnaDppTexts[] = {{0x150, 0x15f, " row_share:%u", 0}, {0x160, 0x16f, " row_xmask:%u", 0}};

// Temporal hints and scopes of gfx12.
constexpr const char* kScopes[] = {"", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"};
constexpr const char* kLoadHints[] = {"", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"};
constexpr const char* kStoreHints[] = {"", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"};
constexpr const char* kAtomicHints[] = {"", "RETURN", "NT", "NT_RETURN", "CASCADE_RT", nullptr, "CASCADE_NT"};
// Messages that RDNA's compiler writes; the others stay numbers.
struct MessageName {
  u16 code;
  const char* name;
};
constexpr MessageName kMessages[] = {
    {1, "INTERRUPT"},     {3, "DEALLOC_VGPRS"},      {128, "RTN_GET_DOORBELL"}, {129, "RTN_GET_DDID"},
    {130, "RTN_GET_TMA"}, {131, "RTN_GET_REALTIME"}, {132, "RTN_SAVE_WAVE"},    {133, "RTN_GET_TBA"},
};

// s_waitcnt_depctr, s_wait_alu: counters of which all bits set is no wait.
struct DependencyField {
  u8 low, width;
  const char* name;
};
constexpr DependencyField kDependencies[] = {
    {0, 1, "sa_sdst"}, {12, 4, "va_vdst"}, {9, 3, "va_sdst"}, {8, 1, "va_ssrc"}, {1, 1, "va_vcc"}, {2, 3, "vm_vsrc"},
};
constexpr u32 kNoDependency = 0xff9f, kDependencyRest = 0x00e0, kDependencyRestValue = 0x0080;

constexpr u32 kBypassHint = 3, kSystemScope = 3;

// s_delay_alu: which earlier instruction the next ones wait for, and how many to skip between.
constexpr const char* kDelays[] = {
    "NO_DEP",        "VALU_DEP_1",    "VALU_DEP_2",        "VALU_DEP_3",   "VALU_DEP_4",   "TRANS32_DEP_1",
    "TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3"};
constexpr const char* kSkips[] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};

}  // namespace
}  // namespace ckemu
