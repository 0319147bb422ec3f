# SPDX-License-Identifier: MIT
"""CK Tile's block GEMM pipelines as this library uses them: one row each.

A pipeline's loop is compiled in one variant (``loop``, ``tail``), which takes K in whole steps of
``step`` tiles and computes ``least`` of them or more; tiles beyond K load zeros. Which schedulers a
pipeline has stands in the GPUs' specs. The rest was read in the headers:

- ``basic_v1`` advances along the second axis of both windows, and ``compv5`` shifts its second wave
  group along it: K, only if A is row-major and B column-major.
- ``compv3``, ``mem`` and ``basic_v1`` give the matrix instruction one type for both operands.

The pinned headers' second basic pipeline (``GemmPipelineAGmemBGmemCRegV2``) is not here: it calls
its block GEMM through a constant object, which none of theirs allows, and nothing uses it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cklang.families.gemm.key import Algorithm, Pipeline, Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRow:
    """What lowering and rules know about one pipeline."""

    headers: tuple[str, ...]
    """What it needs below ``ck_tile/ops/gemm`` beside what every kernel includes."""
    ck: str
    """Its class in CK Tile."""
    policy: str
    """The CK Tile policy that ours refines."""
    tail: str
    """The tail of the loop's one variant."""
    step: int = 1
    """K tiles that the loop takes at once; 0: as many as it has in flight."""
    least: int = 1
    """K tiles that it computes at least; 0: two times what it has in flight."""
    buffers: int = 1
    """Copies of the A and B tiles in LDS."""
    wave_groups: int = 1
    """Groups of waves that share K."""
    packed: bool = False
    """Whether B may be of 4-bit integers."""
    prepared: bool = False
    """Whether B is prepared, and goes past LDS."""
    any_layout: bool = True
    """Whether A may be column-major and B row-major."""
    mixed: bool = False
    """Whether A and B may be of two types."""
    transposed: bool = False
    """Whether the accumulator may be transposed: the epilogue takes its rows before its columns."""
    computed: bool = True
    """Whether functions may compute A and B: they pass through registers on their way to LDS."""
    into_lds: bool = False
    """Whether loads put A and B straight into LDS."""
    block_scale_loop: str = ""
    """Our main loop over it for products with block scales, if there is one."""
    sparse: bool = False
    """Whether A may be in 2:4 form."""
    acc_in_lds: bool = False
    """Whether the accumulator goes through LDS inside the loop."""


_REGISTERS = (
    "block/block_gemm_areg_breg_creg_v1.hpp",
    "block/block_gemm_areg_breg_creg_v1_custom_policy.hpp",
)
_UNIVERSAL = "UniversalGemmPipelineAgBgCrPolicy"

PIPELINES: Mapping[Pipeline, PipelineRow] = MappingProxyType(
    {
        Pipeline.MEM: PipelineRow(
            headers=("pipeline/gemm_pipeline_ag_bg_cr_mem.hpp",),
            ck="GemmPipelineAgBgCrMem",
            policy=_UNIVERSAL,
            sparse=True,
            transposed=True,
            tail="Full",
            step=0,
            least=0,
        ),
        Pipeline.COMPV3: PipelineRow(
            headers=(),
            ck="GemmPipelineAgBgCrCompV3",
            policy=_UNIVERSAL,
            packed=True,
            sparse=True,
            transposed=True,
            tail="Full",
            least=2,
            block_scale_loop="BlockScaleLoop",
        ),
        Pipeline.COMPV4: PipelineRow(
            headers=(*_REGISTERS, "pipeline/gemm_pipeline_ag_bg_cr_comp_v4.hpp"),
            ck="GemmPipelineAgBgCrCompV4",
            policy="GemmPipelineAgBgCrCompV4DefaultPolicy",
            tail="Two",
            step=2,
            least=4,
            buffers=2,
            mixed=True,
        ),
        Pipeline.COMPV5: PipelineRow(
            headers=(*_REGISTERS, "pipeline/gemm_pipeline_ag_bg_cr_comp_v5.hpp"),
            ck="GemmPipelineAgBgCrCompV5",
            policy="GemmPipelineAgBgCrCompV5DefaultPolicy",
            tail="Empty",
            wave_groups=2,
            any_layout=False,
            mixed=True,
            acc_in_lds=True,
        ),
        Pipeline.COMPV6: PipelineRow(
            headers=(*_REGISTERS, "pipeline/gemm_pipeline_ag_bg_cr_comp_v6.hpp"),
            ck="GemmPipelineAgBgCrCompV6",
            policy="GemmPipelineAgBgCrCompV6DefaultPolicy",
            tail="Even",
            step=2,
            least=4,
            mixed=True,
        ),
        Pipeline.COMP_ASYNC: PipelineRow(
            headers=(*_REGISTERS, "pipeline/gemm_pipeline_ag_bg_cr_comp_async.hpp"),
            ck="GemmPipelineAgBgCrCompAsync",
            computed=False,
            into_lds=True,
            policy="GemmPipelineAgBgCrCompAsyncDefaultPolicy",
            tail="Two",
            step=2,
            least=4,
            buffers=2,
            mixed=True,
        ),
        Pipeline.PRESHUFFLE_V2: PipelineRow(
            headers=(
                "block/block_wp_asmem_bsmem_creg_v1.hpp",
                "pipeline/wp_pipeline_agmem_bgmem_creg_v2.hpp",
            ),
            ck="WeightPreshufflePipelineAGmemBGmemCRegV2",
            policy="UniversalWeightPreshufflePipelineAgBgCrPolicy",
            tail="Even",
            step=2,
            least=2,
            buffers=2,
            prepared=True,
            computed=False,
            any_layout=False,
            mixed=True,
        ),
        Pipeline.BASIC_V1: PipelineRow(
            headers=("pipeline/gemm_pipeline_agmem_bgmem_creg_v1.hpp",),
            ck="GemmPipelineAGmemBGmemCRegV1",
            policy=_UNIVERSAL,
            sparse=True,
            transposed=True,
            tail="Full",
            any_layout=False,
        ),
    }
)
"""Every pipeline of the pinned headers that is generated."""

_BYTES_IN_FLIGHT = 32768
"""What the ``mem`` pipeline wants a compute unit to wait for (its header, MinMemInFlyBytes)."""
_WAVES = 4

_TRANSPOSABLE_BYTES = 2
"""Bytes of the largest elements that loads from LDS transpose."""


def in_flight(signature: Signature, algorithm: Algorithm, wave_size: int) -> int:
    """Return how many K tiles the ``mem`` pipeline has in flight (its header, PrefetchStages)."""
    m, n, k = algorithm.tile
    threads = math.prod(algorithm.warps) * wave_size
    workgroups = max(_WAVES * wave_size // threads, 1)
    bits = (m * signature.dtype_a.bits + n * signature.dtype_b.bits) * k
    return min(max(-(-(_BYTES_IN_FLIGHT // workgroups) // max(bits // 8, 1)), 2), 8)


def loop_of(signature: Signature, algorithm: Algorithm, wave_size: int) -> tuple[int, int]:
    """Return how many K tiles a kernel's loop takes at once, and at least."""
    row = PIPELINES[algorithm.pipeline]
    tiles_in_flight = in_flight(signature, algorithm, wave_size)
    return row.step or tiles_in_flight, row.least or 2 * tiles_in_flight


def transposable(signature: Signature) -> bool:
    """Return whether a GPU whose loads from LDS transpose can transpose elements of A and B."""
    return signature.dtype_a.bytes <= _TRANSPOSABLE_BYTES
