# SPDX-License-Identifier: MIT
"""What is built and what is found: shared stencils, failures, several kernels; no compiler."""

import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cklang.build import builder as building
from cklang.build import code_object, steps
from cklang.build.artifacts import artifacts_in
from cklang.build.builder import Builder
from cklang.build.schedules import SCHEDULES
from cklang.build.store import Store
from cklang.device.resources import Resources
from cklang.errors import CkBuildError, CkError, CkInternalError, error
from cklang.families.gemm.key import GemmKey
from cklang.fusion.functions import Functions
from cklang.ir.nodes import Function, Operation, Value
from cklang.prebuilding.essentials import EssentialCall, normalised
from cklang.prebuilding.folder import essential_kernels
from cklang.types import TensorType, f16, f32
from tests.support.algorithms import BASE
from tests.support.errors import expect_error
from tests.support.gemm_keys import OPEN
from tests.support.waits import announce_at_once

RESOURCES = Resources(
    vgprs=1,
    agprs=2,
    sgprs=3,
    lds_bytes=4,
    scratch_bytes=5,
    vgpr_spills=0,
    sgpr_spills=0,
    kernarg_bytes=8,
)


ONE_OF_EACH = {"headers.pch": 0, "stencil.bc": 1, "host.so": 1, "kernel.hsaco": 1}


def epilogue(op: str) -> Functions:
    acc = Value(name="acc", type=TensorType(dtype=f32))
    result = Value(name="0", type=TensorType(dtype=f32))
    body = (Operation(op=op, operands=(acc,), result=result),)
    return Functions(
        epilogue=Function(name="epilogue", params=(acc,), body=body, results=(result,))
    )


def wanted(op: str, **changes: Any) -> tuple[GemmKey, Functions]:
    signature = replace(OPEN, functions=op)
    return GemmKey(signature, replace(BASE, **changes), "gfx942"), epilogue(op)


ROWS = EssentialCall(op=normalised, names={"M": 64, "K": 1024, "X": f16})


class Steps:
    """Stands for the compiler: writes the files a step makes, and counts."""

    def __init__(self) -> None:
        self.count = {"headers.pch": 0, "stencil.bc": 0, "host.so": 0, "kernel.hsaco": 0}
        self.sources: list[str] = []
        self.precompiled: list[Path | None] = []
        self.precompiled_host: list[Path | None] = []
        self.refuse: Callable[[str], bool] = lambda text: False
        self.says = ""
        """What is wrong with a source that is refused."""
        self.lock = threading.Lock()

    def make(self, name: str, folder: Path, text: str) -> Any:
        with self.lock:
            self.count[name] += 1
        (folder / "log.txt").write_text(f"log of {name}")
        if self.refuse(text):
            notes = [f"{folder}/stencil.hip:7:1: error: {self.says}"] if self.says else []
            raise error("B010", tool="clang", status=1, log=folder / "log.txt", notes=notes)
        (folder / name).write_text(text)
        return SimpleNamespace(seconds=0.0, schedule=SCHEDULES[0].name)

    def stencil(self, source: str, arch: str, folder: Path, *rest: Any, **options: Any) -> Any:
        self.sources.append(source)
        self.precompiled.append(options["precompiled"])
        return self.make("stencil.bc", folder, source)

    def host(self, source: str, arch: str, folder: Path, *rest: Any, **options: Any) -> Any:
        self.precompiled_host.append(options["precompiled"])
        return self.make("host.so", folder, source)


@pytest.fixture
def fake_steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    fake = Steps()
    monkeypatch.setattr(steps, "identity", lambda toolchain, tree: toolchain.name)
    monkeypatch.setattr(
        steps,
        "compile_headers",
        lambda arch, folder, *rest, host: fake.make(
            "headers.pch", folder, "host" if host else arch
        ),
    )
    monkeypatch.setattr(steps, "compile_stencil", fake.stencil)
    monkeypatch.setattr(steps, "compile_host", fake.host)
    monkeypatch.setattr(
        steps,
        "link_fill",
        lambda stencil, fill, arch, folder, *rest, **options: fake.make(
            "kernel.hsaco", folder, fill
        ),
    )
    read = SimpleNamespace(kernel=lambda name: RESOURCES)
    monkeypatch.setattr(code_object, "read", lambda path: read)
    return fake


