# SPDX-License-Identifier: MIT
"""Calls of an op, drawn from its signature: extents, dtypes, constants, numbers, strides.

A :class:`Call` says in a few words which arrays it has, and makes them. So a failing one can be
shrunk, printed and made again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cklang.errors import error
from cklang.frontend.signature import Parameter, concrete
from cklang.runtime.op import Op
from cklang.testing.strategies import Layout, Values, extents, laid_out, random_array
from cklang.types import (
    ConstType,
    Dim,
    DType,
    TensorType,
    TensorVarType,
    i32,
    i64,
    plain_dims,
)

NOTHING: Mapping[str, Any] = MappingProxyType({})

_INDICES = (i32, i64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of an op as plain data, from which its arrays are computed.

    Example:
        >>> from cklang.testing import Call
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> call = Call(op=linear, dims={"M": 2, "N": 3, "K": 4})
        >>> {name: array.shape for name, array in call.arguments().items()}
        {'x': (2, 4), 'w': (3, 4)}
    """

    op: Op
    dims: Mapping[str, int]
    """The extent of each dim, by name."""
    dtypes: Mapping[str, DType] = field(default_factory=dict)
    """The dtype of each dtype variable, by name."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Compile-time constants by parameter; others have their defaults."""
    absent: tuple[str, ...] = ()
    """Optional parameters that the call leaves out."""
    values: Values = Values.SMALL
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    """The memory layout of arrays, by parameter; others are row-major."""
    seed: int = 0
    """Chooses the numbers."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the call by parameter.

        Floats are as :attr:`values` says. Arrays of i32 and i64 hold numbers from 0 to the least
        extent of the call less one, so that they are legal indices of any axis; other integers
        and scalars are small.

        Example:
            >>> linear(**call.arguments()).shape
            (2, 3)
        """
        signature = self.op.program.signature
        result = {
            parameter.name: self._argument(place, parameter)
            for place, parameter in enumerate(signature.parameters)
            if parameter.name not in self.absent and not parameter.is_const
        }
        return {**result, **self.constants}

    def source(self) -> str:
        """Return the call as Python: an expression that makes an equal one.

        Example:
            >>> print(call.source())
            Call(op=linear, dims={'M': 2, 'N': 3, 'K': 4})
        """
        parts = [f"op={self.op.program.name}", f"dims={dict(self.dims)}"]
        if self.dtypes:
            dtypes = (f"{name!r}: ck.{dtype.name}" for name, dtype in self.dtypes.items())
            parts.append(f"dtypes={{{', '.join(dtypes)}}}")
        if self.constants:
            parts.append(f"constants={dict(self.constants)!r}")
        if self.absent:
            parts.append(f"absent={self.absent!r}")
        if self.values is not Values.SMALL:
            parts.append(f"values=Values.{self.values.name}")
        if self.layouts:
            layouts = (f"{name!r}: Layout.{layout.name}" for name, layout in self.layouts.items())
            parts.append(f"layouts={{{', '.join(layouts)}}}")
        if self.seed:
            parts.append(f"seed={self.seed}")
        return f"Call({', '.join(parts)})"

    def _argument(self, place: int, parameter: Parameter) -> Any:
        type_ = _tensor(parameter, self.dtypes)
        rng = np.random.default_rng([self.seed, place])
        shape = type_.extents(self.dims)
        if type_.dtype in _INDICES and shape:
            least = min(self.dims.values(), default=1)
            numbers = rng.integers(0, least, shape).astype(type_.dtype.numpy)
        else:
            numbers = random_array(rng, type_.dtype, shape, self.values)
        if not shape:
            return numbers[()].item()
        return laid_out(numbers, self.layouts.get(parameter.name, Layout.ROW))


