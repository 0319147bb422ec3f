# SPDX-License-Identifier: MIT
"""Finding compiler and headers, running tools, and saying what went wrong."""

import sys
from pathlib import Path

import pytest

from cklang import knobs
from cklang.errors import CkBuildError
from cklang.toolchain import compilers as tc
from tests.support.errors import expect_error


def program(path: Path, version: str, status: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version}'\nexit {status}\n")
    path.chmod(0o755)
    return path


def ck_tree(folder: Path, text: str = "// core") -> Path:
    (folder / "ck_tile").mkdir(parents=True)
    (folder / "ck_tile" / "core.hpp").write_text(text)
    return folder


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH and no ROCm."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.delenv("CKLANG_CLANG", raising=False)
    monkeypatch.delenv("CKLANG_CK_DIR", raising=False)
    return tmp_path


def test_the_wheel_is_the_last_resort(bare: Path) -> None:
    toolchain = tc.find_toolchain()
    assert toolchain.kind is tc.Kind.ZIG
    assert toolchain.program.name == "zig"
    assert toolchain.clang == (str(toolchain.program), "clang")


def test_clang_on_path_comes_before_the_wheel(bare: Path) -> None:
    program(bare / "bin" / "clang++", "clang version 21.1.0")
    assert tc.find_toolchain().kind is tc.Kind.CLANG


def test_old_clang_on_path_is_passed_over(bare: Path) -> None:
    program(bare / "bin" / "clang++", "clang version 19.1.0")
    newer = program(bare / "bin" / "clang++-20", "clang version 20.1.0")
    assert tc.find_toolchain().program == newer


def test_rocm_comes_before_clang_on_path(bare: Path) -> None:
    program(bare / "bin" / "clang++", "clang version 21.1.0")
    amd = program(bare / "rocm" / "bin" / "amdclang++", "AMD clang version 20.0.0git")
    toolchain = tc.find_toolchain()
    assert (toolchain.kind, toolchain.program) == (tc.Kind.ROCM, amd)
    flags = toolchain.hip_headers(Path("ours"))
    assert flags.index(str(bare / "rocm" / "include")) < flags.index("ours")
    assert "-nogpulib" not in flags


def test_the_knob_comes_first(bare: Path) -> None:
    program(bare / "rocm" / "bin" / "amdclang++", "AMD clang version 20.0.0git")
    mine = program(bare / "mine" / "clang++", "clang version 22.0.0")
    with knobs.scope(CKLANG_CLANG=str(mine)):
        assert tc.find_toolchain().program == mine


@pytest.mark.parametrize(
    ("version", "status"), [("clang version 19.1.7", 0), ("clang version 22.0.0", 1)]
)
def test_unusable_knob_is_an_error(bare: Path, version: str, status: int) -> None:
    mine = program(bare / "mine" / "clang++", version, status)
    with knobs.scope(CKLANG_CLANG=str(mine)), expect_error("B002", kind=CkBuildError) as caught:
        tc.find_toolchain()
    assert str(mine) in caught.value.message


def test_missing_knob_program_is_an_error(bare: Path) -> None:
    with knobs.scope(CKLANG_CLANG="no-such-clang"), expect_error("B002", kind=CkBuildError):
        tc.find_toolchain()


def test_no_compiler_at_all_names_the_command(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tc, "_zig_wheel", lambda: None)
    (bare / "bin").mkdir()
    with expect_error("B001", match="pip install 'ziglang", kind=CkBuildError):
        tc._find_toolchain.__wrapped__(None, str(bare / "rocm"), (bare / "bin",))


def test_identity_changes_with_the_program(bare: Path) -> None:
    mine = program(bare / "mine" / "clang++", "clang version 22.0.0")
    first = tc._from_clang(mine, tc.Kind.CLANG).identity
    assert tc._from_clang(mine, tc.Kind.CLANG).identity == first
    program(mine, "clang version 22.0.0 (rebuilt)")
    assert tc._from_clang(mine, tc.Kind.CLANG).identity != first


@pytest.mark.parametrize("below", ["", "include"])
def test_ck_dir_knob(bare: Path, below: str) -> None:
    include = ck_tree(bare / "ck" / below)
    with knobs.scope(CKLANG_CK_DIR=str(bare / "ck")):
        assert tc.find_ck_tree().include == include


def test_ck_dir_without_headers_is_an_error(bare: Path) -> None:
    with knobs.scope(CKLANG_CK_DIR=str(bare)), expect_error("B005", kind=CkBuildError):
        tc.find_ck_tree()