def builder(folder: Path, tools: Any = "tools") -> Builder:
    tree = SimpleNamespace(include=Path(__file__).parent / "no_headers")
    toolchain = SimpleNamespace(program=Path("clang"), name=tools, precompiles=True)
    return Builder(Store(folder), toolchain, tree)  # type: ignore[arg-type]


def test_a_legal_kernel_that_does_not_compile_names_the_rule(
    tmp_path: Path, fake_steps: Steps
) -> None:
    fake_steps.refuse = lambda text: True
    fake_steps.says = "implicit instantiation of undefined template " + 900 * "<"
    key, _ = wanted("relu")
    with expect_error("B014", kind=CkInternalError) as caught:
        builder(tmp_path).build_all([wanted("relu")])
    text = str(caught.value)
    assert len(text) < 2000
    assert f"{key.family} on {key.arch} needs a rule" in text
    assert "dtype_a=f16" in text
    assert f"tile={list(key.algorithm.tile)}" in text
    (log,) = [line.split()[-1] for line in text.splitlines() if "log.txt" in line]
    assert Path(log).read_text().startswith("log of ")
    with expect_error("B010", kind=CkBuildError):
        builder(tmp_path).build_all([wanted("relu", warp_tile=(16, 16, 4))])


def test_a_kernel_takes_three_steps_and_is_then_found(tmp_path: Path, fake_steps: Steps) -> None:
    first = builder(tmp_path)
    (artifact,) = first.build_all([wanted("relu")])
    assert fake_steps.count == ONE_OF_EACH
    assert not artifact.cached
    assert artifact.resources == RESOURCES
    assert artifact.code_object.is_file()
    assert artifact.host_shim.is_file()
    assert "ck_epilogue" in artifact.source.read_text()
    (again,) = first.build_all([wanted("relu")])
    assert again.cached
    assert again.seconds == 0.0
    (elsewhere,) = builder(tmp_path).build_all([wanted("relu")])
    assert elsewhere.cached
    assert elsewhere.folder == artifact.folder
    assert fake_steps.count == ONE_OF_EACH


def test_a_long_build_says_what_it_waits_for(
    tmp_path: Path,
    fake_steps: Steps,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    announce_at_once(monkeypatch)

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.1)
        return fake_steps.stencil(*arguments, **options)

    monkeypatch.setattr(steps, "compile_stencil", slow)
    builder(tmp_path).build_all([wanted("relu")])
    said = capsys.readouterr().err.splitlines()
    first = next(line for line in said if "stencil" in line)
    assert first.startswith("cklang: building 1 kernel: stencil of gemm_f16")
    assert re.search(r"; [01] of 3 steps done, 0 s so far, about \d s left$", first), first


def test_another_epilogue_takes_the_same_stencil(tmp_path: Path, fake_steps: Steps) -> None:
    artifacts = builder(tmp_path).build_all([wanted("relu"), wanted("exp"), wanted("tanh")])
    assert len({artifact.folder for artifact in artifacts}) == 3
    assert fake_steps.count == {**ONE_OF_EACH, "kernel.hsaco": 3}


@pytest.mark.parametrize(("function", "flagged"), [("erf", True), ("exp", False)])
def test_flags_of_a_fill_are_part_of_its_address(
    tmp_path: Path, fake_steps: Steps, function: str, flagged: bool
) -> None:
    (artifact,) = builder(tmp_path).build_all([wanted(function)])
    inputs = json.loads((artifact.folder / "record.json").read_text())["inputs"]
    assert ("fill_flags" in inputs) == flagged


def test_another_tile_or_another_compiler_takes_another(tmp_path: Path, fake_steps: Steps) -> None:
    builder(tmp_path).build_all([wanted("relu"), wanted("relu", tile=(64, 64, 32))])
    assert fake_steps.count["stencil.bc"] == 2
    builder(tmp_path, tools="newer").build_all([wanted("relu")])
    assert fake_steps.count["stencil.bc"] == 3


