# SPDX-License-Identifier: MIT
"""Gradient rules of attention: CK Tile's backward kernels, or products of matrices of scores.

:mod:`.attention_kernels` says what the kernels take. All else follows from these equations.

With the scores s of q and k, their function f, the result o and the log-sum-exp l of each row, and
the gradients g by o and h by l::

    p  = exp(f(s) - l) where the mask holds, else 0
    df = p (g v' - sum g o along the head + h)
    ds = df times the derivative of f, which is differentiated as any part of a program
    dq = scale ds k    dk = scale ds' q    dv = p' g

The attention kernel itself gives o and l. p and ds are matrices [B, H, S, T] in memory, of the
dtype of q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.autodiff.attention_kernels import (
    by_kernels,
    head_refusal,
    log_sums,
    read_places,
    refusal,
    roles_of,
)
from cklang.autodiff.attention_lengths import has_masked_form, masked_by, with_masked_keys
from cklang.autodiff.attention_pages import gathered, has_pages
from cklang.autodiff.products import Labelled, common_dtype, product
from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.structure import inverse
from cklang.autodiff.terms import Emitter, Number, Term, where
from cklang.errors import CkError, error
from cklang.forks import cached_property
from cklang.ir.attention import (
    INDICES,
    LENGTHS,
    MIN_QUERIES,
    PAGE_STARTS,
    READ_LIMIT,
    SEEDS,
    STARTS,
)
from cklang.ir.nodes import Attr, Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS, Kind
from cklang.ir.rules import Shape
from cklang.types import DType, Extent, Quotient, extent_over, extent_value, f32, i32

_Q, _K = ("b", "g", "r", "s", "d"), ("b", "g", "t", "d")
_SCORES = ("b", "g", "r", "s", "t")
_O, _V = ("b", "g", "r", "s", "e"), ("b", "g", "t", "e")
_FIXES = {
    "dropout": "drop elements outside of the attention, or mend what the reason says",
    "packed sequences": "pad the sequences and mask them, or mend what the reason says",
    "pages of all sequences in one list": "give the attention a block_table with a row for each "
    "sequence, without page_starts",
    "packed sequences beside so many tensors that functions read": "read fewer tensors in score "
    f"and mask: seqlens_k, min_seqlen_q and these are at most {READ_LIMIT}",
    "lengths of keys beside so many tensors that functions read": "read at most "
    f"{READ_LIMIT - 1} tensors in score and mask",
    "heads whose numbers are not known": "ask for the gradient with arrays, as a call does, or "
    "annotate the heads as numbers",
}


def _expect_differentiable(step: Step) -> None:
    """Check that an attention has a gradient, by whatever kernels."""
    roles = roles_of(step.operation)
    # These become tensors that the mask reads.
    hidden = sum(role in (MIN_QUERIES[0], LENGTHS[0]) for role in roles)
    if PAGE_STARTS[0] in roles:
        raise _refused(step, "pages of all sequences in one list")
    if STARTS[0] in roles and roles.count("read") + hidden > READ_LIMIT:
        raise _refused(step, "packed sequences beside so many tensors that functions read")


def _expect_products(step: Step, why: str, roles: Sequence[str]) -> None:
    """Check that products give the gradient of an attention whose kernels do not."""
    what = {SEEDS[0]: "dropout", STARTS[0]: "packed sequences"}
    for role in roles_of(step.operation):
        if role in roles:
            raise _refused(step, what[role], f", where the kernels do not take it: {why}")
    if _share(step.operation, step.context.numbers) is None:
        raise _refused(step, "heads whose numbers are not known")


def _refused(step: Step, what: str, why: str = "") -> CkError:
    name = step.emitter.builder.name
    return error("G025", at=step.operation.span, name=name, what=what + why, fix=_FIXES[what])


def facts_of(function: Function, numbers: Mapping[str, int]) -> tuple[object, ...]:
    """Return what the gradients of a function's attentions depend on beside the function.

    For each attention: how many query heads have one key head, None if that is not known, and why
    the kernels do not take its heads.
    """
    attentions = [operation for operation in function.body if operation.op in ATTENTION]
    return tuple(
        (_share(attention, numbers), head_refusal(attention, numbers)) for attention in attentions
    )


def _share(operation: Operation, numbers: Mapping[str, int]) -> Extent | None:
    heads, groups = (operation.operands[place].type.shape[1] for place in (0, 1))
    if heads == groups:
        return 1
    symbolic = extent_over(heads, groups)
    if symbolic is not None and not isinstance(symbolic, Quotient):
        return symbolic
    try:
        # A call that this does not fit is refused by the attention itself.
        return extent_value(heads, numbers) // max(extent_value(groups, numbers), 1)
    except KeyError:
        return symbolic


@dataclass(frozen=True)
class _Scores:
    """The scores of an attention in its backward function; tensors are seen with heads apart."""

    step: Step

    @cached_property
    def share(self) -> Extent:
        """How many query heads have one key head."""
        return _share(self.step.operation, self.step.context.numbers) or 1

    @cached_property
    def extents(self) -> Mapping[str, Extent]:
        """How many batches, query heads, queries and keys there are, by the name of the index."""
        q, k = (self.step.operands[place].shape for place in (0, 1))
        return dict(zip("bhij", (*q[:3], k[2]), strict=True))

    @cached_property
    def places(self) -> Mapping[str, tuple[int, ...]]:
        """The axes of the scores along which each index runs."""
        if self.share == 1:
            return {"b": (0,), "h": (1,), "i": (2,), "j": (3,)}
        return {"b": (0,), "h": (1, 2), "i": (3,), "j": (4,)}

    @cached_property
    def shape(self) -> Shape:
        """[batch, heads, queries, keys], where heads are two axes if several share keys."""
        b, _, i, j = self.extents.values()
        groups = self.step.operands[1].shape[1]
        return (b, groups, *(() if self.share == 1 else (self.share,)), i, j)

    @property
    def dtype(self) -> DType:
        """The dtype of the products' operands."""
        return common_dtype(self.step.operands[0].dtype)

    @property
    def emitter(self) -> Emitter:
        """What appends."""
        return self.step.emitter

    def queries(self, term: Term, axes: tuple[str, ...]) -> Labelled:
        """Return q, or what is like o, as groups of heads that share keys."""
        term = term.cast(self.dtype)
        heads = len(self.places["h"])
        apart = term.reshape((*self.shape[: 1 + heads], *term.shape[2:]))
        return Labelled(term=apart, axes=self._own(axes))

    def scores(self, term: Term) -> Labelled:
        """Return a term of the shape of the scores."""
        return Labelled(term=term, axes=self._own(_SCORES))

    def _own(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(axis for axis in axes if axis != "r" or self.share != 1)

    def keys(self, place: int) -> Labelled:
        """Return k or v."""
        return Labelled(term=self.step.operands[place], axes=_K if place == 1 else _V)

    def multiplied(self, left: Labelled, right: Labelled, result: tuple[str, ...]) -> Term:
        """Return a product in f32."""
        a, b = (replace(side, term=side.term.cast(self.dtype)) for side in (left, right))
        return product(a, b, self._own(result))

    @cached_property
    def scale(self) -> Number | Term:
        """The factor of the products, as a number or of rank 0."""
        scale = self.step.operation.attr("scale")
        if not isinstance(scale, str):
            return float(str(scale))
        return self.emitter.count(self.step.operation.operands[0], [3]).call("rsqrt")

    def scaled(self, term: Term) -> Term:
        """Return a term times the scale."""
        scale = self.scale
        return term * (scale.broadcast(term.shape, ()) if isinstance(scale, Term) else scale)

    @cached_property
    def plain(self) -> Term:
        """The scaled products of q and k."""
        q = self.queries(self.step.operands[0], _Q)
        return self.scaled(self.multiplied(q, self.keys(1), _SCORES))

    @cached_property
    def score(self) -> _Region:
        """The function of a score, for all scores."""
        return _Region(self, "score", self.plain)

    @cached_property
    def weights(self) -> Term:
        """The softmax p, 0 where the mask does not hold, rounded as a product takes it."""
        kept = _Region(self, "mask", None).result
        rows = log_sums(self.step)
        # A row without keys has none to subtract from.
        finite = self.repeated(where(rows > float("-inf"), rows, 0.0))
        weights = where(kept, (self.score.result - finite).call("exp"), 0.0)
        return weights.cast(self.dtype).cast(f32)

    def repeated(self, rows: Term) -> Term:
        """Return a number of each query repeated along the keys."""
        apart = rows.reshape(self.shape[:-1])
        return apart.broadcast(self.shape, range(len(self.shape) - 1))


class _Region:
    """A region of an attention computed for all scores at once."""

    def __init__(self, scores: _Scores, name: str, score: Term | None) -> None:
        region = scores.step.operation.attr(name)
        if not isinstance(region, Function):
            raise error("Z002", what=f"attention without the region {name} passes its rules")
        self.scores = scores
        places = read_places(scores.step.operation)
        self.reads = tuple(scores.step.operands[place] for place in places)
        self.body: dict[str, Operation] = {}
        """What is differentiated, by the name of the result."""
        self._values: dict[str, Value] = {}
        self._indices: dict[str, str] = {}
        """The name of the index that a value is, by the value's name."""
        self._params(region, score)
        for operation in region.body:
            self._values[operation.result.name] = self._appended(operation).value
        self.result = self.scores.emitter.term(self._values[region.results[0].name])

    def _params(self, region: Function, score: Term | None) -> None:
        names = [param.name for param in region.params]
        if score is not None:
            self._values[names.pop(0)] = score.value
        for name, index in zip(names, INDICES, strict=False):
            self._values[name] = self._index(index).value
            self._indices[name] = index
        for name, term in zip(names[len(INDICES) :], self.reads, strict=True):
            self._values[name] = term.value

    def _index(self, name: str) -> Term:
        scores = self.scores
        emitter, shape = scores.emitter, scores.shape
        if name not in scores.places:
            own = scores.step.operation.operands[INDICES.index(name) - len(scores.places)]
            return emitter.extent(own, 2).broadcast(shape, ())
        first, *inner = (
            emitter.arange(shape[place]).broadcast(shape, (place,)) for place in scores.places[name]
        )
        for place, term in zip(scores.places[name][1:], inner, strict=True):
            q = scores.step.operation.operands[0]
            groups = emitter.extent(scores.step.operation.operands[1], 1)
            size = emitter.extent(q, 1).call("floor_divide", groups)
            extent = shape[place]
            count = size.broadcast(shape, ()) if not isinstance(extent, int) else extent
            first = first * count + term
        return first

    def _appended(self, operation: Operation) -> Term:
        emitter = self.scores.emitter
        emitter.span = operation.span or emitter.span
        operands = tuple(self._values[operand.name] for operand in operation.operands)
        if OPS[operation.op].kind is Kind.READ:
            return self._read(operation, operands)
        if not operands:
            constant = emitter.apply(operation.op, operands, dict(operation.attrs))
            return emitter.term(constant).broadcast(self.scores.shape, ())
        return emitter.term(self._emitted(operation.op, operands, dict(operation.attrs)))

    def _emitted(
        self,
        op: str,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Attr],
        shape: Shape | None = None,
    ) -> Value:
        """Append an operation that is differentiated with the region, which has it once."""
        emitter = self.scores.emitter
        value = emitter.apply(op, operands, attrs, shape)
        self.body.setdefault(
            value.name,
            Operation(
                op=op, operands=operands, attrs=make_attrs(**attrs), result=value, span=emitter.span
            ),
        )
        return value

    def _read(self, operation: Operation, operands: tuple[Value, ...]) -> Term:
        """Return the elements of a tensor that are read for each score."""
        emitter, shape = self.scores.emitter, self.scores.shape
        tensor, *indices = operands
        names = [self._indices.get(operand.name, "") for operand in operation.operands[1:]]
        pairs = list(zip(names, tensor.type.shape, strict=True))
        full = self.scores.extents
        is_direct = len(set(names)) == len(names) and all(
            name in full and extent in (1, full[name]) for name, extent in pairs
        )
        if not is_direct:
            flat = self._emitted("reshape", (tensor,), {}, (_count(tensor.type.shape),))
            place = self._flat_index(tensor, indices)
            return emitter.term(self._emitted("take", (flat, place.value), {"axis": 0}))
        axes: list[int] = []
        own: list[Extent] = []
        for name, extent in pairs:
            places = self.scores.places[name]
            axes += places[:1] if extent == 1 else places
            own += (1,) if extent == 1 else [shape[place] for place in places]
        if tensor.type.shape != tuple(own):
            tensor = self._emitted("reshape", (tensor,), {}, tuple(own))
        if axes != sorted(axes):
            tensor = self._emitted("transpose", (tensor,), {"perm": inverse(axes)})
        if tensor.type.shape != shape:
            tensor = self._emitted("broadcast", (tensor,), {"dims": tuple(sorted(axes))}, shape)
        return emitter.term(tensor)

    def _flat_index(self, tensor: Value, indices: Sequence[Value]) -> Term:
        """Return the place of the elements that are read, each index limited to its axis."""
        emitter, shape = self.scores.emitter, self.scores.shape
        place = emitter.constant(0, shape)
        for axis, index in enumerate(indices):
            size = emitter.extent(tensor, axis).broadcast(shape, ())
            own = emitter.term(index).cast(i32)
            place = place * size + own.call("maximum", 0).call("minimum", size - 1)
        return place


