# SPDX-License-Identifier: MIT
"""A call that torch traces: the same values, handed to the custom op of the op.

dynamo reads :func:`call` and puts the custom op into its graph; :func:`chosen` it runs, at compile
time, with what it knows to be constant: kinds of arguments, never their values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from cklang.errors import CkError, error
from cklang.frontend.signature import Parameter
from cklang.runtime.bind import assign
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.tracing import OPS
from cklang.torch.gradient import differentiated, is_differentiated
from cklang.torch.library import NAMESPACE, custom_op_of, name_of
from cklang.torch.schema import is_number_or_tensor

_ARG, _NAME, _VALUE = "arg", "name", "value"
"""Where a value comes from: a position, a keyword, a default."""

_TENSOR, _NUMBER, _TEXT, _NONE = "a tensor", "a number", "a string", "None"

_CUSTOM_OPS = getattr(torch.ops, NAMESPACE)
_Tensor = torch.Tensor
"""dynamo guards each attribute that :func:`call` reads, at every call: these are one each."""


def call(op: AnyOp, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any, device: Any) -> Any:
    """Return the result of a call as its custom op gives it; arguments as of a call.

    Raises:
        CkTypeError: A010 to A012 and A081, the arguments.
        CkValueError: A048, ``out`` is not as many arrays as there are results.
        CkError: What the custom op raises, with real tensors or fake ones.
    """
    outs = () if out is None else out if isinstance(out, tuple) else (out,)
    name, overload, sources, targets = chosen(
        op.serial,
        tuple([_kind(value) for value in args]),
        tuple([(word, _kind(value)) for word, value in kwargs.items()]),
        len(outs),
    )
    custom = getattr(getattr(_CUSTOM_OPS, name), overload)
    values = []
    for source, where in sources:
        if source == "arg":
            values.append(args[where])
        elif source == "name":
            values.append(kwargs[where])
        else:
            values.append(where)
    if out is None:
        if not is_dynamo_compiling() and is_differentiated(values):
            return differentiated(op, custom, values, device)
        return custom(*values, device=device)
    custom(*values, device=device, **dict(zip(targets, outs, strict=True)))
    return out


def call_group(op: AnyOp, calls: Sequence[Sequence[Any]], device: Any) -> list[Any]:
    """Return the results of calls that would share launches if torch did not trace them."""
    return [call(op, args, {}, None, device) for args in calls]


def _kind(value: Any) -> str:
    if isinstance(value, _Tensor):
        return "a tensor"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return "a number"
    return "a string" if isinstance(value, str) else type(value).__name__


def chosen(
    serial: str, args: tuple[str, ...], kwargs: tuple[tuple[str, str], ...], outs: int
) -> tuple[str, str, tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """Return the custom op for a call, registered, and how its arguments are made of the call's.

    Args:
        serial: Of the op.
        args: What kind each positional argument is.
        kwargs: The keyword arguments, and what kind each is.
        outs: How many arrays the call passes as ``out=``.

    Returns:
        The names of the custom op and of the overload; where each value comes from; the names of
        the arguments for results.
    """
    op = OPS[serial]
    program = op.program
    places = tuple((_ARG, index) for index in range(len(args)))
    names = {name: (_NAME, name) for name, _ in kwargs}
    assigned = assign(program.name, program.parameters, places, names)
    kinds: dict[object, str] = dict(zip(places, args, strict=True))
    kinds |= {(_NAME, name): kind for name, kind in kwargs}
    sources = [kind if kind in kinds else (_VALUE, kind) for kind in assigned]
    tensors = [
        parameter.name
        for parameter, source in zip(program.parameters, sources, strict=True)
        if _is_tensor(program.name, parameter, kinds.get(source, _NONE))
    ]
    results = len(program.signature.results)
    if outs and outs != results:
        raise error("A048", got=outs, want=results)
    custom = custom_op_of(op, tensors=tensors, out=bool(outs))
    targets = [
        argument.name for argument in custom._schema.arguments if argument.alias_info is not None
    ]
    return (*name_of(custom), tuple(sources), tuple(targets))


# What torch.compiler.assume_constant_result sets: dynamo runs it.
vars(chosen)["_dynamo_marked_constant"] = True


def _is_tensor(op: str, parameter: Parameter, kind: str) -> bool:
    """Whether a call passes a tensor where it may pass a number."""
    if parameter.is_const:
        return False
    is_open = is_number_or_tensor(parameter)
    if kind == _NONE and parameter.optional:
        return False
    if kind == _NUMBER and is_open:
        return False
    if kind != _TENSOR:
        raise _refusal(op, parameter.name, kind)
    return is_open


def _refusal(op: str, name: str, kind: str) -> CkError:
    if kind in (_NUMBER, _TEXT, _NONE):
        return error("A001", name=name, got=kind)
    return error("A081", op=op, name=name, got=kind)
