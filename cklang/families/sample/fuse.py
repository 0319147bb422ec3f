# SPDX-License-Identifier: MIT
"""Make the kernel of ``sample``."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from cklang.fusion.kernel import Epilogue, KernelMaker, Maker, spans_of
from cklang.fusion.plan import FusedKernel, Read
from cklang.ir.nodes import Attr, Value
from cklang.ir.sampling import OPERANDS, SAMPLE
from cklang.types import TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedSample(FusedKernel):
    """One kernel: a token of each row of logits."""

    anchors: tuple[str, ...]
    reads: tuple[Read, ...]
    """The operands, in their order."""
    type: TensorType
    """The type of the logits, whose axes memory may lack in part."""
    constants: tuple[tuple[str, int], ...]
    """The words of those of them that are constants, by name."""
    result: Value
    has_one_seed: bool
    """Whether all rows have the same seed, to which their number is added."""

    family: ClassVar[str] = "sample"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads, each once; its constants are none of them."""
        constants = dict(self.constants)
        values = (read.value for read in self.reads)
        return tuple(dict.fromkeys(value for value in values if value.name not in constants))

    @property
    def results(self) -> tuple[Value, ...]:
        """The values that it writes."""
        return (self.result,)

    def lines(self) -> Iterator[str]:
        """Yield what it computes as lines of text."""
        yield f"kernel {self.name}: {self.result.type} {self.result}"
        yield f"  a token of each row of {self.reads[0].value}"
        pairs = list(zip(OPERANDS, self.reads, strict=True))[1:]
        yield "  " + ", ".join(f"{name} {read.value}" for name, read in pairs)


def _fuse(maker: KernelMaker, walk: Epilogue) -> FusedSample:
    """Return the kernel of an operation."""
    flow, anchor = maker.flow, walk.anchor
    walk.note_store()
    stored = [maker.stored(walk.colour, place) for place in range(len(anchor.operands))]
    definitions = flow.function.definitions()
    operations = {value.name: definitions.get(value.name) for value, _ in stored}
    return FusedSample(
        name=flow.function.name,
        anchors=(flow.value(walk.colour).name,),
        reads=tuple(Read(value=value, axes=axes) for value, axes in stored),
        type=anchor.operands[0].type,
        constants=tuple(
            (name, _word(operation.attr("value")))
            for name, operation in operations.items()
            if operation is not None and operation.op == "constant"
        ),
        result=flow.value(walk.colour),
        has_one_seed=not anchor.operands[1].type.rank,
        spans=spans_of([anchor]),
    )


def _word(number: Attr) -> int:
    """Return the word in memory of an i32 or f32."""
    if isinstance(number, float):
        return int.from_bytes(struct.pack("<f", number), "little")
    return int(str(number))


_MAKER = Maker(make=_fuse, operand=lambda _anchor, index: tuple(OPERANDS)[index], constants=True)
MAKERS: Mapping[str, Maker] = MappingProxyType({SAMPLE: _MAKER})
"""How kernels that draw tokens are made."""
