# SPDX-License-Identifier: MIT
"""``ck.op``: a Python function that runs as CK Tile kernels.

A call is looked up by what its plan depends on: dtypes, shapes, strides, address alignment and
device. A known one goes straight to the launch; otherwise it is bound, planned and built first.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from cklang import knobs
from cklang.device import arrays
from cklang.device.arrays import HOST, Library
from cklang.errors import CkError, error
from cklang.frontend.program import Program
from cklang.memo import BoundedMemo
from cklang.runtime import call_key
from cklang.runtime.in_place import in_place_of, with_updated
from cklang.runtime.planned_op import PlannedOp
from cklang.runtime.ready import Ready, dtypes_of, put_numbers, put_results, ready_of
from cklang.runtime.results import one_or_all, planned_results, targets_of, with_orders
from cklang.runtime.tracing import TracedArgumentError, is_traced, new_serial
from cklang.selection.context import current, device_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from cklang.device.device import LaunchCounters
    from cklang.families.protocol import HostCheck
    from cklang.runtime.any_program import AnyProgram
    from cklang.runtime.bind import Binding, ResultLayout
    from cklang.runtime.call_key import CallKey
    from cklang.runtime.call_plan import CallPlan
    from cklang.runtime.captured_call import CapturedCall
    from cklang.runtime.check import Report
    from cklang.runtime.explain import Explanation
    from cklang.runtime.record import CallRecord
    from cklang.runtime.timed_call import CallTimer
    from cklang.selection.registry import Registry
    from cklang.selection.request import Request
    from cklang.selection.strategy import RankFunction, Strategy

_MEMO_LIMIT = 4096


class _Last(NamedTuple):
    """The raw facts of the last call; :attr:`Op.last` makes a record of them when asked."""

    plan: CallPlan
    before: LaunchCounters | None
    """What :meth:`cklang.runtime.call_plan.CallPlan.run` gave."""
    call: int
    """The device's count of calls after it."""
    memoised: bool
    timer: CallTimer | None


