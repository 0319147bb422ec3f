# SPDX-License-Identifier: MIT
"""Rows of profiles and algorithms of gradients refuse what is spelled wrong, and say where."""

from dataclasses import replace
from typing import Any

import pytest

from cklang.arch import arch
from cklang.families.attention.helper_keys import Rotary
from cklang.families.attention.key import AttentionSignature
from cklang.families.attention_backward.key import AttentionGradAlgorithm
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.families.presets import Taken, profile, profile_names, profile_row
from cklang.types import f16
from tests.support.errors import expect_error

PLAIN = AttentionSignature(dtype=f16, dtype_o=f16, dtype_bias=f16)
GRAD: AttentionGradAlgorithm = attention_grad_algorithms(arch("gfx942"), PLAIN, 64, 64)[0]


def test_profiles_are_read_with_the_types_of_their_fields() -> None:
    rows = [row for name in profile_names() for row in profile(name)]
    assert all(isinstance(row.pipelines, Taken) for row in rows)
    assert {each for row in rows for each in row.append} == set(Rotary)
    row = profile_row({"pads": ["tttt"], "heads": [[128, 64]], "fields": {"lse": [True]}})
    assert (row.heads, row.fields, row.archs) == (((128, 64),), {"lse": (True,)}, ())


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"pad": ["tttt"]}, "K001", "pads"),
        ({"pads": ["ttt"]}, "K027", "pads"),
        ({"pads": ["ttxt"]}, "K027", "pads"),
        ({"pads": "tttt"}, "K002", "pads"),
        ({"pipelines": "firts"}, "K001", "first"),
        ({"append": ["halve"]}, "K001", "half"),
        ({"gradient": "no"}, "K002", "gradient"),
        ({"heads": [[128]]}, "K002", "heads"),
        ({"heads": [128]}, "K002", "heads"),
        ({"archs": ["gfx924"]}, "K004", "gfx942"),
        ({"dtypes": ["float16"]}, "K001", "f16"),
        ({"fields": {"maks": ["none"]}}, "K001", "mask"),
        ({"fields": {"mask": ["casual"]}}, "K001", "causal"),
        ({"fields": {"lse": ["yes"]}}, "K002", "lse"),
        ({"fields": {"dtype_o": ["fp16"]}}, "K001", "f16"),
        ({"fields": ["mask"]}, "K002", "fields"),
    ],
)
def test_wrong_spellings_in_profiles_are_refused(
    change: dict[str, Any], code: str, words: str
) -> None:
    with expect_error(code, match=words):
        profile_row({"pads": ["tttt"], **change})


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("tile", GRAD.tile[:8], "K012"),
        ("tile", list(GRAD.tile), "K012"),
        ("tile", (0, *GRAD.tile[1:]), "K011"),
        ("warps", GRAD.warps[:2], "K014"),
        ("warps", (1, 4, 1), "K012"),
        ("warps", ((1, 4, 0), *GRAD.warps[1:]), "K011"),
        ("warp_tiles", (*GRAD.warp_tiles[:2], (16, 16)), "K012"),
        ("warp_tiles", (*GRAD.warp_tiles[:2], (16, 16, True)), "K011"),
        ("vector", 0, "K011"),
        ("vector", 8.0, "K011"),
        ("block_per_cu", -1, "K011"),
    ],
)
def test_an_algorithm_of_gradients_names_the_field_that_is_wrong(
    field: str, value: Any, code: str
) -> None:
    with expect_error(code, match=f"(?m)^.*{field} must be"):
        replace(GRAD, **{field: value})
