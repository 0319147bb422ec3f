# SPDX-License-Identifier: MIT
"""Stencil bundles: written on one machine, used on another that has no CK Tile headers."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import knobs
from cklang.build import bundle
from cklang.build.stencil_files import StencilFiles
from cklang.cli.main import main
from cklang.errors import CkBuildError
from cklang.families.gemm.lower import lower
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.spelling import spelled
from cklang.keys import opened
from cklang.selection.registry import Registry
from cklang.selection.select import select
from cklang.toolchain import compilers
from tests.support.errors import expect_error
from tests.support.gemm_keys import epilogue, key, shape
from tests.support.no_headers import run_without_headers, stand_in
from tests.support.typed import only

M, N, K = ck.dims("M N K")


def files(folder: Path, **changes: Any) -> StencilFiles:
    return stand_in(folder, key(**changes))


def written(folder: Path, *stencils: StencilFiles) -> Path:
    path = folder / "some.ckb"
    bundle.write(path, stencils, compiler="a compiler", headers="a tree")
    return path


def test_a_bundle_reads_back(tmp_path: Path) -> None:
    one, other = files(tmp_path / "a"), files(tmp_path / "b", tile=(64, 64, 32))
    path = written(tmp_path, one, other, one)
    contents = bundle.read(path)
    assert (contents.compiler, contents.headers) == ("a compiler", "a tree")
    assert list(contents.keys) == [one.key, other.key]
    stored = contents.find(other.key, "source")
    assert stored is not None
    assert stored.copy("stencil.bc", tmp_path).read_bytes() == b"bitcode"
    assert contents.find(other.key, "another source") is None, "templates of another version"
    assert contents.find(key("gfx950").stencil, "source") is None


def test_equal_stencils_make_equal_files(tmp_path: Path) -> None:
    path = written(tmp_path, files(tmp_path / "a"))
    first = path.read_bytes()
    os.utime(tmp_path / "a" / "stencil.bc", (1, 1))
    assert written(tmp_path, files(tmp_path / "a")).read_bytes() == first


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ckb"
    path.write_text("nothing")
    for named in (path, tmp_path / "missing"):
        with knobs.scope(CKLANG_BUNDLE=str(named)), expect_error("B040"):
            bundle.configured()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bundle.json", '{"version": 0}')
    with expect_error("K003"):
        bundle.read(path)


def test_without_headers_bundles_are_what_there_is(tmp_path: Path, no_headers: None) -> None:
    path = written(tmp_path, files(tmp_path / "a", vector_a=1, vector_b=1, vector_e=1))
    empty = Registry("empty")
    with knobs.scope(CKLANG_BUNDLE=str(path)):
        chosen = select(shape(60, 60, 61), registry=empty, arch="gfx942")
        assert chosen.key.algorithm.vector_a == 1
        assert "no CK Tile headers" in chosen.origin
        with expect_error("K102"):
            select(shape(60, 60, 62), registry=empty, arch="gfx950")


def test_headers_that_are_there_serve_everything(tmp_path: Path) -> None:
    path = written(tmp_path, files(tmp_path / "a"))
    with knobs.scope(CKLANG_BUNDLE=str(path)):
        assert bundle.sole_source() is None
        assert "preset" in select(shape(60, 60, 60), arch="gfx942").origin


def test_nothing_to_bundle_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--bundle", str(tmp_path / "x.ckb")]) == 1
    assert "--signature" in capsys.readouterr().err
    words = ["build", "--bundle", str(tmp_path / "x.ckb"), "--signature"]
    for text, message in (
        ("f16", "f16:rcr"),
        ("f17:rcr", "f17"),
        ("f16:rcr:rows", "rows"),
        ("f16,f16:rcr", "2 element types, 'f16,f16'"),
        ("f16:rcr:row=e8m0", "e8m0, which functions cannot read"),
        ("f16:rcr:c.row", "begin with a. for A's function"),
    ):
        assert main([*words, text]) == 1
        assert message in capsys.readouterr().err
    assert main(["build"]) == 1


@ck.op
def dequantised(
    x: ck.f16[M, K], w: ck.i8[N, K], s: ck.f32[N], t: ck.f16[K], bias: ck.i8[N]
) -> ck.f16[M, N]:
    weights = (w.to(ck.f32) * s[:, None]).to(ck.f16)
    return (x * t).to(ck.f16) @ weights.T + bias.to(ck.f32)


def test_a_signature_of_a_prologue_is_spelled() -> None:
    """As the op's call has it: only what is computed differs, which a stencil leaves open."""
    x, w = np.ones((16, 32), np.float16), np.ones((16, 32), np.int8)
    vectors = np.ones(16, np.float32), np.ones(32, np.float16), np.ones(16, np.int8)
    want = only(Problem, dequantised.problems(x, w, *vectors))
    parsed, region = spelled("f16:rcr:row=i8,a.full,a.row,b.full=i8,b.column=f32")
    assert opened(parsed.signature) == opened(want.signature)
    assert set(region) == {"epilogue", "prologue_a", "prologue_b"}
    registry = Registry("spelled")
    assert registry.declare(parsed.signature, region, "gfx942", "essential") > 0
    for kernel in registry:
        lower(kernel.key, kernel.functions)
    mixed, _ = spelled("fp8_fnuz,i4,bf16:rcr")
    assert (mixed.signature.dtype_b, mixed.signature.dtype_e) == (ck.i4, ck.bf16)


PROGRAM = """
import numpy as np
import cklang as ck

M, N, K = ck.dims("M N K")

@ck.op
def silu(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.silu(x @ w.T)

rng = np.random.default_rng(0)
x, w = (rng.standard_normal((40, k)).astype(np.float16) for k in (33, 33))
got = silu(x, w, device="emu:gfx1201").astype(np.float32)
y = x.astype(np.float32) @ w.T.astype(np.float32)
assert np.allclose(got, y / (1 + np.exp(-y)), atol=2e-2, rtol=2e-2)
print(silu.last.launches[0].key)
"""


@pytest.mark.usefixtures("compiler")
def test_a_machine_without_headers_builds_new_epilogues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line writes a bundle; another process, which sees no headers, fills it."""
    path = tmp_path / "gemm.ckb"
    words = ["build", "--bundle", str(path), "--signature", "f16:rcr", "--arch", "gfx1201"]
    assert main(words) == 0
    assert "2 stencils" in capsys.readouterr().out, "of one tiling, the widest and the narrowest"
    assert "64x64x32" in run_without_headers(PROGRAM, path, tmp_path)


@pytest.mark.usefixtures("compiler")
def test_a_missing_stencil_says_what_the_bundle_lacks(tmp_path: Path, no_headers: None) -> None:
    from cklang.build.builder import Builder
    from cklang.build.store import Store

    path = written(tmp_path, files(tmp_path / "a"))
    tools = compilers.find_toolchain()
    lacking = Builder(Store(tmp_path / "cache"), tools, None, ((path, 0),))
    with expect_error("B004", "no stencil of this version", kind=CkBuildError):
        lacking.build_all([(key(region=epilogue("exp")), epilogue("exp"))])