def test_failures_are_told_per_kernel_and_nothing_of_them_is_kept(
    tmp_path: Path, fake_steps: Steps
) -> None:
    fake_steps.refuse = lambda text: "ck_exp(" in text or "ck_tanh(" in text
    jobs = [wanted("exp"), wanted("relu"), wanted("tanh")]
    results = builder(tmp_path).build_many(jobs)
    assert [result.failure is None for result in results] == [False, True, False]
    with pytest.raises(CkError) as caught:
        builder(tmp_path).build_all(jobs)
    text = str(caught.value)
    assert "2 of 3 kernels failed" in text
    log = Path(text.split("the whole output: ")[1].split("\n")[0])
    assert log.read_text() == "log of kernel.hsaco"
    assert len(list(artifacts_in(Store(tmp_path)))) == 1
    fake_steps.refuse = lambda text: False
    assert len(builder(tmp_path).build_all(jobs)) == 3


def test_a_failing_stencil_fails_every_kernel_of_it(tmp_path: Path, fake_steps: Steps) -> None:
    fake_steps.refuse = lambda text: "128, 128" in text and "CK_FUNCTION" not in text
    results = builder(tmp_path).build_many(
        [wanted("exp"), wanted("relu"), wanted("relu", tile=(64, 64, 32))]
    )
    assert [result.failure is None for result in results] == [False, False, True]


def test_stencils_are_built_without_functions(tmp_path: Path, fake_steps: Steps) -> None:
    jobs = [wanted("exp"), wanted("relu"), wanted("relu", tile=(64, 64, 32))]
    files = builder(tmp_path).stencils(jobs)
    assert [each.key for each in files] == [key.stencil for key, _ in jobs]
    assert all(each.bitcode.read_text() == each.source for each in files)
    assert files[0].bitcode == files[1].bitcode != files[2].bitcode
    counted = {name: fake_steps.count[name] for name in ("stencil.bc", "host.so", "kernel.hsaco")}
    assert counted == {"stencil.bc": 2, "host.so": 2, "kernel.hsaco": 0}


def test_stencils_that_fail_are_told_together(tmp_path: Path, fake_steps: Steps) -> None:
    fake_steps.refuse = lambda text: "128, 128" in text
    jobs = [wanted("exp"), wanted("relu", tile=(64, 64, 32)), wanted("relu")]
    with pytest.raises(CkError, match="2 of 3 kernels failed"):
        builder(tmp_path).stencils(jobs)
    fake_steps.refuse = lambda text: False
    assert len(builder(tmp_path).stencils(jobs)) == 3
    assert fake_steps.count["stencil.bc"] == 3, "what did not fail is kept"


def test_headers_are_precompiled_once_for_a_gpu_and_once_for_the_host(
    tmp_path: Path, fake_steps: Steps
) -> None:
    kernels = [wanted("relu", tile=tile) for tile in ((64, 64, 64), (64, 64, 32))]
    kernels += [(replace(key, arch="gfx90a"), function) for key, function in kernels]
    builder(tmp_path).build_all(kernels)
    assert fake_steps.count["headers.pch"] == 2 + 1
    assert len(set(fake_steps.precompiled)) == 2
    (of_the_host,) = set(fake_steps.precompiled_host)
    assert of_the_host not in (None, *fake_steps.precompiled)


def test_headers_are_precompiled_where_enough_read_them(tmp_path: Path, fake_steps: Steps) -> None:
    one = builder(tmp_path)
    one.build_all([wanted("relu", tile=(64, 64, 64))])
    assert fake_steps.precompiled == fake_steps.precompiled_host == [None]
    one.build_all([wanted("relu", tile=(64, 64, 32))])
    assert None not in fake_steps.precompiled[1:]
    assert fake_steps.precompiled_host == [None, None], "two shims are too few"
    builder(tmp_path).build_all([wanted("relu", tile=(128, 64, 64))])
    assert fake_steps.precompiled[2] == fake_steps.precompiled[1], "what is there is read"


