# SPDX-License-Identifier: MIT
"""Gradients that share values with the forward call: what is saved, and what is computed again.

The backward function of ``ck.vjp`` computes again what it needs of the forward one. Each result of
a product, a convolution, an attention or a reduction that it computes again may be saved instead:
the forward op stores it, and the backward op reads it. A value is saved if both ops together are
predicted quicker so, reads and writes included.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cklang.errors import error
from cklang.gradients.api import vjp
from cklang.gradients.program import GradientProgram
from cklang.ir.builder import without_unused
from cklang.ir.infer import infer
from cklang.ir.nodes import Function, Operation, Value, attr_key
from cklang.ir.ops import OPS, Kind
from cklang.ir.rewrite import needed_operations
from cklang.ir.verifier import verify
from cklang.ir.views import APART
from cklang.runtime.bind import assign
from cklang.runtime.ir_text import op_from_ir
from cklang.runtime.op import Op

AUTO, ALL, NONE = "auto", "everything", "nothing"
_LSE = "attention_lse"
_MOST = 16
"""Candidates that are compared; others are computed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingGradient:
    """A forward and a backward op that share saved values; see :func:`vjp_saving`."""

    op: Op
    forward: Op
    """Returns the results of the op, then the saved values that are none of them."""
    backward: Op
    """Takes the arguments of the op, the saved values, and the gradients by the results."""
    kept: tuple[int, ...]
    """Which results of ``forward`` are the saved values."""
    saved: tuple[str, ...]
    """The saved values as ``op.ir`` names them."""
    bytes: int
    """Bytes of the saved values, without those that the op returns anyway."""
    reasons: tuple[str, ...]
    """A sentence for each value that could be saved."""

    def run(self, *args: Any, device: str | None = None, **kwargs: Any) -> tuple[Any, Any]:
        """Return the result of the op, or all of them, and the saved values.

        Args:
            *args: As in a call of the op.
            device: As there.
            **kwargs: As there.
        """
        results = self.forward(*self._values(args, kwargs), device=device)
        results = results if isinstance(results, tuple) else (results,)
        count = len(self.op.program.signature.results)
        own = results[0] if count == 1 else results[:count]
        return own, tuple(results[place] for place in self.kept)

    def pull(
        self, args: Sequence[Any], saved: Sequence[Any], *grads: Any, device: str | None = None
    ) -> Any:
        """Return the gradients, as ``ck.vjp(op)`` does.

        Args:
            args: The arguments of the op.
            saved: What :meth:`run` returned for them.
            *grads: The gradient by each result of floats.
            device: As in a call of the op.
        """
        return self.backward(*self._values(args, {}), *saved, *grads, device=device)

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        parameters = self.op.program.parameters
        values = assign(self.op.program.name, parameters, tuple(args), dict(kwargs))
        taken = {param.name for param in self.forward.program.specialise().params}
        pairs = zip(parameters, values, strict=True)
        return [value for parameter, value in pairs if parameter.name in taken]


def vjp_saving(
    op: Op,
    *args: Any,
    wrt: Sequence[str] | str | None = None,
    saved: str | Sequence[str] = AUTO,
    device: str | None = None,
    **kwargs: Any,
) -> SavingGradient:
    """Return a forward and a backward op that share values, for calls like this one.

    Args:
        op: An op, as for :func:`cklang.vjp`.
        *args: As in a call of the op. Dtypes and constants are those of the calls to come; extents
            decide what is saved.
        wrt: As for :func:`cklang.vjp`.
        saved: ``"auto"``: what is quicker to read than to compute again, by the predicted times of
            both ops. ``"everything"`` that may be saved, ``"nothing"``, or the names of values as
            ``op.ir(...)`` prints them, such as ``["%1"]``.
        device: As in a call; only its GPU matters.
        **kwargs: As ``args``.

    Returns:
        Both ops, with the reasons.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def up(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.gelu(x @ w.T)
        >>> x, w = np.ones((64, 2048), "e"), np.ones((64, 2048), "e")
        >>> pair = ck.vjp_saving(up, x, w, device="emu:gfx942")
        >>> pair.saved, pair.bytes
        (('%1',), 16384)
        >>> y, kept = pair.run(x, w)
        >>> dx, dw = pair.pull((x, w), kept, np.ones((64, 64), "e"))
        >>> dx.shape, dw.shape
        ((64, 2048), (64, 2048))

    Raises:
        CkValueError: G035, ``saved`` names a value that the backward op does not compute again.
        CkError: As :func:`cklang.vjp`, and as a call of the op.
    """
    gradient = vjp(op, wrt=wrt)
    binding = op._bound(args, kwargs)
    facts = binding.dtypes, binding.consts, binding.dims
    forward, backward = op.program.specialise(*facts), gradient.program.specialise(*facts)
    if not isinstance(gradient.program, GradientProgram):
        raise error("Z002", what="the gradient of an op is another program")
    search = _Search(forward, backward, _cotangents(gradient.program))
    decide = _Decision(op, search, binding.dims, device)
    chosen, reasons = decide.chosen(saved)
    first, second, kept = search.split(chosen)
    own = len(forward.results)
    more = first.results[own:]
    return SavingGradient(
        op=op,
        forward=Op(op_from_ir(first).program, op.request),
        backward=Op(op_from_ir(second).program, gradient.request),
        kept=kept,
        saved=tuple(f"%{crossing.there.name}" for crossing in chosen),
        bytes=sum(value.type.bytes(binding.dims) for value in more),
        reasons=reasons,
    )