def _count(shape: Shape) -> Extent:
    count: Extent = 1
    for extent in shape:
        count = extent if count == 1 else count * extent
    return count


def _gradients(scores: _Scores, by_score: Term, dv: Term | None) -> Gradients:
    """Return the gradients by all operands, from those by the values of the score function."""
    step, plain = scores.step, scores.plain.value.name
    region = scores.score
    places, operands = read_places(step.operation), step.operation.operands
    needed = [operands[place].name for place in places if step.needed[place]]
    wanted = [plain, *needed]
    body = tuple(region.body.values())
    seeds = {region.result.value.name: by_score}
    pulled = dict(step.pull(step.emitter, body, seeds, wanted))
    by_plain = pulled.pop(plain, None)
    gradients: list[Term | None] = [None, None, dv, *[None] * (len(operands) - 3)]
    for place in places:  # of a tensor that is read by two names all is the gradient by the first
        gradients[place] = pulled.pop(operands[place].name, None)
    if by_plain is not None:
        ds = scores.scores(scores.scaled(by_plain))
        q = step.operands[0]
        gradients[0] = scores.multiplied(ds, scores.keys(1), _Q).reshape(q.shape)
        gradients[1] = scores.multiplied(ds, scores.queries(q, _Q), _K)
    return gradients


