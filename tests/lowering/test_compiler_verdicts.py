# SPDX-License-Identifier: MIT
"""Pipelines of CK Tile that are refused: what the compiler says of them, or what they compute.

``tests/data/absent.json`` has a row for each with the verdict in its note. The tests write the
refused kernel as the library would if its table of pipelines allowed it, and compile it against the
pinned headers. A verdict that no longer holds fails here, and the row can go.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from cklang.arch import arch
from cklang.build import steps
from cklang.families.conv.problem import conv_problem
from cklang.families.gemm import lower
from cklang.families.gemm.key import Algorithm, Pipeline
from cklang.families.gemm.pipelines import PIPELINES
from cklang.keys import Key
from cklang.lowering.source import KernelSource
from cklang.selection.rules import violations
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from cklang.types import DType, f16, f32, fp8
from tests.support import coverage_table as table
from tests.support.algorithms import NARROW, WIDE, pipelined
from tests.support.conv_kernels import Conv, kernel
from tests.support.gemm_keys import RELU, signature

GRADIENTS = ("conv_grad_input", "conv_grad_weight")
GPUS = ("gfx942", "gfx1201")
"""One for each size of a wave; the templates are the same on the others."""
NO_CALL = "no matching function for call to object of type 'const BlockUniversalGemmAsBsCr"
TURNED = "in_offset % vec_length_in == 0"
WRONG = "it compiles, and its results are wrong"
VERDICTS = {
    "pipeline basic_v2": NO_CALL,
    **{f"{gradient}, pipeline compv5": TURNED for gradient in GRADIENTS},
    **{f"{gradient}, pipeline basic_v1": WRONG for gradient in GRADIENTS},
}


@pytest.fixture
def any_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every pipeline take a column-major A and a row-major B."""
    rows = {name: replace(row, any_layout=True) for name, row in PIPELINES.items()}
    monkeypatch.setattr(lower, "PIPELINES", MappingProxyType(rows))


def errors_of(source: str, gpu: str, folder: Path) -> str:
    """Return the errors of the compiler on the main loop of a kernel; it emits nothing."""
    toolchain, tree = find_toolchain(), find_ck_tree()
    file = folder / "refused.hip"
    file.write_text(source)
    flags = ("-fsyntax-only", "-DCKLANG_ONLY_MAINLOOP")
    command = [*steps._half_command(gpu, folder, toolchain, tree), *flags, str(file)]
    run = subprocess.run(
        command, capture_output=True, text=True, env=toolchain.environment(), check=False
    )
    lines = [line for line in run.stderr.splitlines() if " error: " in line]
    assert bool(lines) == (run.returncode != 0), run.stderr
    return "\n".join(lines)


def product(pipeline: Pipeline) -> KernelSource:
    algorithm = pipelined(replace(WIDE, warp_tile=(16, 16, 16)), pipeline)
    return lower.lower(Key(signature(), algorithm, "gfx942"), RELU)


def convolution(direction: str, algorithm: Algorithm, gpu: str) -> KernelSource:
    sizes = ((2, 7, 9, 32), (16, 3, 3, 32))
    problem = conv_problem(*sizes, spatial=2, padding=1, direction=direction)
    return lower.lower(Key(problem.signature, algorithm, gpu), RELU)


@pytest.mark.parametrize("variant", VERDICTS)
def test_the_table_says_the_verdict_on_every_gpu(variant: str) -> None:
    rows = [row for row in table.read(table.ABSENT) if row.variant == variant]
    assert {row.arch for row in rows} == {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}
    assert all(VERDICTS[variant] in row.note for row in rows)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_basic_v2_cannot_call_its_block_gemm(tmp_path: Path) -> None:
    source = product(Pipeline.BASIC_V1).stencil
    assert errors_of(source, "gfx942", tmp_path) == ""
    first, second = "GemmPipelineAGmemBGmemCRegV1", "GemmPipelineAGmemBGmemCRegV2"
    refused = source.replace(first, second).replace("agmem_bgmem_creg_v1", "agmem_bgmem_creg_v2")
    assert NO_CALL in errors_of(refused, "gfx942", tmp_path).replace("ck_tile::", "")


@pytest.mark.full
@pytest.mark.usefixtures("compiler", "any_layout")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("direction", GRADIENTS)
def test_compv5_does_not_turn_the_matrices_of_gradients(
    direction: str, gpu: str, tmp_path: Path
) -> None:
    wide = replace(WIDE, warp_tile=(16, 16, 16))
    source = convolution(direction, pipelined(wide, Pipeline.COMPV5, warps=(1, 1, 2)), gpu)
    assert TURNED in errors_of(source.stencil, gpu, tmp_path)


@pytest.mark.full
@pytest.mark.usefixtures("compiler", "any_layout")
@pytest.mark.parametrize("direction", GRADIENTS)
def test_basic_v1_goes_along_the_wrong_axis_of_gradients(direction: str) -> None:
    """One step of K is right, so the kernel itself is; the second step reads other rows."""
    from tests.runtime.test_conv_kernels import FAMILIES, operands, wanted

    kind = next(each for each in FAMILIES if each.value == direction)
    built = kernel(kind, 2, algorithm=pipelined(NARROW, Pipeline.BASIC_V1))
    short = Conv(n=1, g=1, k=8, c=8, size=(2, 2), window=(1, 1))
    long = replace(short, k=96, n=3, size=(6, 8))
    right = []
    for conv in (short, long):
        a, b = operands(conv, kind)
        right.append(bool(np.array_equal(built.run(conv, a, b), wanted(conv, kind, a, b))))
    assert right == [True, False], "run it, and take the row out of absent.json"


EIGHTS = {"warps": (2, 2, 1), "tile": (128, 128, 128)}
ASYNC = {"pipeline": Pipeline.COMP_ASYNC, "double_buffer": True}
NO_TILE = "undefined template 'ck_tile::impl::WarpGemmDispatcher"
FORMS = ("transposing-loads", "async-loads", "transposed-tile")
NO_LOAD = "bytes == 4 || bytes == 12 || bytes == 16"


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("dtype", "layouts", "changes", "rule", "verdict"),
    [
        (fp8, "ccr", {"warp_tile": (32, 32, 32)}, "transposing-loads", NO_TILE),
        (fp8, "ccr", {"warp_tile": (16, 16, 128)}, "", ""),
        (f16, "rcr", {"warp_tile": (32, 32, 16), "vector_b": 4, **ASYNC}, "async-loads", NO_LOAD),
        (f32, "rcr", {"warp_tile": (16, 16, 4), "transpose_c": True}, "transposed-tile", NO_TILE),
    ],
)
def test_rules_about_forms_say_what_the_compiler_says(
    dtype: DType, layouts: str, changes: dict[str, Any], rule: str, verdict: str, tmp_path: Path
) -> None:
    spec, algorithm = arch("gfx950"), replace(NARROW, **{**EIGHTS, "vector_a": 4, **changes})
    computed = signature(dtype, layouts)
    refused = {each.rule for each in violations(algorithm, computed, spec)} & set(FORMS)
    assert refused == ({rule} if rule else set())
    source = lower.lower(Key(computed, algorithm, spec.name), RELU)
    errors = errors_of(source.stencil, spec.name, tmp_path)
    assert verdict in errors
    assert bool(errors) == bool(rule)
