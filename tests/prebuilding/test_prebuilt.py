# SPDX-License-Identifier: MIT
"""What was compiled before: a folder or a wheel with an emulator and stencils, and its use."""

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import knobs
from cklang.arch import all_archs, arch
from cklang.build import bundle
from cklang.build.builder import shared_builder
from cklang.build.parallel import built
from cklang.cli.main import main
from cklang.emulator.engine import build as emulator_build
from cklang.emulator.engine.build import LIBRARY, copy_library, library_path
from cklang.families.gemm.cost.traits import spilled_registers
from cklang.prebuilding import compile_essentials, folder, write_folder
from cklang.prebuilding.essentials import EssentialCall, essential_calls, linear_gelu, normalised
from cklang.prebuilding.folder import essential_kernels
from cklang.toolchain.compilers import find_toolchain, run_tool
from cklang.toolchain.prebuilt import EMULATOR, STENCILS
from tests.support.processes import run_python

ROOT = Path(__file__).parents[2]
SMALL = EssentialCall(op=linear_gelu, names={"M": 384, "N": 512, "K": 256, "X": ck.f16})
"""The call of README's example."""
ROWS = EssentialCall(op=normalised, names={"M": 64, "K": 1024, "X": ck.f16})


@pytest.mark.parametrize("gpu", [spec.name for spec in all_archs()])
def test_every_essential_call_is_legal(gpu: str) -> None:
    calls = list(essential_calls(arch(gpu)))
    reports = [call.op.check(**call.arguments(), device=f"emu:{gpu}") for call in calls]
    assert all(reports), [str(report) for report in reports if not report]
    names = {call.op.program.name for call in calls}
    assert {"linear_gelu", "convolution", "causal_attention", "probabilities"} <= names
    assert ("linear_of_8_bits" in names) == (arch(gpu).fp8 != "none")


def test_essential_kernels_are_of_every_family() -> None:
    kernels = essential_kernels(["gfx942"])
    families = {key.family for key, _ in kernels}
    assert families == {"gemm", "conv", "attention", "rowwise"}
    assert len({key.digest for key, _ in kernels}) == len(kernels), "each once"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with this machine's emulator in it, as if it had been compiled for every CPU."""
    copy_library(library_path(), tmp_path / EMULATOR)
    return tmp_path


