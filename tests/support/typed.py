# SPDX-License-Identifier: MIT
"""Values whose type a test knows, where the library declares one of several."""

from collections.abc import Iterable
from typing import TypeVar

from cklang.frontend.signature import Parameter
from cklang.runtime.op import Op
from cklang.runtime.record import CallRecord
from cklang.types import Dim, TensorType, TensorVarType

Value = TypeVar("Value")


def instance(kind: type[Value], value: object) -> Value:
    """Return the value, which is a ``kind``."""
    assert isinstance(value, kind), f"{value!r} is no {kind.__name__}"
    return value


def only(kind: type[Value], values: Iterable[object]) -> Value:
    """Return the one value that there is: ``only(Problem, op.problems(x, w))``."""
    (value,) = values
    return instance(kind, value)


def last(op: Op) -> CallRecord:
    """Return the record of the op's last call."""
    return instance(CallRecord, op.last)


def shape_of(parameter: Parameter) -> tuple[Dim | int, ...]:
    """Return the extents in the annotation of a tensor."""
    assert isinstance(parameter.type, TensorType | TensorVarType), parameter
    return parameter.type.shape