def _cotangents(program: GradientProgram) -> frozenset[str]:
    return frozenset(name for name in program.cotangents if name)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A value that the backward function computes again."""

    here: tuple[Value, ...]
    """In the backward function: equal values that are read instead."""
    there: Value
    """In the forward function."""
    group: object
    """Candidates of one kernel have the same; they are saved together."""


class _Search:
    """Finds what may be saved, and divides the functions."""

    def __init__(self, forward: Function, backward: Function, cotangents: frozenset[str]) -> None:
        self.forward, self.backward = _with_log_sums(forward), backward
        self.cotangents = cotangents
        self.candidates = tuple(self._candidates())[:_MOST]

    def groups(self) -> list[list[_Candidate]]:
        """Return the candidates, those of one kernel together, in order."""
        groups: dict[object, list[_Candidate]] = {}
        for candidate in self.candidates:
            groups.setdefault(candidate.group, []).append(candidate)
        return list(groups.values())

    def _candidates(self) -> list[_Candidate]:
        table: dict[object, int] = {}
        of_forward = _keys(self.forward, table)
        known = {key: value for value, key in reversed(of_forward.items())}
        values = {step.result.name: step.result for step in self.forward.body}
        keys = _keys(self.backward, table)
        depends = set(self.cotangents)
        users: dict[str, list[Operation]] = {}
        for operation in self.backward.body:
            for operand in operation.operands:
                users.setdefault(operand.name, []).append(operation)
                if operand.name in depends:
                    depends.add(operation.result.name)
        result = []
        for operation in self.backward.body:
            kind = OPS[operation.op].kind
            if operation.result.name in depends or kind not in (Kind.ANCHOR, Kind.ATTENTION):
                continue
            here = _narrow(operation.result, users)
            name = known.get(keys[here.name])
            if name is None or name not in values:
                continue
            group = (
                attr_key((operation.operands, operation.attrs)) if kind is Kind.ATTENTION else name
            )
            result.append(_Candidate((here,), values[name], group))
        return result

    def split(self, chosen: Sequence[_Candidate]) -> tuple[Function, Function, tuple[int, ...]]:
        """Return both functions for what is saved, and which results of the first that is."""
        results, kept = list(self.forward.results), []
        for candidate in chosen:
            if candidate.there not in results:
                results.append(candidate.there)
            kept.append(results.index(candidate.there))
        body = tuple(needed_operations(self.forward.body, results))
        name = f"{self.forward.name}_saving"
        first = replace(self.forward, name=name, body=body, results=tuple(results))
        saved = {crossing.here[0].name for crossing in chosen}
        params = [param for param in self.backward.params if param.name not in self.cotangents]
        params += [crossing.here[0] for crossing in chosen]
        params += [param for param in self.backward.params if param.name in self.cotangents]
        body = tuple(step for step in self.backward.body if step.result.name not in saved)
        second = replace(self.backward, params=tuple(params), body=body)
        body = tuple(needed_operations(second.body, second.results))
        second = without_unused(_with_names(replace(second, body=body), chosen))
        return verify(first), verify(second), tuple(kept)


def _with_log_sums(function: Function) -> Function:
    """Return a function with the log-sum-exps of its attentions, which gradients read."""
    body = list(function.body)
    present = [(step.operands, step.attrs) for step in body if step.op == _LSE]
    for operation in function.body:
        if operation.op != "attention" or (operation.operands, operation.attrs) in present:
            continue
        types = [value.type for value in operation.operands]
        type_ = infer(_LSE, types, dict(operation.attrs))
        result = Value(name=f"{operation.result.name}_lse", type=type_)
        place = body.index(operation) + 1
        body.insert(place, replace(operation, op=_LSE, result=result))
    return replace(function, body=tuple(body))


def _with_names(function: Function, chosen: Sequence[_Candidate]) -> Function:
    """Return a function whose parameters for saved values are ``saved0``, ``saved1``, ..."""
    taken = {param.name for param in function.params}
    stem = "saved"
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    names = {crossing.here[0].name: f"{stem}{place}" for place, crossing in enumerate(chosen)}

    def named(value: Value) -> Value:
        return replace(value, name=names.get(value.name, value.name))

    return replace(
        function,
        params=tuple(map(named, function.params)),
        body=tuple(
            replace(operation, operands=tuple(map(named, operation.operands)))
            for operation in function.body
        ),
        results=tuple(map(named, function.results)),
    )


def _keys(function: Function, table: dict[object, int]) -> dict[str, int]:
    """Return a number for each value, the same for what is computed alike in all functions.

    ``table`` has the number of what has one so far.
    """
    keys = {param.name: table.setdefault(param.name, len(table)) for param in function.params}
    for operation in function.body:
        operands = tuple(keys[operand.name] for operand in operation.operands)
        type_ = str(operation.result.type)
        key = operation.op, operands, attr_key(operation.attrs), type_
        is_copy = operation.op == APART
        keys[operation.result.name] = operands[0] if is_copy else table.setdefault(key, len(table))
    return keys


def _narrow(value: Value, users: Mapping[str, Sequence[Operation]]) -> Value:
    """Return a value as its only reader, a conversion to fewer bits, has it."""
    readers = users.get(value.name, [])
    if len(readers) == 1 and readers[0].op == "cast":
        result = readers[0].result
        return result if result.type.dtype.bits < value.type.dtype.bits else value
    return value


class _Decision:
    """Chooses among candidates."""

    def __init__(
        self, op: Op, search: _Search, dims: Mapping[str, int], device: str | None
    ) -> None:
        self.op, self.search, self.dims, self.device = op, search, dims, device

    def chosen(self, saved: str | Sequence[str]) -> tuple[list[_Candidate], tuple[str, ...]]:
        """Return what is saved, and a reason for each candidate."""
        candidates = list(self.search.candidates)
        if saved == AUTO:
            return self._by_time()
        names = {f"%{candidate.there.name}" for candidate in candidates}
        wanted = names if saved == ALL else set() if saved == NONE else _written(saved)
        if not wanted <= names:
            wrong, legal = sorted(wanted - names)[0], ", ".join(sorted(names)) or "none"
            raise error("G035", name=self.op.program.name, got=wrong, legal=legal)
        own = [candidate for candidate in candidates if f"%{candidate.there.name}" in wanted]
        fates = ("computed again", "saved")
        reasons = tuple(
            f"{_words(candidate)} is {fates[candidate in own]}: saved={saved!r}"
            for candidate in candidates
        )
        return own, reasons

    def _by_time(self) -> tuple[list[_Candidate], tuple[str, ...]]:
        chosen: list[_Candidate] = []
        reasons: list[str] = []
        best = self._time(chosen)
        for group in self.search.groups():
            time = self._time([*chosen, *group])
            is_quicker = time is not None and best is not None and time < best
            size = sum(crossing.there.type.bytes(self.dims) for crossing in group)
            what = " and ".join(map(_words, group))
            times = f"{_shown(time)} with it saved ({size} bytes), {_shown(best)} without"
            verdict = "saved" if is_quicker else "computed again"
            reasons.append(f"{what}: {verdict}; both ops are predicted {times}")
            if is_quicker:
                chosen += group
                best = time
        return chosen, tuple(reasons)

    def _time(self, chosen: Collection[_Candidate]) -> float | None:
        """Return the predicted time of both ops in µs; None if that of a kernel is not known."""
        ordered = [candidate for candidate in self.search.candidates if candidate in chosen]
        first, second, _ = self.search.split(ordered)
        times = [self._time_of(part) for part in (first, second)]
        return None if None in times else sum(filter(None, times))

    def _time_of(self, function: Function) -> float | None:
        arrays = [np.empty(p.type.extents(self.dims), p.type.dtype.numpy) for p in function.params]
        return op_from_ir(function).summary(*arrays, device=self.device).microseconds


def _written(names: str | Sequence[str]) -> set[str]:
    bare: Callable[[str], str] = lambda name: f"%{name.removeprefix('%')}"  # noqa: E731
    return set(map(bare, [names] if isinstance(names, str) else names))


def _words(candidate: _Candidate) -> str:
    return f"%{candidate.there.name}, {candidate.there.type}"


def _shown(time: float | None) -> str:
    return "an unknown time" if time is None else f"{time:.1f} µs"
