# SPDX-License-Identifier: MIT
"""The tilings of attention: every head size has one, and they keep CK Tile's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.arch import all_archs, arch
from cklang.families.attention.key import AttentionPipeline, AttentionSignature
from cklang.families.attention.space import attention_algorithms
from cklang.families.attention_backward.key import GradPipeline
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.types import DType, bf16, f16, f32, fp8, fp8_fnuz

heads = st.integers(1, 32).map(lambda eighths: 8 * eighths)


def signature(dtype: DType) -> AttentionSignature:
    return AttentionSignature(dtype=dtype, dtype_o=dtype, dtype_bias=dtype)


# The pinned tree's products with A in registers do not compile for RDNA3.
ABLE = [spec for spec in all_archs() if spec.family != "rdna3"]


@pytest.mark.parametrize("spec", ABLE, ids=lambda spec: spec.name)
@given(hdim_q=heads, hdim_v=heads)
def test_every_head_size_has_a_tiling(spec: object, hdim_q: int, hdim_v: int) -> None:
    algorithms = attention_algorithms(spec, signature(f16), hdim_q, hdim_v)  # type: ignore[arg-type]
    assert algorithms
    *whole, walks = algorithms
    assert walks.pipeline is AttentionPipeline.LONG_HEAD
    assert all(a.tile[5] >= hdim_q and a.tile[3] >= hdim_v for a in whole)
    sizes = [a.tile[3] + a.tile[5] for a in whole]
    assert sizes == sorted(sizes)
    back = attention_grad_algorithms(spec, signature(f16), hdim_q, hdim_v)  # type: ignore[arg-type]
    *whole_back, walks_back = back
    assert walks_back.pipeline is GradPipeline.LONG_HEAD
    assert whole_back
    assert all(a.tile[7] >= hdim_q and a.tile[8] >= hdim_v for a in whole_back)


def test_tilings_are_multiples_of_their_parts() -> None:
    for spec in all_archs():
        for row in spec.attention_tiles:
            m0, n0, k0, n1, k1, hdim = row.tile
            assert m0 % (row.warps * row.warp_tile[0]) == 0
            assert n0 % row.warp_tile[1] == n1 % row.warp_tile[1] == 0
            assert hdim % k0 == n0 % k1 == 0
            ahead = any(pipeline in ("qr", "qs") for pipeline in row.pipelines)
            assert hdim // k0 >= 2 or not ahead, "qr loads the step after next ahead"
            assert k0 % row.warp_tile[2] == k1 % row.warp_tile[2] == 0
            if "long_head" not in row.pipelines:
                assert row.hdim_q <= hdim
                assert row.hdim_v <= n1


def test_order_dtypes_and_widths() -> None:
    best = attention_algorithms(arch("gfx942"), signature(bf16), 128, 128)[0]
    assert (best.pipeline, best.tile[5], best.vector) == (AttentionPipeline.QR_ASYNC, 128, 8)
    assert attention_algorithms(arch("gfx942"), signature(f32), 64, 64)[0].vector == 4
    for dtype in (fp8, fp8_fnuz):
        assert attention_algorithms(arch("gfx942"), signature(dtype), 128, 128)[0].vector == 8
        assert attention_algorithms(arch("gfx90a"), signature(dtype), 128, 128) == ()
    assert attention_algorithms(arch("gfx942"), signature(f32), 264, 64) == ()
    assert attention_algorithms(arch("gfx1100"), signature(f32), 64, 64) == ()


def test_backward_tilings_keep_the_rules_of_their_pipelines() -> None:
    for spec in all_archs():
        for row in spec.attention_grad_tiles:
            m0, n0, k0, k1, k2, k3, k4, hdim_q, hdim_v = row.tile
            assert (k1, k3) == (m0, m0)
            if "long_head" in row.pipelines:
                assert hdim_q == hdim_v
                assert hdim_q % k0 == hdim_v % k2 == 0
            else:
                assert (k0, k2) == (hdim_q, hdim_v)
            assert n0 % k4 == 0
            assert len({w[0] * w[1] * w[2] for w in row.warps}) == 1
