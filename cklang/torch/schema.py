# SPDX-License-Identifier: MIT
"""The schema of an op for torch's dispatcher: what its Python signature says, in torch's words.

One op has an overload for each way to pass what may be a number or a tensor, with and without
``out=``; they are registered as calls need them.
"""

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cklang.errors import error
from cklang.frontend.signature import Parameter
from cklang.types import ConstType, Kind, TensorType, TensorVarType

MOST_PARAMETERS = 63
"""The parameters of an op that the dispatcher can call: a schema has 64 arguments, one of them
``device``. More are an error of torch's as soon as an op is registered."""
_OF_KIND = {Kind.FLOAT: "float", Kind.INT: "SymInt", Kind.BOOL: "bool"}
_OF_CONST = {bool: "bool", int: "int", float: "float", str: "str"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one overload is called."""

    tensors: tuple[str, ...] = ()
    """The parameters of rank 0 that are tensors; the others are numbers."""
    is_out: bool = False
    """Whether the caller passes the arrays for the results."""

    @property
    def overload(self) -> str:
        """The name of the overload, as torch has it: ``default`` of the plain form."""
        parts = [f"{name}_tensor" for name in self.tensors] + ["out"] * self.is_out
        return "_".join(parts) or "default"


def is_number_or_tensor(parameter: Parameter) -> bool:
    """Whether a call may pass a number or a tensor for a parameter."""
    return isinstance(parameter.type, TensorType | TensorVarType) and not parameter.type.shape


def schema_of(name: str, parameters: Sequence[Parameter], results: int, form: Form) -> str:
    """Return the schema of one overload.

    Args:
        name: What torch calls the op, without the namespace.
        parameters: Of the op; parameters that are keywords in Python come by position.
        results: How many results it has.
        form: Which overload.

    Example:
        >>> from cklang.torch.schema import Form, schema_of
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return x @ w.T
        >>> schema_of("linear", linear.program.parameters, 1, Form())
        'linear(Tensor x, Tensor w, *, str? device=None) -> Tensor'
        >>> schema_of("linear", linear.program.parameters, 1, Form(is_out=True))
        'linear.out(Tensor x, Tensor w, *, str? device=None, Tensor(a!) out) -> ()'
    """
    outs = results if form.is_out else 0
    if len(parameters) + outs > MOST_PARAMETERS:
        raise error("A151", op=name, got=len(parameters) + outs, most=MOST_PARAMETERS)
    arguments = [*_positional(parameters, form), "*", "str? device=None"]
    if form.is_out:
        names = ["out"] if results == 1 else [f"out{index}" for index in range(results)]
        letters = string.ascii_lowercase
        arguments += [f"Tensor({letters[i]}!) {name}" for i, name in enumerate(names)]
    types = ["Tensor"] * results
    result = "()" if form.is_out else types[0] if results == 1 else f"({', '.join(types)})"
    overload = "" if form.overload == "default" else f".{form.overload}"
    return f"{name}{overload}({', '.join(arguments)}) -> {result}"


def _positional(parameters: Sequence[Parameter], form: Form) -> Iterator[str]:
    for parameter in parameters:
        mark = "?" if parameter.optional else ""
        yield f"{_type_of(parameter, form)}{mark} {parameter.name}"


def _type_of(parameter: Parameter, form: Form) -> str:
    type_ = parameter.type
    if isinstance(type_, ConstType):
        return _OF_CONST[type_.python]
    if not is_number_or_tensor(parameter) or parameter.name in form.tensors:
        return "Tensor"
    if isinstance(type_, TensorType):
        return _OF_KIND[type_.dtype.kind]
    return "Scalar"
