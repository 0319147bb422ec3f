# SPDX-License-Identifier: MIT
"""Programs of two neighbours: anything, then a step or none, then any operand of any family.

``python -m tests.support.program_pairs`` plans and judges all of them, forward and as gradients,
and prints the table of pairs: how many programs of each are right, and the codes of the rules by
which others are refused. A wrong program ends the run with a failure. ``--every 60 --seed 7`` takes
one program in 60; seeds from 0 to 59 together are all of them.

A plan is judged kernel by kernel in NumPy (:mod:`tests.support.plan_evaluation`): results by the
reference of the whole program, and gradients by torch's autograd in float64, if torch is there.
"""

import argparse
import importlib.util
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

import cklang as ck
from cklang.errors import CkError, CkInternalError
from cklang.families import plan_of
from cklang.ir.nodes import Function
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.types import Kind
from tests.support.plan_evaluation import evaluate_plan
from tests.support.written_ops import written_op

DIMS = "N H W C R"
_HEADER = """\
@ck.op
def f(
    x: ck.f16[N, H, W, C], y: ck.f16[N, H, W, C], z: ck.f32[N, H, W, C], gain: ck.f16[C],
    w0: ck.f16[C, C], w1: ck.f16[C, C], square: ck.f16[N, H, W, W], columns: ck.f16[N, H, C, C],
    point: ck.f16[C, 1, 1, C], window: ck.f16[C, 3, 3, C], wide: ck.f16[R, 8, 8, C],
    rows: ck.f16[N, R, W, C], heads: ck.f16[H, C, C], double: ck.f16[N, 2, H, W, C],
    ids: ck.i32[R], order: ck.i32[H], segment: ck.i32[N], ends: ck.i32[H],
) -> {result}:
"""
_IMAGE = "ck.f16[N, H, W, C]"

PRODUCERS: Mapping[str, str] = MappingProxyType(
    {
        "parameter": "x",
        "pointwise": "ck.tanh(x) * gain",
        "where": "ck.where(z > 0.0, x, y)",
        "index": "x + ck.arange(W)[:, None]",
        "gemm": "x @ w0.T",
        "gemm, batched": "x @ columns",
        "einsum": "ck.einsum('nhwc,hdc->nhwd', x, heads)",
        "pair": "ck.silu(x @ w0.T) * (x @ w1.T)",
        "gathered": "ck.take(x, order, axis=1) @ w0.T",
        "grouped_gemm": (
            "ck.grouped_gemm(x.reshape(N * H * W, C), heads, ends).reshape(N, H, W, C)"
        ),
        "conv": "ck.conv(x, window, padding=1)",
        "attention": "ck.attention(x, y, y, mask=ck.causal())",
        "log-sum-exp": "x + ck.attention(x, y, y, return_lse=True)[1][..., None]",
        "cumsum": "ck.cumsum(x, 2)",
        "cumprod": "ck.cumprod(x, 1)",
        "sort": "ck.sort(x, axis=2)",
        "argsort": "ck.argsort(x, axis=1).to(ck.f32)",
        "moe_gate": "x * ck.moe_gate(y, k=1, renormalise=False)[0]",
        "scatter": "ck.scatter(x, order, y, axis=1)",
        "scatter_add": "ck.scatter_add(x, ids, rows, axis=1)",
        "segment_sum": "ck.segment_sum(x, segment, N)",
        "take": "ck.take(x, order, axis=1)",
        "take_along_axis": "ck.take_along_axis(x, ck.argsort(y, axis=2), axis=2)",
        "softmax": "ck.softmax(x, axis=-1)",
        "softmax over rows": "ck.softmax(x, axis=2)",
        "rms_norm": "ck.rms_norm(x, gain)",
        "reduction": "x * ck.sum(x * y, axis=(1, 3), keepdims=True)",
        "extreme": "x - ck.max(y, axis=2, keepdims=True)",
        "argmax": "x * ck.argmax(y, axis=3)[..., None].to(ck.f32)",
        "logsumexp": "ck.logsumexp(x @ w0.T, axis=-1)[..., None] - z",
        "concat": "ck.concat([y, x], axis=1)[:, H:]",
        "stack": "ck.stack([x, y], axis=0)[1]",
        "slice": "double[:, 1] + double[:, 0]",
        "reshape": "x.reshape(N * H, W * C).reshape(N, H, W, C)",
        "transpose": "x.transpose(1, 0, 2, 3).transpose(1, 0, 2, 3)",
        "max_pool": "ck.max_pool(x, 3, stride=1, padding=1)",
        "avg_pool": "ck.avg_pool(x @ w0.T, 3, stride=1, padding=1)",
    }
)
"""What gives a tensor [N, H, W, C]."""

