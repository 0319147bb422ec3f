# SPDX-License-Identifier: MIT
"""What a GPU does not have does not run: the fault names the instruction and the reason."""

from pathlib import Path

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.engine.library import text_section
from cklang.toolchain.compilers import find_toolchain, run_tool
from tests.support.assembly import DEVICES, assembled

pytestmark = pytest.mark.usefixtures("emulator")

#: Instructions, a GPU that has them, and one that has not: upstream ships the first for gfx942,
#: where it compiles and gives zeros.
FOREIGN = {
    "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]": ("gfx950", "gfx942"),
    "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]": ("gfx950", "gfx942"),
    "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]": ("gfx950", "gfx942"),
    "v_smfmac_f32_16x16x64_f16 v[0:3], v[4:7], v[8:15], v16": ("gfx950", "gfx942"),
    "v_permlane32_swap_b32 v0, v1": ("gfx950", "gfx942"),
    "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], v[0:3]": ("gfx942", "gfx90a"),
    "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10": ("gfx942", "gfx90a"),
    "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]": ("gfx942", "gfx950"),
}
REASONS = {
    "ds_gws_barrier v2 gds": "no global data share",
    "s_rfe_b64 s[2:3]": "only a trap handler",
    "s_sethalt 1": "until a debugger",
    "s_setreg_imm32_b32 hwreg(HW_REG_STATUS), 1": "writing hardware register 2",
    "s_getreg_b32 s4, hwreg(HW_REG_GPR_ALLOC)": "hardware register 5",
}


#: The same of gfx1201.
REASONS_RDNA = {
    "s_barrier_join 1": "named barriers",
    "s_alloc_vgpr 8": "has its registers from the start",
    "s_rfe_b64 s[2:3]": "only a trap handler",
}


def machine_code(folder: Path, arch: str, text: str) -> np.ndarray:
    """What clang's assembler makes of the text, in words."""
    source, output = folder / "foreign.s", folder / "foreign.o"
    source.write_text(f"{text}\n")
    tools = find_toolchain()
    flags = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-x", "assembler", "-c")
    command = [*tools.clang, *flags, str(source), "-o", str(output)]
    run_tool(command, log=folder / "log", environment=tools.environment())
    return np.frombuffer(text_section(output.read_bytes()), np.uint32)


def fault_of(arch: str, body: str) -> str:
    return assembled({"k": body}, arch).fault("k", np.zeros(4, np.uint32))


@pytest.mark.parametrize("text", FOREIGN)
def test_instructions_of_another_gpu(text: str, tmp_path: Path) -> None:
    has, lacks = FOREIGN[text]
    assert lacks in DEVICES
    code = machine_code(tmp_path, has, text)
    assert text.split()[0] in emulator.disassemble(has, code.tobytes())
    words = "\n".join(f"  .long {word:#x}" for word in code)
    assert "cannot decode" in fault_of(lacks, words)


@pytest.mark.parametrize(
    ("arch", "text", "reason"),
    [("gfx90a", *item) for item in REASONS.items()]
    + [("gfx1201", *item) for item in REASONS_RDNA.items()],
)
def test_reasons(arch: str, text: str, reason: str) -> None:
    message = fault_of(arch, f"  {text}\n")
    assert reason in message
    assert text.split()[0] in message
