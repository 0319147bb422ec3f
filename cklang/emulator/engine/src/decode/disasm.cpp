// SPDX-License-Identifier: MIT
#include "decode/disasm.h"

#include "decode/decode.h"
#include "decode/disasm_tables.h"

namespace ckemu {
namespace {

class Printer {
 public:
  Printer(Family family, const Inst& inst, AsmText& text)
      : family_(family), names_(cache_names(family)), inst_(inst), text_(text) {}

  void run();

 private:
  void list(const Operand& operand, const char* absent = nullptr);
  void separator() { text_.add(first_ ? " " : ", "), first_ = false; }
  void operand(const Operand& operand);
  void registers(char file, const Operand& operand);
  void scalar(const Operand& operand);
  void constant(const Operand& operand);
  void source(size_t index);
  void suffix();
  bool compact() const;
  void alu();
  void modifiers();
  void half_list(const char* name, u32 mask, size_t count);
  void dpp();
  bool plain_halves() const;
  void byte_select();
  void sdwa();
  void matrix();
  void immediate();
  void waitcnt();
  void waitcnt11();
  void delay();
  void depctr();
  void message(u32 code);
  void dual();
  void half(u32 bit, const Operand& operand);
  bool rdna() const { return is_rdna(family_); }
  void scalar_memory();
  void lds();
  void flat();
  void buffer();
  void cache();
  size_t sources() const;
  bool has(u32 flag) const { return inst_.row->flags & flag; }

