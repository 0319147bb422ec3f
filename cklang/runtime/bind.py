# SPDX-License-Identifier: MIT
"""Put a call's arguments into an op's parameters: dtypes, ranks, dims, places, and the output.

Every mismatch is found before one is raised: the first is the error, the others are its notes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.device import arrays
from cklang.device.arrays import HOST, Array, Library
from cklang.dims import is_integer
from cklang.errors import CkError, error
from cklang.frontend.signature import constant_extents
from cklang.ir.derive import derive
from cklang.ir.nodes import Function
from cklang.types import (
    DTYPES,
    ConstType,
    Dim,
    DType,
    Kind,
    TensorType,
    TensorVarType,
    extent_value,
    extents_of,
    plain_dims,
)

if TYPE_CHECKING:
    from cklang.frontend.signature import Annotation, Parameter

Specialise = Callable[[Mapping[str, DType], Mapping[str, object], Mapping[str, int]], Function]

_NUMPY_FIX = {"bf16": "ml_dtypes.bfloat16", "bool": "numpy.bool"}
_NUMPY_FIX |= {d.name: f"ml_dtypes.{d.numpy_name}" for d in DTYPES.values() if d.encoding}
_TORCH_FIX = {"f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLayout:
    """What a call gives in one result."""

    shape: tuple[int, ...]
    dtype: DType
    order: tuple[int, ...] = ()
    """The axes of a new array, outermost in memory first; empty for the order of the shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A call whose arguments fit its op."""

    arrays: Mapping[str, Array]
    """The tensor and run-time scalar arguments by parameter name."""
    consts: Mapping[str, object]
    """The values of constants; None for each optional tensor that is left out."""
    dtypes: Mapping[str, DType]
    """What each dtype variable stands for."""
    dims: Mapping[str, int]
    results: tuple[ResultLayout, ...]
    library: Library
    place: str


@dataclass(slots=True)
class _Solver:
    """Facts learned from arguments so far, each with where it came from, and what contradicts."""

    arrays: dict[str, Array] = field(default_factory=dict)
    consts: dict[str, object] = field(default_factory=dict)
    dims: dict[str, tuple[int, str]] = field(default_factory=dict)
    dtypes: dict[str, tuple[DType, str]] = field(default_factory=dict)
    computed: list[tuple[Dim, str, int, Array]] = field(default_factory=list)
    """Extents that follow from dims: with the tensor's name, the axis and the array."""
    problems: list[CkError] = field(default_factory=list)

    def refuse(self, code: str, **facts: Any) -> None:
        """Note a mistake."""
        self.problems.append(error(code, **facts))

    def finish(self) -> None:
        """Check the extents that follow from dims, now that all dims are known."""
        for extent, name, axis, array in self.computed:
            known = {dim: self.dims.get(dim.name) for dim in plain_dims(extent)}
            numbers = {dim.name: pair[0] for dim, pair in known.items() if pair is not None}
            if len(numbers) < len(known):
                continue
            want, got = extent_value(extent, numbers), array.shape[axis]
            origin = " and ".join(
                f"{dim} is {pair[0]} in {pair[1]}"
                for dim, pair in sorted(known.items(), key=str)
                if pair is not None
            )
            self.dims[extent.name] = want, origin
            if got != want:
                where = {"name": name, "axis": axis, "shape": array.shape}
                self.refuse("A046", **where, got=got, extent=extent, want=want, origin=origin)

    def tensor(self, name: str, array: Array, type_: TensorType | TensorVarType) -> None:
        self._dtype(name, array, type_)
        if len(array.shape) != len(type_.shape):
            self.refuse("A021", name=name, got=len(array.shape), shape=array.shape, type=type_)
            return
        for axis, (got, want) in enumerate(zip(array.shape, type_.shape, strict=True)):
            self._extent(name, array, axis, got, want)

    def _dtype(self, name: str, array: Array, type_: TensorType | TensorVarType) -> None:
        got = array.dtype
        if isinstance(type_, TensorType):
            if got != type_.dtype:
                fix = _cast_fix(name, array, type_.dtype)
                self.refuse("A020", name=name, got=got, want=type_.dtype, type=type_, fix=fix)
            return
        var = type_.var
        if got not in var.choices:
            known = ", ".join(map(str, var.choices))
            self.refuse("A022", name=name, got=got, var=var, known=known)
            return
        first, origin = self.dtypes.setdefault(var.name, (got, name))
        if got != first:
            fix = _cast_fix(name, array, first)
            self.refuse("A023", name=name, got=got, var=var, want=first, origin=origin, fix=fix)

    def _extent(self, name: str, array: Array, axis: int, got: int, want: Dim | int) -> None:
        where = {"name": name, "axis": axis, "shape": array.shape}
        if isinstance(want, int):
            if got != want:
                self.refuse("A024", **where, got=got, want=want)
            return
        if type(want) is not Dim:
            self.computed.append((want, name, axis, array))
            return
        origin = f"axis {axis} of {name}"
        first, place = self.dims.setdefault(want.name, (got, origin))
        if got != first:
            self.refuse("A025", **where, got=got, dim=want, want=first, origin=place)


