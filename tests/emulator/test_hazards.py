# SPDX-License-Identifier: MIT
"""The check for hazards: pairs of instructions that an s_nop or others must keep apart."""

from dataclasses import dataclass

import numpy as np
import pytest

from cklang import emulator
from tests.emulator import test_triton
from tests.support.assembly import DEVICES, Module, assembled, symbol

pytestmark = [pytest.mark.usefixtures("emulator", "both_ways"), pytest.mark.sanitize("hazards")]

GFX90A, GFX942, GFX950, GFX11, GFX12 = "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"
CDNA = (GFX90A, GFX942, GFX950)
NEW = (GFX942, GFX950)
_START = {
    True: "s_load_dwordx4 s[4:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n s_waitcnt lgkmcnt(0)\n"
    " s_mov_b32 s6, -1\n s_mov_b32 s7, 0x20000",
    False: "s_load_b128 s[4:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two instructions, and how many wait states each GPU wants between them."""

    first: str
    second: str
    states: dict[str, int]


def pair(first: str, second: str, states: dict[str, int]) -> Pair:
    return Pair(first=first, second=second, states=states)


def on(gpus: tuple[str, ...], states: int) -> dict[str, int]:
    return dict.fromkeys(gpus, states)


_MFMA4 = "v_mfma_f32_4x4x4f16 v[8:11], v[2:3], v[4:5], v[8:11]"
_MFMA16 = "v_mfma_f32_16x16x4f16 v[16:31], v[2:3], v[4:5], 0"
_MFMA32 = "v_mfma_f32_32x32x4f16 v[32:63], v[2:3], v[4:5], 0"
_F32 = "v_mfma_f32_16x16x1f32 v[16:31], v2, v3, 0"
_F64 = "v_mfma_f64_4x4x4f64 v[8:9], v[2:3], v[4:5], 0"
_F64_LARGE = "v_mfma_f64_16x16x4f64 v[16:23], v[2:3], v[4:5], 0"
_MOVED = "v_mov_b32_sdwa v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0"
_CMPX = "v_cmpx_eq_u32 vcc, v1, v1"

#: The numbers of wait states are those of the ISA manuals' tables.
PAIRS = {
    "SGPR of memory": pair(
        "v_readfirstlane_b32 s8, v9", "buffer_load_dword v3, v1, s[4:7], s8 offen", on(CDNA, 5)
    ),
    "lane number": pair("v_readfirstlane_b32 s8, v9", "v_readlane_b32 s9, v1, s8", on(CDNA, 4)),
    "div_fmas": pair("v_cmp_eq_u32 vcc, v1, v2", "v_div_fmas_f32 v3, v4, v5, v6", on(CDNA, 4)),
    "exec, DPP": pair(_CMPX, "v_mov_b32_dpp v3, v2 row_shl:1", on(CDNA, 5)),
    "exec, product": pair(_CMPX, _MFMA4, on(CDNA, 4)),
    "m0": pair("s_mov_b32 m0, 0", "buffer_load_dword v1, s[4:7], 0 offen lds", on(CDNA, 1)),
    "execz as data": pair(_CMPX, "v_mov_b32 v3, src_execz", on(CDNA, 5)),
    "mode": pair("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0",
                 "s_getreg_b32 s8, hwreg(HW_REG_MODE)", on(CDNA, 2)),
    "another hardware register": pair(
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0",
        "s_getreg_b32 s8, hwreg(HW_REG_HW_ID)", on(CDNA, 0)),
    "SGPR": pair("v_readfirstlane_b32 s8, v9", "v_add_u32 v3, s8, v1", on(NEW, 2) | {GFX90A: 0}),
    "mask": pair("v_cmp_eq_u32 vcc, v1, v2", "v_cndmask_b32 v3, v4, v5, vcc", on(NEW, 2)),
    "exec, lane": pair(_CMPX, "v_readfirstlane_b32 s8, v1", on(NEW, 4) | {GFX90A: 0}),
    "VGPR, DPP": pair("v_mov_b32 v2, 1", "v_mov_b32_dpp v3, v2 row_shl:1", on(CDNA, 2)),
    "VGPR, lane": pair("v_mov_b32 v2, 1", "v_readfirstlane_b32 s8, v2", on(NEW, 1)),
    "VGPR, vector": pair("v_mov_b32 v2, 1", "v_add_u32 v3, v2, v2", on(CDNA, 0)),
    "transcendental": pair("v_exp_f32 v2, v3", "v_add_f32 v4, v2, v2", on(NEW, 1) | {GFX90A: 0}),
    "two transcendental": pair("v_exp_f32 v2, v3", "v_log_f32 v4, v2", on(NEW, 0)),
    "moved result": pair(_MOVED, "v_add_u32 v4, v2, v2", on(NEW, 1) | {GFX90A: 0}),
    "data of a store": pair("global_store_dwordx4 v1, v[12:15], s[4:5]", "v_mov_b32 v14, 1",
                            on(NEW, 2) | {GFX90A: 1}),
    "data of a narrow store": pair("global_store_dwordx2 v1, v[12:13], s[4:5]", "v_mov_b32 v13, 1",
                                   on(CDNA, 0)),
    "dot product": pair("v_dot2_f32_f16 v2, v3, v4, v5", "v_add_f32 v6, v2, v2", on(CDNA, 3)),
    "dot product, the same": pair("v_dot2_f32_f16 v2, v3, v4, v5",
                                  "v_dot2_f32_f16 v2, v3, v4, v2", on(CDNA, 0)),
    "VGPR, product": pair("v_mov_b32 v3, 1", _MFMA4, on(CDNA, 2)),
    "2 passes, read": pair(_MFMA4, "v_mov_b32 v20, v9", on(CDNA, 5)),
    "8 passes, read": pair(_MFMA16, "v_mov_b32 v40, v31", on((GFX90A, GFX942), 11) | {GFX950: 12}),
    "16 passes, read": pair(_MFMA32, "v_mov_b32 v2, v32", on((GFX90A, GFX942), 19) | {GFX950: 20}),
    "8 passes, stored": pair(_MFMA16, "global_store_dword v1, v31, s[4:5]",
                             on((GFX90A, GFX942), 11) | {GFX950: 12}),
    "8 passes, overwritten": pair(_MFMA16, "v_mov_b32 v16, 0",
                                  on((GFX90A, GFX942), 11) | {GFX950: 12}),
    "8 passes, addend": pair(_MFMA16, "v_mfma_f32_16x16x4f16 v[16:31], v[2:3], v[4:5], v[16:31]",
                             on(CDNA, 0)),
    "2 passes, addend": pair(_MFMA4, _MFMA4, on(NEW, 2) | {GFX90A: 0}),
    "8 passes, part of the addend": pair(
        _MFMA16, "v_mfma_f32_4x4x4f16 v[8:11], v[2:3], v[4:5], v[16:19]",
        {GFX90A: 8, GFX942: 9, GFX950: 10}),
    "part of the addend, made anew": pair(
        "v_mfma_f32_16x16x4f32 v[10:13], v2, v3, v[10:13]\n"
        "  v_mfma_f32_16x16x4f32 v[8:11], v4, v5, v[10:13]",
        "v_mfma_f32_16x16x4f32 v[8:11], v6, v7, v[8:11]", on(CDNA, 0)),
    "8 passes, factor": pair(_MFMA16, "v_mfma_f32_4x4x4f16 v[8:11], v[16:17], v[4:5], 0",
                             on((GFX90A, GFX942), 11) | {GFX950: 12}),
    "addend overwritten": pair("v_mfma_f32_16x16x4f16 v[16:31], v[2:3], v[4:5], v[32:47]",
                               "v_mov_b32 v33, 0", on(CDNA, 7)),
    "f32, read": pair(_F32, "v_mov_b32 v40, v31", {GFX90A: 11, GFX942: 10, GFX950: 10}),
    "f64, read": pair(_F64, "v_mov_b32 v40, v9", on(CDNA, 6)),
    "f64, stored": pair(_F64, "global_store_dword v1, v9, s[4:5]", on(CDNA, 9)),
    "f64 16x16, read": pair(_F64_LARGE, "v_mov_b32 v40, v16",
                            on((GFX90A, GFX942), 11) | {GFX950: 19}),
    "f64, fma": pair(_F64, "v_fma_f64 v[40:41], v[42:43], v[44:45], v[46:47]", on(CDNA, 2)),
    "lanes swapped": pair("v_mov_b32 v2, 1", "v_permlane32_swap_b32 v2, v3", {GFX950: 2}),
}  # fmt: skip


def nops(states: int) -> str:
    whole, rest = divmod(states, 8)
    lines = ["s_nop 7"] * whole + ([f"s_nop {rest - 1}"] if rest else [])
    return "".join(f"  {line}\n" for line in lines)


def kernel(case: Pair, states: int) -> str:
    start = "".join(f"  {line}\n" for line in _START[True].split("\n"))
    return f"{start}{nops(20)}  {case.first}\n{nops(states)}  {case.second}\n{nops(20)}"


@pytest.fixture(scope="module", params=CDNA)
def module(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    bodies = {}
    for name, case in PAIRS.items():
        if arch in case.states:
            needed = case.states[arch]
            bodies[f"right {name}"] = kernel(case, needed)
            bodies[f"wrong {name}"] = kernel(case, max(needed - 1, 0))
    return assembled(bodies, arch)


def fault_of(module: Module, name: str) -> str:
    data = np.zeros(4096, np.uint32)
    return module.fault(name, data, data)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(module: Module, name: str) -> None:
    case, arch = PAIRS[name], DEVICES[module.device]
    if arch not in case.states:
        return
    needed = case.states[arch]
    assert not fault_of(module, f"right {name}")
    if not needed:
        return
    message = fault_of(module, f"wrong {name}")
    assert "hazard: " in message
    assert f"{needed - 1} wait states between them, and {needed} are needed" in message
    assert f"kernel {symbol(f'wrong {name}')}, workgroup (0, 0, 0), wave 0" in message


_EXP = ("v_exp_f32 v2, v3", "v_add_f32 v4, v2, v2")
_WMMA = "v_wmma_f32_16x16x16_f16 v[16:23], v[{a}], v[{b}], v[16:23]"
_WMMAS = {
    GFX11: (_WMMA.format(a="24:31", b="32:39"), _WMMA.format(a="16:23", b="32:39")),
    GFX12: (_WMMA.format(a="24:27", b="32:35"), _WMMA.format(a="16:19", b="32:35")),
}
_FILL = "v_mov_b32 v40, v41"
#: Lines of kernels of RDNA: waves of how many lanes, and what the report says; "" if all is right.
DEPENDENCIES = {
    "transcendental": (32, _EXP, "the transcendental result v2"),
    "transcendental, five others": (32, (_EXP[0], *[_FILL] * 5, _EXP[1]), "v2"),
    "transcendental, six others": (32, (_EXP[0], *[_FILL] * 6, _EXP[1]), ""),
    "transcendental, two of them": (32,
        (_EXP[0], "v_exp_f32 v42, v3", "v_exp_f32 v43, v3", _EXP[1]), ""),
    "transcendental, a wait": (32, (_EXP[0], "s_waitcnt_depctr 0xfff", _EXP[1]), ""),
    "transcendental, a hint": (32, (_EXP[0], "s_delay_alu instid0(TRANS32_DEP_1)", _EXP[1]), "v2"),
    "factor": (32, _WMMAS[GFX11], "factor of the next"),
    "factor, v_nop": (32, (_WMMAS[GFX11][0], "v_nop", _WMMAS[GFX11][1]), ""),
    "exec between": (64,
        ("v_mov_b32 v2, 1", "s_mov_b64 exec, -1", "v_mov_b32 v3, 1", "v_add_f32 v4, v2, v3"),
        "after exec changed"),
    "exec between, a wait": (
        64,
        (
            "v_mov_b32 v2, 1",
            "s_mov_b64 exec, -1",
            "v_mov_b32 v3, 1",
            "s_waitcnt_depctr 0xfff",
            "v_add_f32 v4, v2, v3",
        ),
        "",
    ),
    "exec between, five vector instructions": (
        64,
        (
            "v_mov_b32 v2, 1",
            "s_mov_b64 exec, -1",
            "v_mov_b32 v3, 1",
            *[_FILL] * 5,
            "v_add_f32 v4, v2, v3",
        ),
        "",
    ),
    "mask": (64,
        ("v_cndmask_b32 v2, v3, v4, s[8:9]", "s_mov_b64 s[8:9], 0", "s_mov_b64 s[10:11], s[8:9]"),
        "is a mask"),
    "mask, a wait": (
        64,
        (
            "v_cndmask_b32 v2, v3, v4, s[8:9]",
            "s_mov_b64 s[8:9], 0",
            "s_waitcnt_depctr 0xfffe",
            "s_mov_b64 s[10:11], s[8:9]",
        ),
        "",
    ),
    "permlane": (32, ("v_cmpx_eq_u32 v1, v1", "v_permlane16_b32 v2, v3, s8, s9"),
                 "v_cmpx writes exec"),
    "permlane, a vector instruction": (32,
        ("v_cmpx_eq_u32 v1, v1", _FILL, "v_permlane16_b32 v2, v3, s8, s9"), ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def rdna3(request: pytest.FixtureRequest) -> Module:
    """The kernels of waves with so many lanes."""
    start = f"  {_START[False]}  s_waitcnt lgkmcnt(0)\n"
    bodies = {
        name: start + "".join(f"  {line}\n" for line in lines)
        for name, (lanes, lines, _) in DEPENDENCIES.items()
        if lanes == request.param
    }
    return assembled(bodies, GFX11, wave=request.param)


@pytest.mark.parametrize(
    ("rdna3", "name"),
    [(lanes, name) for name, (lanes, _, _) in DEPENDENCIES.items()],
    indirect=["rdna3"],
)
def test_dependencies(rdna3: Module, name: str) -> None:
    said, message = DEPENDENCIES[name][2], fault_of(rdna3, name)
    assert bool(message) == bool(said), message
    assert said in message


def test_factors_of_gfx12() -> None:
    start = f"  {_START[False]}  s_wait_kmcnt 0\n"
    first, second = _WMMAS[GFX12]
    bodies = {
        "wrong": f"{start}  {first}\n  {second}\n",
        "right": f"{start}  {first}\n  v_nop\n  {second}\n",
    }
    module = assembled(bodies, GFX12, wave=32)
    assert not fault_of(module, "right")
    assert "factor of the next" in fault_of(module, "wrong")


def test_nothing_is_checked_unless_asked(module: Module) -> None:
    emulator.sanitize()
    assert not fault_of(module, "wrong 2 passes, read")


@pytest.mark.parametrize("kind", test_triton.KINDS)
@pytest.mark.parametrize("gpu", [GFX942, GFX950, GFX11, GFX12])
def test_compiled_kernels_have_no_hazards(gpu: str, kind: str) -> None:
    test_triton.all_of(kind, gpu)
