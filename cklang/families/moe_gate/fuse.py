# SPDX-License-Identifier: MIT
"""Make the kernel of ``moe_weights`` and ``moe_indices``: one of the same operands gives both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.ir.expert_gate import MOE_INDICES, MOE_WEIGHTS
from cklang.ir.nodes import Attrs, Value
from cklang.types import TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedMoeGate(FusedKernel):
    """One kernel: the experts of each row of logits, their weights, or both."""

    anchors: tuple[str, ...]
    logits: Read
    type: TensorType
    """The type of the logits, whose axes memory may lack in part."""
    bias: Read | None
    weights: Value | None
    indices: Value | None
    attrs: Attrs
    """How experts are chosen (:mod:`cklang.ir.expert_gate`)."""

    family: ClassVar[str] = "moe_gate"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once."""
        reads = (self.logits, *(() if self.bias is None else (self.bias,)))
        return tuple(dict.fromkeys(read.value for read in reads))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return tuple(value for value in (self.weights, self.indices) if value is not None)

    def number(self, name: str) -> int:
        """Return an attribute that is a whole number."""
        return int(str(dict(self.attrs)[name]))

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        written = ", ".join(f"{value.type} {value}" for value in self.results)
        scores = "sigmoid" if self.number("sigmoid") else "softmax"
        bias = "" if self.bias is None else f" and {self.bias.value}"
        yield f"kernel {self.name}: {written}"
        count, kept, groups = (self.number(name) for name in ("count", "kept", "groups"))
        yield f"  {count} experts of the greatest {scores} of {self.logits.value}{bias}"
        if kept < groups:
            yield f"  in {kept} of {groups} groups"


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedMoeGate | None:
    """Return the kernel of an operation; None if that of another one gives its result."""
    flow, anchor = maker.flow, walk.anchor
    walk.note_store()
    logits, *biases = (maker.stored(walk.colour, place) for place in range(len(anchor.operands)))
    twins = maker.twins(walk.colour)
    if walk.colour != min(twins.values()):
        return None
    written = {op: flow.value(node) for op, node in twins.items()}
    return FusedMoeGate(
        name=flow.function.name,
        anchors=tuple(value.name for value in written.values()),
        logits=Read(value=logits[0], axes=logits[1]),
        type=anchor.operands[0].type,
        bias=next((Read(value=value, axes=axes) for value, axes in biases), None),
        weights=written.get(MOE_WEIGHTS),
        indices=written.get(MOE_INDICES),
        attrs=anchor.attrs,
        spans=spans_of([anchor]),
    )


_MAKER = Maker(make=_fuse, operand=lambda _anchor, index: ("the logits", "the bias")[index])
MAKERS: Mapping[str, Maker] = MappingProxyType(dict.fromkeys((MOE_WEIGHTS, MOE_INDICES), _MAKER))
"""How kernels that choose experts are made."""