def test_rocm_headers_come_before_the_wheel(bare: Path) -> None:
    include = ck_tree(bare / "rocm" / "include")
    assert tc.find_ck_tree().include == include


def test_ck_tree_identity_is_its_content(bare: Path) -> None:
    trees = {
        name: tc._tree(ck_tree(bare / name, text), name).identity
        for name, text in (("a", "1"), ("b", "1"), ("c", "2"))
    }
    assert trees["a"] == trees["b"]
    assert trees["a"] != trees["c"]


def test_run_tool_keeps_everything(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    command = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"]
    run = tc.run_tool(command, log=log)
    assert sorted(run.output.split()) == ["err", "out"]
    text = log.read_text()
    assert text.startswith(f"$ {sys.executable}")
    assert "# exit 0" in text


def test_failed_tool_says_why_and_where(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    code = "print('a.hip:3:1: error: no such thing'); raise SystemExit(3)"
    with expect_error("B010", kind=CkBuildError) as caught:
        tc.run_tool([sys.executable, "-c", code], log=log)
    assert "status 3" in caught.value.message
    assert caught.value.notes == ("a.hip:3:1: error: no such thing",)
    assert str(log) in str(caught.value)
    assert "no such thing" in log.read_text()


def test_distil_takes_the_first_error_its_caret_and_our_frame() -> None:
    output = """\
In file included from stencil.hip:4:
x/warp_gemm.hpp:10:5: warning: something else
x/warp_gemm.hpp:12:7: error: implicit instantiation of undefined template 'D<1>'
   12 |     D<1> d;
      |          ^
x/pipeline.hpp:3:1: note: in instantiation of member function 'f' requested here
stencil.hip:40:24: note: in instantiation of template class 'P' requested here
x/warp_gemm.hpp:90:7: error: another
2 errors generated when compiling for gfx942.
"""
    assert tc.distil(output) == (
        "x/warp_gemm.hpp:12:7: error: implicit instantiation of undefined template 'D<1>'",
        "   12 |     D<1> d;",
        "      |          ^",
        "stencil.hip:40:24: note: in instantiation of template class 'P' requested here",
    )


def test_distil_without_an_error_line_gives_the_end() -> None:
    assert tc.distil("\n".join(map(str, range(10)))) == ("5", "6", "7", "8", "9")


@pytest.mark.usefixtures("compiler")
def test_host_cxx_library_with_its_runtime(tmp_path: Path) -> None:
    import ctypes

    source = tmp_path / "lib.cpp"
    source.write_text(
        "#include <string>\n#include <vector>\n"
        'extern "C" int length(int n) {\n'
        "  std::vector<std::string> v(n, std::string(100, 'x'));\n"
        "  int sum = 0; for (auto& s : v) sum += s.size(); return sum; }\n"
    )
    toolchain = tc.find_toolchain()
    unit, library = tmp_path / "lib.o", tmp_path / "lib.so"
    for command in (
        toolchain.compile_cxx(source, unit),
        toolchain.link_program([str(unit)], library, shared=True),
    ):
        tc.run_tool(command, log=tmp_path / "log.txt", environment=toolchain.environment())
    assert ctypes.CDLL(str(library)).length(7) == 700


def test_kernels_have_a_compiler_of_their_own(bare: Path) -> None:
    newer = program(bare / "bin" / "clang++", "clang version 22.1.0")
    older = program(bare / "elsewhere" / "clang++", "clang version 21.1.0")
    with tc.kernels_by(str(older)):
        assert tc.kernel_toolchain().program == older
        assert tc.find_toolchain().program == newer
    assert tc.kernel_toolchain().program == newer
    with expect_error("B002", match="there is no such program"), tc.kernels_by("no-clang"):
        pass


def test_the_compiler_of_rocm_7_is_a_clang_20(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(bare / "cache"))
    program(bare / "rocm" / "bin" / "amdclang++", "AMD clang version 19.0.0git")
    with (
        expect_error("B007", match="pip install --target .*/cache/compilers/clang20 ziglang"),
        tc.kernels_by(tc.ROCM_7),
    ):
        pass
    zig = program(bare / "cache" / "compilers" / "clang20" / "ziglang" / "zig", "0.15.2")
    with tc.kernels_by(tc.ROCM_7):
        assert tc.kernel_toolchain().program == zig
    on_path = program(bare / "bin" / "clang++-20", "clang version 20.1.8")
    with tc.kernels_by(tc.ROCM_7):
        assert tc.kernel_toolchain().program == on_path
