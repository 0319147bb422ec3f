# SPDX-License-Identifier: MIT
"""A program: the Python function below ``@ck.op``, and the IR of each of its specialisations."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cklang import knobs
from cklang.errors import CkError, error
from cklang.frontend import emit
from cklang.frontend.captured import Capture, expect_unchanged
from cklang.frontend.derived import Derived, LearnedError
from cklang.frontend.environment import Environment, substituted
from cklang.frontend.expressions import evaluate
from cklang.frontend.helper import Definition, brief, derives
from cklang.frontend.names import nearest
from cklang.frontend.returns import results_of
from cklang.frontend.scope import Scope, Unit
from cklang.frontend.signature import Parameter, check_types, concrete, constant_extents
from cklang.frontend.statements import inline, run
from cklang.frontend.values import Item, OpProgram, Tensor
from cklang.ir.nodes import Function
from cklang.ir.round_trip import expect_round_trip
from cklang.ir.scatter import in_place_results
from cklang.source import Span
from cklang.types import ConstType, Dim, DType, DTypeVar, Extent, TensorType, TensorVarType

ResultType = TensorType | TensorVarType


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The face of a program: parameters in order, the result, the dtype variables by name."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[ResultType, ...]
    variables: Mapping[str, DTypeVar]
    python: inspect.Signature

    @property
    def result(self) -> ResultType:
        """The result, of a program that has one."""
        return self.results[0]

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        """The parameters that are tensors or run-time scalars: those of the IR, in order."""
        return tuple(parameter for parameter in self.parameters if not parameter.is_const)

    @property
    def dims_of_parameters(self) -> frozenset[Dim]:
        """The dims that arguments decide."""
        types = [
            parameter.type
            for parameter in self.parameters
            if not isinstance(parameter.type, ConstType)
        ]
        shapes = [type_.shape for type_ in types if type_ is not None]
        return frozenset(e for shape in shapes for e in shape if isinstance(e, Dim))

    @property
    def dims(self) -> frozenset[Dim]:
        """All dims that annotations name."""
        shapes = (result.shape for result in self.results)
        own = {extent for shape in shapes for extent in shape if isinstance(extent, Dim)}
        return self.dims_of_parameters | own

    @property
    def consts(self) -> tuple[Parameter, ...]:
        """The ``ck.const`` parameters, in order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_const)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(OpProgram):
    """A checked Python function that becomes IR once its dtypes and constants are known."""

    definition: Definition
    signature: Signature
    _memo: dict[object, Function] = field(default_factory=dict, compare=False, repr=False)
    _pins: dict[object, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    """For dtypes and constants: the dims whose numbers the IR depends on, as in ``groups=C``."""

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Program:
        """Read ``function``: everything is checked that needs no dtypes and constants."""
        try:
            definition = Definition.read(function, op=True)
            results = definition.results
            if results is None:
                raise error("F025", at=definition.text.header(), name=definition.name)
            variables = check_types(
                definition.parameters, results, definition.text, derives=derives(definition)
            )
        except CkError as mistake:
            raise brief(mistake) from None
        signature = Signature(
            name=definition.name,
            parameters=definition.parameters,
            results=results,
            variables=variables,
            python=definition.python,
        )
        return cls(definition=definition, signature=signature)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the definition; IR is made again where it is needed."""
        return _of_definition, (self.definition, self.signature)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.definition.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in order."""
        return self.signature.parameters

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The names from outside that it reads, with their values at decoration."""
        return self.definition.captures

    @property
    def has_convolutions(self) -> bool:
        """Whether it, or a helper that it names, calls a convolution."""
        return derives(self.definition)

    @property
    def place(self) -> Span:
        """Where the function is defined."""
        return self.definition.text.header()

    def described(self) -> str:
        """Return how messages call it."""
        return f"the op {self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function, as plain Python does that names an unpickled op."""
        return self.function(*args, **kwargs)

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function; NumPy arrays can be passed to it."""
        return self.definition.function

    def specialise(
        self,
        dtypes: Mapping[str, DType] | None = None,
        consts: Mapping[str, object] | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> Function:
        """Return the IR for these dtypes and constants; the same object for the same ones.

        A program that takes numbers from dims, as ``groups=C`` does, has one for each number.

        Args:
            dtypes: The dtype of each dtype variable, by name.
            consts: Values of ``ck.const`` parameters, by name; the others take their defaults. None
                for each optional tensor that the call leaves out.
            dims: Extents of a call, by name.
        """
        try:
            return self._specialise(dtypes or {}, consts or {}, dims or {})
        except CkError as mistake:
            raise brief(mistake) from None

    def _specialise(
        self, dtypes: Mapping[str, DType], consts: Mapping[str, object], dims: Mapping[str, int]
    ) -> Function:
        expect_unchanged(self.captures, self.name)
        values = self._consts(consts)
        absent = [tensor.name for tensor in self.signature.tensors if tensor.name in values]
        chosen = self._dtypes(dtypes, absent)
        about = (
            tuple(sorted((name, dtype.name) for name, dtype in chosen.items())),
            # 1, 1.0 and True are equal in Python, and different programs.
            tuple(sorted((name, repr(value)) for name, value in values.items())),
        )
        numbers = {
            dim.name: dims[dim.name]
            for dim in self.signature.dims_of_parameters
            if dim.name in dims
        }
        known = self._memo.get(self._key(about, numbers))
        if known is None:
            known, pinned = self._build(chosen, values, numbers)
            if knobs.VERIFY.get():
                expect_round_trip(known)
            self._pins[about] = self._pins.get(about, frozenset()) | pinned
            self._memo[self._key(about, numbers)] = known
        return known

    def _key(self, about: object, numbers: Mapping[str, int]) -> object:
        pins = sorted(self._pins.get(about, ()))
        # A number that torch keeps symbolic becomes one where the program depends on it.
        known = [(name, operator.index(numbers[name])) for name in pins if name in numbers]
        return (about, tuple(known))

    def _dtypes(self, dtypes: Mapping[str, DType], absent: Collection[str]) -> dict[str, DType]:
        variables = self.signature.variables
        for name in dtypes:
            if name not in variables:
                known = ", ".join(variables) or "none"
                raise error(
                    "F080", program=self.name, what="dtype variable", name=name, known=known
                )
        needed = {
            tensor.type.var.name
            for tensor in self.signature.tensors
            if isinstance(tensor.type, TensorVarType) and tensor.name not in absent
        }
        for name, variable in variables.items():
            if name not in dtypes and name not in needed:
                continue
            if name not in dtypes:
                at = self.definition.text.header()
                raise error("F081", at=at, program=self.name, what="dtype variable", name=name)
            if dtypes[name] not in variable.choices:
                legal = ", ".join(str(choice) for choice in variable.choices)
                raise error("F082", program=self.name, name=name, got=dtypes[name], legal=legal)
        return dict(dtypes)

    def _consts(self, consts: Mapping[str, object]) -> dict[str, object]:
        parameters = {parameter.name: parameter for parameter in self.signature.consts}
        optional = {tensor.name for tensor in self.signature.tensors if tensor.optional}
        values: dict[str, object] = {}
        for name in consts:
            if name in optional and consts[name] is None:
                values[name] = None
                continue
            if name not in parameters:
                known = nearest(name, parameters) if parameters else "it has no constants"
                raise error("F080", program=self.name, what="constant", name=name, known=known)
        for name, parameter in parameters.items():
            if name not in consts and not parameter.has_default:
                raise error(
                    "F081", at=parameter.span, program=self.name, what="constant", name=name
                )
            value = consts.get(name, parameter.default)
            values[name] = parameter.const_value(value, at=parameter.span)
        return values

    def _build(
        self, dtypes: Mapping[str, DType], consts: Mapping[str, object], numbers: Mapping[str, int]
    ) -> tuple[Function, frozenset[str]]:
        """Return the IR, and the dims whose numbers it depends on."""
        learned: dict[Dim, Dim | int] = {}
        try:
            while True:
                derived = Derived(learned, [dim.name for dim in self.signature.dims], numbers)
                try:
                    function = self._function(dtypes, consts, derived)
                    return function, frozenset(derived.pinned)
                except LearnedError as news:
                    # A derived dim is learned once, and there are finitely many.
                    learned[news.dim] = news.extent
        except RecursionError:
            at = self.definition.text.header()
            raise error("F033", at=at, name=self.name) from None

    def _function(
        self, dtypes: Mapping[str, DType], consts: Mapping[str, object], derived: Derived
    ) -> Function:
        unit = Unit(self.name, self.definition.text.header(), derived)
        local: dict[str, Item] = dict(consts)
        definition = _with_numbers(self.definition, consts)
        tensors = [parameter for parameter in definition.parameters if not parameter.is_const]
        for parameter in tensors:
            if parameter.name in local:  # an optional tensor that is left out
                continue
            local[parameter.name] = tensor = _tensor(unit, parameter, dtypes)
            if parameter.in_place:
                unit.in_place.add(tensor.value)
        scope = Scope(
            definition=definition,
            unit=unit,
            locals=local,
            environment=Environment(dtypes=dtypes),
            inline=inline,
            evaluate=evaluate,
        )
        end = run(scope)
        results = results_of(scope, end.node, end.item)
        function = unit.finish(*(emit.materialise(scope, end.node, result) for result in results))
        for parameter in tensors:
            if parameter.in_place:
                _expect_update(function, parameter)
        return function


def _with_numbers(definition: Definition, consts: Mapping[str, object]) -> Definition:
    """Return a program's definition with the values of constants as extents of its annotations."""
    numbers: dict[Dim, Extent] = {}
    for parameter in constant_extents(definition.parameters, definition.results or ()):
        value = consts[parameter.name]
        if not isinstance(value, int) or value < 0:
            raise error("F101", at=parameter.span, name=parameter.name, got=value)
        numbers[Dim(parameter.name)] = value
    if not numbers:
        return definition
    parameters = [
        replace(parameter, type=_numbered(parameter.type, numbers))
        if isinstance(parameter.type, TensorType | TensorVarType)
        else parameter
        for parameter in definition.parameters
    ]
    results = [_numbered(result, numbers) for result in definition.results or ()]
    return replace(definition, parameters=tuple(parameters), results=tuple(results))


def _numbered(type_: ResultType, numbers: Mapping[Dim, Extent]) -> ResultType:
    return replace(type_, shape=tuple(substituted(extent, numbers) for extent in type_.shape))


def _of_definition(definition: Definition, signature: Signature) -> Program:
    return Program(definition=definition, signature=signature)


def _expect_update(function: Function, parameter: Parameter) -> None:
    """Refuse a parameter that is marked with ``ck.inout`` and not updated in place."""
    try:
        places = in_place_results(function)
    except CkError:
        places = {}
    if parameter.name not in places.values():
        raise error("F100", at=parameter.span, name=parameter.name, type=parameter.type)


def _tensor(unit: Unit, parameter: Parameter, dtypes: Mapping[str, DType]) -> Tensor:
    if not isinstance(parameter.type, TensorType | TensorVarType):
        raise error("Z002", what=f"{parameter.name} is not a tensor parameter")
    type_ = concrete(parameter.type, dtypes)
    value = unit.builder.param(parameter.name, type_)
    origins = [f"axis {axis} of {parameter.name} ({type_})" for axis in range(type_.rank)]
    return Tensor.plain(value, origins)
