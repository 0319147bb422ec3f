# SPDX-License-Identifier: MIT
"""Whole HIP programs, compiled by ``cklang hipcc`` and run on the emulator."""

import os
import subprocess
from pathlib import Path

import pytest

from cklang import emulator
from cklang.cli.main import main
from cklang.emulator.hipcc import driver, fat_binary
from cklang.errors import CkError
from tests.support.errors import expect_error
from tests.support.hip_programs import quiet
from tests.support.waits import announce_at_once

PROGRAMS = Path(__file__).parent / "programs"

# One worker links first: that is when zig compiles its C++ library.


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of two sources for four GPUs, one compiled to an object first."""
    folder = tmp_path_factory.mktemp("features")
    archs = "--offload-arch=gfx942,gfx950,gfx1100,gfx1201"
    scale = str(folder / "scale.o")
    assert main(["hipcc", archs, "-c", str(PROGRAMS / "scale.hip"), "-o", scale]) == 0
    program = folder / "features"
    quiet(["-Wall", archs, str(PROGRAMS / "features.cpp"), scale, "-o", str(program)])
    return program


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("device", ["0", "1", "2", "3"])
def test_what_ordinary_programs_do(features: Path, device: str) -> None:
    done = subprocess.run([features, device], capture_output=True, text=True)
    assert done.stdout.endswith(" 0 failed\n"), done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.usefixtures("compiler")
def test_code_for_another_gpu_does_not_run(features: Path) -> None:
    # Nothing was compiled for gfx90a, so the program does not see it where nobody asks for it.
    other = {**os.environ, "CKLANG_GPUS": "gfx90a"}
    done = subprocess.run([features, "0"], capture_output=True, text=True, env=other)
    assert "FAILED: 150 threads add 1 to 8" in done.stdout
    assert "is not launched: device 0 is a gfx90a" in done.stderr
    assert done.returncode == 1


@pytest.mark.usefixtures("compiler")
def test_a_fat_binary_holds_code_for_each_gpu(tmp_path: Path) -> None:
    output = tmp_path / "scale.hipfb"
    archs = ["--offload-arch=gfx90a", "--offload-arch=gfx1201"]
    quiet(["--genco", *archs, str(PROGRAMS / "scale.hip"), "-o", str(output)])
    images = fat_binary.entries(output.read_bytes())
    assert list(images) == ["gfx90a", "gfx1201"]
    assert all(image.startswith(b"\x7fELF") for image in images.values())


@pytest.mark.usefixtures("compiler")
def test_assembly_of_one_pass(tmp_path: Path) -> None:
    source, output = str(PROGRAMS / "scale.hip"), tmp_path / "scale.s"
    device = ["-S", "--offload-device-only", "--offload-arch=gfx942", source, "-o", str(output)]
    quiet(device)
    assert "v_mul_lo_u32" in output.read_text()
    quiet(["-S", "--offload-host-only", source, "-o", str(output)])
    assert "hipLaunchKernel" in output.read_text()


@pytest.mark.usefixtures("compiler")
def test_a_long_compilation_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    announce_at_once(monkeypatch)
    source = tmp_path / "empty.hip"
    source.write_text("#include <hip/hip_runtime.h>\n__global__ void kernel() {}\n")
    words = ["--offload-arch=gfx942", "-c", str(source), "-o", str(tmp_path / "empty.o")]
    assert quiet(words) == ""
    first = capsys.readouterr().err.splitlines()[0]
    facts = "0 of 3 steps done, 0 s so far"
    assert first == f"cklang: hipcc: the gfx942 pass of {source}; {facts}"


def test_the_compiler_speaks_for_itself(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("#include <hip/hip_runtime.h>\n__global__ int kernel() { return 1; }\n")
    said: list[str] = []
    with expect_error("B030", match=r"the gfx942 pass of .*wrong.cpp failed"):
        driver.build(["-c", str(source), "--offload-arch=gfx942"], said.append)
    text = "".join(said)
    assert "wrong.cpp:2:12: error: kernel function type 'int ()' must have void return" in text
    assert not text.startswith("$"), "the command is for -v only"


@pytest.mark.usefixtures("compiler")
def test_what_sources_have_before_their_first_include(tmp_path: Path) -> None:
    source, program = tmp_path / "first.hip", tmp_path / "first"
    source.write_text(
        "__device__ float root(float x) { register float y = 2 * sqrtf(x); return y; }\n"
        "template <typename T> __global__ void square(T* x) { *x = root(*x) * root(*x); }\n"
        "#include <hip/hip_runtime.h>\n"
        "#include <hip/hip_vector_types.h>\n"
        "#include <hip/hip_math_constants.h>\n"
        "struct __align__(16) Row { float a, b, c; };\n"
        "static void HIPRT_CB hear(void* told) { *static_cast<bool*>(told) = true; }\n"
        "__global__ void lanes(float* x) { *x += warpSize == __AMDGCN_WAVEFRONT_SIZE; }\n"
        "int main() { float* x; (void)hipMallocManaged(&x, 4); *x = 4; square<<<1, 1>>>(x);\n"
        "  bool told = false; lanes<<<1, 1>>>(x); (void)hipLaunchHostFunc(0, hear, &told);\n"
        "  (void)hipDeviceSynchronize();\n"
        "  return told && *x == 17 && sizeof(Row) == 16 && HIP_LN2_F == float(HIP_LN2) ? 0 : 1; }\n"
    )
    words = ["-Wall", "-Wextra", "--offload-arch=native", str(source), "-o", str(program)]
    assert "warning" not in quiet(["-std=c++11", *words])
    assert subprocess.run([program]).returncode == 0


_LIBRARY_CALLS = """
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp8.h>
#include <hiprand/hiprand_kernel.h>
#include <complex>
__global__ void kernel(float4* x, __half* h, int* n, std::complex<float>* z)
{
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = sinf(x[t].y);
    cooperative_groups::this_thread_block().sync();
    float4 a = x[t] * 2.0f + x[blockIdx.x];
    a.x += __shfl_xor(s[63 - t], 1);
    h[t] = h[t] + __float2half(a.x);
    atomicAdd(n, __hip_fp8_e4m3_fnuz(a.w).__x);
    z[t] = z[t] / z[0];
    hiprandState state;
    hiprand_init(1, t, 0, &state);
    x[t].z = hiprand_uniform(&state);
    if(a.x > 100)
        printf("%g\\n", a.x);
}
"""


@pytest.mark.usefixtures("compiler")
def test_what_our_headers_do_is_at_the_line_that_calls_them(tmp_path: Path) -> None:
    source, output = tmp_path / "calls.hip", tmp_path / "calls.co"
    source.write_text(_LIBRARY_CALLS)
    words = ["-Wall", "--offload-device-only", "--offload-arch=gfx942", "-c", str(source)]
    assert "warning" not in quiet([*words, "-o", str(output)])
    rows = emulator.line_table("gfx942", output.read_bytes())
    assert {row.file for row in rows} == {str(source)}
    called = ("sinf", "sync()", "2.0f", "shfl", "float2half", "atomicAdd", "z[0]", "printf")
    text = _LIBRARY_CALLS.splitlines()
    assert all(any(name in text[row.line - 1] for row in rows) for name in called)


def test_null_streams_of_threads(tmp_path: Path) -> None:
    source, output = tmp_path / "copy.hip", tmp_path / "copy.s"
    source.write_text(
        "#include <hip/hip_runtime.h>\n"
        "__global__ void k() {}\n"
        "int main() { k<<<1, 1>>>(); return hipMemset(nullptr, 0, 0) + hipStreamSynchronize(0); }\n"
    )
    words = ["-fgpu-default-stream=per-thread", "-S", "--offload-host-only", str(source)]
    quiet([*words, "-o", str(output)])
    text = output.read_text()
    for call in ("hipLaunchKernel", "hipMemset", "hipStreamSynchronize"):
        assert f"{call}_spt" in text


def test_preprocessed_text_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "twice.hip"
    source.write_text("#define TWICE 2 * 21\n__device__ int answer = TWICE;\n")
    device = ["--offload-device-only", "--offload-arch=gfx942", str(source)]
    quiet(["-E", *device])
    assert capsys.readouterr().out.endswith(" int answer = 2 * 21;\n")
    quiet(["-S", *device, "-o", "-"])
    assert "answer" in capsys.readouterr().out


def test_the_host_api_is_not_for_c(tmp_path: Path) -> None:
    source = tmp_path / "count.c"
    source.write_text("#include <hip/hip_runtime_api.h>\n")
    said: list[str] = []
    with pytest.raises(CkError, match="B030"):
        driver.build(["-c", str(source), "-o", str(tmp_path / "count.o")], said.append)
    assert "compile this file with -x c++" in "".join(said)
    assert "warning" not in "".join(said)


def test_plain_cxx_can_call_the_host_api(tmp_path: Path) -> None:
    source, program = tmp_path / "count.cc", tmp_path / "count"
    source.write_text(
        "#include <hip/hip_runtime_api.h>\n"
        "int main() { int n = 0; return hipGetDeviceCount(&n) == hipSuccess && n > 1 ? 0 : 1; }\n"
    )
    said = quiet(["-x", "c++", "-Wall", str(source), "-o", str(program)])
    assert "warning" not in said
    assert subprocess.run([program]).returncode == 0


@pytest.mark.usefixtures("compiler")
def test_the_emulator_finds_libm_where_the_program_needs_none(tmp_path: Path) -> None:
    program = tmp_path / "no_libm"
    quiet(["--offload-arch=gfx90a", str(PROGRAMS / "no_libm.cpp"), "-o", str(program)])
    assert subprocess.run([program], env={}).returncode == 0
