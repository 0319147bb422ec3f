# SPDX-License-Identifier: MIT
"""The algorithms that several tests name. Few, because each compiles a stencil for every signature.

=============  ==================================================================================
algorithm      use it for
=============  ==================================================================================
`NARROW`       any extent, stride and address: one element a load, so one stencil serves them all
`WIDE`         rows of f16 in multiples of 8: loads and stores of 16 bytes
`EIGHT_BITS`   products of 8-bit types: loads of 16 bytes
`BASE`         keys, rules and registries: a large tile of f16, which no test compiles
`ATTENTION`    attention of f16 or bf16 with heads of up to 64 elements on gfx90a and gfx942
`V3`           attention with heads of 128 elements on gfx950, in a pipeline of its own
=============  ==================================================================================

:func:`narrow` and :func:`wide` take operands of the epilogue and change fields; :func:`pipelined`
changes the pipeline and what it requires.
"""

from dataclasses import replace
from typing import Any

from cklang.arch import arch
from cklang.families.attention.key import AttentionAlgorithm, AttentionPipeline
from cklang.families.gemm.key import Algorithm, Pipeline, Scheduler
from cklang.families.gemm.pipelines import PIPELINES

NARROW = Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 16), vector_a=1, vector_b=1, vector_e=1
)
"""One element a load and a store: legal for every problem of f16, bf16 on CDNA."""

WIDE = replace(NARROW, vector_a=8, vector_b=8, vector_e=8)
"""16 bytes of f16 or bf16 a load and a store."""

BASE = replace(WIDE, tile=(128, 128, 32), warp_tile=(32, 32, 8))
"""The algorithm of keys in the tests of rules, registries, selection and the build steps."""

DEEP = (16, 16, 32)
"""A warp tile of twice the depth: one matrix instruction of gfx950 or two of gfx942."""

EIGHT_BITS = replace(WIDE, tile=(64, 64, 64), warp_tile=DEEP, vector_a=16, vector_b=16)
"""16 bytes of 8-bit types a load, and of 16-bit types a store."""

ATTENTION = AttentionAlgorithm(
    tile=(128, 64, 32, 64, 32, 64), warps=(4, 1, 1), warp_tile=(32, 32, 16), vector=8
)
"""The smallest tile of f16 and bf16 on gfx942."""

V3 = AttentionAlgorithm(
    tile=(256, 32, 128, 128, 32, 128),
    warps=(8, 1, 1),
    warp_tile=(32, 32, 16),
    pipeline=AttentionPipeline.V3,
    vector=8,
)
"""CK Tile's third pipeline, for gfx950."""

_SCHEDULERS = {Pipeline.BASIC_V1: Scheduler.DEFAULT, Pipeline.PRESHUFFLE_V2: Scheduler.DEFAULT}
"""The scheduler of a pipeline that has no other."""


def narrow(operands: int = 0, **changes: Any) -> Algorithm:
    """Return `NARROW` for an epilogue that reads so many operands, with other fields changed."""
    return replace(NARROW, vector_d=(1,) * operands, **changes)


def wide(operands: int = 0, **changes: Any) -> Algorithm:
    """Return `WIDE` for an epilogue that reads so many operands of f16, with fields changed."""
    return replace(WIDE, vector_d=(8,) * operands, **changes)


def pipelined(algorithm: Algorithm, pipeline: Pipeline, /, **changes: Any) -> Algorithm:
    """Return an algorithm in another pipeline, with its number of buffers and wave groups.

    The scheduler changes where the pipeline has only one.
    """
    row = PIPELINES[pipeline]
    required: dict[str, Any] = {
        "pipeline": pipeline,
        "scheduler": _SCHEDULERS.get(pipeline, algorithm.scheduler),
        "double_buffer": row.buffers == 2,
        "num_wave_groups": row.wave_groups,
    }
    return replace(algorithm, **(required | changes))


def on_gpu(gpu: str, algorithm: Algorithm) -> Algorithm:
    """Return an algorithm in the form that a GPU has: eight waves of 16x16 tiles on RDNA."""
    if arch(gpu).wave_size == 64:
        return algorithm
    m, n, k = algorithm.tile
    warps = (1, 1, 2) if algorithm.num_wave_groups > 1 else (8, 1, 1) if n < 32 else (4, 2, 1)
    tile = (max(m, 16 * warps[0]), n, k)
    return replace(algorithm, tile=tile, warps=warps, warp_tile=(16, 16, 16))
