# SPDX-License-Identifier: MIT
"""The decoder against clang's assembler: decode, print, assemble, and get the same bytes back.

Three sources of code: every row of the tables with random operands, the same with one bit flipped
(what the decoder still accepts clang must accept too), and kernels that clang compiled.
"""

import ctypes
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cklang import emulator
from cklang.elf import sections_of
from cklang.emulator.engine.build import write_tables
from cklang.emulator.engine.isa import schema
from cklang.emulator.engine.isa.schema import FAMILIES
from cklang.toolchain.compilers import Toolchain, find_toolchain
from tests.support.instruction_samples import forms, sample

pytestmark = pytest.mark.usefixtures("emulator")

TABLES = {schema.load(family).arch: schema.load(family) for family in FAMILIES}
SOURCES = Path(schema.__file__).parents[1] / "src"
KERNELS = Path(__file__).parent / "data" / "decoder_kernels.cl"
TRIPLE = "--target=amdgcn-amd-amdhsa"

Emit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p)
Disassemble = Callable[[str, bytes], tuple[int, list[tuple[int, str]]]]

#: A run is one assembler call over some 1,800 instructions; a smaller seed says nothing more.
FUZZ = settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

#: Where the decoder accepts what clang's assembler refuses or writes differently, and why.
LENIENT = (
    (r"^s_\w*buffer.*(offset:|, )-0x", "the assembler takes no negative buffer offset"),
    (r"_(b?f16|i16|u16|b16)\w* .*0x[0-9a-f]{5,}", "16-bit operands use the literal's low half"),
    (r"^v_s_\w+ exec", "the assembler writes exec from no pseudo-scalar function"),
    (r"^v_div_fmas|v_dual_cndmask", "the assembler counts the implicit vcc as a scalar value"),
    (r"^v_s?mfma", "a result that overlaps its addend is a hazard, not an encoding"),
    (r"^(global|flat|buffer)_atomic_.*sc", "the assembler drops the scope bit of some atomics"),
    (r"^global_atomic_(add_f32|pk_add_f16) .*a\d", "the assembler knows no AGPR form"),
    (r"^ds_gws_.* [av]\d*[13579]\b", "the assembler wants an even register"),
    (r"^s_(sendmsg|sendmsghalt|[gs]etreg)", "the assembler checks message and register numbers"),
    (r"^v_read(first)?lane_b32 (m0|exec)", "the assembler takes no m0 or exec result"),
    (r"_sdwa .*0\.15915494", "the assembler takes 1/(2 pi) in float SDWA only"),
    (r"^v_mfma_scale", "bits 13 and 14 of the scale word are not read, so not printed"),
    (r"^[sv]_.*[ ,]0x([0-3]?[0-9a-f]|40)\b", "such a literal is shorter as an inline constant"),
    (r"^s_waitcnt (?!0x)", "bits that no counter has are printed only as a number"),
    (r"\.[lh]\b.* op_sel:", "the assembler takes no op_sel beside a named half"),
    (r"^v_(align\w+_b32|cvt_(pk_)?f32_(fp8|bf8)\w*) .*0x", "16-bit operands as above"),
    (r"^v_pk_fmac_f16 ", "the assembler writes an inline float as a literal"),
    (r"^(v_|s_(?!load|buffer)).*\b0x([0-3]?[0-9a-f]|40)\b", "a literal that has an inline code"),
    (r"th:TH_ATOMIC_(NT|CASCADE)", "the assembler ties some hints to a scope"),
    (r"_f64\w* .*0x", "the assembler takes no modifiers on 64-bit literals"),
    (r"_b96 ttmp", "the assembler has no group of three trap registers"),
    (r"v_dual_mov_b32|^v_(nop|pipeflush)|^buffer_(wbl2|inv)", "bits of operands that it lacks"),
    (r"^v_s?wmmac?_.*0\.15915494", "the assembler takes no 1/(2 pi) as their addend"),
    (r"_e64_dpp ", "the assembler takes fewer scalars and constants with DPP"),
)

#: What to switch on: instructions on halves of registers, which newer compilers for gfx12 write.
FEATURES = {"gfx1201": ("+real-true16",)}


def _placeholder(code: bytes, got: bytes | str) -> bool:
    """Whether all that differs is the constant 0 in a source that the instruction does not have.

    Newer releases of LLVM than the one at hand write it there on RDNA.
    """
    if isinstance(got, str) or len(code) != len(got) or len(code) < 8:
        return False
    difference = int.from_bytes(code, "little") ^ int.from_bytes(got, "little")
    return not difference & ~sum(0x80 << (32 + 9 * source) for source in range(3))