MIDDLES: Mapping[str, str] = MappingProxyType(
    {
        "nothing": "{}",
        "cast": "({}).to(ck.bf16)",
        "scale": "({}) * 0.5",
        "function": "ck.silu(({}) + y * gain)",
        "view": "({}).reshape(N * H, W, C).reshape(N, H, W, C)",
        "transposes": "(({}) * 0.25).transpose(2, 1, 0, 3).transpose(2, 1, 0, 3)",
    }
)
"""What is between them."""

CONSUMERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "result": ("{}", _IMAGE),
        "result, turned": ("({}).transpose(0, 2, 3, 1)", "ck.f16[N, W, C, H]"),
        "pointwise": ("y + ({})", _IMAGE),
        "gemm, left": ("({}).to(ck.f16) @ w1.T", _IMAGE),
        "gemm, left, turned": ("({}).to(ck.f16).mT @ y", "ck.f16[N, H, C, C]"),
        "gemm, right": ("square @ ({}).to(ck.f16)", _IMAGE),
        "gemm, right, turned": ("y @ ({}).to(ck.f16).mT", "ck.f16[N, H, W, W]"),
        "gemm, both": ("({0}).to(ck.f16) @ ({0}).to(ck.f16).mT", "ck.f32[N, H, W, W]"),
        "gemm, epilogue": ("(y @ w1.T) * ({})", _IMAGE),
        "gemm, gathered": ("({}).to(ck.f16)[:, :, ids] @ w1.T", "ck.f16[N, H, R, C]"),
        "grouped_gemm, left": (
            "ck.grouped_gemm(({}).to(ck.f16).reshape(N * H * W, C), heads, ends)",
            "ck.f16[N * H * W, C]"),
        "grouped_gemm, right": (
            "ck.grouped_gemm(square.reshape(N * H * W, W), ({}).to(ck.f16)[0], ends)",
            "ck.f16[N * H * W, C]"),
        "grouped_gemm, ends": (
            "ck.grouped_gemm(y[0, 0], heads, ck.group_ids((({})[0, 0, :, 0]).to(ck.i32), H)[1])",
            "ck.f16[W, C]"),
        "grouped_gemm along K, left": (
            "ck.grouped_gemm(({}).to(ck.f16)[0, 0].T, y[0, 0], ends)", "ck.f32[H, C, C]"),
        "grouped_gemm along K, right": (
            "ck.grouped_gemm(y[0, 0].T, ({}).to(ck.f16)[0, 0], ends)", "ck.f32[H, C, C]"),
        "einsum": ("ck.einsum('nhwc,nhwd->cd', ({}).to(ck.f16), y)", "ck.f32[C, C]"),
        "conv, image": ("ck.conv(({}).to(ck.f16), window, padding=1)", _IMAGE),
        "conv, window": ("ck.conv(wide, ({}).to(ck.f16))", "ck.f16[R, 9 - H, 9 - W, N]"),
        "conv, epilogue": ("ck.conv(y, point) + ({})", _IMAGE),
        "attention, q": ("ck.attention(({}).to(ck.f16), y, y)", _IMAGE),
        "attention, k": ("ck.attention(y, ({}).to(ck.f16), y)", _IMAGE),
        "attention, v": ("ck.attention(y, y, ({}).to(ck.f16))", _IMAGE),
        "attention, score": ("ck.attention(y, y, y, score=lambda s, b, h, i, j: s + t[b, h, j, 0])",
                             _IMAGE),
        "attention, output": ("ck.attention(y, y, y) * ({})", _IMAGE),
        "cumsum": ("ck.cumsum({}, 1)", _IMAGE),
        "cumprod": ("ck.cumprod({}, 2)", _IMAGE),
        "sort": ("ck.sort(({}).to(ck.f16), axis=1)", _IMAGE),
        "topk": ("ck.topk(({}).to(ck.f16), 2, axis=3)",
                 "tuple[ck.f16[N, H, W, 2], ck.i32[N, H, W, 2]]"),
        "moe_gate": ("ck.moe_gate(({}).to(ck.f16), k=2)",
                     "tuple[ck.f32[N, H, W, 2], ck.i32[N, H, W, 2]]"),
        "scatter, tensor": ("ck.scatter(({}).to(ck.f16), order, y, axis=1)", _IMAGE),
        "scatter_add, tensor": ("ck.scatter_add(({}).to(ck.f16), ids, rows, axis=1)", _IMAGE),
        "scatter_add, rows": ("ck.scatter_add(y, order, ({}).to(ck.f16), axis=1)", _IMAGE),
        "scatter_add, indices": (
            "ck.scatter_add(y, (({})[0, :, 0, 0] * 2.0).to(ck.i32), x, axis=1)", _IMAGE),
        "segment_sum": ("ck.segment_sum(({}).to(ck.f16), segment, N)", _IMAGE),
        "take, table": ("ck.take(({}).to(ck.f16), ids, axis=1)", "ck.f16[N, R, W, C]"),
        "take, indices": ("ck.take(y, (({})[0, 0, :, 0] * 2.0).to(ck.i32), axis=1)",
                          "ck.f16[N, W, W, C]"),
        "take_along_axis, table": (
            "ck.take_along_axis(({}).to(ck.f16), ck.argsort(y, axis=1), axis=1)", _IMAGE),
        "table and result": ("ck.take(t, ids, axis=1), t",
                             "tuple[ck.f16[N, R, C, W], ck.f16[N, H, C, W]]"),
        "softmax": ("ck.softmax({}, axis=2)", _IMAGE),
        "rms_norm, gain": ("ck.rms_norm(y, ({})[0, 0, 0])", _IMAGE),
        "reduction": ("ck.sum({}, axis=(1, 3))", "ck.f32[N, W]"),
        "extreme": ("ck.max({}, axis=-1)", "ck.f32[N, H, W]"),
        "argmax": ("ck.argmax({}, axis=3)", "ck.i32[N, H, W]"),
        "logsumexp": ("ck.logsumexp({}, axis=-1)", "ck.f32[N, H, W]"),
        "concat": ("ck.concat([({}).to(ck.f16), y], axis=2)", "ck.f16[N, H, 2 * W, C]"),
        "slice": ("({})[:, :, 1:]", "ck.f16[N, H, W - 1, C]"),
        "max_pool": ("ck.max_pool(({}).to(ck.f16), 3, stride=1, padding=1)", _IMAGE),
        "avg_pool": ("ck.avg_pool(({}).to(ck.f16), 3, stride=1, padding=1)", _IMAGE),
    }
)  # fmt: skip
"""What reads it, by the operand, and the type that is returned."""