  Family family_;
  CacheNames names_;
  const Inst& inst_;
  AsmText& text_;
  bool first_ = true;
};

void Printer::run() {
  text_.add("%s", mnemonic(inst_.op));
  switch (inst_.enc) {
    case Encoding::SMEM: return scalar_memory();
    case Encoding::DS: return lds();
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH: return flat();
    case Encoding::MUBUF:
    case Encoding::MTBUF: return buffer();
    case Encoding::VOPD: return dual();
    default: return alu();
  }
}

void Printer::list(const Operand& o, const char* absent) {
  if (o.kind == Kind::None && !absent) return;
  separator();
  if (o.kind == Kind::None) {
    text_.add("%s", absent);
    return;
  }
  operand(o);
}

void Printer::operand(const Operand& o) {
  switch (o.kind) {
    case Kind::None: return;
    case Kind::Sgpr: return scalar(o);
    case Kind::Vgpr: return registers('v', o);
    case Kind::Agpr: return registers('a', o);
    case Kind::Constant: return constant(o);
    case Kind::Special:
      for (const NamedSource& s : kNamedSources)
        if (s.code == o.index) text_.add("%s", s.name);
  }
}

void Printer::registers(char file, const Operand& o) {
  if (o.dwords == 1) text_.add("%c%u", file, o.index);
  else text_.add("%c[%u:%u]", file, o.index, o.index + o.dwords - 1u);
}

void Printer::scalar(const Operand& o) {
  if (rdna() && o.index == kNull) {
    text_.add("null");
    return;
  }
  for (const NamedRegister& r : kNamedRegisters)
    if (r.index == o.index && r.dwords == o.dwords && (!rdna() || r.index >= kVcc)) {
      text_.add("%s", r.name);
      return;
    }
  const bool trap = o.index >= kTtmp0;
  const u32 index = trap ? o.index - static_cast<u32>(kTtmp0) : o.index;
  const char* file = trap ? "ttmp" : "s";
  if (o.dwords == 1) text_.add("%s%u", file, index);
  else text_.add("%s[%u:%u]", file, index, index + o.dwords - 1u);
}

void Printer::constant(const Operand& o) {
  switch (o.literal) {
    case Literal::InlineInt: text_.add("%d", static_cast<i32>(o.bits)); return;
    case Literal::InlineFloat:
      if (o.index == 248 && (o.type == Type::F64 || (o.dwords == 2 && o.elements == 1)))
        text_.add("0.15915494309189532");
      else text_.add("%s", kInlineFloatTexts[o.index - 240]);
      return;
    case Literal::Literal32: text_.add("0x%x", static_cast<u32>(o.type == Type::F64 ? o.bits >> 32 : o.bits));
  }
}

void Printer::source(size_t index) {
  const Operand& o = inst_.src[index];
  if (o.kind == Kind::None) return;
  separator();
  if (inst_.enc == Encoding::SOP1 && inst_.row->immediate == Immediate::Sendmsg)
    return message(static_cast<u32>(o.bits));
  const bool packed = inst_.enc == Encoding::MAI || (inst_.enc == Encoding::VOP3P && !has(kFlagMix));
  const bool neg = !packed && (inst_.neg >> index & 1), abs = inst_.abs >> index & 1;
  const bool sext = inst_.sext >> index & 1;
  const bool call = neg && o.kind == Kind::Constant && !abs;
  text_.add("%s%s%s", sext ? "sext(" : "", call ? "neg(" : neg ? "-" : "", abs ? "|" : "");
  operand(o);
  half(1u << index, o);
  text_.add("%s%s%s", abs ? "|" : "", call ? ")" : "", sext ? ")" : "");
}

/// gfx11's assembler names the half of a register; gfx12's has op_sel, which only some 64-bit
/// encodings take, so that a high half elsewhere has no other text than this.
void Printer::half(u32 bit, const Operand& o) {
  if (!o.half) return;
  if (rdna()) text_.add((inst_.op_sel & bit) != 0 ? ".h" : ".l");
}

bool Printer::compact() const {
  return inst_.enc == Encoding::VOP1 || inst_.enc == Encoding::VOP2 || inst_.enc == Encoding::VOPC;
}

size_t Printer::sources() const {
  size_t count = 0;
  while (count < 5 && inst_.src[count].kind != Kind::None) ++count;
  return count;
}

void Printer::suffix() {
  if (inst_.form == Form::Sdwa) text_.add("_sdwa");
  else if (inst_.form == Form::Dpp || inst_.form == Form::Dpp8) text_.add(compact() ? "_dpp" : "_e64_dpp");
  else if (has(kFlagTwoSizes)) text_.add(compact() ? "_e32" : "_e64");
}

void Printer::alu() {
  suffix();
  if (!has(kFlagCmpx)) list(inst_.dst[0]);
  half(8, inst_.dst[0]);
  list(inst_.dst[1]);
  if (inst_.enc == Encoding::SOPK && inst_.row->immediate == Immediate::Hwreg && inst_.dst[0].kind == Kind::None) {
    immediate();
    for (size_t i = 0; i < sources(); ++i) source(i);
    return;
  }
  for (size_t i = 0; i < sources(); ++i) source(i);
  immediate();
  if (inst_.enc == Encoding::MAI || inst_.enc == Encoding::MAI_SCALED) matrix();
  else modifiers();
}

void Printer::half_list(const char* name, u32 mask, size_t count) {
  text_.add(" %s:[", name);
  for (size_t i = 0; i < count; ++i) text_.add("%s%u", i ? "," : "", mask >> i & 1);
  text_.add("]");
}

void Printer::modifiers() {
  const size_t count = sources();
  const u32 all = (1u << count) - 1;
  if (inst_.enc == Encoding::VOP3P && inst_.matrix && inst_.matrix->sparse) {
    if (inst_.op_sel) text_.add(" index_key:%u", inst_.op_sel);
    if (inst_.neg) half_list("neg_lo", inst_.neg & 3, 2);
    if (inst_.neg_hi) half_list("neg_hi", inst_.neg_hi & 3, 2);
  } else if (inst_.enc == Encoding::VOP3P) {
    const u32 usual = has(kFlagMix) ? 0 : inst_.row->allowed.op_sel_hi;
    if (inst_.op_sel) half_list("op_sel", inst_.op_sel, count);
    if (inst_.op_sel_hi != usual) half_list("op_sel_hi", inst_.op_sel_hi, count);
    if (inst_.neg && !has(kFlagMix)) half_list("neg_lo", inst_.neg & all, count);
    if (inst_.neg_hi) half_list("neg_hi", inst_.neg_hi & all, count);
  } else if (has(kFlagLanectl)) {
    if (inst_.op_sel & 2) text_.add(" bound_ctrl:1");
    if (inst_.op_sel & 1) text_.add(" fi:1");
  } else if (has(kFlagBytesel)) {
    if (inst_.op_sel) byte_select();
  } else if (inst_.op_sel && !compact() && (!rdna() || plain_halves())) {
    // The destination's half, bit 3, comes last; byte selectors use bits that no source has.
    const u32 allowed = inst_.row->allowed.op_sel;
    const bool raw = allowed & ~all & 7u;
    const u32 halves = (inst_.op_sel & all) | (inst_.op_sel >> 3 & 1u) << count;
    half_list("op_sel", raw ? inst_.op_sel : halves, raw ? 4 : count + (allowed >> 3 & 1u));
  }
  if (has(kFlagBitop3)) text_.add(" bitop3:0x%x", inst_.bitop3);
  if (inst_.clamp) text_.add(" clamp");
  text_.add("%s", kOutputModifiers[inst_.omod]);
  if (inst_.form == Form::Dpp || inst_.form == Form::Dpp8) dpp();
  if (inst_.form == Form::Sdwa) sdwa();
}

/// Whether op_sel says more than the halves of vector registers.
bool Printer::plain_halves() const {
  u32 named = inst_.dst[0].half ? 8 : 0;
  for (u32 i = 0; i < 3; ++i) named |= inst_.src[i].half ? 1u << i : 0;
  return inst_.op_sel & ~named;
}

/// gfx12: a byte of the source (op_sel bits 1 and 0 are the low and the high bit of its number) or
/// of the result (bits 3 and 2).
void Printer::byte_select() {
  const u32 bits = inst_.op_sel;
  const bool result = inst_.src[1].kind != Kind::None;
  text_.add(" byte_sel:%u", result ? (bits >> 3 & 1) << 1 | (bits >> 2 & 1) : (bits & 1) << 1 | (bits >> 1 & 1));
}

void Printer::dpp() {
  if (inst_.form == Form::Dpp8) {
    text_.add(" dpp8:[");
    for (u32 i = 0; i < 8; ++i) text_.add("%s%u", i ? "," : "", inst_.dpp8 >> 3 * i & 7);
    text_.add(inst_.fetch_inactive ? "] fi:1" : "]");
    return;
  }
  const u32 control = inst_.dpp_ctrl;
  if (control < 0x100)
    text_.add(" quad_perm:[%u,%u,%u,%u]", control & 3, control >> 2 & 3, control >> 4 & 3, control >> 6 & 3);
  auto add = [&](const DppText& d) {
    if (control >= d.first && control <= d.last) text_.add(d.format, control - d.first + d.base);
  };
  for (const DppText& d : kDppTexts)
    if (!rdna() || d.first < kRdnaDppTexts[0].first) add(d);
  if (rdna())
    for (const DppText& d : kRdnaDppTexts) add(d);
  text_.add(" row_mask:0x%x bank_mask:0x%x", inst_.row_mask, inst_.bank_mask);
  if (inst_.bound_ctrl) text_.add(" bound_ctrl:1");
  if (inst_.fetch_inactive) text_.add(" fi:1");
}

void Printer::sdwa() {
  if (inst_.enc != Encoding::VOPC && !has(kFlagNodstsel))
    text_.add(" dst_sel:%s dst_unused:%s", kSelectors[inst_.dst_sel], kUnused[inst_.dst_unused]);
  text_.add(" src0_sel:%s", kSelectors[inst_.src_sel[0]]);
  if (inst_.enc != Encoding::VOP1) text_.add(" src1_sel:%s", kSelectors[inst_.src_sel[1]]);
}

void Printer::matrix() {
  if (inst_.op_sel) half_list("op_sel", inst_.op_sel, 2);
  if (inst_.op_sel_hi) half_list("op_sel_hi", inst_.op_sel_hi, 2);
  if (inst_.cbsz) text_.add(" cbsz:%u", inst_.cbsz);
  if (inst_.abid) text_.add(" abid:%u", inst_.abid);
  if (inst_.blgp) text_.add(" blgp:%u", inst_.blgp);
  if (inst_.neg) half_list("neg", inst_.neg, 3);
}

void Printer::immediate() {
  const u32 half = static_cast<u32>(inst_.simm) & 0xffff;
  switch (inst_.row->immediate) {
    case Immediate::None: return;
    case Immediate::Waitcnt: return waitcnt();
    case Immediate::Waitcnt11: return waitcnt11();
    case Immediate::Delay: return delay();
    case Immediate::Depctr: return depctr();
    case Immediate::Sendmsg:
      if (inst_.enc == Encoding::SOP1) return;  // the source operand
      separator();
      return message(half);
    case Immediate::Barrier:
      separator();
      text_.add("%d", static_cast<i16>(half));
      return;
    case Immediate::Hex16:
      separator();
      text_.add("0x%x", half);
      return;
    case Immediate::Hwreg:
      separator();
      text_.add("hwreg(%u, %u, %u)", half & 63, half >> 6 & 31, (half >> 11) + 1);
      return;
    case Immediate::Label:
      separator();
      text_.add("%u", half);
      return;
    default: separator(); text_.add(inst_.enc == Encoding::SOPP ? "%u" : "0x%x", half);
  }
}

/// vmcnt has six bits in two places; a counter at its maximum is not waited for.
void Printer::waitcnt() {
  const u32 bits = static_cast<u32>(inst_.simm) & 0xffff;
  const u32 vm = (bits & 15) | (bits >> 10 & 0x30), exp = bits >> 4 & 7, lgkm = bits >> 8 & 15;
  const bool none = vm == 63 && exp == 7 && lgkm == 15;
  if (bits & 0x3080) {
    text_.add(" 0x%x", bits);
    return;
  }
  if (vm != 63 || none) text_.add(" vmcnt(%u)", vm);
  if (exp != 7 || none) text_.add(" expcnt(%u)", exp);
  if (lgkm != 15 || none) text_.add(" lgkmcnt(%u)", lgkm);
}

void Printer::waitcnt11() {
  const u32 bits = static_cast<u32>(inst_.simm) & 0xffff;
  const u32 vm = bits >> 10, exp = bits & 7, lgkm = bits >> 4 & 63;
  const bool none = vm == 63 && exp == 7 && lgkm == 63;
  if (bits & 8) {
    text_.add(" 0x%x", bits);
    return;
  }
  if (vm != 63 || none) text_.add(" vmcnt(%u)", vm);
  if (exp != 7 || none) text_.add(" expcnt(%u)", exp);
  if (lgkm != 63 || none) text_.add(" lgkmcnt(%u)", lgkm);
}

void Printer::delay() {
  const u32 bits = static_cast<u32>(inst_.simm) & 0xffff;
  const u32 first = bits & 15, skip = bits >> 4 & 7, second = bits >> 7 & 15;
  const bool known = first < 12 && skip < 6 && second < 12 && bits >> 11 == 0;
  if (!known || (first == 0 && bits)) {
    text_.add(" 0x%x", bits);
    return;
  }
  text_.add(" instid0(%s)", kDelays[first]);
  if (skip) text_.add(" | instskip(%s)", kSkips[skip]);
  if (second) text_.add(" | instid1(%s)", kDelays[second]);
}

void Printer::depctr() {
  const u32 bits = static_cast<u32>(inst_.simm) & 0xffff;
  if (bits == kNoDependency || (bits & kDependencyRest) != kDependencyRestValue) {
    text_.add(" 0x%x", bits);
    return;
  }
  for (const DependencyField& f : kDependencies) {
    const u32 full = (1u << f.width) - 1, value = bits >> f.low & full;
    if (value != full) text_.add(" depctr_%s(%u)", f.name, value);
  }
}

void Printer::message(u32 code) {
  if (rdna())
    for (const MessageName& m : kMessages)
      if (m.code == code) {
        text_.add("sendmsg(MSG_%s)", m.name);
        return;
      }
  text_.add("%u", code);
}

/// Two instructions that issue together. The mask of a cndmask is implicit.
void Printer::dual() {
  for (u32 y = 0; y < 2; ++y) {
    if (y) text_.add(" :: %s", mnemonic(inst_.op_y));
    first_ = true;
    list(inst_.dst[y]);
    for (u32 i = 0; i < 3; ++i)
      if (inst_.src[3 * y + i].type != Type::MASK) list(inst_.src[3 * y + i]);
  }
}

void Printer::scalar_memory() {
  if (inst_.row->flags & kFlagPrefetch) {
    list(inst_.src[0]);
    separator();
    text_.add("%s0x%x", inst_.offset < 0 ? "-" : "", static_cast<u32>(inst_.offset < 0 ? -inst_.offset : inst_.offset));
    list(inst_.src[1], "null");
    list(inst_.src[2]);
    return;
  }
  const bool stores = inst_.src[2].kind != Kind::None;
  list(stores ? inst_.src[2] : inst_.dst[0]);
  list(inst_.src[0]);
  if (inst_.src[0].kind != Kind::None) {
    const bool reg = inst_.src[1].kind != Kind::None;
    list(inst_.src[1]);
    const i32 offset = inst_.offset;
    const char* sign = offset < 0 ? "-" : "";
    const u32 size = static_cast<u32>(offset < 0 ? -offset : offset);
    if (!reg) text_.add(", %s0x%x", sign, size);
    else if (offset) text_.add(" offset:%s0x%x", sign, size);
  }
  if (rdna()) return cache();
  if (inst_.sc0) text_.add(" glc");
}

void Printer::lds() {
  list(inst_.dst[0]);
  for (size_t i = 0; i < 3; ++i) list(inst_.src[i]);
  if (has(kFlagOffset2)) {
    if (inst_.offset) text_.add(" offset0:%d", inst_.offset);
    if (inst_.offset1) text_.add(" offset1:%u", inst_.offset1);
  } else if (inst_.offset) {
    text_.add(" offset:%d", inst_.offset);
  }
  if (inst_.gds) text_.add(" gds");
}

void Printer::flat() {
  const bool addressed = !rdna() || !has(kFlagNooffset);
  list(inst_.dst[0]);
  list(inst_.src[0], inst_.enc == Encoding::SCRATCH ? "off" : nullptr);
  list(inst_.src[2]);
  if (inst_.enc != Encoding::FLAT) list(inst_.src[1], addressed ? "off" : nullptr);
  if (inst_.offset) text_.add(" offset:%d", inst_.offset);
  cache();
}

void Printer::buffer() {
  if (inst_.src[1].kind != Kind::None) {
    const bool stores = inst_.src[3].kind != Kind::None;
    list(stores ? inst_.src[3] : inst_.dst[0]);
    list(inst_.src[0], "off");
    list(inst_.src[1]);
    list(inst_.src[2]);
    if (inst_.enc == Encoding::MTBUF)
      text_.add(" format:%u", static_cast<u32>(inst_.dfmt) | static_cast<u32>(inst_.nfmt) << 4);
    if (inst_.idxen) text_.add(" idxen");
    if (inst_.offen) text_.add(" offen");
    if (inst_.offset) text_.add(" offset:%d", inst_.offset);
  }
  cache();
  if (inst_.lds) text_.add(" lds");
}

void Printer::cache() {
  if (family_ == Family::Rdna4) {
    const bool atomic = has(kFlagAtomic);
    const bool stores = !atomic && inst_.dst[0].kind == Kind::None;
    const char* kind = atomic ? "ATOMIC" : stores ? "STORE" : "LOAD";
    const char* hint = (atomic ? kAtomicHints : stores ? kStoreHints : kLoadHints)[inst_.th];
    if (!atomic && inst_.th == kBypassHint && inst_.scope == kSystemScope) hint = "BYPASS";
    if (inst_.th) text_.add(" th:TH_%s_%s", kind, hint);
    text_.add("%s", kScopes[inst_.scope]);
    return;
  }
  if (inst_.sc0) text_.add(" %s", names_.sc0);
  if (inst_.nt) text_.add(" %s", names_.nt);
  if (inst_.sc1) text_.add(" %s", names_.sc1);
}

}  // namespace

void disasm(Family family, const Inst& inst, AsmText& text) {
  text.clear();
  Printer(family, inst, text).run();
}

}  // namespace ckemu

extern "C" int ckemu_disassemble(const char* arch, const void* code, size_t bytes,
                                 void (*emit)(void* context, uint64_t offset, const char* text), void* context) {
  using namespace ckemu;
  Family family;
  constexpr const char kWave64[] = ":wave64";
  char name[32] = {};
  std::strncpy(name, arch, sizeof name - 1);
  char* suffix = std::strstr(name, kWave64);
  const bool wave64 = suffix && suffix[sizeof kWave64 - 1] == 0;
  if (wave64) *suffix = 0;
  if (!family_of(name, family) || (wave64 && !is_rdna(family))) return -1;
  size_t offset = 0;
  while (offset + 4 <= bytes) {
    u32 words[4] = {};
    const size_t left = (bytes - offset) / 4, count = left < 4 ? left : 4;
    std::memcpy(words, static_cast<const char*>(code) + offset, count * 4);
    Inst inst;
    DecodeError error;
    if (!decode(family, words, count, inst, error, wave64)) {
      emit(context, offset, error.reason);
      break;
    }
    AsmText text;
    disasm(family, inst, text);
    emit(context, offset, text.c_str());
    offset += inst.bytes;
  }
  return static_cast<int>(offset);
}