def _attention(step: Step) -> Gradients:
    return _of_both(step, step.gradient, step.log_sums)


def _attention_lse(step: Step) -> Gradients:
    return _of_both(step, None, step.gradient)


def _of_both(step: Step, by_output: Term | None, by_log_sums: Term | None) -> Gradients:
    """Return the gradients by all operands, from those by o and by the log-sum-exps."""
    _expect_differentiable(step)
    if MIN_QUERIES[0] in roles_of(step.operation):
        return _of_skipped(step, by_output, by_log_sums)
    if has_pages(step.operation):
        contiguous = gathered(step)
        return contiguous.in_pages(_of_both(contiguous.step, by_output, by_log_sums), step)
    why, name = refusal(step), step.operation.result
    if not why:
        return by_kernels(step, by_output, by_log_sums)
    _expect_products(step, why, (SEEDS[0], STARTS[0]))
    step.context.notes.append(
        f"the gradient of the attention {name} is computed by products, with matrices of scores "
        f"in memory, and not by CK Tile's kernels: {why}"
    )
    if LENGTHS[0] not in roles_of(step.operation):
        return _by_products(step, by_output, by_log_sums)
    if not has_masked_form(step.operation):
        what = "lengths of keys beside so many tensors that functions read"
        raise _refused(step, what, f", where the kernels do not take it: {why}")
    masked, places = with_masked_keys(step)
    needed = tuple(step.needed[place] for place in places)
    source = step.source or step.operation
    own = replace(step, operation=masked, source=source, needed=needed)
    gradients: list[Term | None] = [None] * len(places)
    for place, gradient in zip(places, _by_products(own, by_output, by_log_sums), strict=True):
        gradients[place] = gradient
    return gradients