_NAMED: Mapping[str, str] = MappingProxyType(
    {"attention, score": "({}).to(ck.f32)", "table and result": "({}).to(ck.f16).mT"}
)
"""What ``t`` is where a consumer needs a name for what it reads."""

_INDICES = ("take, indices", "scatter_add, indices", "grouped_gemm, ends")
"""Consumers of indices, through which no gradient comes."""

EXTENTS: Mapping[str, int] = MappingProxyType({"N": 2, "H": 3, "W": 5, "C": 8, "R": 4})


@dataclass(frozen=True, slots=True)
class Pair:
    """A program of two neighbours."""

    producer: str
    middle: str
    consumer: str

    @property
    def text(self) -> str:
        value = MIDDLES[self.middle].format(PRODUCERS[self.producer])
        expression, result = CONSUMERS[self.consumer]
        lines = [f"v = {value}"]
        if self.consumer in _NAMED:
            lines.append(f"t = {_NAMED[self.consumer].format('v')}")
        last = expression.format("v")
        names = [f"r{place}" for place in range(result.count("ck."))]
        lines += [f"{', '.join(names)} = {last}", f"return {', '.join(names)}"]
        return _HEADER.format(result=result) + "".join(f"    {line}\n" for line in lines)

    @property
    def op(self) -> Op:
        """The op that a user would decorate."""
        return written_op(self.text, DIMS)


def pairs(every: int = 1, seed: int = 0) -> Iterator[Pair]:
    """Yield all programs, or one in ``every``, of which each seed below it gives others.

    With as many as there are middles, each pair of neighbours is there once.
    """
    middles = list(MIDDLES)
    neighbours = enumerate(product(PRODUCERS, CONSUMERS))
    for number, ((place, (producer, consumer)), turn) in enumerate(product(neighbours, middles)):
        if number % every == seed % every:
            middle = middles[(place + middles.index(turn)) % len(middles)]
            yield Pair(producer, middle, consumer)


