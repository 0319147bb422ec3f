# SPDX-License-Identifier: MIT
"""Legal kernels of every family compile, whatever element types meet whatever features.

``tests/support/legal_kernels.py`` draws them. The tier *compile* compiles the few of ``ORDINARY``,
the same ones each time, so that their stencils stay in the cache; the tier *full* more of each.
"""

from random import Random

import pytest

from cklang.arch import arch
from cklang.families.attention.key import AttentionKey
from cklang.families.gemm.key import READ_KINDS, ProductKind
from tests.support import legal_kernels

ORDINARY = {"product": 0, "convolution": 2, "attention": 29, "attention_grad": 15, "helper": 2}
"""The seed of the kernel of a family that the tier *compile* compiles."""
MANY = 12
"""How many of each family the full run compiles."""
DRAWN = 400
"""How many kernels are drawn to see what the draw reaches."""


def compiles(family: str, seed: int) -> None:
    key = legal_kernels.DRAWS[family](Random(seed))
    assert legal_kernels.objected(key) == []
    assert legal_kernels.compiled(key).stat().st_size > 0


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("family", ORDINARY)
def test_a_legal_kernel_compiles(family: str) -> None:
    compiles(family, ORDINARY[family])


@pytest.mark.usefixtures("compiler")
@pytest.mark.full
@pytest.mark.parametrize("seed", range(1000, 1000 + MANY))
@pytest.mark.parametrize("family", legal_kernels.DRAWS)
def test_legal_kernels_compile(family: str, seed: int) -> None:
    compiles(family, seed)


def test_attention_is_drawn_with_every_pair_of_type_and_feature() -> None:
    """The draw itself, without compiling."""
    random, pairs = Random(0), set()
    for _ in range(DRAWN):
        key: AttentionKey = legal_kernels.attention(random)
        assert legal_kernels.objected(key) == []
        s = key.signature
        flags = [name for name in ("dropout", "packed", "paged", "split") if getattr(s, name)]
        pairs |= {(s.dtype.family, flag, key.arch) for flag in flags}
    for gpu, dtypes in (("gfx942", "f16 bf16 f32 fp8"), ("gfx1201", "f16 bf16 fp8")):
        for dtype in dtypes.split():
            assert (dtype, "dropout", gpu) in pairs
            assert (dtype, "paged", gpu) in pairs


def test_products_are_drawn_with_every_feature() -> None:
    """Their signatures: moving an algorithm to a legal one takes seconds."""
    random = Random(0)
    some = [
        legal_kernels.matrix_signature(random, random.choice(list(ProductKind)), arch("gfx950"))
        for _ in range(DRAWN)
    ]
    assert {s.kind for s in some} == set(ProductKind)
    for feature in ("d", "a", "b", "scale_a", "scale_b", "sparse"):
        types = {s.dtype_a.name for s in some if getattr(s, feature)}
        assert len(types) >= 4, feature
    assert {operand.kind for s in some for operand in s.d} == set(READ_KINDS)
