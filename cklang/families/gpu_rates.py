# SPDX-License-Identifier: MIT
"""What cost models read of a GPU in another form than its specification has."""

from cklang.arch import ArchSpec
from cklang.errors import error
from cklang.types import DType, Kind


def cache_bytes(spec: ArchSpec) -> float:
    """Return the size of the last cache before the memory."""
    return float(spec.last_level_cache_bytes or spec.l2_bytes * spec.chiplets)


def matrix_rate(spec: ArchSpec, dtype: DType) -> float:
    """Return the matrix rate of one compute unit for A and B of ``dtype``, per clock."""
    wanted = "fp8" if dtype.kind is Kind.FLOAT and dtype.bits == 8 else dtype.name
    for rate in spec.matrix_rates:
        if rate.dtype == wanted:
            return float(rate.flops_per_clock)
    known = ", ".join(rate.dtype for rate in spec.matrix_rates)
    raise error("N002", gpu=spec.name, dtype=dtype.name, known=known)
