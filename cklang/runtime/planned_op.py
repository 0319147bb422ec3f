# SPDX-License-Identifier: MIT
"""What is known of a call of an op before anything runs: its IR, its kernels, their choice.

:class:`cklang.Op` adds the calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cklang import forks
from cklang.codec import unknown
from cklang.errors import CkError, error
from cklang.families import plan_of
from cklang.frontend.captured import expect_unchanged
from cklang.memo import BoundedMemo
from cklang.runtime.any_program import Annotated, AnyProgram
from cklang.runtime.bind import Binding, assign, bind
from cklang.runtime.results import targets_of
from cklang.selection.context import current, device_named
from cklang.selection.request import Request

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from concurrent.futures import Executor

    import networkx as nx

    from cklang.device import arrays
    from cklang.device.artifact import Artifact
    from cklang.families.grid import Pattern
    from cklang.fusion.functions import Functions
    from cklang.fusion.plan import Plan
    from cklang.ir.nodes import Function
    from cklang.keys import AnyKey
    from cklang.runtime.explain import Explanation
    from cklang.runtime.planner import Choice
    from cklang.runtime.summary import Summary
    from cklang.selection.registry import Registry

_OPTIONS = ("out", "device")
_MOST_PLANS = 256
"""Calls of other extents for which a plan is kept that the cost model chose."""
_OF_ARRAYS = ("A002", "A006", "A020", "A082", "A083", "A084", "A085", "A086", "A089")
"""The errors of arrays that kernels do not read, which say what to pass instead."""
_CHANNELS_LAST = (
    "convolutions take channels last: of an NCHW tensor pass x.permute(0, 2, 3, 1), which copies "
    "nothing if it is channels_last, of an array numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1))"
    '; or write layout="nchw" in the op'
)


class PlannedOp:
    """An op as far as nothing runs.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
    """

    def __init__(self, program: AnyProgram, request: Request | None = None) -> None:
        self.program = program
        self.request = request or Request()
        self._parameters = program.parameters
        self._captures = program.captures
        for parameter in program.parameters:
            if parameter.name in _OPTIONS:
                raise error("A013", at=parameter.span, op=program.name, name=parameter.name)
        fixed = not any(parameter.keyword_only for parameter in program.parameters)
        self._positional = len(program.parameters) if fixed else -1
        self._fusions: dict[int, tuple[Function, Plan]] = {}
        self._shared: BoundedMemo[Hashable, Plan] = BoundedMemo(_MOST_PLANS)
        self._lock = forks.reentrant_lock()

    def __repr__(self) -> str:
        return f"<cklang op {self.program.name}>"

    def _repr_svg_(self) -> str | None:
        """Draw the fusion graph in a notebook; None if arguments decide the program."""
        try:
            return plan_of(self.program.specialise())._repr_svg_()
        except CkError:
            return None

    def ir(self, *args: Any, **kwargs: Any) -> Function:
        """Return the IR for these arguments; ``str()`` of it is its text.

        Example:
            >>> print(linear.ir(x, w))
            func @linear(%x: f16[M, K], %w: f16[N, K]) -> f16[M, N] {
              %0: f16[K, N] = transpose(%w) {perm = [1, 0]}
              %1: f32[M, N] = gemm(%x, %0)
              %2: f32[M, N] = relu(%1)
              %3: f16[M, N] = cast(%2) {to = f16}
              return %3
            }
        """
        binding = self._bind(self._values(args, kwargs))
        return self.program.specialise(binding.dtypes, binding.consts, binding.dims)

    def fusion(self, *args: Any, device: str | None = None, **kwargs: Any) -> Plan:
        """Return the kernels that compute it for these arguments, with a reason for each choice.

        Some choices depend on the GPU: the default one, unless ``device`` names another.

        Example:
            >>> plan = linear.fusion(x, w)
            >>> len(plan.kernels), plan.decisions[-2].reason
            (1, '%2 is computed in the epilogue of %1')
        """
        return self._planned(self._bind(self._values(args, kwargs)), device)

    def graph(self, *args: Any, device: str | None = None, **kwargs: Any) -> nx.MultiDiGraph:
        """Return the graph of the fusion; it is frozen, a copy of it is not.

        Example:
            >>> linear.graph(x, w).number_of_edges()
            6
        """
        return self.fusion(*args, device=device, **kwargs).graph

    def explain(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> Explanation:
        """Say what a call would run and why, without building or running anything.

        The result is text. A notebook shows it below a chart of the predicted times.

        Example:
            >>> print(linear.explain(x, w, device="emu:gfx942"))
            func @linear(%x: f16[M, K], %w: f16[N, K]) -> f16[M, N] {
            ...
              because    ... predicted, the least of ... legal candidates of ...
            ...
        """
        from cklang.runtime.explain import explain

        binding, target = self._offered(args, kwargs, out)
        plan, device = self._planned(binding, device), device_named(device, current())
        return explain(plan, binding, target, device, self.request)

    def summary(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> Summary:
        """Return the kernels of a call in numbers: launches, bytes, predicted time.

        Nothing is built or run.

        Example:
            >>> summary = linear.summary(x, w, device="emu:gfx942")
            >>> print(summary)
            kernel launches bytes predicted
            gemm ...
            all ... on AMD Instinct MI300X; 1.00 times the arguments and results
            >>> summary.launches, summary.bytes == summary.least_bytes
            (1, True)

        Raises:
            CkError: What planning a call raises.
        """
        from cklang.device.device import target_of
        from cklang.runtime.summary import summarise

        binding, outs = self._offered(args, kwargs, out)
        plan, target = self._planned(binding, device), target_of(device_named(device, current()))
        return summarise(plan, binding, outs, target, self.request)

    def inspect(self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any) -> str:
        """Return the C++ of the kernels of a call, each with its functions in place.

        Example:
            >>> print(linear.inspect(x, w))
            // CK Tile GEMM made by cklang. E[m, n] = f(sum over k of A[m, k] * B[k, n]).
            ...
        """
        from cklang.runtime.explain import inspect

        binding, target = self._offered(args, kwargs, out)
        plan, device = self._planned(binding, device), device_named(device, current())
        return inspect(plan, binding, target, device, self.request)

    def build(
        self,
        *args: Any,
        out: Any = None,
        device: str | None = None,
        executor: Executor | None = None,
        **kwargs: Any,
    ) -> tuple[Artifact, ...]:
        """Build the kernels of a call without running them; touches no GPU.

        Args:
            *args: As in a call.
            out: As in a call.
            device: As in a call; only its GPU matters.
            executor: Builds instead of this machine's compilers, as in
                :meth:`cklang.dispatch.Registry.build`.
            **kwargs: As in a call.

        Example:
            >>> (artifact,) = linear.build(x, w, device="emu:gfx942")  # doctest: +SKIP
            >>> print(artifact.resources)  # doctest: +SKIP
            54 VGPRs (0 of them AGPRs), ... SGPRs, 8192 B LDS, 0 spills

        Raises:
            CkError: What the call raises; CkBuildError: B rows, a compiler failed.
        """
        from cklang.runtime.planner import build_choices

        return build_choices(self._choices(args, kwargs, out, device), executor)

    def kernels(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> tuple[tuple[AnyKey, Functions], ...]:
        """Return the key and the functions of each kernel of a call; nothing is built.

        Args:
            *args: As in a call.
            out: As in a call.
            device: As in a call; only its GPU matters.
            **kwargs: As in a call.

        Example:
            >>> ((key, functions),) = linear.kernels(x, w, device="emu:gfx942")
            >>> key.family, list(functions)
            ('gemm', ['epilogue'])
        """
        from cklang.runtime.planner import kernels_of

        return tuple(kernels_of(self._choices(args, kwargs, out, device)))

    def problems(self, *args: Any, out: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Return the problem of each kernel of a call, as :func:`cklang.dispatch.select` takes it.

        Example:
            >>> print(*linear.problems(x, w))
            M=256 N=512 K=64 rcr strides A=64 B=64 E=512
        """
        return tuple(choice.selection.problem for choice in self._choices(args, kwargs, out, None))

    @property
    def registry(self) -> Registry:
        """Where calls look for kernels first: its own registry, else the context's.

        Example:
            >>> linear.using(registry=ck.dispatch.Registry("mine")).registry
            <cklang registry 'mine': 0 kernels>
        """
        mine = self.request.registry
        return current().registry if mine is None else mine

    def declare(
        self,
        *args: Any,
        among: Pattern | str | None = None,
        out: Any = None,
        device: str | None = None,
        registry: Registry | None = None,
        priority: int = 0,
        gradient: bool | str = False,
        **kwargs: Any,
    ) -> int:
        """Declare kernels for calls like this one in a registry, and return how many are new.

        Args:
            *args: As in a call.
            among: Which algorithms, as in :meth:`cklang.dispatch.Registry.declare`.
            out: As in a call.
            device: As in a call; only its GPU matters.
            registry: Where; :attr:`registry` if left out.
            priority: Of these kernels.
            gradient: Whether for :func:`cklang.attention_grad` of it instead; ``"bias"`` for that
                with the gradient of its bias.
            **kwargs: As in a call.

        Example:
            >>> mine = ck.dispatch.Registry("mine")
            >>> linear.declare(x, w, registry=mine, device="emu:gfx942") == len(mine) > 0
            True
        """
        target = self.registry if registry is None else registry
        if isinstance(gradient, str) and gradient != "bias":
            raise unknown("gradient", gradient, ["bias"])
        if gradient:
            from cklang.device.device import target_of
            from cklang.ops.attention_backward import declare_gradients

            gpu = target_of(device_named(device, current())).spec.name
            binding, bias = self._bound(args, kwargs), gradient == "bias"
            return declare_gradients(self, binding, target, gpu, among, priority, bias)
        from cklang.runtime.planner import declare

        choices = self._choices(args, kwargs, out, device)
        return sum(declare(target, choice, among, priority) for choice in choices)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Binding:
        """Return a call's arrays by parameter, with the extents of its dims."""
        return self._bind(self._values(tuple(args), dict(kwargs)))

    def _choices(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, device: str | None
    ) -> Sequence[Choice]:
        from cklang.device.device import target_of
        from cklang.runtime.planner import choices_of, memory_of

        binding, outs = self._offered(args, kwargs, out)
        spec = target_of(device_named(device, current())).spec
        plan = self._planned(binding, device)
        memory = memory_of(plan, binding, outs)
        return choices_of(plan, binding, memory, spec, self.request)

    def _offered(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> tuple[Binding, tuple[arrays.Array, ...] | None]:
        binding = self._bind(self._values(args, kwargs))
        return binding, None if out is None else targets_of(binding, out)

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        if self._captures:
            expect_unchanged(self._captures, self.program.name)
        if kwargs or len(args) != self._positional:
            return assign(self.program.name, self._parameters, args, kwargs)
        return args

    def _bind(self, values: Sequence[Any]) -> Binding:
        program = self.program
        try:
            return bind(self._parameters, program.signature.results, values, program.specialise)
        except CkError as mistake:
            if mistake.code == "A025" and program.has_convolutions:
                mistake.notes = (*mistake.notes, _CHANNELS_LAST)
            self._name_in(mistake)
            raise

    def _name_in(self, mistake: CkError) -> None:
        """Let an error of an argument name the op."""
        if mistake.code in _OF_ARRAYS:
            mistake.notes = (*mistake.notes, f"in a call of the op {self.program.name}")

    def _planned(self, binding: Binding, device: str | None = None) -> Plan:
        """Return the plan of a bound call: that of the rules, or one that is predicted quicker."""
        from cklang.runtime.sharing import options_of, quickest_plan

        function = self.program.specialise(binding.dtypes, binding.consts, binding.dims)
        plan = self._plan_for(function)
        options = options_of(function, plan, binding, self.request)
        if not options:
            return plan
        from cklang.device.device import target_of

        spec = target_of(device_named(device, current())).spec
        key = (id(function), tuple(binding.dims.items()), spec.name, current().serial)
        chosen = self._shared.get(key)
        if chosen is None:
            chosen = quickest_plan(function, plan, options, binding, spec, self.request)
            self._shared.put(key, chosen)
        return chosen

    def _plan_for(self, function: Function) -> Plan:
        """Return the plan for a function of the program, which is computed once."""
        with self._lock:
            known = self._fusions.get(id(function))
            if known is None:
                # The function is kept with its plan, so its id is not given to another one.
                known = self._fusions[id(function)] = (function, self._plan(function))
            return known[1]

    def _plan(self, function: Function) -> Plan:
        plan, program = plan_of(function), self.program
        if not isinstance(program, Annotated):
            return plan
        return replace(plan, notes=(*program.notes(function), *plan.notes))
