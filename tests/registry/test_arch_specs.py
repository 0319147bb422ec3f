# SPDX-License-Identifier: MIT
"""arch_specs against the pinned CK Tile tree, the instruction tables, and a GPU added by a file."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cklang import knobs
from cklang.arch import all_archs, arch
from cklang.cli.main import main
from cklang.cli.specs import check_by_compiling, check_by_reading
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.matrix import matrix_cycles, matrix_shape
from cklang.emulator.engine import build as emulator_build
from cklang.emulator.engine.isa.schema import FAMILIES, load
from cklang.errors import CkError
from cklang.families.gemm.pipelines import PIPELINES
from cklang.families.memory_cost import matrix_rate
from cklang.selection.registry import Registry
from cklang.selection.rules import violations
from cklang.selection.select import select
from cklang.selection.space import pattern
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from tests.support.algorithms import BASE
from tests.support.errors import expect_error
from tests.support.gemm_keys import RELU, shape, signature

SHIPPED = tuple(spec.name for spec in all_archs())


@pytest.mark.parametrize("name", SHIPPED)
def test_rows_say_what_the_tree_instantiates(name: str) -> None:
    assert list(check_by_reading(arch(name), find_ck_tree())) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_reading_finds_wrong_rows(name: str) -> None:
    spec = arch(name)
    first, *rest = spec.warp_tiles
    for lie in ({"loads": ()}, {"loads": (1, 4)}, {"transposed_loads": ()}):
        lying = replace(spec, warp_tiles=(replace(first, **lie), *rest))
        (mismatch,) = check_by_reading(lying, find_ck_tree())
        assert mismatch.row.extents == first.extents
    missing = replace(spec, warp_tiles=tuple(rest))
    assert "there is no row" in str(*check_by_reading(missing, find_ck_tree()))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", SHIPPED)
def test_rows_compile_to_the_instruction_they_name(name: str, tmp_path: Path) -> None:
    tools = find_toolchain(), find_ck_tree()
    assert list(check_by_compiling(arch(name), *tools, tmp_path)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_every_named_instruction_is_in_the_instruction_table(name: str) -> None:
    spec = arch(name)
    known = {row.name for row in load(spec.family).rows}
    for row in spec.warp_tiles:
        assert row.isa is None or row.isa in known, f"{row.isa} on {name}"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_cost_model_and_the_clock_have_the_same_matrix_rates(name: str) -> None:
    spec, rates = arch(name), constants_of(name).matrix
    for row in spec.warp_tiles:
        if row.legal:
            shape = matrix_shape(str(row.isa), "cbsz:4 blgp:4" if row.a == "fp4" else "")
            assert shape is not None
            rate = matrix_rate(spec, (row.a, row.b, row.acc), row.extents, sparse=row.sparse)
            flops = 2 * shape.multiplies * spec.simds_per_cu
            assert rate == flops / (matrix_cycles(shape, rates) or 0), row


@pytest.mark.parametrize("name", SHIPPED)
def test_a_tile_is_whole_instructions(name: str) -> None:
    for row in arch(name).warp_tiles:
        if row.isa is None:
            continue
        match = re.search(r"_(\d+)x(\d+)x(\d+)", row.isa)
        assert match is not None
        m, n, k = map(int, match.groups())
        assert row.k % k == 0
        assert row.m * row.n in (m * n, 16 * m * n), "one matrix, or sixteen blocks"


@pytest.mark.parametrize("name", SHIPPED)
def test_budgets_are_the_gpus_lds_over_the_pipelines_buffers(name: str) -> None:
    spec = arch(name)
    rows = {pipeline.value: row for pipeline, row in PIPELINES.items()}
    for budget in spec.pipelines:
        assert budget.lds_bytes * rows[budget.pipeline].buffers == spec.lds_bytes


@pytest.mark.parametrize("name", SHIPPED)
def test_forbidden_rows_are_the_schedulers_that_the_tree_lacks(name: str) -> None:
    spec, folder = arch(name), find_ck_tree().include / "ck_tile/ops/gemm/pipeline"
    forbidden = {(row.pipeline, row.scheduler) for row in spec.forbidden}
    for pipeline, row in PIPELINES.items():
        if spec.budget(pipeline.value) is None:
            continue
        (file,) = [
            path
            for path in folder.glob("*.hpp")
            if re.search(rf"struct {row.ck}\b", path.read_text())
        ]
        schedulers = re.findall(r"PipelineImpl<GemmPipelineScheduler::(\w+)>", file.read_text())
        legal = {scheduler.lower() for scheduler in schedulers} or {"default"}
        for scheduler in ("default", "intrawave", "interwave"):
            assert ((pipeline.value, scheduler) in forbidden) == (scheduler not in legal)


def test_doctor_prints_a_line_for_each_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--specs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [spec.name for spec in all_archs()]
    assert all(line.endswith("as the tree says") for line in lines)


def gfx1200(folder: Path, **changes: Any) -> None:
    """What docs/adding-a-gpu.md says: copy the nearest file, change what differs."""
    root = Path(__file__).parents[2] / "arch_specs"
    data = json.loads((root / "gfx1201.json").read_text())
    data |= {
        "name": "gfx1200",
        "product": "AMD Radeon RX 9060 XT",
        "emulated_order": 9,
        "elf_machine": 0x48,
        "compute_units": 32,
        "variants": [],
        **changes,
    }
    (folder / "gfx1200.json").write_text(json.dumps(data))


def test_a_gpu_is_added_by_a_file(tmp_path: Path) -> None:
    with pytest.raises(CkError, match="gfx1200"):
        arch("gfx1200")
    gfx1200(tmp_path)
    with knobs.scope(CKLANG_ARCH_DIR=str(tmp_path)):
        spec = arch("gfx1200")
        assert spec.compute_units == 32
        assert all_archs()[-1] is spec
        assert f'{{"gfx1200", Family{{{FAMILIES.index("rdna4")}}}, 72}}' in emulator_build._gpus()
        assert list(check_by_reading(spec, find_ck_tree())) == []
        wide = replace(BASE, warps=(2, 4, 1), warp_tile=(16, 16, 16))
        assert "warps" not in {r.rule for r in violations(wide, signature(), spec)}
        assert "warp-tile" in {r.rule for r in violations(BASE, signature(), spec)}
        some = pattern(tile=(64, 64, 32), warps=(4, 2, 1))
        assert Registry("mine").declare(signature(), RELU, "gfx1200", some) > 0
        chosen = select(shape(64, 64, 64), registry=Registry("none"), arch="gfx1200")
        assert chosen.key.arch == "gfx1200"
    with pytest.raises(CkError, match="gfx1200"):
        arch("gfx1200")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": "red"}, "'colour' is not a field"),
        ({"name": "gfx1201"}, "its name is 'gfx1201'"),
        ({"warp_tiles": [{"a": "f16"}]}, "'b' is missing"),
        ({"pipelines": [3]}, "must be an object"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    gfx1200(tmp_path, **changes)
    with knobs.scope(CKLANG_ARCH_DIR=str(tmp_path)), expect_error("K005", message):
        arch("gfx1200")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing")
    with knobs.scope(CKLANG_ARCH_DIR=missing), pytest.raises(CkError, match="is not a folder"):
        arch("gfx942")
