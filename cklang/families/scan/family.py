# SPDX-License-Identifier: MIT
"""The family of cumulative sums and products along an axis."""

from collections.abc import Mapping
from dataclasses import dataclass

from cklang.arch import arch
from cklang.families.closed_source import closed_source
from cklang.families.lines import Lines, LinesShim, lines_of
from cklang.families.protocol import HelperFamily
from cklang.families.scan.fuse import MAKERS, FusedScan
from cklang.families.scan.key import Scan, ScanKey, ScanSignature
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.lowering.source import KernelSource

_THREADS = 256
"""``scan_threads`` of ``include/cklang/scan.hpp``."""


def lower_scan(key: ScanKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel of cumulative sums or products."""
    s = key.signature
    span = {"wave": arch(key.arch).wave_size, "block": _THREADS, "lane": 1}[s.who.worker]
    return closed_source(
        key,
        "scan.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        lines=_THREADS // span,
        longest=0,
        result=s.result.ck,
        source=s.source.ck,
        who=s.who.worker,
        multiplies=s.who.multiplies,
    )


_SHORT = 256
"""Elements of a line that a wave sums; a workgroup sums longer ones."""

_LINES = 64
"""Neighbouring lines from which on each is summed by a thread of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProblem:
    """What is summed, and where it lies."""

    signature: ScanSignature
    lines: Lines

    @property
    def bytes(self) -> int:
        """What the kernel moves: each element is read and written once."""
        s = self.signature
        return self.lines.count * self.lines.length * (s.source.bytes + s.result.bytes)

    def __str__(self) -> str:
        what = "products" if self.signature.who.multiplies else "sums"
        return f"cumulative {what} of {self.lines.count} lines of {self.lines.length}"


class _ScanFamily(HelperFamily[FusedScan, ScanSignature, ScanProblem]):
    """Cumulative sums and products."""

    fusion = Fusion(makers=MAKERS)
    why = "the one kernel that accumulates such lines"

    def problem(
        self, kernel: FusedScan, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> ScanProblem | None:
        """Return the problem of a kernel; None if its result has no element.

        Raises:
            CkValueError: A045, two elements of a result are one in memory.
        """
        result = layouts[kernel.result.name]
        lines = lines_of(result.shape, kernel.axis, kernel.source, layouts, (result,))
        if not lines.count * lines.length:
            return None
        source, _ = lines.tensors
        step = abs(source.inner[-1])
        across = bool(source.outer) and abs(source.outer[-1]) < step and lines.count >= _LINES
        alone = Scan.WAVE if lines.length <= _SHORT else Scan.BLOCK
        who = Scan.LANE if across else alone
        signature = ScanSignature(
            source=kernel.source.value.type.dtype,
            result=kernel.result.type.dtype,
            who=who.product() if kernel.multiplies else who,
        )
        return ScanProblem(signature=signature, lines=lines)

    def stage(self, kernel: FusedScan, problem: ScanProblem, key: ScanKey) -> Stage:
        """Return the launch of a kernel."""
        return Stage(
            key=key,
            problem=problem,
            shim=LinesShim,
            values=(kernel.source.value.name, kernel.result.name),
            written=frozenset((kernel.result.name,)),
            request=problem.lines.request,
        )


SCAN = _ScanFamily("scan", ScanSignature, lower_scan)
