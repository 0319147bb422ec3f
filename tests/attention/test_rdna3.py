# SPDX-License-Identifier: MIT
"""Attention on RDNA3, whose matrix instruction has operands and sums in places of its own.

Its kernels are CK Tile's pipelines over a product of cklang's, ``rdna3_product.hpp``. What else
they can do is in ``test_everywhere.py``, ``test_kinds.py`` and ``test_grad_kinds.py``.
"""

from dataclasses import replace

import numpy as np
import pytest

from cklang.arch import all_archs, arch
from cklang.errors import CkError
from cklang.families.attention.cost import AttentionShape, attention_estimate
from cklang.families.attention.key import AttentionSignature
from cklang.families.attention.lower import lower_attention
from cklang.families.attention.space import attention_algorithms
from cklang.families.attention_backward.cost import attention_grad_estimate
from cklang.families.attention_backward.key import AttentionGradSignature
from cklang.families.attention_backward.lower import lower_grad
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.keys import Key
from cklang.types import bf16, f16, f32
from tests.attention.test_kinds import attend
from tests.support.arrays import uniform
from tests.support.attention_ops import cached, cached_args, packed, packed_args, varied
from tests.support.checks import check, launches
from tests.support.coverage import Covered

GPU = "gfx1100"
SHAPE = AttentionShape(batch=1, heads=2, kv_heads=1, queries=256, keys=512, head=64, head_v=64)
PLAIN = AttentionSignature(dtype=f16, dtype_o=f16, dtype_bias=f16)


@pytest.mark.usefixtures("compiler", "sanitized")
def test_functions_of_score_and_mask(covered: Covered) -> None:
    places = [np.arange(rows, dtype=np.int32).reshape(1, rows) % 3 for rows in (70, 150)]
    tensors = [uniform(1, 2, 70, 64), uniform(1, 1, 150, 64), uniform(1, 1, 150, 64, seed=1)]
    args = [*tensors, np.array([0.01, 0.3], np.float32), uniform(1, 2, 70, 150), *places, 0.25]
    check(varied, args, GPU)
    covered("attention: functions of score and mask, lse", "f16", GPU)


@pytest.mark.usefixtures("compiler", "sanitized")
def test_packed_sequences(covered: Covered) -> None:
    check(packed, packed_args([(70, 90), (5, 0), (33, 130)], 1), GPU)
    covered("attention: packed sequences, lse", "f16", GPU)


@pytest.mark.usefixtures("compiler", "sanitized")
def test_pages_and_splits(covered: Covered) -> None:
    op = cached.using(splits=3)
    check(op, cached_args([100, 0, 144], 1, 1, bf16), GPU)
    assert launches(op)[0].resources.spills == 0
    covered("attention: split-KV, keys in pages", "bf16", GPU)


@pytest.mark.usefixtures("emulator")
def test_other_types_are_refused_by_name() -> None:
    q = np.zeros((1, 1, 3, 64), np.float32)
    with pytest.raises(CkError, match=r"CK-K102(.|\n)*one of f16, bf16"):
        attend(q, q, q, device=f"emu:{GPU}")


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_every_head_size_of_rdna4_has_a_tiling(dtype: object) -> None:
    tilings = {name: arch(name).attention_tiles for name in (GPU, "gfx1201")}
    heads = {
        name: {(row.hdim_q, row.hdim_v) for row in rows if str(dtype) in row.dtypes}
        for name, rows in tilings.items()
    }
    assert heads[GPU] == heads["gfx1201"]


@pytest.mark.parametrize("spec", all_archs(), ids=lambda spec: spec.name)
def test_other_gpus_keep_their_products(spec: object) -> None:
    """The header is in the sources of RDNA3's kernels and in no others."""
    name = spec.name  # type: ignore[attr-defined]
    forward = attention_algorithms(arch(name), PLAIN, 64, 64)[0]
    backward = attention_grad_algorithms(arch(name), PLAIN, 64, 64)[0]
    with_lse = AttentionGradSignature(
        forward=replace(PLAIN, lse=True), bias_grad=False, deterministic=False
    )
    one = lower_attention(Key(PLAIN, forward, name), NO_FUNCTIONS).stencil
    other = lower_grad(Key(with_lse, backward, name), NO_FUNCTIONS).stencil
    assert ("attention_rdna3.hpp" in one) == ("attention_grad_rdna3.hpp" in other) == (name == GPU)


def test_the_cost_model_counts_what_is_joined() -> None:
    """A kernel takes longer where lanes join rows, by the vector operations and reads of LDS."""
    spec = arch(GPU)
    other = replace(spec, repeats_rows=False)
    forward = Key(PLAIN, attention_algorithms(spec, PLAIN, 64, 64)[0], GPU)
    signature = AttentionGradSignature(
        forward=replace(PLAIN, lse=True), bias_grad=False, deterministic=False
    )
    backward = Key(signature, attention_grad_algorithms(spec, PLAIN, 64, 64)[0], GPU)
    one, without = (attention_estimate(forward, SHAPE, each).terms for each in (spec, other))
    changed = {name for name in one if one[name] > without[name]}
    assert {"softmax", "lds"} <= changed
    assert one["matrix"] == without["matrix"]
    one, without = (attention_grad_estimate(backward, SHAPE, each).terms for each in (spec, other))
    assert one["softmax"] > without["softmax"]
    assert one["matrix"] == without["matrix"]


def test_f32_is_not_among_the_types() -> None:
    assert attention_algorithms(arch(GPU), replace(PLAIN, dtype=f32, dtype_o=f32), 64, 64) == ()
