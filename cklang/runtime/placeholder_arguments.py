# SPDX-License-Identifier: MIT
"""Arguments for a call made from names alone: extents, dtypes, constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.codec import dtype_of, unknown
from cklang.dims import require_integer
from cklang.errors import error
from cklang.types import ConstType, Dim, DType, TensorType, TensorVarType, extent_value, plain_dims

if TYPE_CHECKING:
    from cklang.frontend.program import Signature


def packed_arguments(signature: Signature, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return packed arrays without contents for the tensors of a call, and its constants.

    Args:
        signature: Of the op.
        named: The extent of each dim, the dtype of each dtype variable (or its name), and the
            value of each constant that has no default; None for an optional tensor that is left
            out.
    """
    defaults = {const.name: const.default for const in signature.consts if const.has_default}
    rest = dict(named)
    named = defaults | rest
    arguments: dict[str, Any] = {}
    for parameter in signature.parameters:
        type_ = parameter.type
        is_absent = parameter.optional and named.get(parameter.name, ...) is None
        if is_absent or isinstance(type_, ConstType):
            if parameter.name in named:
                arguments[parameter.name] = rest.pop(parameter.name, named[parameter.name])
            continue
        if isinstance(type_, TensorType | TensorVarType):
            shape = tuple(_extent(named, extent, rest) for extent in type_.shape)
            arguments[parameter.name] = np.empty(shape, _dtype(named, type_, rest).numpy)
    for name in rest:
        raise unknown("name", name, _known(signature))
    return arguments


def _extent(named: Mapping[str, Any], extent: Dim | int, rest: dict[str, Any]) -> int:
    if isinstance(extent, int):
        return extent
    if type(extent) is not Dim:
        dims = {dim.name: _extent(named, dim, rest) for dim in plain_dims(extent)}
        return extent_value(extent, dims)
    rest.pop(extent.name, None)
    return require_integer(extent.name, _required(named, extent.name, "extent"), 0)


def _dtype(
    named: Mapping[str, Any], type_: TensorType | TensorVarType, rest: dict[str, Any]
) -> DType:
    if isinstance(type_, TensorType):
        return type_.dtype
    rest.pop(type_.var.name, None)
    return dtype_of(_required(named, type_.var.name, "dtype"))


def _required(named: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in named:
        raise error("K019", what=what, name=name)
    return named[name]


def _known(signature: Signature) -> list[str]:
    names = set(signature.variables)
    for parameter in signature.parameters:
        if isinstance(parameter.type, TensorType | TensorVarType):
            names |= {e.name for e in parameter.type.shape if type(e) is Dim}
        if parameter.optional or parameter.is_const:
            names.add(parameter.name)
    return sorted(names)