def assign(
    op: str, parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Return the value of each parameter of a call, in order, defaults included."""
    arguments, mistakes = assigned(op, parameters, args, kwargs)
    raise_all(mistakes)
    return [arguments[p.name] for p in parameters]


def assigned(
    op: str, parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[CkError]]:
    """Return the arguments of a call by parameter, defaults included, and what is wrong."""
    mistakes: list[CkError] = []
    positional = [p for p in parameters if not p.keyword_only]
    names = ", ".join(p.name for p in parameters)
    if len(args) > len(positional):
        most = f"{len(positional)} positional argument{'s' if len(positional) != 1 else ''}"
        problem = f"takes {most}, but got {len(args)}"
        mistakes.append(error("A011", op=op, problem=problem, advice="", names=names))
    arguments = {p.name: value for p, value in zip(positional, args, strict=False)}
    known = {p.name for p in parameters}
    for name, value in kwargs.items():
        if name not in known:
            problem, advice = f"has no parameter {name!r}", _meant(name, known)
            mistakes.append(error("A011", op=op, problem=problem, advice=advice, names=names))
        elif name in arguments:
            mistakes.append(error("A012", op=op, name=name))
        else:
            arguments[name] = value
    missing = [p.name for p in parameters if p.name not in arguments and not p.has_default]
    if missing:
        mistakes.append(error("A010", op=op, missing=", ".join(missing), names=names))
    defaults = {p.name: p.default for p in parameters if p.has_default}
    return defaults | arguments, mistakes


def _meant(name: str, known: Collection[str]) -> str:
    """Return the parameter that a misspelled name means, as the beginning of an advice."""
    import difflib

    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}? " if close else ""


def bind(
    parameters: Sequence[Parameter],
    results: Sequence[TensorType | TensorVarType],
    values: Sequence[Any],
    specialise: Specialise | None = None,
) -> Binding:
    """Check the values of a call, one for each of ``parameters``, and solve its dims.

    ``specialise`` gives the function of the mini-IR for dtypes, constants and dims, whose ops may
    decide extents that no argument has; without it the result's are those of arguments.
    """
    arguments = {p.name: value for p, value in zip(parameters, values, strict=True)}
    solver = _solved(parameters, arguments, results)
    raise_all(solver.problems)
    bound, consts = solver.arrays, solver.consts
    dims = {name: value for name, (value, _) in solver.dims.items()}
    dtypes = {name: value for name, (value, _) in solver.dtypes.items()}
    shapes = [result.shape for result in results]
    if specialise is not None:
        function = specialise(dtypes, consts, dims)
        shapes = [result.type.shape for result in function.results]
        named = {Dim(name): value for name, value in dims.items() if name.isidentifier()}
        dims |= {dim.name: value for dim, value in derive(function, named).items()}
    tensors = {
        name: array for name, array in bound.items() if not arrays.is_scalar(arguments[name])
    }
    return Binding(
        arrays=bound,
        consts=consts,
        dtypes=dtypes,
        dims=dims,
        results=tuple(
            ResultLayout(
                shape=extents_of(shape, dims),
                dtype=dtypes[type_.var.name] if isinstance(type_, TensorVarType) else type_.dtype,
            )
            for shape, type_ in zip(shapes, results, strict=True)
        ),
        library=library_of(tensors),
        place=common_place(tensors),
    )


def argument_mistakes(
    parameters: Sequence[Parameter], arguments: Mapping[str, Any]
) -> list[CkError]:
    """Return what is wrong with the arguments of a call; parameters may lack one."""
    solver = _solved(parameters, arguments)
    places = {
        name: array
        for name, array in solver.arrays.items()
        if not arrays.is_scalar(arguments[name])
    }
    try:
        common_place(places)
    except CkError as mistake:
        return [*solver.problems, mistake]
    return solver.problems


def _solved(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Any],
    results: Sequence[TensorType | TensorVarType] = (),
) -> _Solver:
    """Read all arguments, and note each mistake."""
    solver = _Solver()
    for parameter in constant_extents(parameters, results):
        value = arguments.get(parameter.name)
        if is_integer(value):
            solver.dims[parameter.name] = value, f"the constant {parameter.name}"
    for parameter in parameters:
        if parameter.name in arguments:
            try:
                _read(parameter, arguments[parameter.name], solver)
            except CkError as mistake:
                solver.problems.append(mistake)
    solver.finish()
    return solver


def _read(parameter: Parameter, value: Any, solver: _Solver) -> None:
    if isinstance(parameter.type, ConstType):
        solver.consts[parameter.name] = parameter.const_value(value)
    elif value is None and parameter.optional:
        solver.consts[parameter.name] = None
    else:
        type_ = _tensor_type(parameter.type)
        array = _argument(parameter.name, value, type_, solver)
        solver.arrays[parameter.name] = array
        solver.tensor(parameter.name, array, type_)


def check_out(out: Array, binding: Binding, index: int = 0) -> None:
    """Check that ``out`` may take result ``index`` of ``binding``."""
    wanted = binding.results[index]
    if out.dtype != wanted.dtype:
        raise error("A040", got=out.dtype, want=wanted.dtype)
    if out.shape != wanted.shape:
        raise error("A041", got=out.shape, want=wanted.shape)
    if not out.writeable:
        raise error("A042")
    if out.place != binding.place:
        from cklang.device.device_array import place_name

        got, want = place_name(out.place), place_name(binding.place)
        raise error("A044", got=got, want=want)
    still = any(n > 1 and stride == 0 for n, stride in zip(out.shape, out.strides, strict=True))
    if still and 0 not in out.shape:
        raise error("A045", shape=out.shape, strides=out.strides)
    for name, array in binding.arrays.items():
        if _overlap(out, array):
            raise error("A043", name=name)


def _tensor_type(annotation: Annotation | None) -> TensorType | TensorVarType:
    if isinstance(annotation, TensorType | TensorVarType):
        return annotation
    raise error("Z002", what=f"a parameter of an op is annotated {annotation}")


def _argument(name: str, value: Any, type_: TensorType | TensorVarType, solver: _Solver) -> Array:
    if not arrays.is_scalar(value):
        return arrays.read(name, value)
    if type_.shape:
        raise error("A001", name=name, got=type(value).__name__)
    if isinstance(value, np.generic) and isinstance(type_, TensorVarType):
        # It may decide the variable, as an array does.
        exact = arrays.read(name, np.asarray(value))
        if solver.dtypes.get(type_.var.name, (exact.dtype,))[0] == exact.dtype:
            return exact
    number = arrays.plain(value)
    return arrays.scalar(name, number, _scalar_dtype(name, number, type_, solver))


def _scalar_dtype(
    name: str, value: Any, type_: TensorType | TensorVarType, solver: _Solver
) -> DType:
    """Return the dtype a Python number takes: the declared one if its kind fits."""
    if isinstance(type_, TensorVarType):
        known = solver.dtypes.get(type_.var.name)
        if known is None:
            raise error("A027", name=name, var=type_.var)
        dtype = known[0]
    else:
        dtype = type_.dtype
    fits = {Kind.FLOAT: (int, float), Kind.INT: (int,), Kind.BOOL: (bool,)}[dtype.kind]
    if not isinstance(value, fits) or (isinstance(value, bool) and dtype.kind is not Kind.BOOL):
        raise error("A028", name=name, value=value, got=type(value).__name__, dtype=dtype)
    return dtype


def _cast_fix(name: str, array: Array, dtype: DType) -> str:
    if dtype.packed:
        return f"ck.pack({name}.astype(ml_dtypes.{dtype.numpy_name}))"
    if array.library is Library.TORCH:
        return f"{name}.to({_TORCH_FIX.get(dtype.name, 'torch.' + dtype.numpy_name)})"
    return f"{name}.astype({_NUMPY_FIX.get(dtype.name, 'numpy.' + dtype.numpy_name)})"


def library_of(tensors: Mapping[str, Array]) -> Library:
    """Return whose arrays the results of a call are: torch's if one of its arrays is."""
    torch = any(array.library is Library.TORCH for array in tensors.values())
    return Library.TORCH if torch else Library.NUMPY


def common_place(tensors: Mapping[str, Array]) -> str:
    """Return where the arrays are: all on the host or all on one GPU."""
    places = {array.place: name for name, array in tensors.items()}
    if len(places) > 1:
        from cklang.device.device_array import place_name

        where = ", ".join(f"{name} on {place_name(place)}" for place, name in places.items())
        raise error("A026", where=where)
    return next(iter(places), HOST)


def _overlap(out: Array, other: Array) -> bool:
    if out.place != other.place:
        return False
    low, high = _range(out)
    other_low, other_high = _range(other)
    if high <= other_low or other_high <= low:
        return False
    if isinstance(out.owner, np.ndarray) and isinstance(other.owner, np.ndarray):
        # Interleaved views of one buffer may touch no common byte; NumPy can prove it.
        return bool(np.shares_memory(out.owner, other.owner))
    return True


def _range(array: Array) -> tuple[int, int]:
    low, high = array.extent
    return array.pointer + low, array.pointer + high


def raise_all(problems: Sequence[CkError]) -> None:
    """Raise the first of several mistakes, with the others as its notes; none raises nothing."""
    if not problems:
        return
    first, rest = problems[0], problems[1:]
    if not rest:
        raise first
    notes = [f"also: CK-{other.code} {other.message}" for other in rest]
    raise type(first)(first.code, first.message, first.hint, first.at, [*first.notes, *notes])