class Op(PlannedOp):
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

    def __init__(self, program: AnyProgram, request: Request | None = None) -> None:
        if isinstance(program, Program):
            functools.update_wrapper(self, program.function)
        super().__init__(program, request)
        self._memo: BoundedMemo[object, Ready] = BoundedMemo(_MEMO_LIMIT)
        self._repeated: tuple[tuple[Any, ...], Ready] | None = None
        """The key of the last call that was known, and what such calls need."""
        self.serial = new_serial(self)
        self._last: tuple[CallPlan, LaunchCounters | None, int, bool, CallTimer | None] | None = (
            None
        )
        """The fields of a :class:`_Last`, which takes longer to make than a tuple."""

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: object) -> Op:
        """Return the op itself: nothing of it that a caller sees ever changes."""
        return self

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
            every sum is 0, as in NumPy; a result without elements launches nothing. While torch
            traces (``torch.compile``, a fake mode, ``vmap``, ...), the call is a custom op of it.

        Raises:
            CkTypeError, CkValueError: The arguments (A rows), the program (F rows).
                A005: an argument requires a gradient, and the op has none.
                A056: an index array in host memory, before anything is built or launched.
            CkUnsupportedError: K101, K102: no kernel of this installation can compute it.
            CkBuildError: B rows: a compiler failed.
            CkDeviceError: D and E rows.
        """
        if is_traced():
            return self._traced(args, kwargs, out, device)
        plain = len(args) == self._positional and not kwargs and not self._captures
        try:
            return self._called(args if plain else self._values(args, kwargs), out, device)
        except TracedArgumentError:
            pass
        return self._traced(args, kwargs, out, device)

    def _traced(self, args: Any, kwargs: Any, out: Any, device: str | None) -> Any:
        # dynamo guards each module on the way to the function: it reads the shortest one.
        from cklang.torch.dispatch import call

        return call(self, args, kwargs, out, device)

    def _called(self, values: Sequence[Any], out: Any, device: str | None) -> Any:
        """Run it, whoever traces: what the custom op of torch does."""
        device, about = self._about(None, device)
        last = self._repeated
        if last is not None and out is None:
            again = call_key.repeated(last[0], about, values)
            if again is not None:
                return one_or_all(self._run(last[1], again, values, None, True))
        try:
            call = call_key.of_call(self._parameters, values, out, about)
        except CkError as mistake:
            self._name_in(mistake)
            raise
        ready = self._memo.get(call.key)
        memoised = ready is not None
        if ready is None:
            ready = self._prepare(values, out, device)
            self._memo.put(call.key, ready)
        else:
            if not call_key.reads_in_c:
                call_key.read_in_c()
            if out is None and not call.numbers:
                self._repeated = call.key, ready
        result = self._run(ready, call, values, out, memoised)
        return result if out is not None else one_or_all(result)

    def apart(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op; inside another op, keep it in kernels of its own.

        An op that another one calls becomes part of the caller's program: its kernels compute what
        is around them, and others compute parts of it. Called apart, it takes its arguments from
        memory and leaves its results there, and no kernel computes parts of both.

        Example:
            >>> @ck.op
            ... def doubled(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
            ...     return linear.apart(x, w) * 2.0
            >>> [kernel.family for kernel in doubled.fusion(x, w).kernels]
            ['gemm', 'rowwise']
            >>> [kernel.family for kernel in linear.fusion(x, w).kernels]
            ['gemm']

        Args:
            *args: As in a call.
            **kwargs: As in a call.

        Returns:
            The result of the call.
        """
        return self(*args, **kwargs)

    def captured(
        self, *args: Any, out: Any = None, device: str | None = None, **kwargs: Any
    ) -> CapturedCall:
        """Record a call as one HIP graph, which then replays all its launches at once.

        The arrays must be in the memory of a GPU, where each replay finds them: torch tensors, a
        :class:`cklang.DeviceArray`, arrays of CuPy. Index arrays there are not checked, as in a
        call. Nothing runs before the first replay.

        Example:
            >>> near = ck.to_device(x)  # doctest: +SKIP
            >>> step = linear.captured(near, ck.to_device(w))  # doctest: +SKIP
            >>> step, step.result  # step() writes there again each time  # doctest: +SKIP
            (<captured call of linear: 1 launches>, <cklang array f16 (256, 512) on emu:gfx942>)

        Args:
            *args: As in a call.
            out: As in a call.
            device: As in a call.
            **kwargs: As in a call.

        Raises:
            CkValueError: A073, arrays are in host memory: a graph has no copies from there and
                checks nothing there.
            CkError: What the call raises.
        """
        from cklang.runtime.captured_call import CapturedCall, expect_on_gpu

        values = self._values(args, kwargs)
        expect_on_gpu(self.program.name, self._bind(values))
        device, about = self._about(None, device)
        call = call_key.of_call(self._parameters, values, out, about)
        ready = self._memo.get(call.key)
        if ready is None:
            ready = self._prepare(values, out, device)
            self._memo.put(call.key, ready)
        elif out is not None and ready.plan.overlaps(call.addresses):
            targets_of(self._bind(values), out)
        return CapturedCall(self.program.name, ready, call, values, out)

    def _about(self, what: Hashable, device: str | None) -> tuple[str | None, tuple[Hashable, ...]]:
        """Return the name of a call's device, and what its plan depends on besides its values.

        ``what`` is what is asked for; None: the results of a call.
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
            if ready.in_place:
                result = put_results(ready, call, values)
            else:
                result = [make() for make in ready.result_makers]
                addresses += map(call_key.address, result)
        elif plan.overlaps(addresses):
            targets_of(self._bind(values), out)
        library, place = ready.libraries[0], ready.place
        stream = None if place == HOST else arrays.current_stream(library, place)
        timer = None
        if ready.timed:
            from cklang.runtime.timed_call import CallTimer

            timer = CallTimer(plan.device, stream)
            before = timer.around(lambda: plan.run(addresses, stream))
        else:
            before = plan.run(addresses, stream)
        if out is not None and library is Library.TORCH:
            arrays.note_written(out if isinstance(out, tuple) else (out,))
        if page is not None:
            ready.number_buffers.release(page, stream)
        self._last = plan, before, plan.device.calls[0], memoised, timer
        return result

    def explain(
        self,
        *args: Any,
        out: Any = None,
        device: str | None = None,
        clock: bool = False,
        **kwargs: Any,
    ) -> Explanation:
        """Say what a call would run and why, without building or running anything.

        Args:
            *args: As in a call.
            out: As in a call.
            device: As in a call.
            clock: Whether to say how long it takes by the clock (``docs/clock.md``), too. Kernels
                are built then, and a few workgroups of each run on an emulated device.
            **kwargs: As in a call.

        Example:
            >>> print(linear.explain(x, w, device="emu:gfx942"))
            func @linear(%x: f16[M, K], %w: f16[N, K]) -> f16[M, N] {
            ...
              because    ... predicted, the least of ... legal candidates of ...
            ...

        Raises:
            CkUnsupportedError: K050, with ``clock``: the device is a real one, or the clock has no
                constants for its GPU.
            CkError: What planning a call raises.
        """
        text = super().explain(*args, out=out, device=device, **kwargs)
        if not clock:
            return text
        from cklang.ops.predict import predict

        chosen = device_named(device, current())
        timed = f"{text}\n{predict(self, *args, device=chosen, **kwargs)}\n"
        return type(text)(timed, text.heading, text.bars)

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
        if is_traced():
            return self._traced_group(calls, device)
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

    def _traced_group(self, calls: Sequence[Sequence[Any]], device: str | None) -> list[Any]:
        from cklang.torch.dispatch import call_group

        return call_group(self, calls, device)

    def _prepare_group(self, calls: Sequence[Sequence[Any]], device_name: str | None) -> Ready:
        from cklang.build.builder import shared_builder
        from cklang.device.device import open_device
        from cklang.ops.grouped import Member, group_checks, prepare_group

        bindings = [self._bind(values) for values in calls]
        members = [
            Member(
                plan=self._planned(binding),
                binding=binding,
                out=planned_results(binding.results, binding)[0],
            )
            for binding in bindings
        ]
        lists = group_checks(members)
        if lists is not None:
            arrays_of_all = (array for binding in bindings for array in binding.arrays.values())
            lists.check([array.pointer for array in arrays_of_all])
        place = bindings[0].place
        device = open_device(device_name, place)
        return Ready(
            plan=prepare_group(members, device, shared_builder(), self.request),
            results=tuple(binding.results[0] for binding in bindings),
            libraries=tuple(binding.library for binding in bindings),
            place=place,
            number_dtypes=tuple(dtype for binding in bindings for dtype in dtypes_of(binding)),
            lists=lists,
        )

    def _derived(
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
        """Return what a call needs that is made for the first time in this process."""
        from cklang.build.builder import shared_builder
        from cklang.device.device import open_device
        from cklang.runtime import plan_store

        binding, outs = self._bind(values), None
        function = self.program.specialise(binding.dtypes, binding.consts, binding.dims)
        if out is not None:
            for update in in_place_of(function, self._parameters, binding):
                raise error("A077", name=update.name)
            outs = targets_of(binding, out)
        address = plan_store.address_of(function, binding, outs, device_name, self.request)
        if address is not None:
            device, builder = open_device(device_name, binding.place), shared_builder()
            kept = plan_store.find(address, builder)
            if kept is not None:
                binding = with_orders(binding, kept.plan.orders)
                targets = outs or planned_results(binding.results, binding)
                plan = plan_store.call_plan(kept, function, binding, targets, device)
                lists = self._checked(kept.plan.lists, binding)
                return ready_of(plan, binding.results, binding, lists)
        ready = self._planned_ready(binding, outs, device_name)
        if address is not None and not ready.in_place:
            orders = [layout.order for layout in ready.results]
            plan_store.keep(address, ready.plan, orders, ready.lists, shared_builder())
        return ready

    def _planned_ready(
        self, binding: Binding, outs: Sequence[arrays.Array] | None, device_name: str | None
    ) -> Ready:
        """Return what a call needs that is planned here."""
        from cklang.build.builder import shared_builder
        from cklang.device.device import open_device
        from cklang.runtime.planner import prepare
        from cklang.runtime.result_orders import with_result_orders

        fused = self._planned(binding, device_name)
        binding = with_result_orders(fused, binding)
        updates = in_place_of(fused.function, self._parameters, binding)
        targets = outs or planned_results(binding.results, binding)
        targets = with_updated(targets, updates, binding)
        lists = self._checked_lists(binding, device_name)
        device = open_device(device_name, binding.place)
        plan = prepare(fused, binding, targets, device, shared_builder(), self.request)
        return ready_of(plan, binding.results, binding, lists, updates)

    def _checked_lists(self, binding: Binding, device: str | None = None) -> HostCheck | None:
        """Return the index arrays that calls like a bound one check; its own are right."""
        from cklang.runtime.planner import host_checks

        return self._checked(host_checks(self._planned(binding, device), binding), binding)

    def _checked(self, lists: HostCheck | None, binding: Binding) -> HostCheck | None:
        if lists is not None:
            lists.check([array.pointer for array in binding.arrays.values()])
        return lists

    def using(
        self,
        algorithm: Any = None,
        *,
        registry: Registry | None = None,
        strategy: str | Strategy | RankFunction | None = None,
        splits: int | None = None,
    ) -> Op:
        """Return this op with other choices; choices that are left out stay.

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
        from cklang.runtime.requests import request_of

        changed = request_of(self.request, algorithm, registry, strategy, splits)
        return Op(self.program, changed)

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
        from cklang.runtime.check import check_call

        return check_call(self, args, kwargs, out, device)

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
        from cklang.runtime.record import CallRecord

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
            ms=None if last.timer is None else last.timer.ms(),
        )


def op(function: Callable[..., Any]) -> Op:
    """Make an op from a Python function; the decorator ``ck.op``.

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
