# SPDX-License-Identifier: MIT
"""The family of experts of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass

from cklang.errors import error
from cklang.families.closed_source import closed_source, flag
from cklang.families.lines import Lines, LinesShim, LineTensor, lines_of, optional_operands
from cklang.families.moe_gate.fuse import MAKERS, FusedMoeGate
from cklang.families.moe_gate.key import SIZES, MoeGateKey, MoeGateSignature
from cklang.families.protocol import HelperFamily
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.lowering.source import KernelSource

_MOST_THREADS = 256


def lower_moe_gate(key: MoeGateKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that chooses experts."""
    s = key.signature
    return closed_source(
        key,
        "moe_gate.hip.j2",
        f"ck_moe_gate_{s.size}",
        words=s.words,
        threads=min(s.size, _MOST_THREADS),
        logits=s.logits.ck,
        bias="void" if s.bias is None else s.bias.ck,
        size=s.size,
        sigmoid=flag(s.sigmoid),
        grouped=flag(s.grouped),
        renormalised=flag(s.renormalised),
        scale=f"{s.scale!r}f",
    )


_WORD = 4
"""Bytes of a weight and of an index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeGateProblem:
    """Rows of logits, where they lie, and how many experts each is led to."""

    signature: MoeGateSignature
    lines: Lines
    """Logits, bias, weights and indices; places of what there is not are empty."""
    chosen: int
    groups: int
    kept: int

    @property
    def bytes(self) -> int:
        """What the kernel moves: each logit is read, the bias once, and results are written."""
        s, lines = self.signature, self.lines
        bias = 0 if s.bias is None else lines.length * s.bias.bytes
        return lines.count * (lines.length * s.logits.bytes + 2 * _WORD * self.chosen) + bias

    def __str__(self) -> str:
        return f"{self.chosen} of {self.lines.length} experts for each of {self.lines.count} rows"


class _MoeGateFamily(HelperFamily[FusedMoeGate, MoeGateSignature, MoeGateProblem]):
    """Experts of tokens."""

    fusion = Fusion(makers=MAKERS)
    why = "the one kernel that chooses experts of such rows"

    def problem(
        self, kernel: FusedMoeGate, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> MoeGateProblem | None:
        """Return the problem of a kernel; None if there is no row.

        Raises:
            CkValueError: A045, two elements of a result are one in memory; A078, there are fewer
                experts than are chosen; A079, more than are compared.
        """
        shape = kernel.type.extents(dims)
        length, count = shape[-1], kernel.number("count")
        axis, name = len(shape) - 1, kernel.logits.value
        if count > length:
            raise error("A078", name=name, count=count, axis=axis, extent=length)
        size = next((size for size in SIZES if size >= length), None)
        if size is None:
            raise error("A079", name=name, count=count, extent=length, limit=SIZES[-1])
        results = [layouts[value.name] for value in kernel.results]
        lines = lines_of(shape, axis, kernel.logits, layouts, results)
        if not lines.count:
            return None
        bias = None if kernel.bias is None else layouts[kernel.bias.value.name]
        groups, kept = kernel.number("groups"), kernel.number("kept")
        signature = MoeGateSignature(
            logits=kernel.logits.value.type.dtype,
            bias=None if bias is None else bias.dtype,
            size=size,
            sigmoid=bool(kernel.number("sigmoid")),
            grouped=kept < groups,
            renormalised=bool(kernel.number("renormalised")),
            scale=float(str(dict(kernel.attrs)["scale"])),
        )
        return MoeGateProblem(
            signature=signature,
            lines=_with_bias(lines, kernel, bias),
            chosen=count,
            groups=groups,
            kept=kept,
        )

    def stage(self, kernel: FusedMoeGate, problem: MoeGateProblem, key: MoeGateKey) -> Stage:
        """Return the launch of a kernel."""
        bias = None if kernel.bias is None else kernel.bias.value
        values = (kernel.logits.value, bias, kernel.weights, kernel.indices)
        names, addresses = optional_operands(values)
        return Stage(
            key=key,
            problem=problem,
            shim=LinesShim,
            values=names,
            written=frozenset(value.name for value in kernel.results),
            request=lambda at: problem.lines.request(
                addresses(at),
                extent=problem.chosen,
                step=problem.groups << 32 | problem.kept,
            ),
        )


def _with_bias(lines: Lines, kernel: FusedMoeGate, bias: TensorLayout | None) -> Lines:
    """Return lines with a place for the bias, and for a result that is not written."""
    source, *results = lines.tensors
    stride = 0
    if bias is not None and kernel.bias is not None:
        (axis,) = kernel.bias.axes
        stride = 0 if axis is None else bias.strides[axis]
    along = LineTensor(outer=(0,) * len(lines.outer), inner=(stride,))
    places = iter(results)
    written = [
        LineTensor() if value is None else next(places)
        for value in (kernel.weights, kernel.indices)
    ]
    return Lines(outer=lines.outer, length=lines.length, tensors=(source, along, *written))


MOE_GATE = _MoeGateFamily("moe_gate", MoeGateSignature, lower_moe_gate)
