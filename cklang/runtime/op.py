# SPDX-License-Identifier: MIT
"""``ck.op``: a Python function that runs as CK Tile kernels.

A call is looked up by what its plan depends on: dtypes, shapes, strides, address alignment and
device. A known one goes straight to the launch; otherwise it is bound, planned and built first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

from cklang import forks, knobs
from cklang.device import arrays
from cklang.device.arrays import HOST
from cklang.device.artifact import Artifact
from cklang.errors import CkError, error
from cklang.families import plan_of
from cklang.frontend.captured import expect_unchanged
from cklang.frontend.program import Program
from cklang.ir.nodes import Function
from cklang.memo import BoundedMemo
from cklang.runtime import call_key
from cklang.runtime.bind import Binding, ResultLayout, assign, bind
from cklang.runtime.call_key import CallKey
from cklang.runtime.check import Report, check_call
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.planner import (
    Choice,
    build_choices,
    choices_of,
    declare,
    host_checks,
    memory_of,
    prepare,
)
from cklang.runtime.ready import Ready, dtypes_of, put_numbers, ready_of
from cklang.runtime.record import CallRecord
from cklang.runtime.requests import request_of
from cklang.runtime.result_orders import with_result_orders
from cklang.runtime.results import one_or_all, planned_results, targets_of
from cklang.selection.context import current, device_named
from cklang.selection.registry import Registry
from cklang.selection.select import Request
from cklang.selection.space import Pattern
from cklang.selection.strategy import RankFunction, Strategy

if TYPE_CHECKING:
    import networkx as nx

    from cklang.device.device import LaunchCounters
    from cklang.families.protocol import HostCheck
    from cklang.fusion.plan import Plan
    from cklang.runtime.call_plan import CallPlan
    from cklang.runtime.summary import Summary

__all__ = ["Op", "op"]

_MEMO_LIMIT = 4096
_OPTIONS = ("out", "device")
_CHANNELS_LAST = (
    "convolutions take channels last: of an NCHW tensor pass x.permute(0, 2, 3, 1), which copies "
    "nothing if it is channels_last, of an array numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1))"
    '; or write layout="nchw" in the op'
)


class _Last(NamedTuple):
    """The raw facts of the last call; :attr:`Op.last` makes a record of them when asked."""

    plan: CallPlan
    before: LaunchCounters | None
    """What :meth:`cklang.runtime.call_plan.CallPlan.run` gave."""
    call: int
    """The device's count of calls after it."""
    memoised: bool


