# SPDX-License-Identifier: MIT
"""The arguments of an op that another op calls: they decide its dims and its dtype variables."""

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from cklang.errors import CkError
from cklang.frontend import emit
from cklang.frontend.environment import Environment
from cklang.frontend.helper import Definition
from cklang.frontend.scope import Scope
from cklang.frontend.signature import Parameter
from cklang.frontend.values import Item, Number, Tensor, describe
from cklang.types import ConstType, Dim, DType, Extent, Kind, TensorType, TensorVarType


def fitted(
    scope: Scope, node: ast.Call, op: Definition, bound: Mapping[str, Item]
) -> tuple[dict[str, Item], Environment]:
    """Return the arguments of a call of ``op`` as its annotations say, and what its dims are.

    Floats are converted to the annotated float, as at a return.
    """
    call = _Call(scope, node, op)
    # Constants first: they may be extents of tensors.
    parameters = sorted(op.parameters, key=lambda parameter: not parameter.is_const)
    items = {
        parameter.name: call.argument(parameter, bound[parameter.name]) for parameter in parameters
    }
    call.check_computed()
    return items, Environment(dtypes=call.dtypes, dims=call.dims)


@dataclass(slots=True)
class _Call:
    """The call, and what its arguments decided so far."""

    scope: Scope
    node: ast.Call
    op: Definition
    dims: dict[Dim, Extent] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    places: dict[object, str] = field(default_factory=dict)
    """Which argument decided a dim or the dtype variable of a name."""
    computed: list[tuple[str, int, Extent, Dim]] = field(default_factory=list)
    """Extents that follow from dims: the argument, the axis, its extent and the annotated one."""

    def argument(self, parameter: Parameter, item: Item) -> Item:
        annotation = parameter.type
        if item is None and parameter.optional:
            return None
        if isinstance(annotation, ConstType):
            with suppress(CkError):
                value = parameter.const_value(item)
                if parameter.dim is not None and isinstance(value, int):
                    self.dims[parameter.dim] = value
                    self.places[parameter.dim] = "a constant"
                return value
        elif isinstance(annotation, TensorType | TensorVarType):
            if isinstance(item, Dim | Number) and not annotation.shape:
                return self._number(parameter, annotation, item)
            if isinstance(item, Tensor) and len(item.shape) == len(annotation.shape):
                return self._tensor(parameter, annotation, item)
        raise self._refusal(parameter, describe(item), str(annotation), "")

    def _number(
        self, parameter: Parameter, annotation: TensorType | TensorVarType, item: Item
    ) -> Tensor:
        dtype = self._dtype(annotation)
        if dtype is None:
            advice = "no argument before it says which dtype that is"
            raise self._refusal(parameter, describe(item), str(annotation), advice)
        return emit.cast(self.scope, self.node, item, dtype)

    def _tensor(
        self, parameter: Parameter, annotation: TensorType | TensorVarType, item: Tensor
    ) -> Tensor:
        for axis, (got, want) in enumerate(zip(item.shape, annotation.shape, strict=True)):
            self._extent(parameter.name, axis, got, want)
        if isinstance(annotation, TensorType):
            return self._converted(parameter, annotation, item)
        var = annotation.var
        if item.dtype not in var.choices:
            advice = f"{var} is one of {', '.join(map(str, var.choices))}"
            raise self._refusal(parameter, describe(item), str(annotation), advice)
        dtype = self.dtypes.setdefault(var.name, item.dtype)
        place = self.places.setdefault(var.name, parameter.name)
        if item.dtype != dtype:
            advice = f"{var} is {dtype} in the argument {place}: write .to(ck.{dtype})"
            raise self._refusal(parameter, describe(item), str(annotation), advice)
        return item

    def _dtype(self, annotation: TensorType | TensorVarType) -> DType | None:
        if isinstance(annotation, TensorType):
            return annotation.dtype
        return self.dtypes.get(annotation.var.name)

    def _converted(self, parameter: Parameter, annotation: TensorType, item: Tensor) -> Tensor:
        both_float = item.dtype.kind is Kind.FLOAT and annotation.dtype.kind is Kind.FLOAT
        if item.dtype == annotation.dtype or both_float:
            return emit.cast(self.scope, self.node, item, annotation.dtype)
        advice = f"only floats are converted automatically: write .to(ck.{annotation.dtype})"
        raise self._refusal(parameter, describe(item), str(annotation), advice)

    def _extent(self, name: str, axis: int, got: Extent, want: Extent) -> None:
        if isinstance(want, int):
            self._expect(name, axis, got, want, f"its annotation says {want}")
        elif type(want) is Dim:
            extent = self.dims.setdefault(want, got)
            place = self.places.setdefault(want, f"axis {axis} of {name}")
            self._expect(name, axis, got, extent, f"{want} is {extent}, {place}")
        else:
            self.computed.append((name, axis, got, want))

    def check_computed(self) -> None:
        """Check the extents that follow from dims, now that the dims are known."""
        environment = Environment(dtypes=self.dtypes, dims=self.dims)
        for name, axis, got, want in self.computed:
            extent = environment.extent(want)
            if extent is not None:
                self._expect(name, axis, got, extent, f"{want} is {extent} with its dims")

    def _expect(self, name: str, axis: int, got: Extent, want: Extent, reason: str) -> None:
        if not self.scope.unit.derived.same(got, want):
            raise self.scope.error(
                "F087", self.node, name=name, op=self.op.name, axis=axis, got=got, reason=reason
            )

    def _refusal(self, parameter: Parameter, got: str, want: str, advice: str) -> CkError:
        advice = advice or "pass an argument that fits, or change the annotation"
        return self.scope.error(
            "F086",
            self.node,
            name=parameter.name,
            op=self.op.name,
            got=got,
            want=want,
            advice=advice,
        )