@pytest.mark.usefixtures("emulator")
def test_an_emulator_that_was_compiled_before_is_used(library: Path) -> None:
    with knobs.scope(CKLANG_PREBUILT=str(library)):
        assert library_path() == library / EMULATOR / LIBRARY


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("problem", ["sources", "damage", "cpu"])
def test_one_that_does_not_fit_is_not(
    problem: str, library: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own = library_path()
    if problem == "sources":
        (library / EMULATOR / "sources.txt").write_text("others")
    elif problem == "damage":
        file = library / EMULATOR / LIBRARY
        file.write_bytes(file.read_bytes()[:-1])
    else:
        monkeypatch.setattr(emulator_build, "_NEEDED_OF_PORTABLE", ("avx2", "avx99"))
    with knobs.scope(CKLANG_PREBUILT=str(library)):
        assert library_path() == own
    assert "is not used" in caplog.text


@pytest.mark.usefixtures("compiler")
def test_kernels_for_avx512_compile_where_the_rest_is_for_avx2(tmp_path: Path) -> None:
    emulator_build.write_tables(tmp_path)
    toolchain, sources = find_toolchain(), emulator_build._SOURCES
    includes = ("-I", str(tmp_path), "-I", str(sources), "-include", "core/common.h")
    flags = (*emulator_build._FLAGS, f"-march={emulator_build._PORTABLE}", *includes)
    source, output = sources / "ops" / "matrix_avx512.cpp", tmp_path / "x.o"
    command = toolchain.compile_cxx(source, output, flags=flags)
    run_tool(command, log=tmp_path / "log", environment=toolchain.environment())
    assert output.stat().st_size


_PROGRAM = """
import numpy as np
from cklang.prebuilding.essentials import normalised

x = np.full((70, 1024), 3, np.float16)
y = normalised(x, np.ones(1024, np.float16), device="emu:gfx942")
assert abs(y.astype(np.float32) - 1).max() < 1e-2, y
(launch,) = normalised.last.launches
print(launch.artifact.folder)
"""


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("headers", [True, False], ids=["headers", "no headers"])
def test_only_the_functions_are_compiled(headers: bool, library: Path) -> None:
    """A machine with an empty cache takes emulator and stencil from the folder."""
    builder = shared_builder()
    kernels = essential_kernels(["gfx942"], [ROWS])
    files = [builder.stencil_files(kernel) for kernel in kernels]
    identity = {"compiler": builder.toolchain.identity, "headers": builder.tree.identity}
    bundle.write(library / STENCILS, files, **identity)
    cache, empty = library / "cache", library / "empty"
    empty.mkdir()
    environment = {**os.environ, "CKLANG_PREBUILT": str(library), "CKLANG_CACHE_DIR": str(cache)}
    if not headers:
        environment["CKLANG_CK_DIR"] = str(empty)
    with knobs.scope(CKLANG_PREBUILT=str(library), CKLANG_CACHE_DIR=str(cache)):
        assert shared_builder().is_compiled(*kernels[0])
    run_python("-c", _PROGRAM, env=environment, cwd=ROOT)
    (log,) = cache.glob("v1/stencil/*/*/log.txt")
    assert "comes from" in log.read_text()
    assert not (cache / "emulator").exists()


@pytest.mark.usefixtures("compiler")
def test_a_folder_has_the_stencils_of_programs(tmp_path: Path) -> None:
    """A program that runs at once elsewhere: its stencils are no essential ones."""
    program = tmp_path / "normalise.py"
    program.write_text(f"import beside\n{_PROGRAM}assert __name__ == '__main__'\n")
    (tmp_path / "beside.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "portable_library", library_path)
        count = write_folder(tmp_path / "out", [], calls=[], programs=[program])
    (file,) = bundle.bundles_in(((tmp_path / "out" / STENCILS, 0),))
    wanted = {key.stencil.digest for key, _ in essential_kernels(["gfx942"], [ROWS])}
    assert wanted <= {key.digest for key in file.keys}
    assert len(file.keys) == count
    assert "beside" not in sys.path


def test_a_folder_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["warm", "--gpu", "gfx942", "--out", str(tmp_path)])
    assert "CK-K095" in capsys.readouterr().err


def test_warming_goes_on_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    logged: list[str] = []

    class Started:
        pid = 7

        def __init__(self, command: list[str], env: dict[str, str], **_: Any) -> None:
            commands.append(command)
            logged.append(env["CKLANG_LOG"])

    monkeypatch.setattr("subprocess.Popen", Started)
    log = tmp_path / "warm.log"
    log.write_text("what another one wrote\n")
    with knobs.scope(CKLANG_CACHE_DIR=str(tmp_path)):
        assert main(["warm", "--gpu", "gfx942", "--gpu", "gfx1100"]) == 0
    assert log.read_text() == "what another one wrote\n"
    assert commands[0][1:] == [
        *("-m", "cklang.cli.main", "warm", "--wait"),
        *("--gpu", "gfx942", "--gpu", "gfx1100"),
    ]
    assert "process 7" in capsys.readouterr().out
    assert logged == ["info"], "each step is a line of its log"


@pytest.mark.usefixtures("compiler")
def test_what_was_warmed_is_built() -> None:
    assert compile_essentials(["gfx942"], [ROWS]) == 1
    ((key, functions),) = essential_kernels(["gfx942"], [ROWS])
    assert shared_builder().find(key, functions) is not None


class _Wheel:
    """What hatchling's hooks see of a wheel."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {"force_include": {}, "pure_python": True}

    def build(self, target: str = "wheel", version: str = "standard") -> dict[str, Any]:
        sys.path.insert(0, str(ROOT))
        try:
            from hatch_build import PrebuiltHook
        finally:
            sys.path.remove(str(ROOT))
        hook = PrebuiltHook(str(ROOT), {}, None, None, "", target)  # type: ignore[arg-type]
        hook.initialize(version, self.data)
        return self.data


def test_a_wheel_is_for_every_machine_unless_it_takes_libraries_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CKLANG_PREBUILT", raising=False)
    assert _Wheel().build() == {"force_include": {}, "pure_python": True}
    monkeypatch.setenv("CKLANG_PREBUILT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="cklang warm --out"):
        _Wheel().build()
    (tmp_path / STENCILS).write_text("")
    assert _Wheel().build("sdist")["pure_python"]
    assert _Wheel().build(version="editable")["pure_python"]
    data = _Wheel().build()
    assert data["force_include"] == {str(tmp_path): "cklang/prebuilt"}
    assert data["tag"].endswith("x86_64")


_FIRST_CALL = """
import numpy as np
import cklang
from cklang.prebuilding.essentials import linear_gelu

assert "site" in cklang.__file__
x, w = np.ones((384, 256), np.float16), np.full((512, 256), 1 / 256, np.float16)
y = linear_gelu(x, w, np.zeros(512, np.float16), np.ones((384, 512), np.float16))
assert abs(y.astype(np.float32) - 1.8413).max() < 2e-3, y
print(linear_gelu.last)
"""


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_a_wheel_needs_no_compiled_stencil(tmp_path: Path) -> None:
    """The wheel that hatchling builds runs README's example with an empty cache."""
    folder, wheels, site = tmp_path / "prebuilt", tmp_path / "wheels", tmp_path / "site"
    write_folder(folder, ["gfx942"], [SMALL])
    environment = {**os.environ, "CKLANG_PREBUILT": str(folder)}
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run_python(*command, "-w", wheels, ".", env=environment, cwd=ROOT)
    (wheel,) = wheels.glob("*x86_64.whl")
    zipfile.ZipFile(wheel).extractall(site)
    cache = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(site), "CKLANG_CACHE_DIR": str(cache)}
    environment.pop("CKLANG_PREBUILT", None)
    run_python("-c", _FIRST_CALL, env=environment, cwd=tmp_path)
    (log,) = cache.glob("v1/stencil/*/*/log.txt")
    assert "comes from" in log.read_text()
    assert not (cache / "emulator").exists()
    assert np.all([(site / "cklang" / "prebuilt" / each).exists() for each in (EMULATOR, STENCILS)])


# --- registers


@pytest.mark.full
@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_essential_kernels_do_not_spill(gpu: str) -> None:
    kernels = essential_kernels([gpu])
    products = [key for key, _ in kernels if key.family == "gemm"]
    assert not any(spilled_registers(k.signature, k.algorithm, arch(gpu)) for k in products)
    artifacts = built(kernels)
    assert len(artifacts) > 20
    spilling = {
        each.key.label: each.resources.vgpr_spills
        for each in artifacts
        if each.resources.vgpr_spills
    }
    assert spilling == {}
