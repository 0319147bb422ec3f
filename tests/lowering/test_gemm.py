# SPDX-License-Identifier: MIT
"""The generated C++ as text, and the algorithms that lowering offers."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.errors import CkInternalError, CkUnsupportedError
from cklang.families import key_from_json
from cklang.families.gemm.key import (
    READ_KINDS,
    DKind,
    EpilogueKind,
    GemmKey,
    Layout,
    Pipeline,
    Reduction,
    Signature,
)
from cklang.families.gemm.lower import HOLES, lower
from cklang.families.gemm.pipelines import PIPELINES
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.selection.rules import candidates
from cklang.types import DType, bf16, f16, f32, fp8, i32
from tests.support.errors import expect_error
from tests.support.gemm_keys import signature as signature_of

GOLDEN = Path(__file__).parent / "golden"

GELU = """
func @epilogue(%acc: f32[], %d0: f32[], %d1: f32[]) -> f32[] {
  %0: f32[] = add(%acc, %d0)
  %1: f32[] = gelu(%0)
  %2: f32[] = add(%1, %d1)
  return %2
}
"""
RELU = GELU.replace("gelu", "relu")


def region(text: str) -> Functions:
    return Functions(epilogue=parse_function(text))


def signature(
    dtype: DType = f16, layouts: str = "rc", d: tuple[tuple[DType, str], ...] = ()
) -> Signature:
    kinds = tuple((t, DKind(kind)) for t, kind in d)
    return replace(signature_of(dtype, f"{layouts}r", kinds), functions="0" * 64)


def key(arch: str = "gfx942", place: int = 0) -> GemmKey:
    s = signature(d=((f16, "row"), (f16, "full")))
    return GemmKey(s, candidates(s, arch)[place], arch)


def test_golden_source(request: pytest.FixtureRequest) -> None:
    text = lower(key(), region(GELU), ["return ck.gelu(x @ w.T + bias) + res"]).inline
    assert text == (GOLDEN / "linear_gelu.hip").read_text()


def test_the_stencil_does_not_know_the_epilogue() -> None:
    gelu = lower(key(), region(GELU))
    relu = lower(
        replace(key(), signature=replace(key().signature, functions="1" * 64)), region(RELU)
    )
    assert gelu.stencil == relu.stencil
    assert gelu.fill != relu.fill
    assert gelu.hole == HOLES["epilogue"]


def test_inline_is_stencil_and_fill() -> None:
    source = lower(key(), region(GELU))
    assert source.inline == f"{source.stencil}\n{source.fill}"


def test_the_key_stands_in_the_source() -> None:
    text = lower(key(), region(GELU)).stencil
    (line,) = re.findall(r"^// Key: (.*)$", text, re.M)
    assert key_from_json(json.loads(line)) == key().stencil


@pytest.mark.parametrize(
    ("arch", "major"),
    [("gfx90a", 9), ("gfx942", 9), ("gfx950", 9), ("gfx1100", 11), ("gfx1201", 12)],
)
def test_every_gpu_names_its_generation(arch: str, major: int) -> None:
    assert f"#define CKLANG_GFX_MAJOR {major}\n" in lower(key(arch), region(GELU)).stencil


def test_region_must_fit_the_signature() -> None:
    one = "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"
    with expect_error("L002", kind=CkInternalError):
        lower(key(), region(one))


@pytest.mark.parametrize(
    "change",
    [
        {"reduction": Reduction.ATOMIC},
        {"stream_k": True, "reduction": Reduction.ATOMIC, "split_k": 2},
        {"persistent": True, "split_k": 2, "reduction": Reduction.WORKSPACE},
        {"double_buffer": True},
        {"num_wave_groups": 2},
        {"double_buffer": False, "pipeline": Pipeline.COMPV4},
        {"transpose_c": True, "pipeline": Pipeline.COMPV6},
        {"warps": (1, 1, 2)},
        {"persistent": True, "pipeline": Pipeline.COMPV5, "num_wave_groups": 2, "warps": (1, 1, 2)},
    ],
)
def test_choices_without_a_spelling_are_refused(change: dict[str, object]) -> None:
    changed = replace(key(), algorithm=replace(key().algorithm, **change))  # type: ignore[arg-type]
    with expect_error("L003", kind=CkUnsupportedError) as caught:
        lower(changed, region(GELU))
    assert next(iter(change)) in caught.value.message


@pytest.mark.parametrize("pipeline", [Pipeline.BASIC_V1, Pipeline.COMPV5])
@pytest.mark.parametrize("layouts", ["cc", "rr"])
def test_some_pipelines_read_k_only_along_rows(pipeline: Pipeline, layouts: str) -> None:
    row = PIPELINES[pipeline]
    s = signature(layouts=layouts)
    a = replace(
        candidates(s, "gfx942")[0],
        pipeline=pipeline,
        num_wave_groups=row.wave_groups,
        warps=(2, 2, 1) if row.wave_groups == 1 else (1, 1, 2),
    )
    with expect_error("L003", kind=CkUnsupportedError):
        lower(GemmKey(s, a, "gfx942"), region("func @e(%acc: f32[]) -> f32[] {\n  return %acc\n}"))


def test_every_pipeline_names_its_own_template() -> None:
    assert set(PIPELINES) == set(Pipeline)
    for pipeline, row in PIPELINES.items():
        choice = replace(
            key().algorithm,
            pipeline=pipeline,
            double_buffer=row.buffers == 2,
            num_wave_groups=row.wave_groups,
            warps=(2, 2, 1) if row.wave_groups == 1 else (1, 1, 2),
        )
        layout_b = Layout.PREPARED if row.prepared else Layout.COL
        changed = replace(key().signature, layout_b=layout_b)
        text = lower(replace(key(), signature=changed, algorithm=choice), region(GELU)).stencil
        assert f"ck_tile::{row.ck}<PipelineProblem, Policy>" in text
        assert f"ck_tile::{row.policy}" in text
        assert all(f'#include "ck_tile/ops/gemm/{header}"' in text for header in row.headers)


@pytest.mark.parametrize("work", ["split_k", "stream_k"])
def test_shared_tiles_wrap_the_same_kernel(work: str) -> None:
    more = {"split_k": {"split_k": 4}, "stream_k": {"stream_k": True}}[work]
    shared = replace(key().algorithm, reduction=Reduction.WORKSPACE, **more)  # type: ignore[arg-type]
    source = lower(replace(key(), algorithm=shared), region(GELU))
    assert f"cklang::Work::{work}" in source.stencil
    assert source.fill == lower(key(), region(GELU)).fill
    assert "cklang::Work::tiles" in lower(key(), region(GELU)).stencil


@pytest.mark.parametrize("more", [{"split_k": 2}, {"stream_k": True}])
def test_sharing_names_its_reduction(more: dict[str, object]) -> None:
    shared = replace(key().algorithm, **more)  # type: ignore[arg-type]
    with pytest.raises(CkUnsupportedError) as caught:
        lower(replace(key(), algorithm=shared), region(GELU))
    assert "reduction" in caught.value.message


def test_both_epilogues_call_the_same_function() -> None:
    direct = replace(key().algorithm, epilogue=EpilogueKind.DEFAULT)
    sources = [lower(replace(key(), algorithm=a), region(GELU)) for a in (key().algorithm, direct)]
    assert sources[0].fill == sources[1].fill
    assert "cklang::Epilogue<EpilogueProblem, Function, D0, D1>" in sources[0].stencil
    assert "cklang::DirectEpilogue<EpilogueProblem, 8, Function, D0, D1>" in sources[1].stencil


signatures = st.builds(
    signature,
    st.sampled_from([f16, bf16, f32]),
    st.sampled_from(["rc", "rr", "cc", "cr"]),
    st.lists(
        st.tuples(
            st.sampled_from([f16, bf16, f32]), st.sampled_from([k.value for k in READ_KINDS])
        ),
        max_size=8,
    ).map(tuple),
)


@given(signatures, st.sampled_from(["gfx90a", "gfx942", "gfx950"]))
def test_algorithms_end_with_one_that_fits_everything(s: Signature, arch: str) -> None:
    offered = candidates(s, arch)
    assert len(set(offered)) == len(offered)
    last = offered[-1]
    assert {last.vector_a, last.vector_b, last.vector_e, *last.vector_d} == {1}
    assert all(a.pad_m and a.pad_n and a.pad_k for a in offered)
    for a in offered:
        assert a.vector_a * s.dtype_a.bytes <= 16
        assert all(
            vector == 1 or d.kind.contiguous for d, vector in zip(s.d, a.vector_d, strict=True)
        )
        assert all(a.vector_e % vector == 0 for vector in a.vector_d)


@given(signatures, st.sampled_from(["gfx90a", "gfx942", "gfx950"]))
def test_algorithms_fit_ck_tiles_access_pattern(s: Signature, arch: str) -> None:
    for a in candidates(s, arch):
        threads = 64 * a.warps[0] * a.warps[1] * a.warps[2]
        m, n, k = a.tile
        for extent, vector in ((m, a.vector_a), (n, a.vector_b)):
            assert extent * k // threads >= vector
            assert extent % threads == 0 or threads % extent == 0


def test_no_algorithms_where_nothing_is_known() -> None:
    assert candidates(signature(i32), "gfx942") == ()
    assert candidates(signature(fp8), "gfx1100") == ()
    assert candidates(signature(f16), "gfx1100")
