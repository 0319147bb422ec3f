# SPDX-License-Identifier: MIT
"""The build steps, on a tiny kernel in a moment, and on real CK Tile kernels."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cklang.build import code_object, steps
from cklang.build.schedules import INLINED, MOST_CURED, OVERLAPPED, SCHEDULES
from cklang.device.host_shim import LaunchShape
from cklang.errors import CkBuildError, CkInternalError
from cklang.families.gemm.host import GemmOperand, GemmProblem, GemmShim
from cklang.families.gemm.key import DKind, GemmKey
from cklang.families.gemm.lower import lower
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse
from cklang.lowering.source import KernelSource
from cklang.selection.rules import candidates
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from cklang.types import f16
from tests.support.errors import expect_error
from tests.support.gemm_keys import signature as signature_of
from tests.support.read_back import read_back_products

ARCH = "gfx942"

# A kernel with a hole, as LLVM IR: out[0] = ck_epilogue(x).
TINY = """
target triple = "amdgcn-amd-amdhsa"
declare float @ck_epilogue(float)
define amdgpu_kernel void @tiny(ptr addrspace(1) %out, float %x) {
  %y = call float @ck_epilogue(float %x)
  store float %y, ptr addrspace(1) %out
  ret void
}
"""

DOUBLE = '#include "cklang/math.h"\nCK_FUNCTION float ck_epilogue(float acc)\n'


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    stencil = tmp_path / "tiny.ll"
    stencil.write_text(TINY)
    return stencil


def test_fill_becomes_a_code_object(tiny: Path, tmp_path: Path) -> None:
    fill = DOUBLE + "{\n    return ck_tanh(acc);\n}\n"
    step = steps.link_fill(tiny, fill, ARCH, tmp_path, find_toolchain())
    assert step.file == tmp_path / "kernel.hsaco"
    read = code_object.read(step.file)
    assert read.target == ARCH
    assert read.functions == ("tiny",)
    facts = read.kernel("tiny")
    assert (facts.vgpr_spills, facts.sgpr_spills, facts.lds_bytes) == (0, 0, 0)
    assert facts.kernarg_bytes >= 12
    assert facts.wave_size == 64
    assert step.log.read_text().count("# exit 0") == 3


def crowded(values: int) -> str:
    """A kernel with a hole whose scheduling barrier keeps ``values`` numbers in registers."""
    indices = range(values)
    loads = [
        f"  %p{i} = getelementptr float, ptr addrspace(1) %in, i64 {i * 64}\n"
        f"  %v{i} = load volatile float, ptr addrspace(1) %p{i}"
        for i in indices
    ]
    sums = [f"  %s{i + 1} = fadd float %s{i}, %v{i}" for i in indices]
    return f"""
target triple = "amdgcn-amd-amdhsa"
declare float @ck_epilogue(float)
declare void @llvm.amdgcn.sched.barrier(i32 immarg)
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @crowded(ptr addrspace(1) %out, ptr addrspace(1) %base) #0 {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %in = getelementptr float, ptr addrspace(1) %base, i32 %lane
  %s0 = call float @ck_epilogue(float 0.0)
{chr(10).join(loads)}
  call void @llvm.amdgcn.sched.barrier(i32 0)
{chr(10).join(sums)}
  store float %s{values}, ptr addrspace(1) %out
  ret void
}}
attributes #0 = {{ "amdgpu-num-vgpr"="40" "amdgpu-flat-work-group-size"="64,64" }}
"""


@pytest.mark.parametrize(
    ("values", "schedule", "spills"),
    [
        (8, SCHEDULES[0].name, 0),
        (120, SCHEDULES[2].name, 0),
        (1200, SCHEDULES[0].name, MOST_CURED),
    ],
    ids=["few", "many", "far too many"],
)
def test_a_kernel_that_spills_is_scheduled_without_barriers(
    tmp_path: Path, values: int, schedule: str, spills: int
) -> None:
    stencil = tmp_path / "crowded.ll"
    stencil.write_text(crowded(values))
    fill = DOUBLE + "{\n    return acc;\n}\n"
    step = steps.link_fill(stencil, fill, ARCH, tmp_path, find_toolchain())
    assert step.schedule == schedule
    spilled = code_object.read(step.file).kernel("crowded").vgpr_spills
    assert spilled > spills if spills else spilled == 0
    assert not (tmp_path / "kernel.ll").exists()


def test_a_function_that_is_too_long_to_inline_is_inlined(tmp_path: Path) -> None:
    operations = [
        f"  %x{n} = call float @llvm.fma.f32(float %x{n - 1}, float %x{n - 1}, float {n}.0)"
        for n in range(1, 4000)
    ]
    stencil = tmp_path / "long.ll"
    stencil.write_text(f"""
