# SPDX-License-Identifier: MIT
"""The gradient of a program as a program: its parameters, its results, its functions."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cklang import knobs
from cklang.autodiff.attention import facts_of
from cklang.autodiff.step import Context
from cklang.autodiff.transform import backward, expect_differentiable_rules
from cklang.errors import error
from cklang.frontend.captured import Capture
from cklang.frontend.program import Signature
from cklang.frontend.signature import Annotation, Parameter
from cklang.ir.nodes import Function
from cklang.ir.round_trip import expect_round_trip
from cklang.runtime.any_program import AnyProgram
from cklang.types import ConstType, DType, Kind, TensorType, TensorVarType, bf16, f16, f32

_DTYPES = (f16, bf16, f32)
"""The dtypes of parameters that have gradients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientProgram:
    """The program that gives the gradients of another one by some of its parameters.

    Its parameters are those of ``primal`` and, unless ``is_scalar``, the gradient by each result
    of floats.
    """

    primal: AnyProgram
    wrt: tuple[str, ...]
    is_scalar: bool
    """Whether the gradient by the one result is 1."""
    by_kernels: bool = True
    """Whether gradients of attention are ops of kernels, which have no gradients themselves."""
    _memo: dict[object, tuple[Function, Function, tuple[str, ...]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Forward and backward functions by the identity of the first, which lives as long, and by the
    extents that the second depends on; with the notes on the second."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the program; functions are made again where they are needed."""
        return _remade, (self.primal, self.wrt, self.is_scalar, self.by_kernels)

    @property
    def name(self) -> str:
        """The name that messages call it by."""
        return f"{self.primal.name}_{'grad' if self.is_scalar else 'vjp'}"

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The names that the program reads from outside."""
        return self.primal.captures

    @property
    def has_convolutions(self) -> bool:
        """Whether the program has a convolution."""
        return self.primal.has_convolutions

    @property
    def cotangents(self) -> tuple[str, ...]:
        """The name of the gradient by each result: ``dy``, or ``dy0``, ``dy1``...; "" for none."""
        results = self.primal.signature.results
        taken = {parameter.name for parameter in self.primal.parameters}
        stem = "dy"
        while any(name.startswith(stem) for name in taken):
            stem += "_"
        names = [stem] if len(results) == 1 else [f"{stem}{at}" for at in range(len(results))]
        pairs = zip(names, results, strict=True)
        return tuple(name if _may_differ(type_) else "" for name, type_ in pairs)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the program, then the gradients by its results."""
        own = self.primal.parameters
        if self.is_scalar:
            return own
        results = zip(self.cotangents, self.primal.signature.results, strict=True)
        span = own[0].span
        more = (Parameter(name=name, type=type_, span=span) for name, type_ in results if name)
        return (*own, *more)

    @property
    def signature(self) -> Signature:
        """Its parameters, and a result like each parameter of ``wrt``."""
        primal = self.primal.signature
        types = {parameter.name: parameter.type for parameter in self.primal.parameters}
        results = (types[name] for name in self.wrt)
        return Signature(
            name=self.name,
            parameters=self.parameters,
            results=tuple(t for t in results if isinstance(t, TensorType | TensorVarType)),
            variables=primal.variables,
            python=inspect.Signature(),
        )

    def specialise(
        self,
        dtypes: Mapping[str, DType] | None = None,
        consts: Mapping[str, object] | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> Function:
        """Return the backward function of the program's function for these arguments.

        Raises:
            CkUnsupportedError: G020, G025, an op or an attention has no gradient rule; G026, a
                gradient is differentiated whose rule is not differentiable.
            CkValueError: G023, the call leaves out a parameter of ``wrt``.
            CkError: What the program raises.
        """
        forward = self.primal.specialise(dtypes, consts, dims)
        key = id(forward), facts_of(forward, dims or {})
        known = self._memo.get(key)
        if known is None:
            self._expect_parameters(forward)
            if isinstance(self.primal, GradientProgram):
                expect_differentiable_rules(self.primal.forward_of(forward), self.primal.wrt)
            names = None if self.is_scalar else self.cotangents
            context = Context(numbers=dims or {}, by_kernels=self.by_kernels)
            function = backward(forward, self.wrt, names, name=self.name, context=context)
            if knobs.VERIFY.get():
                expect_round_trip(function)
            known = self._memo[key] = forward, function, tuple(context.notes)
        return known[1]

    def forward_of(self, function: Function) -> Function:
        """Return the function of the program itself whose gradient ``function`` is.

        Raises:
            StopIteration: It is no function of this program.
        """
        return next(first for first, second, _ in self._memo.values() if second is function)

    def notes(self, function: Function) -> tuple[str, ...]:
        """Return what was decided about a function of this program, as sentences."""
        all_notes = (notes for _, second, notes in self._memo.values() if second is function)
        return next(all_notes, ())

    def _expect_parameters(self, forward: Function) -> None:
        there = {param.name for param in forward.params}
        for name in self.wrt:
            if name not in there:
                others = tuple(other for other in self.wrt if other in there)
                raise error("G023", at=forward.span, name=self.primal.name, got=name, others=others)


def _remade(
    primal: AnyProgram, wrt: tuple[str, ...], is_scalar: bool, by_kernels: bool
) -> GradientProgram:
    return GradientProgram(primal=primal, wrt=wrt, is_scalar=is_scalar, by_kernels=by_kernels)


def differentiable(program: AnyProgram) -> dict[str, Annotation]:
    """Return the parameters that may have a gradient, with their types."""
    return {
        parameter.name: parameter.type
        for parameter in program.parameters
        if parameter.type is not None and _has_gradient(parameter.type)
    }


def default_parameters(program: AnyProgram) -> tuple[str, ...]:
    """Return the parameters by which a program is differentiated unless it is said: all tensors.

    Raises:
        CkValueError: G024, it has none, or no result of floats.
    """
    types = differentiable(program)
    names = tuple(name for name, type_ in types.items() if getattr(type_, "shape", ()))
    if not names:
        why = "no tensor among its parameters is of such floats"
        raise error("G024", at=_span(program), name=program.name, why=why)
    return names


def expect_floats(program: AnyProgram) -> None:
    """Check that a program has a result that moves.

    Raises:
        CkValueError: G024, all are integers or conditions.
    """
    if not any(map(_may_differ, program.signature.results)):
        why = "its results are integers or conditions"
        raise error("G024", at=_span(program), name=program.name, why=why)


def expect_one_element(program: AnyProgram) -> None:
    """Check that a program has one result, of one element.

    Raises:
        CkValueError: G022, it has not.
    """
    results = program.signature.results
    if len(results) != 1 or any(extent != 1 for extent in results[0].shape):
        got = ", ".join(f"{_dtype_text(result)}{_brackets(result.shape)}" for result in results)
        raise error("G022", at=_span(program), name=program.name, got=got)


def _has_gradient(type_: Annotation) -> bool:
    if isinstance(type_, ConstType):
        return False
    choices = type_.var.choices if isinstance(type_, TensorVarType) else (type_.dtype,)
    return set(choices) <= set(_DTYPES)


def _may_differ(type_: TensorType | TensorVarType) -> bool:
    """Tell whether a result may be of floats."""
    choices = type_.var.choices if isinstance(type_, TensorVarType) else (type_.dtype,)
    return any(dtype.kind is Kind.FLOAT for dtype in choices)


def _dtype_text(type_: TensorType | TensorVarType) -> str:
    return str(type_.var if isinstance(type_, TensorVarType) else type_.dtype)


def _brackets(shape: Sequence[object]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _span(program: AnyProgram) -> Any:
    parameters = program.parameters
    return parameters[0].span if parameters else None
