# SPDX-License-Identifier: MIT
"""The levels of memory beyond a compute unit: latency by the bytes that a kernel walks."""

import numpy as np
import numpy.typing as npt

from cklang.arch import all_archs, arch, timing_file
from cklang.emulator.clock.constants import ClockConstants, constants_of
from cklang.errors import error

Floats = npt.NDArray[np.float64]
_LEVELS = ("l1", "l2", "last_level")
_DOUBLINGS = 2
"""After so many doublings translation costs no more."""


def _known() -> list[str]:
    gpus = (spec.name for spec in all_archs() if timing_file(spec.name).is_file())
    return [gpu for gpu in gpus if "chase_l1" in constants_of(gpu).numbers]


def chase_latency(constants: ClockConstants, footprint: npt.ArrayLike) -> Floats:
    """Return the cycles of one dependent load, by the bytes of the buffer that is walked.

    A walk over a buffer that is a little larger than a cache misses all of it, since each line is
    replaced before it is needed again; the step from one level to the next is that short.
    Buffers of many pages also wait for the translation of addresses.

    Args:
        constants: Of the GPU.
        footprint: Bytes of the buffer, which one compute unit walks in random order.

    Example:
        >>> chase_latency(constants_of("gfx942"), [16 << 10, 1 << 20]).round().tolist()
        [116.0, 213.0]
    """
    if "chase_l1" not in constants.numbers:
        raise error("K050", what="levels of memory", name=constants.gpu, known=", ".join(_known()))
    spec = arch(constants.gpu)
    sizes = (constants["chase_l1_bytes"], spec.l2_bytes, spec.last_level_cache_bytes)
    size = np.asarray(footprint, dtype=np.float64)
    latency = np.full(size.shape, constants["chase_l1"])
    beyond = [constants[f"chase_{level}"] for level in (*_LEVELS, "memory")]
    for place, (level, capacity) in enumerate(zip(_LEVELS, sizes, strict=True)):
        missed = np.clip((size / capacity - 1) / constants[f"chase_edge_{level}"], 0, 1)
        latency = latency + (beyond[place + 1] - beyond[place]) * missed
    return latency + translation(constants, size)


def translation(constants: ClockConstants, footprint: npt.ArrayLike) -> Floats:
    """Return the cycles that a load waits for its address, by the bytes that a kernel touches."""
    size = np.maximum(np.asarray(footprint, dtype=np.float64), 1)
    doublings = np.log2(size / constants["chase_translation_bytes"])
    return constants["chase_translation"] * np.clip(doublings, 0, _DOUBLINGS)


def of_launch(
    constants: ClockConstants, footprint: int | None = None, *, alone: bool
) -> ClockConstants:
    """Return the constants with the latency of memory that loads of a launch have.

    The fitted latency is that of kernels which keep memory busy. Data that caches hold come as fast
    as a walk over as many bytes shows, and the loads of a workgroup that is alone on the GPU wait
    for no others.

    Args:
        constants: Of the GPU.
        footprint: Bytes that the launch touches; None: more than caches hold.
        alone: Whether it has one workgroup.

    Example:
        >>> gfx1100 = constants_of("gfx1100")
        >>> [of_launch(gfx1100, alone=alone).cycles("vmem_latency") for alone in (False, True)]
        [1500, 810]
    """
    latency = constants["vmem_latency"]
    if alone and "vmem_alone" in constants.numbers:
        latency *= constants["vmem_alone"]
    if footprint is not None and "chase_l1" in constants.numbers:
        latency = min(latency, float(chase_latency(constants, footprint)))
    return constants.with_numbers({"vmem_latency": latency})
