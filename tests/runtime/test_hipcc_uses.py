# SPDX-License-Identifier: MIT
"""What builds of whole projects ask of ``cklang hipcc``: OpenMP, libraries, caching, tools."""

import subprocess
from pathlib import Path

import pytest

from cklang.cli.main import main
from cklang.emulator.hipcc import fat_binary, object_cache
from cklang.emulator.hipcc.options import read
from tests.support.errors import expect_error
from tests.support.hip_programs import quiet

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def openmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("openmp") / "openmp"
    words = ["-fopenmp", "-Wall", "--offload-arch=gfx942", str(PROGRAMS / "openmp.cpp")]
    assert "warning" not in quiet([*words, "-lgomp", "-o", str(program)])
    return program


@pytest.mark.usefixtures("compiler")
def test_openmp_on_the_host_beside_kernels(openmp: Path) -> None:
    for threads in ("1", "3"):
        environment = {"OMP_NUM_THREADS": threads}
        done = subprocess.run([openmp], capture_output=True, text=True, env=environment)
        assert done.stdout == "0 failed\n", done.stdout + done.stderr


@pytest.mark.usefixtures("compiler")
def test_instructions_of_an_executable(openmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(openmp)]) == 0
    text = capsys.readouterr().out
    assert "v_lshlrev_b32" in text
    assert "s_endpgm" in text
    assert main(["disasm", str(openmp), "--target", "gfx950"]) != 0
    assert "has code for gfx942, and none for gfx950" in capsys.readouterr().err


@pytest.mark.usefixtures("compiler")
def test_a_static_library_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text("void scale(int* x);\n")
    (tmp_path / "scale.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        '#include "scale.h"\n'
        "__global__ void kernel(int* x) { x[threadIdx.x] *= FACTOR; }\n"
        "void scale(int* x) { kernel<<<1, 64>>>(x); }\n"
    )
    (tmp_path / "main.hip").write_text(
        "#include <hip/hip_runtime.h>\n"
        '#include "scale.h"\n'
        "int main() { int* x; (void)hipMallocManaged(&x, 256); x[5] = 7; scale(x);\n"
        "  (void)hipDeviceSynchronize(); return x[5]; }\n"
    )
    library, program = str(tmp_path / "libscale.a"), str(tmp_path / "program")
    source = str(tmp_path / "scale.hip")
    words = ["--offload-arch=native", "-DFACTOR=3", "--emit-static-lib", source, "-o", library]
    assert "-dependency-file" in quiet([*words, "-v"])
    assert "-dependency-file" not in quiet([*words, "-v"]), "it comes from the cache"
    quiet(["--offload-arch=native", str(tmp_path / "main.hip"), library, "-o", program])
    assert subprocess.run([program]).returncode == 21
    # What an object includes is a part of what it depends on.
    (tmp_path / "scale.h").write_text("void scale(int* x); // changed\n")
    assert "-dependency-file" in quiet([*words, "-v"])


@pytest.mark.usefixtures("compiler")
def test_device_functions_of_other_sources(tmp_path: Path) -> None:
    """One object, a static library and a source; all share a variable, each has a kernel `k`."""
    start = "#include <hip/hip_runtime.h>\n"
    (tmp_path / "table.hip").write_text(
        start + "__device__ int table[4] = {1, 100, 3, 4};\n"
        "__device__ int thrice(int x) { return x * 3; }\n"
    )
    (tmp_path / "change.hip").write_text(
        start + "extern __device__ int table[4];\n"
        "static __device__ int times = 1;\n"
        "namespace { __global__ void k(int* n) { table[1] += *n * times; } }\n"
        "void change(int* n) { k<<<1, 1>>>(n); }\n"
    )
    (tmp_path / "main.hip").write_text(
        start + "extern __device__ int table[4];\n"
        "extern __device__ int thrice(int);\nvoid change(int* n);\n"
        "static __device__ int times = 2;\n"
        "namespace { __global__ void k(int* x) {\n"
        "  x[threadIdx.x] = thrice(x[threadIdx.x]) * times + table[1]; } }\n"
        "int main() { int* x; (void)hipMallocManaged(&x, 256); x[5] = 7; x[6] = 11;\n"
        "  change(x + 6); k<<<1, 64>>>(x); (void)hipDeviceSynchronize(); return x[5]; }\n"
    )
    table, change, program = (str(tmp_path / name) for name in ("t.o", "libchange.a", "program"))
    rdc = ["-fgpu-rdc", "--offload-arch=gfx942,gfx1100"]
    quiet([*rdc, "-c", str(tmp_path / "table.hip"), "-o", table])
    quiet([*rdc, "--emit-static-lib", str(tmp_path / "change.hip"), "-o", change])
    quiet([*rdc, "--hip-link", str(tmp_path / "main.hip"), table, change, "-o", program])
    for device in ("0", "1"):
        done = subprocess.run([program], env={"CKLANG_GPUS": ["gfx942", "gfx1100"][int(device)]})
        assert done.returncode == 7 * 3 * 2 + 100 + 11


@pytest.mark.usefixtures("compiler")
def test_kernels_compiled_by_the_program(tmp_path: Path) -> None:
    program = tmp_path / "hiprtc"
    quiet(["-Wall", str(PROGRAMS / "hiprtc.cpp"), "-lhiprtc", "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.stdout == "0 failed\n", done.stdout + done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hipcc", "--version"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("HIP version: 7.")
    assert "clang version" in second


def test_offloading_by_openmp_is_refused() -> None:
    with expect_error("B032", match=r"-fopenmp-targets cannot be honoured: .*in HIP"):
        read(["-fopenmp", "-fopenmp-targets=amdgcn-amd-amdhsa"])


def test_the_fat_binaries_of_a_file() -> None:
    one, two = fat_binary.bundle({"gfx942": b"abc"}), fat_binary.bundle({"gfx942": b"de"})
    text = b"__CLANG_OFFLOAD_BUNDLE__ is a name"
    found = fat_binary.all_entries(b"\x7fELF.." + text + one + b"..." + two)
    assert found == [("gfx942", b"abc"), ("gfx942", b"de")]


def test_what_the_cache_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(object_cache, "MOST_ENTRIES", 2)
    source, header = tmp_path / "a.cpp", tmp_path / "my own.h"
    output, rule = tmp_path / "a.o", tmp_path / "a.d"
    source.write_text("int x;")
    header.write_text("")
    output.write_bytes(b"object")
    rule.write_text(f"a.o: {source} \\\n  {tmp_path}/my\\ own.h\n")
    entry = object_cache.entry_of("clang 1", ["-c"], source)
    assert entry.load(output) is None
    entry.store(output, rule, "a warning")
    output.write_bytes(b"")
    assert entry.load(output) == "a warning"
    assert output.read_bytes() == b"object"
    assert object_cache.entry_of("clang 2", ["-c"], source) != entry
    assert object_cache.entry_of("clang 1", ["-c", "-g"], source) != entry
    header.write_text("int y;")
    assert entry.load(output) is None
    # A damaged object is compiled again.
    entry.store(output, rule, "")
    (entry.folder / "object").write_bytes(b"obj")
    assert entry.load(output) is None
    # What says when it was compiled is compiled every time.
    timed = object_cache.entry_of("clang 1", ["-DX"], source)
    header.write_text("const char* when = __TIME__;")
    timed.store(output, rule, "")
    assert timed.load(output) is None
    header.write_text("")
    for number in range(4):
        object_cache.entry_of(str(number), [], source).store(output, rule, "")
    assert len(list(entry.folder.parent.iterdir())) == 2