class Op:
    """A program and its kernels; made by :func:`op`, called like the function.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
        >>> linear(x, w).shape
        (256, 512)
    """

    def __init__(self, program: Program | IrProgram, request: Request | None = None) -> None:
        if isinstance(program, Program):
            functools.update_wrapper(self, program.function)
        self.program = program
        self.request = request or Request()
        self._parameters = program.parameters
        self._captures = program.captures
        for parameter in program.parameters:
            if parameter.name in _OPTIONS:
                raise error("A013", at=parameter.span, op=program.name, name=parameter.name)
        fixed = not any(parameter.keyword_only for parameter in program.parameters)
        self._positional = len(program.parameters) if fixed else -1
        self._memo: BoundedMemo[object, Ready] = BoundedMemo(_MEMO_LIMIT)
        self._fusions: dict[int, tuple[Function, Plan]] = {}
        self._lock = forks.reentrant_lock()
        self._last: tuple[CallPlan, LaunchCounters | None, int, bool] | None = None
        """The fields of a :class:`_Last`, which takes longer to make than a tuple."""

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: object) -> Op:
        """Return the op itself: nothing of it that a caller sees ever changes."""
        return self

    def __repr__(self) -> str:
        return f"<cklang op {self.program.name}>"

    def _repr_svg_(self) -> str | None:
        """Draw the fusion graph in a notebook; None if arguments decide the program."""
        try:
            return plan_of(self.program.specialise())._repr_svg_()
        except CkError:
            return None

    def __call__(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> Any:
        """Run it.

        Args:
            *args: Arrays (NumPy, torch, DLPack, array interface), numbers for rank-0 parameters,
                Python values for ``ck.const`` parameters; by position or by name.
            out: An array to write the result into; its last axis must have stride 1. Several
                results go into a tuple of arrays.
            device: ``"emu:gfx942"`` or ``"hip:0"``; default ``CKLANG_DEVICE``, else the first GPU,
                else an emulated one.
            **kwargs: As ``args``.

        Returns:
            The result: ``out`` if given, else a new array of the arguments' library. If K is 0
            every sum is 0, as in NumPy; a result without elements launches nothing.

        Raises:
            CkTypeError, CkValueError: The arguments (A rows), the program (F rows).
                A056: an index array in host memory, before anything is built or launched.
            CkUnsupportedError: K101, K102: no kernel of this installation can compute it.
            CkBuildError: B rows: a compiler failed.
            CkDeviceError: D and E rows.
        """
        values = self._values(args, kwargs)
        device, about = self._about(None, device)
        call = call_key.of_call(self._parameters, values, out, about)
        ready = self._memo.get(call.key)
        memoised = ready is not None
        if ready is None:
            ready = self._prepare(values, out, device)
            self._memo.put(call.key, ready)
        result = self._run(ready, call, values, out, memoised)
        return result if out is not None else one_or_all(result)

    def _about(self, what: Hashable, device: str | None) -> tuple[str | None, tuple[Hashable, ...]]:
        """Return the name of a call's device, and what its plan depends on besides its values.

        Args:
            what: What is asked for; None: the results of a call.
            device: As in a call.
        """
        defaults = current()
        if defaults.arch is not None:
            device = device_named(device, defaults)
        registry = self.request.registry
        registry = defaults.registry if registry is None else registry
        # Kernels of a registry come and go; a plan that is kept does not keep the registry.
        return device, (what, device or knobs.DEVICE.get(), defaults.serial, registry.version)

    def _run(
        self, ready: Ready, call: CallKey, values: Sequence[Any], out: Any, memoised: bool
    ) -> Any:
        """Launch, and return ``out`` or the list of new results."""
        plan, addresses = ready.plan, call.addresses
        if memoised and ready.lists is not None:
            ready.lists.check(addresses)
        page = put_numbers(ready, call) if call.numbers else None
        result = out
        if out is None:
            result = [make() for make in ready.result_makers]
            addresses += map(call_key.address, result)
        elif plan.overlaps(addresses):
            targets_of(self._bind(values), out)
        library, place = ready.libraries[0], ready.place
        stream = None if place == HOST else arrays.current_stream(library, place)
        before = plan.run(addresses, stream)
        if page is not None:
            ready.number_buffers.release(page, stream)
        self._last = plan, before, plan.device.calls[0], memoised
        return result

    def grouped(self, calls: Sequence[Sequence[Any]], *, device: str | None = None) -> list[Any]:
        """Make several calls with different sizes in as few launches as possible.

        Calls whose arrays have the same dtypes and layouts share one launch.

        Args:
            calls: The positional arguments of each call, as tuples.
            device: As in a call.

        Returns:
            The results, in order.

        Example:
            >>> [y.shape for y in linear.grouped([(x, w), (x[:5], w)])]
            [(256, 512), (5, 512)]

        Raises:
            CkUnsupportedError: G001, the op takes several kernels; G002, a call has a batch.
            CkError: What a call raises.
        """
        call_values = [self._values(tuple(values), {}) for values in calls]
        if not call_values:
            return []
        device, about = self._about("group", device)
        group = call_key.joined(
            [call_key.of_call(self._parameters, values, None, ()) for values in call_values], about
        )
        ready = self._memo.get(group.key)
        memoised = ready is not None
        if ready is None:
            ready = self._prepare_group(call_values, device)
            self._memo.put(group.key, ready)
        results: list[Any] = self._run(ready, group, call_values, None, memoised)
        return results

    def _prepare_group(self, calls: Sequence[Sequence[Any]], device_name: str | None) -> Ready:
        from cklang.build.builder import shared_builder
        from cklang.device.device import open_device
        from cklang.ops.grouped import Member, prepare_group

        bindings = [self._bind(values) for values in calls]
        members = [
            Member(
                plan=self._fuse(binding),
                binding=binding,
                out=planned_results(binding.results, binding)[0],
            )
            for binding in bindings
        ]
        place = bindings[0].place
        device = open_device(device_name, place)
        return Ready(
            plan=prepare_group(members, device, shared_builder(), self.request),
            results=tuple(binding.results[0] for binding in bindings),
            libraries=tuple(binding.library for binding in bindings),
            place=place,
            number_dtypes=tuple(dtype for binding in bindings for dtype in dtypes_of(binding)),
        )

    def derived(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        what: Hashable,
        plan: Callable[[Binding, str | None], tuple[CallPlan, tuple[ResultLayout, ...]]],
        more: Mapping[str, Any] | None = None,
        device: str | None,
    ) -> list[Any]:
        """Make what follows from a call, as gradients do; planned once and repeated as a call is.

        Args:
            args: Of a call.
            kwargs: Of a call.
            what: What is made, as the memo tells it from other things: hashable, not None.
            plan: Gives the launches for a bound call and a device's name, and the results. Their
                addresses are those of the arguments, of ``more``, and of the results.
            more: Further arrays that the launches read, by name.
            device: As in a call.

        Returns:
            The results, as new arrays.
        """
        values = self._values(tuple(args), dict(kwargs))
        device, about = self._about(what, device)
        call = call_key.of_call(self._parameters, values, None, about)
        for name, array in (more or {}).items():
            call_key.add(call, name, array)
        ready = self._memo.get(call.key)
        memoised = ready is not None
        if ready is None:
            binding = self._bind(values)
            lists = self._checked_lists(binding)
            launches, layouts = plan(binding, device)
            ready = ready_of(launches, layouts, binding, lists)
            self._memo.put(call.key, ready)
        results: list[Any] = self._run(ready, call, values, None, memoised)
        return results

    def _prepare(self, values: Sequence[Any], out: Any, device_name: str | None) -> Ready:
        from cklang.build.builder import shared_builder
        from cklang.device.device import open_device

        binding = self._bind(values)
        binding = with_result_orders(self._fuse(binding), binding)
        targets = (
            planned_results(binding.results, binding) if out is None else targets_of(binding, out)
        )
        lists = self._checked_lists(binding)
        device = open_device(device_name, binding.place)
        plan = prepare(
            self._fuse(binding), binding, targets, device, shared_builder(), self.request
        )
        return ready_of(plan, binding.results, binding, lists)

    def _checked_lists(self, binding: Binding) -> HostCheck | None:
        """Return the index arrays that calls like a bound one check; its own are right.

        Raises:
            CkValueError: A056, an element of an index array in host memory is out of its range.
        """
        lists = host_checks(self._fuse(binding), binding)
        if lists is not None:
            lists.check([array.pointer for array in binding.arrays.values()])
        return lists

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
            raise

    def _fuse(self, binding: Binding) -> Plan:
        function = self.program.specialise(binding.dtypes, binding.consts, binding.dims)
        with self._lock:
            known = self._fusions.get(id(function))
            if known is None:
                # The function is kept with its plan, so its id is not given to another one.
                known = self._fusions[id(function)] = (function, plan_of(function))
            return known[1]

    def using(
        self,
        algorithm: Any = None,
        *,
        registry: Registry | None = None,
        strategy: str | Strategy | RankFunction | None = None,
        splits: int | None = None,
    ) -> Op:
        """Return this op with choices of its own; what is left out stays as it is here.

        Args:
            algorithm: For every kernel of its family; rules still check each problem. An op of
                several families takes one for each: ``op.using(product).using(attention)``.
            registry: Where its kernels are looked for first.
            strategy: How one of several is chosen, as in :func:`cklang.using`.
            splits: Of an attention: among how many workgroups the keys of a tile of queries are
                shared, at most; 1 for one kernel. If nobody says, so many that the GPU is busy.

        Example:
            >>> first = linear.using(strategy="first_fit")
            >>> "the first to which no rule objects" in first.explain(x, w)
            True

        Raises:
            CkValueError: K001, there is no such strategy; K011, K022, K025, ``splits``, the
                algorithm or the registry is of another type.
        """
        changed = request_of(self.request, algorithm, registry, strategy, splits)
        return Op(self.program, changed)

    @property
    def registry(self) -> Registry:
        """Where calls look for kernels first: its own registry, else the context's.

        Example:
            >>> linear.using(registry=ck.Registry("mine")).registry
            <cklang registry 'mine': 0 kernels>
        """
        mine = self.request.registry
        return current().registry if mine is None else mine

    def problems(self, *args: Any, out: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Return the problem of each kernel of a call, as :func:`cklang.select` takes it.

        Example:
            >>> print(*linear.problems(x, w))
            M=256 N=512 K=64 rcr strides A=64 B=64 E=512
        """
        return tuple(choice.selection.problem for choice in self._choices(args, kwargs, out, None))

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Binding:
        """Return a call's arrays by parameter, with the extents of its dims.

        Raises:
            CkTypeError, CkValueError: As a call.
        """
        return self._bind(self._values(tuple(args), dict(kwargs)))

    def planned(self, binding: Binding) -> Plan:
        """Return the kernels of a bound call; made once for its dtypes and constants.

        Raises:
            CkUnsupportedError: X rows, no kernels compute it.
        """
        return self._fuse(binding)

    def declare(
        self,
        *args: Any,
        among: Pattern | str | None = None,
        out: Any = None,
        device: str | None = None,
        registry: Registry | None = None,
        priority: int = 0,
        gradient: bool = False,
        bias: bool = False,
        **kwargs: Any,
    ) -> int:
        """Declare kernels for calls like this one in a registry, and return how many are new.

        Args:
            *args: As in a call.
            among: Which algorithms, as in :meth:`cklang.Registry.declare`.
            out: As in a call.
            device: As in a call; only its GPU matters.
            registry: Where; :attr:`registry` if left out.
            priority: Of these kernels.
            gradient: Whether for :func:`cklang.attention_grad` of it instead.
            bias: Whether for that with the gradient of its bias instead.
            **kwargs: As in a call.

        Example:
            >>> mine = ck.Registry("mine")
            >>> linear.declare(x, w, registry=mine, device="emu:gfx942") == len(mine) > 0
            True
        """
        target = self.registry if registry is None else registry
        if gradient or bias:
            return self._declare_gradients(args, kwargs, target, device, among, priority, bias)
        choices = self._choices(args, kwargs, out, device)
        return sum(declare(target, choice, among, priority) for choice in choices)

    def _declare_gradients(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        registry: Registry,
        device: str | None,
        among: Pattern | str | None,
        priority: int,
        bias: bool,
    ) -> int:
        from cklang.device.device import target_of
        from cklang.ops.attention_backward import declare_gradients

        binding = self._bind(self._values(args, kwargs))
        gpu = target_of(device_named(device, current())).spec.name
        return declare_gradients(self, binding, registry, gpu, among, priority, bias)

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

    def fusion(self, *args: Any, **kwargs: Any) -> Plan:
        """Return the kernels that compute it for these arguments, with a reason for each choice.

        Example:
            >>> plan = linear.fusion(x, w)
            >>> len(plan.kernels), plan.decisions[-2].reason
            (1, '%2 is computed in the epilogue of %1')
        """
        return self._fuse(self._bind(self._values(args, kwargs)))

    def graph(self, *args: Any, **kwargs: Any) -> nx.MultiDiGraph:
        """Return the graph that the kernels were computed on; it is frozen, a copy is not.

        Example:
            >>> linear.graph(x, w).number_of_edges()
            6
        """
        return self.fusion(*args, **kwargs).graph

    def explain(self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any) -> str:
        """Say what a call would run and why, without building or running anything.

        Example:
            >>> print(linear.explain(x, w, device="emu:gfx942"))
            func @linear(%x: f16[M, K], %w: f16[N, K]) -> f16[M, N] {
            ...
              because    ... predicted, the least of ... legal candidates of ...
            ...
        """
        from cklang.runtime.explain import explain

        binding, target = self._offered(args, kwargs, out)
        plan, device = self._fuse(binding), device_named(device, current())
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
        plan, target = self._fuse(binding), target_of(device_named(device, current()))
        return summarise(plan, binding, outs, target, self.request)

    def check(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> Report:
        """Say everything that is wrong with a call, without building or running anything.

        Args:
            *args: As in a call; ``ck.f16[64, 128]``, (shape, dtype) or (shape, dtype, strides in
                elements) stand for an array.
            out: As in a call, or such a description.
            device: As in a call; only its GPU matters.
            **kwargs: As ``args``.

        Example:
            >>> linear.check(ck.f16[256, 64], ((512, 64), "f16")).ok
            True
            >>> print(linear.check(ck.f32[256, 64], ck.f16[512, 65]))
            linear: 2 mistakes
            ...
        """
        return check_call(self, args, kwargs, out, device)

    def inspect(self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any) -> str:
        """Return the C++ of the kernels of a call, each with its functions in place.

        Example:
            >>> print(linear.inspect(x, w))
            // CK Tile GEMM made by cklang. E[m, n] = f(sum over k of A[m, k] * B[k, n]).
            ...
        """
        from cklang.runtime.explain import inspect

        binding, target = self._offered(args, kwargs, out)
        plan, device = self._fuse(binding), device_named(device, current())
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
            executor: Builds instead of this machine's compilers, as in :meth:`Registry.build`.
            **kwargs: As in a call.

        Example:
            >>> (artifact,) = linear.build(x, w, device="emu:gfx942")  # doctest: +SKIP
            >>> print(artifact.resources)  # doctest: +SKIP
            59 VGPRs (0 of them AGPRs), ... SGPRs, 8192 B LDS, 0 spills

        Raises:
            CkError: What the call raises; CkBuildError: B rows, a compiler failed.
        """
        return build_choices(self._choices(args, kwargs, out, device), executor)

    def _choices(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, device: str | None
    ) -> Sequence[Choice]:
        from cklang.device.device import target_of

        binding, outs = self._offered(args, kwargs, out)
        spec = target_of(device_named(device, current())).spec
        plan = self._fuse(binding)
        memory = memory_of(plan, binding, outs)
        return choices_of(plan, binding, memory, spec, self.request)

    def _offered(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> tuple[Binding, tuple[arrays.Array, ...] | None]:
        binding = self._bind(self._values(args, kwargs))
        return binding, None if out is None else targets_of(binding, out)

    @property
    def last(self) -> CallRecord | None:
        """The record of the last finished call, or None.

        Example:
            >>> y = linear(x, w, device="emu:gfx942")
            >>> linear.last.device, linear.last.launches[0].grid  # doctest: +SKIP
            ('emulated gfx942', (32, 1, 1))
        """
        if self._last is None:
            return None
        last = _Last(*self._last)
        plan = last.plan
        counters = plan.counters(last.before) if plan.device.calls[0] == last.call else None
        return CallRecord(
            op=self.program.name,
            device=str(plan.device),
            emulated=plan.device.emulated,
            launches=plan.records,
            instructions=None if counters is None else counters.instructions,
            engine_ns=None if counters is None else counters.engine_ns,
            memoised=last.memoised,
            workspace_bytes=plan.workspace.bytes,
        )


def op(function: Callable[..., Any]) -> Op:
    """Make a kernel of a Python function; the decorator ``ck.op``.

    Example:
        >>> import cklang as ck
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return x @ w.T

    Raises:
        CkSyntaxError, CkTypeError: F rows: the function is outside the language.
    """
    return Op(Program.from_function(function))