def test_headers_are_precompiled_for_the_second_process(tmp_path: Path, fake_steps: Steps) -> None:
    for tile in TILES[:3]:
        builder(tmp_path).build_all([wanted("relu", tile=tile)])
    assert fake_steps.precompiled[0] is fake_steps.precompiled_host[0] is None
    assert len(set(fake_steps.precompiled[1:]) - {None}) == 1
    assert len(set(fake_steps.precompiled_host[1:]) - {None}) == 1
    assert fake_steps.count["headers.pch"] == 2


def test_without_precompiled_headers_the_rest_goes_on(
    tmp_path: Path, fake_steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    fake_steps.refuse = lambda text: text in ("gfx942", "host")
    with caplog.at_level("INFO", "cklang"):
        kernels = [wanted("relu", tile=tile) for tile in TILES[:3]]
        assert len(builder(tmp_path).build_all(kernels)) == 3
    assert fake_steps.precompiled == fake_steps.precompiled_host == [None] * 3
    assert "headers are not precompiled" in caplog.text


TILES = [(64, 64, 32), (64, 64, 64), (128, 64, 64), (128, 128, 32), (256, 128, 32)]


def test_the_longest_stencils_are_begun_first(tmp_path: Path, fake_steps: Steps) -> None:
    (row,) = essential_kernels(["gfx942"], [ROWS])
    results = builder(tmp_path).build_many([row, wanted("relu")], max_workers=1)
    assert [result.key.family for result in results] == ["rowwise", "gemm"]
    assert ["CK Tile GEMM" in source for source in fake_steps.sources] == [True, False]


def test_a_kernel_is_linked_while_another_stencil_is_compiled(
    tmp_path: Path, fake_steps: Steps
) -> None:
    linked = threading.Event()

    def refuse(text: str) -> bool:
        if "CK Tile GEMM" not in text:  # a fill
            linked.set()
        return "128, 128" in text and not linked.wait(30)

    fake_steps.refuse = refuse
    kernels = [wanted("relu", tile=(128, 128, 32)), wanted("relu", tile=(64, 64, 32))]
    results = builder(tmp_path).build_many(kernels, max_workers=2)
    assert all(result.failure is None for result in results)


def test_kernels_of_a_family_that_another_version_has_are_passed_over(
    tmp_path: Path, fake_steps: Steps
) -> None:
    (artifact,) = builder(tmp_path).build_all([wanted("relu")])
    record = artifact.folder / "record.json"
    record.write_text(record.read_text().replace('"gemm"', '"of_tomorrow"'))
    assert not list(artifacts_in(Store(tmp_path)))


def test_what_has_not_begun_is_not_begun_after_an_interruption(
    tmp_path: Path, fake_steps: Steps
) -> None:
    def refuse(text: str) -> bool:
        if "CK Tile GEMM" in text:
            raise KeyboardInterrupt
        return False

    fake_steps.refuse = refuse
    with pytest.raises(KeyboardInterrupt):
        builder(tmp_path).build_many([wanted("relu", tile=t) for t in TILES], max_workers=1)
    assert fake_steps.count["stencil.bc"] + fake_steps.count["host.so"] < len(TILES)
    assert not list(artifacts_in(Store(tmp_path)))


def test_any_executor_will_do(tmp_path: Path, fake_steps: Steps) -> None:
    with ThreadPoolExecutor(1) as pool:
        artifacts = builder(tmp_path).build_all([wanted("relu"), wanted("exp")], pool)
        assert len(artifacts) == 2
        assert pool.submit(lambda: 1).result() == 1, "the executor is its owner's to shut down"


def test_a_truncated_artifact_is_built_again(
    tmp_path: Path, fake_steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    (artifact,) = builder(tmp_path).build_all([wanted("relu")])
    artifact.code_object.write_text("")
    (again,) = builder(tmp_path).build_all([wanted("relu")])
    assert again.code_object.read_text() != ""
    assert "built again" in caplog.text
    assert fake_steps.count == {**ONE_OF_EACH, "kernel.hsaco": 2}


def test_one_builder_serves_a_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(tmp_path))
    assert building.shared_builder() is building.shared_builder()
    assert building.shared_builder().store.root == tmp_path
