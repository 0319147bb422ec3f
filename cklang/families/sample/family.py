# SPDX-License-Identifier: MIT
"""The family of tokens drawn from rows of logits.

The C side of the host shim is ``include/cklang/sample_host.h``; the struct layouts here mirror it.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cklang.arch import ArchSpec
from cklang.device.host_shim import HostShim
from cklang.device.resources import Resources
from cklang.dims import ranks
from cklang.errors import error
from cklang.families.closed_source import closed_source
from cklang.families.lines import (
    MAX_TENSORS,
    Lines,
    LinesRequest,
    LinesShim,
    LineTensor,
    merged,
)
from cklang.families.memory_cost import MemoryCost
from cklang.families.protocol import CostModel, HelperFamily
from cklang.families.sample.fuse import MAKERS, FusedSample
from cklang.families.sample.key import SampleKey, SampleSignature
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.fusion.plan import Read
from cklang.keys import AnyKey
from cklang.lowering.source import KernelSource

_THREADS = (256, 1024)
"""Threads of a workgroup, for rows of up to, and of more than, :data:`_SHORT` logits."""

_SHORT = 8192


def lower_sample(key: SampleKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that draws tokens."""
    s = key.signature
    return closed_source(
        key,
        "sample.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=s.threads,
        logits=s.logits.ck,
        seed=s.seed.ck,
        offset=s.offset.ck,
    )


_Plain = type(LinesShim.to_c(LinesRequest(outer=(), inner=(), tensors=())))
_MORE = 5
"""CK_SAMPLE_MORE_TENSORS."""


class _Problem(ctypes.Structure):
    _fields_ = (("lines", _Plain), ("more", type(_Plain().tensors[0]) * _MORE))


def _to_c(request: LinesRequest) -> _Problem:
    first, more = request.tensors[:MAX_TENSORS], request.tensors[MAX_TENSORS:]
    problem = _Problem(lines=LinesShim.to_c(replace(request, tensors=first)))
    for start in range(0, _MORE, MAX_TENSORS):
        part = LinesShim.to_c(replace(request, tensors=more[start : start + MAX_TENSORS]))
        for place, tensor in enumerate(part.tensors[: _MORE - start]):
            problem.more[start + place] = tensor
    return problem


class SampleShim(HostShim[LinesRequest]):
    """A loaded ``host.so`` of a kernel that draws tokens."""

    symbol = LinesShim.symbol
    version_symbol = LinesShim.version_symbol
    version = LinesShim.version
    to_c = staticmethod(_to_c)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleProblem:
    """Rows of logits and where they lie."""

    signature: SampleSignature
    lines: Lines
    """The operands, the tokens, and a tensor whose strides number the rows."""

    @property
    def bytes(self) -> int:
        """What the kernel moves from memory: each logit once, as caches hold a row."""
        return self.lines.count * self.lines.length * self.signature.logits.bytes

    def __str__(self) -> str:
        return f"a token of each of {self.lines.count} rows of {self.lines.length}"


_OPERATIONS = 126.0
"""Vector operations for a logit, by the clock on MI300X: reading it twice and adding up weights.
Thresholds, which numbers in memory ask for, take as much again."""


@ranks
def _row_time(rows: int, length: int, spec: ArchSpec) -> float:
    """Return the time of rows in µs; a compute unit has one after the other."""
    rounds = -(-rows // spec.compute_units)
    clocks = rounds * length * _OPERATIONS / spec.vector_flops_per_clock
    return clocks / spec.clock_hz * 1e6


class _SampleCost(MemoryCost):
    """Few rows take as long as there are compute units, for a workgroup has a row."""

    def times(self, problem: SampleProblem) -> Any:  # type: ignore[override]
        """Return the predicted time of each kernel in µs: the same of all."""
        return np.full(len(self._keys), sum(self.terms(0, problem).values()))

    def terms(self, place: int, problem: SampleProblem) -> Mapping[str, float]:  # type: ignore[override]
        """Return what makes up the time of a kernel, in µs."""
        known, lines = super().terms(place, problem), problem.lines
        rows = _row_time(lines.count, lines.length, self._spec)
        return {"launch": known["launch"], "rows": max(rows, known["memory"])}


class _SampleFamily(HelperFamily[FusedSample, SampleSignature, SampleProblem]):
    """Tokens drawn from rows of logits."""

    fusion = Fusion(makers=MAKERS)
    why = "the one kernel that draws tokens of such rows"

    def problem(
        self, kernel: FusedSample, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> SampleProblem | None:
        """Return the problem of a kernel; None if there is no row.

        Raises:
            CkValueError: A035, two elements of a result are one in memory; I048, a row has no
                logit.
        """
        *rows, length = kernel.type.extents(dims)
        result = layouts[kernel.result.name]
        refuse_overlap(result)
        if 0 in rows:
            return None
        if not length:
            raise error("I048", name="token", axes=len(rows), shape=(*rows, length))
        logits, *numbers = (_strides(read, layouts) for read in kernel.reads)
        numbering = np.cumprod([1, *rows[:0:-1]])[::-1] * kernel.has_one_seed
        strides = [logits[:-1], *(stride or (0,) * len(rows) for stride in numbers)]
        strides += [result.strides, tuple(map(int, numbering[: len(rows)]))]
        outer, steps = merged(rows, *strides)
        _, seed, offset, *_ = (read.value.type.dtype for read in kernel.reads)
        return SampleProblem(
            signature=SampleSignature(
                logits=kernel.reads[0].value.type.dtype,
                seed=seed,
                offset=offset,
                threads=_THREADS[length > _SHORT],
            ),
            lines=Lines(
                outer=outer,
                length=length,
                tensors=(
                    LineTensor(outer=steps[0], inner=(logits[-1],)),
                    *(LineTensor(outer=step) for step in steps[1:]),
                ),
            ),
        )

    def cost(
        self,
        keys: Sequence[SampleKey],
        spec: ArchSpec,
        built: Mapping[AnyKey, Resources],
    ) -> CostModel:
        """Return the model of rows, each on one compute unit."""
        return _SampleCost(keys, spec)

    def stage(self, kernel: FusedSample, problem: SampleProblem, key: SampleKey) -> Stage:
        """Return the launch of a kernel."""
        return Stage(
            key=key,
            problem=problem,
            shim=SampleShim,
            values=(*(read.value.name for read in kernel.reads), kernel.result.name),
            written=frozenset([kernel.result.name]),
            constants=dict(kernel.constants),
            request=lambda at: problem.lines.request((*at, 0)),
        )


def _strides(read: Read, layouts: Mapping[str, TensorLayout]) -> tuple[int, ...]:
    """Return the strides of an operand; those of a constant do not matter."""
    layout = layouts.get(read.value.name)
    stored = () if layout is None else layout.strides
    return tuple(0 if axis is None or not stored else stored[axis] for axis in read.axes)


SAMPLE = _SampleFamily("sample", SampleSignature, lower_sample)
