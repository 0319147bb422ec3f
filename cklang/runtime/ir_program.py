# SPDX-License-Identifier: MIT
"""A function of the mini-IR where a Python program is expected, so that IR text runs as an op."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from cklang.errors import error
from cklang.frontend.captured import Capture
from cklang.frontend.program import Signature
from cklang.frontend.signature import Parameter
from cklang.ir.nodes import Function
from cklang.ir.windows import DIRECTIONS
from cklang.source import Source, Span
from cklang.types import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class IrProgram:
    """A verified function: no dtype variables, no constants, one result or more."""

    ir: Function

    def __post_init__(self) -> None:
        if not self.ir.results:
            raise error("K021", at=self.ir.span, name=self.name)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.ir.name

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The names that it reads from outside: none."""
        return ()

    @property
    def has_convolutions(self) -> bool:
        """Whether it has a convolution."""
        return any(operation.op in DIRECTIONS for operation in self.ir.body)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, as those of a Python program."""
        span = self.ir.span
        if span is None:
            source = Source(name=f"@{self.name}", text=str(self.ir))
            span = Span(source=source, line=1, column=0, end_line=1, end_column=1)
        return tuple(
            Parameter(name=value.name, type=value.type, span=span) for value in self.ir.params
        )

    @property
    def signature(self) -> Signature:
        """Its layout, as that of a Python program."""
        return Signature(
            name=self.name,
            parameters=self.parameters,
            results=tuple(value.type for value in self.ir.results),
            variables={},
            python=inspect.Signature(),
        )

    def specialise(
        self,
        dtypes: Mapping[str, DType] | None = None,
        consts: Mapping[str, object] | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> Function:
        """Return the function: there is nothing to choose."""
        del dtypes, consts, dims
        return self.ir