def arguments(function: Function, seed: int) -> list[Any]:
    """Return arrays for a program or its gradient, numbers about 1 and legal indices."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in function.params:
        shape = param.type.extents(EXTENTS)
        if param.name in ("order", "segment"):
            arrays.append(rng.permutation(shape[0]).astype("i"))
        elif param.name == "ends":
            arrays.append(np.sort(rng.integers(0, 30, shape)).astype("i"))
        elif param.name == "ids":
            arrays.append(rng.integers(0, EXTENTS["H"], shape).astype("i"))
        else:
            arrays.append((rng.standard_normal(shape) * 0.7).astype(param.type.dtype.numpy))
    return arrays


def judged(pair: Pair, seed: int = 0, *, gradient: bool = False) -> str:
    """Return the code of the rule that refuses a program; empty if its plan computes it.

    Raises:
        AssertionError: The plan computes something else.
        CkInternalError: The check of plans found something.
    """
    try:
        op = pair.op
        if gradient:
            op = ck.vjp(op, wrt=_differentiable(op))
        function = op.program.specialise()
        plan = plan_of(function)
    except CkInternalError:
        raise
    except CkError as refusal:
        return refusal.code
    arrays = arguments(function, seed)
    got = evaluate_plan(plan, arrays)
    _compare(pair, got, evaluate(function, arrays), 0.004)
    if gradient and importlib.util.find_spec("torch"):
        _compare(pair, got, _of_torch(pair, function, arrays), 0.03)
    return ""


def _differentiable(op: Op) -> tuple[str, ...]:
    """Return the parameters that gradients are asked for: all floats that the op reads."""
    function = op.program.specialise()
    used = {value.name for each in function.body for value in each.operands}
    used |= {value.name for value in function.results}
    floats = (param for param in function.params if param.type.dtype.kind is Kind.FLOAT)
    return tuple(param.name for param in floats if param.name in used)


def _of_torch(pair: Pair, derived: Function, arrays: Sequence[Any]) -> list[Any]:
    """Return the gradients of torch's autograd in float64."""
    from tests.support.torch_ir import gradients

    op = pair.op
    function = op.program.specialise()
    named = dict(zip((param.name for param in derived.params), arrays, strict=True))
    inputs = [named[param.name] for param in function.params]
    given = [array for name, array in named.items() if name.startswith("dy")]
    floats = [value for value in function.results if value.type.dtype.kind is Kind.FLOAT]
    function = replace(function, results=tuple(floats))
    return gradients(function, inputs, _differentiable(op), given)


def _compare(pair: Pair, got: Sequence[Any], wanted: Sequence[Any], close: float) -> None:
    for place, (mine, theirs) in enumerate(zip(got, wanted, strict=True)):
        one, other = (np.asarray(each).astype("d") for each in (mine, theirs))
        scale = float(np.abs(other).max(initial=1e-2))
        worst = float(np.abs(one - other).max(initial=0.0))
        assert worst <= close * scale, f"{pair}: result {place} is off by {worst} of {scale}"


def expected(pair: Pair, *, gradient: bool) -> str:
    """Return the code of the rule that refuses a program or its gradient; empty if none does."""
    if not gradient:
        return ""
    if pair.consumer == "argmax":
        return "G024"
    before = pair.producer in ("scatter", "moe_gate") and pair.consumer not in _INDICES
    behind = pair.consumer == "scatter, tensor" or (
        pair.consumer == "moe_gate" and pair.producer != "argsort"
    )
    return "G020" if before or behind else ""


def _table(cells: Mapping[tuple[str, str], Counter[str]]) -> Iterator[str]:
    """Yield the table of pairs as lines: producers by consumers, numbered."""
    for place, consumer in enumerate(CONSUMERS):
        yield f"{place:>3} = {consumer}"
    width = max(map(len, PRODUCERS))
    yield " " * width + "".join(f"{place:>9}" for place in range(len(CONSUMERS)))
    for producer in PRODUCERS:
        texts = []
        for consumer in CONSUMERS:
            codes = cells.get((producer, consumer), Counter())
            right, refused = codes[""], sorted(code for code in codes if code)
            texts.append(" ".join([*([str(right)] if right else []), *refused]))
        yield producer.ljust(width) + "".join(f"{text:>9}" for text in texts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge programs and print the tables of pairs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--every", type=int, default=1, help="take one program in so many")
    parser.add_argument("--seed", type=int, default=0, help="which of them, and their numbers")
    options = parser.parse_args(arguments)
    for gradient in (False, True):
        cells: dict[tuple[str, str], Counter[str]] = {}
        for pair in pairs(options.every, options.seed):
            code = judged(pair, options.seed, gradient=gradient)
            cells.setdefault((pair.producer, pair.consumer), Counter())[code] += 1
        total: Counter[str] = sum(cells.values(), Counter())
        print("gradients" if gradient else "programs", dict(total))
        print("\n".join(_table(cells)), flush=True)


if __name__ == "__main__":
    main()