target triple = "amdgcn-amd-amdhsa"
declare float @ck_epilogue(float)
declare float @llvm.fma.f32(float, float, float)
define linkonce_odr hidden float @long(float %x0) {{
{chr(10).join(operations)}
  ret float %x3999
}}
define amdgpu_kernel void @twice(ptr addrspace(1) %out, float %in) {{
  %a = call float @ck_epilogue(float %in)
  %b = call float @long(float %a)
  %c = call float @ck_epilogue(float %b)
  %d = call float @long(float %c)
  store float %d, ptr addrspace(1) %out
  ret void
}}
""")
    fill = DOUBLE + "{\n    return acc;\n}\n"
    step = steps.link_fill(stencil, fill, ARCH, tmp_path, find_toolchain())
    assert step.schedule == INLINED.name
    assert list(code_object.read(step.file).functions) == ["twice"]


def test_a_kernel_with_long_names_is_scheduled_without_barriers(tmp_path: Path) -> None:
    """Names that LLVM makes of others may exceed what it reads: 1,024 characters."""
    text = tmp_path / "kernel.ll"
    filled = crowded(8).replace("call float @ck_epilogue(float 0.0)", "fadd float 0.0, 1.0")
    text.write_text(filled.replace("%lane", f"%{'lane' * 300}"))
    step = steps._scheduled(SCHEDULES[1], tmp_path / "unread", ARCH, tmp_path, find_toolchain())
    assert code_object.read(step.file).kernel("crowded").vgpr_spills == 0


def test_a_kernel_whose_instructions_shall_overlap_is_scheduled_so(tmp_path: Path) -> None:
    stencil = tmp_path / "crowded.ll"
    stencil.write_text(crowded(8))
    fill = DOUBLE + "{\n    return acc;\n}\n"
    step = steps.link_fill(stencil, fill, ARCH, tmp_path, find_toolchain(), overlapped=True)
    assert step.schedule == OVERLAPPED.name


def test_assembly_counts(tiny: Path, tmp_path: Path) -> None:
    fill = DOUBLE + "{\n    return acc * 2.0f;\n}\n"
    step = steps.assembly(tiny, fill, ARCH, tmp_path, find_toolchain())
    counts = code_object.count_instructions(step.file.read_text())
    assert counts["s_endpgm"] == 1
    assert any(name.startswith("global_store") for name in counts)
    assert not any("swappc" in name for name in counts)


@pytest.mark.parametrize("function", ["ck_erf", "ck_expm1"])
def test_a_fill_computes_both_sides_of_a_condition(
    tiny: Path, tmp_path: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = DOUBLE + f"{{\n    return {function}(acc);\n}}\n"

    def branches() -> bool:
        step = steps.assembly(tiny, fill, ARCH, tmp_path, find_toolchain())
        counts = code_object.count_instructions(step.file.read_text())
        return any(name.startswith("s_cbranch") for name in counts)

    assert not branches()
    monkeypatch.setattr(steps, "fill_flags", lambda fill: ())
    assert branches()


def test_call_that_is_left_over_is_an_error(tiny: Path, tmp_path: Path) -> None:
    fill = DOUBLE.replace("CK_FUNCTION", "__attribute__((noinline))") + "{ return acc * 2; }"
    with expect_error("B011", kind=CkInternalError) as caught:
        steps.link_fill(tiny, fill, ARCH, tmp_path, find_toolchain())
    assert "ck_epilogue" in caught.value.message


def test_a_function_of_many_blocks_is_inlined(tiny: Path, tmp_path: Path) -> None:
    """The backend by itself inlines up to 1,100 blocks: main loops of compv5 have 2,700."""
    operations = "".join(
        f'    if (acc > {i}.0f) {{ __asm__ volatile("; {i}"); acc *= {i}.5f; }}\n'
        for i in range(600)
    )
    fill = DOUBLE + f"{{\n{operations}    return acc;\n}}\n"
    step = steps.link_fill(tiny, fill, ARCH, tmp_path, find_toolchain())
    assert len(code_object.read(step.file).functions) == 1


def test_stencil_that_stays_open_does_not_link(tiny: Path, tmp_path: Path) -> None:
    fill = DOUBLE.replace("ck_epilogue", "another") + "{ return acc; }"
    with expect_error("B010", match="ck_epilogue", kind=CkBuildError):
        steps.link_fill(tiny, fill, ARCH, tmp_path, find_toolchain())


def test_error_in_a_fill_names_the_users_line(tiny: Path, tmp_path: Path) -> None:
    fill = DOUBLE + '{\n#line 17 "user.py"\n    return ck_no_such(acc);\n}\n'
    with pytest.raises(CkBuildError, match=r"user\.py:17") as caught:
        steps.link_fill(tiny, fill, ARCH, tmp_path, find_toolchain())
    assert "ck_no_such" in str(caught.value)


def test_identity_names_all_inputs() -> None:
    toolchain, tree = find_toolchain(), find_ck_tree()
    first = steps.identity(toolchain, tree)
    assert first == steps.identity(toolchain, tree)
    assert first != steps.identity(replace(toolchain, fingerprint="0"), tree)
    assert first != steps.identity(toolchain, replace(tree, fingerprint="0"))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"x" * 200])
def test_what_is_no_code_object_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.hsaco"
    file.write_bytes(data)
    with expect_error("B012", kind=CkBuildError):
        code_object.read(file)


EPILOGUE = """
func @epilogue(%acc: f32[], %d0: f32[], %d1: f32[]) -> f32[] {
  %0: f32[] = add(%acc, %d0)
  %1: f32[] = gelu(%0)
  %2: f32[] = add(%1, %d1)
  return %2
}
"""


def source_of(narrow: bool = False) -> KernelSource:
    functions = Functions(epilogue=parse(EPILOGUE).functions[0])
    signature = signature_of(d=((f16, DKind.ROW), (f16, DKind.FULL)), region=functions)
    offered = candidates(signature, ARCH)
    tile = offered[0].tile
    last = [a for a in offered if a.tile == tile][-1]
    return lower(GemmKey(signature, last if narrow else offered[0], ARCH), functions)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, compiler: None) -> Path:
    """The kernel built both ways, and its host shim, in one folder."""
    folder = tmp_path_factory.mktemp("kernel")
    inline = folder / "inline"
    inline.mkdir()
    toolchain, tree = find_toolchain(), find_ck_tree()
    source = source_of()
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(steps.compile_inline, source.inline, ARCH, inline, toolchain, tree)
        steps.compile_host(source.stencil, ARCH, folder, toolchain, tree)
        steps.compile_stencil(source.stencil, ARCH, folder, toolchain, tree)
        whole.result()
    steps.link_fill(folder / "stencil.bc", source.fill, ARCH, folder, toolchain)
    steps.assembly(folder / "stencil.bc", source.fill, ARCH, folder, toolchain)
    steps.assembly(inline / "kernel.bc", None, ARCH, inline, toolchain)
    return folder


@pytest.mark.usefixtures("compiler")
def test_kernels_read_back_through_the_assembler(built: Path) -> None:
    read_back_products(built / "kernel.hsaco", ARCH)
    read_back_products(built / "inline" / "kernel.hsaco", ARCH)


def kinds(folder: Path) -> dict[str, Counter[str]]:
    """Return how often each instruction stands in a kernel: those of memory and matrices, others.

    ``benchmarks/fill_against_source.py`` compares more kernels so.
    """
    counts: dict[str, Counter[str]] = {"memory": Counter(), "matrix": Counter(), "other": Counter()}
    memory = ("buffer_", "global_", "flat_", "scratch_", "ds_", "s_load")
    for name, count in code_object.count_instructions((folder / "kernel.s").read_text()).items():
        kind = "memory" if name.startswith(memory) else "matrix" if "mfma" in name else "other"
        counts[kind][name] = count
    return counts


def test_a_filled_stencil_loads_stores_and_multiplies_as_the_kernel_from_source(
    built: Path,
) -> None:
    filled = code_object.read(built / "kernel.hsaco")
    source = code_object.read(built / "inline" / "kernel.hsaco")
    (a,), (b,) = filled.kernels, source.kernels
    for fact in ("vgprs", "agprs", "lds_bytes", "kernarg_bytes"):
        assert getattr(a, fact) == getattr(b, fact), fact
    # The order of scalar instructions may cost or save a register; 108 are free of charge.
    assert abs(a.sgprs - b.sgprs) <= 2
    assert (a.vgpr_spills, a.sgpr_spills, a.scratch_bytes) == (0, 0, 0)
    assert filled.functions == source.functions
    ours, theirs = kinds(built), kinds(built / "inline")
    assert ours["matrix"] == theirs["matrix"] != Counter()
    assert ours["memory"] == theirs["memory"]
    # Optimised before or after the function is there, arithmetic may be combined otherwise.
    totals = [counts["other"].total() for counts in (ours, theirs)]
    assert abs(totals[0] - totals[1]) <= 0.02 * totals[1], totals
    assert not any("swappc" in name for name in ours["other"])


def test_epilogue_costs_no_matrix_instructions_and_no_spills(built: Path, tmp_path: Path) -> None:
    plain = "CK_FUNCTION float ck_epilogue(float acc, float d0, float d1) { return acc; }\n"
    toolchain = find_toolchain()
    text = f'#include "cklang/math.h"\n{plain}'
    step = steps.assembly(built / "stencil.bc", text, ARCH, tmp_path, toolchain)
    bare = code_object.count_instructions(step.file.read_text())
    fused = code_object.count_instructions((built / "kernel.s").read_text())
    for name in {n for n in (*bare, *fused) if "mfma" in n}:
        assert bare[name] == fused[name]


def test_lines_lead_to_ck_tile_and_to_the_user(built: Path) -> None:
    text = (built / "kernel.s").read_text()
    for name in ("block_universal_gemm_as_bs_cr.hpp", "epilogue.hpp", "<mini-IR>"):
        assert f'"{name}' in text or f'/{name}"' in text, name


def problem(
    m: int,
    n: int,
    k: int,
    *,
    a: int = 64,
    b: int = 64,
    e: int = 64,
    stride_a: int | None = None,
    stride_e: int | None = None,
    k_batch: int = 1,
) -> GemmProblem:
    return GemmProblem(
        m=m,
        n=n,
        k=k,
        a=(GemmOperand(pointer=a, outer=k if stride_a is None else stride_a, inner=1),),
        b=(GemmOperand(pointer=b, outer=k, inner=1),),
        e=GemmOperand(pointer=e, outer=n if stride_e is None else stride_e, inner=1),
        d=(GemmOperand(pointer=4096), GemmOperand(pointer=8192, outer=n)),
        k_batch=k_batch,
    )


def test_host_face_describes_the_launch(built: Path) -> None:
    launch = GemmShim(built / "host.so").describe(problem(384, 512, 256))
    assert isinstance(launch, LaunchShape)
    facts = code_object.read(built / "kernel.hsaco").kernels[0]
    assert launch.grid == (12, 1, 1)
    assert launch.block == (facts.max_threads, 1, 1)
    assert launch.lds_bytes == facts.lds_bytes
    # The metadata rounds the size of the last argument up or not; the struct itself is 8-aligned.
    assert len(launch.kernarg) == facts.kernarg_bytes


@pytest.mark.parametrize(
    ("gemm", "words"),
    [
        (problem(384, 512, 255), "not aligned"),
        (problem(384, 512, 252), "K is not a multiple of vector load size"),
        (problem(384, 510, 256), "N is not a multiple of vector"),
        (problem(0, 512, 256), "M and N must be 1 or more"),
        (problem(384, 512, 256, k_batch=2), "K is split by split-K kernels only"),
        (problem(384, 512, 256, a=65), "A's address"),
        (problem(384, 512, 256, stride_e=511), "rows of E overlap"),
        (problem(384, 512, 256, stride_a=-256), "A spans"),
        (problem(1 << 20, 4096, 256), "E spans more than 2^31 bytes"),
    ],
)
def test_host_face_refuses_with_a_reason(built: Path, gemm: GemmProblem, words: str) -> None:
    refusal = GemmShim(built / "host.so").describe(gemm)
    assert isinstance(refusal, str)
    assert words in refusal


@pytest.mark.parametrize(
    "gemm", [problem(1, 8, 8), problem(300, 8, 0), problem(7, 64, 8), problem(129, 1016, 24)]
)
def test_host_face_takes_every_extent_its_vectors_divide(built: Path, gemm: GemmProblem) -> None:
    assert isinstance(GemmShim(built / "host.so").describe(gemm), LaunchShape)


@pytest.mark.usefixtures("compiler")
def test_narrowest_kernel_takes_every_problem(tmp_path: Path) -> None:
    toolchain, tree = find_toolchain(), find_ck_tree()
    steps.compile_host(source_of(narrow=True).stencil, ARCH, tmp_path, toolchain, tree)
    face = GemmShim(tmp_path / "host.so")
    odd = [(1, 1, 1), (7, 3, 5), (1, 300, 1), (131, 1, 7), (200, 136, 72), (1, 1, 0)]
    for m, n, k in odd:
        gemm = problem(m, n, k, a=66, b=70, e=74)
        assert isinstance(face.describe(gemm), LaunchShape), (m, n, k)