def calls(
    op: Op,
    *,
    dims: Mapping[str, int | Sequence[int] | st.SearchStrategy[int]] = NOTHING,
    constants: Mapping[str, Sequence[Any]] = NOTHING,
    values: Sequence[Values] = (Values.SMALL, Values.ORDINARY),
    layouts: Sequence[Layout] = (Layout.ROW, Layout.PADDED_ROW),
    largest: int = 130,
) -> st.SearchStrategy[Call]:
    """Return calls of an op; the simplest has extents of 1 and small integers in row-major arrays.

    Args:
        op: The op.
        dims: Extents of dims by name: a number, numbers to choose from, or a strategy. Those that
            are not named are 1 to ``largest``: any, primes, and what lies beside tile sizes.
        constants: What compile-time constants may be, by parameter; others have their defaults.
        values: What numbers arrays hold.
        layouts: How arrays lie in memory. For products each combination of row-major and
            column-major operands is a kernel to compile.
        largest: The largest extent.

    Example:
        >>> from hypothesis import given
        >>> from cklang.testing import calls, check_call
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> @given(calls(linear, dims={"K": [32, 64], "M": 1}))
        ... def test_linear(call):
        ...     check_call(call)

    Raises:
        CkValueError: T007, ``dims`` or ``constants`` names nothing that the op has; T008, a
            constant without a default has no values.
    """
    signature = op.program.signature
    names = _dims_of(signature.parameters)
    variables = signature.variables
    fixed = [parameter for parameter in signature.parameters if parameter.is_const]
    _expect_known(op, "dim", dims, names)
    _expect_known(op, "constant", constants, [constant.name for constant in fixed])
    for constant in fixed:
        if constant.name not in constants and not constant.has_default:
            raise error("T008", name=constant.name, op=op.program.name)
    arrays = [tensor.name for tensor in signature.tensors if _rank(tensor)]
    optional = [tensor.name for tensor in signature.tensors if tensor.optional]
    return st.builds(
        Call,
        op=st.just(op),
        dims=st.fixed_dictionaries({name: _extents(dims.get(name), largest) for name in names}),
        dtypes=st.fixed_dictionaries(
            {name: st.sampled_from(list(variable.choices)) for name, variable in variables.items()}
        ),
        constants=st.fixed_dictionaries(
            {name: st.sampled_from(list(constant)) for name, constant in constants.items()}
        ),
        absent=_some(optional),
        values=st.sampled_from(list(values)),
        layouts=st.fixed_dictionaries(
            {name: st.sampled_from(list(layouts)) for name in arrays}
        ).map(_not_row_major),
        seed=st.integers(0, 2**16),
    )


def _not_row_major(layouts: Mapping[str, Layout]) -> dict[str, Layout]:
    return {name: layout for name, layout in layouts.items() if layout is not Layout.ROW}


def _some(names: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Return which of ``names``; all is the simplest choice."""
    flags = st.tuples(*[st.sampled_from([True, False]) for _ in names])
    return flags.map(lambda chosen: tuple(n for n, c in zip(names, chosen, strict=True) if c))


def _extents(
    allowed: int | Sequence[int] | st.SearchStrategy[int] | None, largest: int
) -> st.SearchStrategy[int]:
    if allowed is None:
        return extents(largest)
    if isinstance(allowed, int):
        return st.just(allowed)
    return st.sampled_from(list(allowed)) if isinstance(allowed, Sequence) else allowed


def _tensor(parameter: Parameter, dtypes: Mapping[str, DType]) -> TensorType:
    if parameter.type is None or isinstance(parameter.type, ConstType):
        raise error("Z002", what=f"{parameter.name} is no tensor")
    return concrete(parameter.type, dtypes)


def _rank(parameter: Parameter) -> int:
    type_ = parameter.type
    return len(type_.shape) if isinstance(type_, TensorType | TensorVarType) else 0


def _dims_of(parameters: Sequence[Parameter]) -> list[str]:
    """Return the names of the dims that a call decides, in the order of the parameters."""
    shapes = [
        parameter.type.shape
        for parameter in parameters
        if isinstance(parameter.type, TensorType | TensorVarType)
    ]
    names = dict.fromkeys(
        dim.name
        for shape in shapes
        for extent in shape
        if isinstance(extent, Dim)
        for dim in sorted(plain_dims(extent), key=str)
    )
    return list(names)


def _expect_known(op: Op, what: str, named: Iterable[str], known: Sequence[str]) -> None:
    for name in named:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise error("T007", what=what, op=op.program.name, name=name, known=listed)