def _of_skipped(step: Step, by_output: Term | None, by_log_sums: Term | None) -> Gradients:
    """Return the gradients where short sequences are skipped, from those of one that masks them.

    It computes its results itself: what the attention skips is not written.
    """
    least = step.operands[roles_of(step.operation).index(MIN_QUERIES[0])]
    number = step.emitter.number(least.value)
    masked, places = masked_by(
        step.operation, MIN_QUERIES[0], None if number is None else int(number)
    )
    result = step.emitter.apply(masked.op, masked.operands, dict(masked.attrs))
    operation = replace(masked, result=result)
    needed = tuple(step.needed[place] for place in places)
    own = replace(step, operation=operation, source=None, needed=needed)
    gradients: list[Term | None] = [None] * len(step.operands)
    for place, gradient in zip(places, _of_both(own, by_output, by_log_sums), strict=True):
        gradients[place] = gradient
    return gradients


def _by_products(step: Step, by_output: Term | None, by_log_sums: Term | None) -> Gradients:
    """Return them of an attention without lengths of keys."""
    scores = _Scores(step)
    p = scores.weights
    if by_output is None:
        return _gradients(scores, p * scores.repeated(step.gradient), None)
    apart = scores.queries(by_output, _O)
    dv = scores.multiplied(scores.scores(p), apart, _V)
    by_weights = scores.multiplied(apart, scores.keys(2), _SCORES)
    inner = (by_output * step.result).sum([3])
    if by_log_sums is not None:
        inner = inner - by_log_sums
    return _gradients(scores, p * (by_weights - scores.repeated(inner)), dv)


ATTENTION: Mapping[str, Rule] = {"attention": _attention, "attention_lse": _attention_lse}
"""The rules by op."""