def _assemble(toolchain: Toolchain, arch: str, lines: list[str], folder: Path) -> list[bytes | str]:
    """The bytes of each line, or the assembler's message about it."""
    result: list[bytes | str] = [""] * len(lines)
    left = list(range(len(lines)))
    while left:
        body = "".join(f"{lines[i]}\n.Lend{i}:\n" for i in left)
        ends = "".join(f".long .Lend{i}-.Lstart\n" for i in left)
        source, output = folder / "lines.s", folder / "lines.o"
        source.write_text(f".text\n.Lstart:\n{body}.section .ends\n{ends}", "utf-8")
        run = _clang(toolchain, arch, "-x", "assembler", "-c", str(source), "-o", str(output))
        if run.returncode == 0:
            text, marks = _section(output, ".text"), _section(output, ".ends")
            start = 0
            for i, end in zip(left, memoryview(marks).cast("I"), strict=True):
                result[i], start = text[start:end], end
            break
        failed = {}
        for line, message in re.findall(r"lines\.s:(\d+):\d+: error: (.*)", run.stderr):
            failed[left[(int(line) - 3) // 2]] = message
        assert failed, run.stderr
        for i, message in failed.items():
            result[i] = message
        left = [i for i in left if i not in failed]
    return result


def _clang(toolchain: Toolchain, arch: str, *flags: str) -> subprocess.CompletedProcess[str]:
    tool = "-Xclangas" if "assembler" in flags else "-Xclang"
    more = [
        part for flag in FEATURES.get(arch, ()) for part in (tool, "-target-feature", tool, flag)
    ]
    command = [*toolchain.clang, TRIPLE, f"-mcpu={arch}", "-nogpulib", *more, *flags]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=toolchain.environment()
    )


def _section(path: Path, name: str) -> bytes:
    """The content of one section of an ELF file."""
    return next(each.content for each in sections_of(path.read_bytes()) if each.name == name)


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return find_toolchain()


@pytest.fixture(scope="session")
def disassemble(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Disassemble:
    """The decoder and the printer alone, built from the sources of this tree."""
    folder = tmp_path_factory.mktemp("decoder")
    write_tables(folder)
    objects = []
    flags = (
        "-O1",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{folder}",
        f"-I{SOURCES}",
    )
    for name in ("decode", "disasm"):
        source, target = SOURCES / "decode" / f"{name}.cpp", folder / f"{name}.o"
        command = toolchain.compile_cxx(source, target, flags=flags)
        subprocess.run(command, check=True, env=toolchain.environment())
        objects.append(target)
    library = folder / "decoder.so"
    subprocess.run(toolchain.link_plain(objects, library), check=True, env=toolchain.environment())
    function = ctypes.CDLL(str(library)).ckemu_disassemble
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, Emit, ctypes.c_void_p]

    def call(arch: str, code: bytes) -> tuple[int, list[tuple[int, str]]]:
        instructions: list[tuple[int, str]] = []

        def emit(_context: int, offset: int, text: bytes) -> None:
            instructions.append((offset, text.decode()))

        return function(arch.encode(), code, len(code), Emit(emit), None), instructions

    return call


def _matches(patterns: Iterable[tuple[str, str]], text: str) -> bool:
    return any(re.search(pattern, text) for pattern, _ in patterns)


def _samples(arch: str, random: Random) -> list[tuple[str, bytes]]:
    table = TABLES[arch]
    return [
        (f"{row.name} as {name} {form}".rstrip(), sample(table, row, encoding, form, random))
        for row in table.rows
        for name, _ in row.opcodes
        if name != "VOPDY"  # sampled with its other half
        for encoding in (table.encoding(name),)
        for form in forms(row, encoding)
    ]


@pytest.mark.parametrize("arch", TABLES)
@given(seed=st.integers(0, 2**32 - 1))
@FUZZ
def test_every_row_makes_the_round_trip(
    arch: str, seed: int, disassemble: Disassemble, toolchain: Toolchain, tmp_path: Path
) -> None:
    """Each row in each encoding and form, random operands and modifiers: bytes → text → bytes."""
    samples = _samples(arch, Random(seed))
    assert len(samples) > 1700
    texts = []
    for label, code in samples:
        used, instructions = disassemble(arch, code)
        assert used == len(code), (label, code.hex(), instructions)
        assert len(instructions) == 1, (label, code.hex(), instructions)
        texts.append(instructions[0][1])
    assembled = _assemble(toolchain, arch, texts, tmp_path)
    wrong = [
        (label, text, code.hex(), got if isinstance(got, str) else got.hex())
        for (label, code), text, got in zip(samples, texts, assembled, strict=True)
        if got != code
    ]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("arch", TABLES)
@given(seed=st.integers(0, 2**32 - 1))
@FUZZ
def test_what_is_accepted_is_what_clang_means(
    arch: str, seed: int, disassemble: Disassemble, toolchain: Toolchain, tmp_path: Path
) -> None:
    """One flipped bit gives another instruction that clang agrees on, or is refused."""
    random = Random(seed)
    accepted, refused = [], 0
    for _, code in _samples(arch, random):
        flipped = bytearray(code)
        bit = random.randrange(8 * len(code))
        flipped[bit // 8] ^= 1 << bit % 8
        used, found = disassemble(arch, bytes(flipped) + bytes(8))
        first = found[1][0] if len(found) > 1 else used
        if first == 0:
            refused += 1
        elif first <= len(code):
            accepted.append((bytes(flipped[:first]), found[0][1]))
    assert refused > 50
    assembled = _assemble(toolchain, arch, [text for _, text in accepted], tmp_path)
    wrong = [
        (text, code.hex(), got if isinstance(got, str) else got.hex())
        for (code, text), got in zip(accepted, assembled, strict=True)
        if got != code and not _placeholder(code, got) and not _matches(LENIENT, text)
    ]
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("arch", TABLES)
def test_compiled_kernels_read_as_clang_writes_them(
    arch: str, disassemble: Disassemble, toolchain: Toolchain, tmp_path: Path
) -> None:
    """The object's code, decoded, is the text of the same compilation, line by line."""
    compile_flags = ("-cl-no-stdinc", "-cl-std=CL2.0", "-O3", "-x", "cl", str(KERNELS))
    for flag, name in (("-c", "kernels.o"), ("-S", "kernels.s")):
        run = _clang(toolchain, arch, *compile_flags, flag, "-o", str(tmp_path / name))
        assert run.returncode == 0, run.stderr
    code = _section(tmp_path / "kernels.o", ".text")
    used, instructions = disassemble(arch, code)
    assert used == len(code), instructions[-1]
    ours = [text for _, text in instructions]
    theirs = re.findall(r"^\t([a-z]\w+.*?)(?:\s*;.*)?$", (tmp_path / "kernels.s").read_text(), re.M)
    assert len(theirs) > 500
    assert _without_padding(ours) == [
        _without_label(line) for line in theirs if "s_nop" not in line
    ]
    assembled = _assemble(toolchain, arch, ours, tmp_path)
    assert b"".join(piece for piece in assembled if isinstance(piece, bytes)) == code


@pytest.mark.parametrize("arch", [arch for arch, t in TABLES.items() if t.generation > 9])
def test_waves_of_64_lanes_have_wider_masks(
    arch: str, disassemble: Disassemble, toolchain: Toolchain, tmp_path: Path
) -> None:
    flags = ("-cl-no-stdinc", "-cl-std=CL2.0", "-O3", "-mwavefrontsize64", "-DCKLANG_WAVE64")
    for flag, name in (("-c", "kernels.o"), ("-S", "kernels.s")):
        source = ("-x", "cl", str(KERNELS), flag, "-o", str(tmp_path / name))
        run = _clang(toolchain, arch, *flags, *source)
        assert run.returncode == 0, run.stderr
    code = _section(tmp_path / "kernels.o", ".text")
    used, instructions = disassemble(f"{arch}:wave64", code)
    assert used == len(code), instructions[-1]
    theirs = re.findall(r"^\t([a-z]\w+.*?)(?:\s*;.*)?$", (tmp_path / "kernels.s").read_text(), re.M)
    assert _without_padding([text for _, text in instructions]) == [
        _without_label(line) for line in theirs if "s_nop" not in line
    ]


def _without_label(line: str) -> str:
    """Branch targets are labels in clang's text and numbers in ours."""
    line = re.sub(r"\s+", " ", line.strip())
    return re.sub(r"^(s_c?branch\w*) .*", r"\1", line)


def _without_padding(lines: list[str]) -> list[str]:
    """Drop the nops and code ends, which also fill the space between kernels."""
    padding = ("s_nop", "s_code_end")
    return [_without_label(line) for line in lines if not line.startswith(padding)]


@pytest.mark.parametrize(
    ("arch", "words", "reason"),
    [
        ("gfx942", [0xBE80FF00], "gfx942 has no SOP1 opcode 255"),
        ("gfx90a", [0x7E0070FF, 1], "gfx90a has no VOP1 opcode 56"),
        ("gfx942", [0xFC000000], "no encoding of gfx942 starts with 0xfc000000"),
        ("gfx942", [0x020402FF], "v_add_f32: the literal constant is missing"),
        ("gfx942", [0xD1010000], "v_add_f32: needs 2 words, 1 are left"),
        ("gfx942", [0x7E0002D1], "v_mov_b32: source code 209 is reserved"),
        ("gfx942", [0x8000007D], "s_add_u32: scalar register code 125 is reserved"),
        ("gfx942", [0xBE800101], "s_mov_b64: scalar register 1 is not aligned to 2"),
        ("gfx942", [0xBE800165], "s_mov_b64: scalar registers 101..102 are not one group"),
        ("gfx942", [0xD1010000, 0x80000000], "v_add_f32: neg 0x4 on an operand that does not"),
        ("gfx942", [0xD1130000, 0x20000000], "v_and_b32: neg 0x1 on an operand that does not"),
        ("gfx942", [0xD1130000, 0x08000000], "v_and_b32: field omod is 1, but"),
        ("gfx942", [0xD1010000, 0x00000C04], "v_add_f32: reads two scalar values"),
        ("gfx942", [0xD3CC8001, 0x04020902], r"a\[1:16\] must start at an even register"),
        ("gfx942", [0x7E0002FA, 0xFF011000], "v_mov_b32: dpp_ctrl 0x110 is reserved"),
        ("gfx942", [0x7E00A4FA, 0xFF00E400], "v_accvgpr_mov_b32: has no DPP form"),
        ("gfx942", [0xDC502000, 0x007F0000], "scratch_load_dword|reserved bit 13 is set"),
        ("gfx942", [0xBF8A0001], "s_barrier: field simm16 is 1"),
        ("gfx942", [0xD86D0000, 0], "ds_read_b32: takes no gds"),
        ("gfx942", [0xE0710000, 0x80010000], "buffer_store_dword: cannot load to LDS"),
        ("gfx1100", [0xCD000000, 0], "gfx1100 has no VINTERP opcode 0"),
        ("gfx1201", [0xF8000000, 0], "gfx1201 has no EXP opcode 0"),
        ("gfx1100", [0xCA100100, 0x00000100], "v0 and v0 are in one register bank"),
        ("gfx1100:wave64", [0xCA100100, 0x00000101], "dual instructions need waves of 32 lanes"),
        ("gfx1100", [0xD4910000, 0x00020300], "v_cmpx_lt_f32: the result must be exec"),
        ("gfx1100", [0xD5030000, 0x000200FA, 0xFF014201], "dpp_ctrl 0x142 is reserved"),
        ("gfx1100", [0xD5030000, 0x000004FA, 0xFF01E401], "src1 must be a vector register"),
        ("gfx1201", [0xBE804E00], "s_barrier_signal: ssrc0 must be m0 or an integer"),
    ],
)
def test_refusals_name_the_reason(
    arch: str, words: list[int], reason: str, disassemble: Disassemble
) -> None:
    code = b"".join(word.to_bytes(4, "little") for word in words)
    used, instructions = disassemble(arch, code)
    assert used == 0
    message = instructions[-1][1]
    assert re.search(reason, message), message


def test_the_lane_of_writelane_in_m0_is_no_second_scalar(disassemble: Disassemble) -> None:
    code = b"".join(word.to_bytes(4, "little") for word in (0xD28A0000, 0x0000F804))
    _, instructions = disassemble("gfx942", code)
    assert instructions[0][1] == "v_writelane_b32 v0, s4, m0"


def test_two_moves_on_rdna4_may_read_one_register_bank(disassemble: Disassemble) -> None:
    words = (0xCA100149, 0xB6B40151)
    code = b"".join(word.to_bytes(4, "little") for word in words)
    used, instructions = disassemble("gfx1201", code)
    assert used == len(code), instructions
    assert disassemble("gfx1100", code)[0] == 0


def test_unknown_arch(disassemble: Disassemble) -> None:
    assert disassemble("gfx1030", bytes(4)) == (-1, [])
    assert disassemble("gfx942:wave64", bytes(4)) == (-1, [])


@pytest.mark.parametrize("arch", TABLES)
def test_the_emulators_library_has_the_same_decoder(arch: str, disassemble: Disassemble) -> None:
    code = b"".join(code for _, code in _samples(arch, Random(1)))
    used, instructions = disassemble(arch, code)
    assert used == len(code)
    ours = [f"{offset:6x}: {text}" for offset, text in instructions]
    assert emulator.disassemble(arch, code).splitlines() == ours
