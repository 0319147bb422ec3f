# SPDX-License-Identifier: MIT
"""A check of every plan: its kernels compute the whole program, each operation where it should be.

A kernel must compute what lies between the values that it reads and those that it writes: all
operations of the program on the way. What it does compute, it tells by itself: the operations of
its functions carry the names of the program's values that they stand for
(:attr:`cklang.ir.nodes.Operation.origins`), and ``anchors`` are what it computes without a
function. Both must be the same, but for what memory does:

- Transposes and broadcasts are index maps; constants, extents and indices along an axis are made
  where they are needed.
- A store rounds floats, and a load widens them.
- Views and joins are places in the memory of something that is stored, and so are numbers for parts
  of rows, if the kernel that computes the rows tells that it stores those.

So a step that a partition promises to a kernel that does not take it is an internal error, and no
wrong result. An operation may be computed by several kernels, each for its own results.
"""

from collections.abc import Mapping, Sequence

from cklang.errors import CkError, error
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.nodes import Function, Operation
from cklang.ir.ops import OPS, Kind
from cklang.types import Kind as NumberKind
from cklang.types import f32

_MADE_ANYWHERE = (Kind.CONSTANT, Kind.EXTENT, Kind.INDEX)
"""What needs neither memory nor work."""
_FREE = (Kind.SHAPE, *_MADE_ANYWHERE)
"""What no function of a kernel need have."""
_PLACES = (Kind.VIEW, Kind.JOIN, Kind.SHAPE)
"""What is in memory if its operands are."""


def expect_complete(plan: Plan) -> Plan:
    """Return a plan whose kernels compute its function."""
    _Check(plan.function, plan.kernels).run()
    return plan


class _Check:
    """Compares the kernels of a plan with its function."""

    def __init__(self, function: Function, kernels: Sequence[AnyKernel]) -> None:
        self.function = function
        self.kernels = kernels
        self.definitions: Mapping[str, Operation] = function.definitions()
        self.params = {value.name for value in function.params}
        self.writers: dict[str, AnyKernel] = {}

    def run(self) -> None:
        """Raise what is wrong with the plan."""
        for kernel in self.kernels:
            for value in kernel.inputs:
                self._expect_stored(value.name, kernel)
            self._expect_computed(kernel)
            for value in kernel.results:
                if value.name in self.writers:
                    raise self._error(f"two kernels write {value}")
                self.writers[value.name] = kernel
            partials = (name for name in kernel.anchors if self._kind(name) is Kind.PARTIAL)
            self.writers |= dict.fromkeys(partials, kernel)
        for value in self.function.results:
            self._expect_stored(value.name, None)

    def _expect_stored(self, name: str, reader: AnyKernel | None) -> None:
        """Expect a value in memory: a parameter, what a kernel wrote, or a view of such a one."""
        pending = [name]
        while pending:
            needed = pending.pop()
            if needed in self.params or needed in self.writers:
                continue
            operation, kind = self.definitions.get(needed), self._kind(needed)
            if operation is None or kind not in (*_PLACES, *_MADE_ANYWHERE):
                who = "the program returns" if reader is None else f"kernel {reader.name} reads"
                raise self._error(f"{who} %{name}, but no kernel before has written %{needed}")
            pending += (value.name for value in operation.operands if kind in _PLACES)

    def _expect_computed(self, kernel: AnyKernel) -> None:
        """Expect a kernel to compute all that is between its inputs and its results, no more."""
        computed = set(kernel.anchors)
        for function in kernel.functions.values():
            for operation in function.body:
                computed.update(operation.origins)
        needed = self._needed(kernel, computed)
        for name, is_work in sorted(needed.items()):
            if is_work and name not in computed:
                op = self.definitions[name].op
                what = f"kernel {kernel.name} should compute %{name}, a {op}, and does not"
                raise self._error(what)
        for name in sorted(computed & self.definitions.keys() - needed.keys()):
            if self._kind(name) is Kind.PARTIAL:
                continue  # not on the way to what it writes, but in its place
            raise self._error(f"kernel {kernel.name} computes %{name} for no result")

    def _needed(self, kernel: AnyKernel, computed: set[str]) -> dict[str, bool]:
        """Return the values between a kernel's inputs and its results, by name.

        They are true if functions or anchors must have them, false if loads and stores may.
        """
        inputs = {value.name for value in kernel.inputs}
        # What it reads with its axes exchanged it may compute again as well.
        ends = inputs - computed
        needed: dict[str, bool] = {}
        # The second item tells whether memory rounds the value.
        results = (value.name for value in kernel.results)
        pending = [(name, True) for name in results if name in self.definitions]
        visited = set(pending)
        while pending:
            name, is_rounded = pending.pop()
            operation = self.definitions.get(name)
            if operation is None:
                raise self._error(f"kernel {kernel.name} needs %{name}, which it does not read")
            kind = OPS[operation.op].kind
            is_free = kind in _FREE or self._is_conversion(operation, inputs, is_rounded)
            needed[name] = needed.get(name, False) or not is_free
            if kind in _MADE_ANYWHERE:
                continue
            # An operand that an anchor's kernel computes is rounded as a store would do it.
            below = is_rounded if kind is Kind.SHAPE else kind is Kind.ANCHOR
            operands = [(value.name, below) for value in operation.operands]
            operands = [
                operand for operand in operands if operand[0] not in ends and operand not in visited
            ]
            visited.update(operands)
            pending += operands
        return needed

    def _is_conversion(self, cast: Operation, inputs: set[str], is_rounded: bool) -> bool:
        """Tell whether a value is one that a store rounds, or a load widens."""
        dtype = cast.result.type.dtype
        if OPS[cast.op].kind is not Kind.CAST or dtype.kind is not NumberKind.FLOAT:
            return False
        source = cast.operands[0]
        is_widened = dtype == f32 and source.type.dtype.kind is NumberKind.FLOAT
        return is_rounded or (is_widened and self._stored_of(source.name) in inputs)

    def _stored_of(self, name: str) -> str:
        """Return the name of what a value is a transpose or a repetition of."""
        while name in self.definitions and OPS[self.definitions[name].op].kind is Kind.SHAPE:
            (below,) = self.definitions[name].operands
            name = below.name
        return name

    def _kind(self, name: str) -> Kind | None:
        """Return the kind of the op that defines a value; None for a parameter."""
        operation = self.definitions.get(name)
        return None if operation is None else OPS[operation.op].kind

    def _error(self, what: str) -> CkError:
        return error("Z004", name=self.function.name, what=what, text=str(self.function))
