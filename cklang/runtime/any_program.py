# SPDX-License-Identifier: MIT
"""What an op is made of: a Python program, a function of the mini-IR, or a gradient of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from cklang.frontend.captured import Capture
    from cklang.frontend.program import Signature
    from cklang.frontend.signature import Parameter
    from cklang.ir.nodes import Function
    from cklang.types import DType


class AnyProgram(Protocol):
    """A program that becomes a function of the mini-IR when dtypes and constants are known."""

    @property
    def name(self) -> str:
        """The name that messages call it by."""

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The names that it reads from outside."""

    @property
    def has_convolutions(self) -> bool:
        """Whether it has a convolution."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters in order."""

    @property
    def signature(self) -> Signature:
        """Its parameters and results."""

    def specialise(
        self,
        dtypes: Mapping[str, DType] | None = None,
        consts: Mapping[str, object] | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> Function:
        """Return the function for dtypes, constants and dims; the same object for the same ones."""


@runtime_checkable
class Annotated(Protocol):
    """A program that was derived from another one, with decisions."""

    def notes(self, function: Function) -> tuple[str, ...]:
        """Return what was decided about a function of the program, as sentences."""
