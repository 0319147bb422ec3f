# SPDX-License-Identifier: MIT
"""Random calls of every family with random legal kernels, judged by the reference.

A call is drawn as text: a program, extents and dtypes. Its algorithm is drawn from all that are
legal for it: the values of each field in random order, then the first ones to which no rule
objects. Where rules leave nothing, the next draw follows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import numpy as np

import cklang as ck
from cklang.arch import ArchSpec, all_archs
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families import family_of
from cklang.families.gemm.key import ProductKind
from cklang.families.grid import Pattern
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.selection.rules import violations
from cklang.selection.space import enumerate_legal, legal_values
from cklang.testing import assert_close
from cklang.types import DTYPES
from tests.support.arrays import drawn
from tests.support.checks import check, check_group
from tests.support.written_ops import written_op

_DIMS = "B G H S T D E M N K L C F P R V X Y Z W Do Ho Wo"
_SIDES = (1, 2, 7, 13, 16, 31, 64, 97, 128, 160, 211, 256)
"""Extents of products: 1, primes, whole tiles, and what is beside them."""
_DEPTHS = (1, 3, 8, 16, 31, 40, 64, 127, 128, 256)
"""Extents along K, of which some are shorter than tiles, or have fewer than shares."""
_TILINGS = 4000
"""The algorithms of attention that one is drawn from, at most: more than there are."""
_GROUPED = {ProductKind.GEMM: ProductKind.GROUPED, ProductKind.PAIR: ProductKind.GROUPED_PAIR}
_LAST = 60
"""Products' algorithms that differ in the widths of accesses alone, at most."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A program with its extents, before there is an algorithm for it."""

    text: str
    sizes: Mapping[str, int]
    below: Mapping[int, int] = field(default_factory=dict)
    """Arguments that are indices, by place, and what they are below."""
    rising: frozenset[int] = frozenset()
    """Those of them that never decrease, from 0 to the last legal one, by place."""
    group: Sequence[Mapping[str, int]] = ()
    """The extents of each call of a group."""
    gradient: bool = False
    own: Any = None
    """An algorithm that the program alone does not ask for."""


@dataclass(frozen=True, kw_only=True)
class DrawnCall:
    """A call and the algorithms of its kernels."""

    family: str
    gpu: str
    written: Written
    op: Op
    algorithms: tuple[Any, ...]
    refused: int
    """How many draws before it rules left nothing for."""

    def __str__(self) -> str:
        w = self.written
        sizes = ", ".join(f"{n}={v}" for n, v in w.sizes.items())
        group = f", in a group with {[dict(each) for each in w.group[1:]]}" if w.group else ""
        kernels = "; ".join(map(str, self.algorithms)) or "its only kernel"
        gradient = "the gradient of\n" if w.gradient else ""
        return f"{self.family} on {self.gpu}: {gradient}{w.text}{sizes}{group}\nby {kernels}"


def draw(family: str, seed: int) -> DrawnCall:
    """Return the call of a seed, the same one as long as rules and spaces are the same."""
    random, refused = Random(f"{family} {seed}"), 0
    while True:
        spec = random.choice(all_archs())
        written = FAMILIES[family](random, spec)
        found = None if written is None else _with_algorithms(random, written, spec)
        if found is not None:
            assert written is not None
            op, algorithms = found
            return DrawnCall(
                family=family,
                gpu=spec.name,
                written=written,
                op=op,
                algorithms=algorithms,
                refused=refused,
            )
        refused += 1


def judge(call: DrawnCall) -> None:
    """Run a call on an emulated GPU and compare every element.

    Raises:
        CkMismatchError: It is wrong. CkInternalError: B014, its kernel does not compile.
    """
    if call.written.group:
        each = [tuple(_arguments(call.op, call.written, sizes)) for sizes in call.written.group]
        check_group(call.op, each, call.gpu)
        return
    args = _arguments(call.op, call.written, call.written.sizes)
    packed = [_packed(each) for each in args]
    if all(one is other for one, other in zip(args, packed, strict=True)):
        check(call.op, args, call.gpu)
        return
    got = call.op(*packed, device=f"emu:{call.gpu}")
    (want,), (bound,) = evaluate_with_bound(call.op.ir(*packed), args)
    assert_close(got, want, bound)


def _packed(array: Any) -> Any:
    """Return a matrix of 4-bit elements as kernels take it; others as they are."""
    is_packed = getattr(array, "dtype", None) in (ck.i4.numpy, ck.fp4.numpy)
    return ck.pack(array) if is_packed else array


def _arguments(op: Op, written: Written, sizes: Mapping[str, int]) -> list[Any]:
    args = drawn(op, sizes)
    for place, most in written.below.items():
        args[place] = _random_indices(args[place].shape, most, place in written.rising)
    return args


def _random_indices(shape: Sequence[int], most: int, rising: bool) -> Any:
    indices = np.random.default_rng(shape).integers(0, most, shape).astype(np.int32)
    if rising:
        indices[0], indices[-1] = 0, most - 1
        indices.sort()
    return indices


def _with_algorithms(
    random: Random, written: Written, spec: ArchSpec
) -> tuple[Op, tuple[Any, ...]] | None:
    """Return the op with algorithms for all its kernels; None if rules leave nothing."""
    op = written_op(written.text, _DIMS)
    op = ck.vjp(op) if written.gradient else op
    if written.own is not None:
        op = op.using(written.own)
    calls = [
        [_packed(each) for each in _arguments(op, written, sizes)]
        for sizes in written.group or [written.sizes]
    ]
    try:
        with ck.using(arch=spec.name):
            problems = [problem for args in calls for problem in op.problems(*args)]
            chosen = _algorithms(random, problems, written, spec)
            if chosen is None:
                return None
            for algorithm in chosen:
                op = op.using(algorithm)
            for args in calls:
                op.problems(*args)
    except (CkUnsupportedError, CkValueError):
        return None
    return op, (*chosen, *([written.own] if written.own is not None else []))


def _algorithms(
    random: Random, problems: Sequence[Any], written: Written, spec: ArchSpec
) -> tuple[Any, ...] | None:
    """Return an algorithm for each family of which there is a choice; None if one has none."""
    of_families: dict[str, list[Any]] = {}
    for problem in problems:
        family = family_of(problem.signature)
        if family.algorithm is not None and not isinstance(written.own, family.algorithm):
            of_families.setdefault(family.name, []).append(problem)
    chosen = [_legal_for(random, each, written, spec) for each in of_families.values()]
    return None if None in chosen else tuple(chosen)


def _legal_for(
    random: Random, problems: Sequence[Any], written: Written, spec: ArchSpec
) -> Any | None:
    """Return an algorithm that is legal for all problems of a family; None if there is none."""
    signatures = [each.signature for each in problems]
    if written.group:
        signatures = [replace(each, kind=_GROUPED[each.kind]) for each in signatures]
    legal = [
        algorithm
        for algorithm in _some_legal(random, signatures[0], spec)
        if not any(
            list(violations(algorithm, signature, spec, problem))
            for signature, problem in zip(signatures, problems, strict=True)
        )
    ]
    return random.choice(legal) if legal else None


def _some_legal(random: Random, signature: Any, spec: ArchSpec) -> Iterator[Any]:
    grid = family_of(signature).grid
    joint = {name for names in grid.joint.values() for name in names}
    choices: dict[str, Any] = dict.fromkeys(grid.everything.choices)
    if "tile" in joint:  # attention's tilings are few
        return islice(
            enumerate_legal(signature, spec, Pattern(choices=choices, of=grid.of)), _TILINGS
        )
    for name in choices:
        if name not in joint:
            values = list(legal_values(name, signature, spec))
            choices[name] = tuple(random.sample(values, len(values)))
    return islice(enumerate_legal(signature, spec, Pattern(choices=choices, of=grid.of)), _LAST)


# --- products


def _types(spec: ArchSpec) -> list[tuple[str, str]]:
    """Return what a GPU multiplies, without 4-bit floats, which need scales."""
    rows = [row for row in spec.warp_tiles if row.legal and not row.sparse and row.a != "fp4"]
    pairs = dict.fromkeys((row.a, row.b) for row in rows)
    return [(_own(a, spec), _own(b, spec)) for a, b in pairs]


def _own(name: str, spec: ArchSpec) -> str:
    """Return an element type in the encoding of a GPU."""
    return f"{name}_fnuz" if name in ("fp8", "bf8") and spec.fp8 == "fnuz" else name


def _result(random: Random, spec: ArchSpec) -> str:
    eights = [] if spec.fp8 == "none" else [_own("fp8", spec), _own("bf8", spec)]
    return random.choice(["f16", "bf16", "f32", *eights])


def _extents(random: Random) -> dict[str, int]:
    return {"M": random.choice(_SIDES), "N": random.choice(_SIDES), "K": random.choice(_DEPTHS)}


_EPILOGUES = (
    ("", "{}"),
    (", bias: ck.f32[N]", "ck.relu({} + bias)"),
    (", res: ck.f16[{batch}M, N]", "ck.gelu({}) + res"),
    (", gain: ck.bf16[M]", "{} * gain[:, None]"),
)


def _program(params: str, value: str, result: str) -> str:
    return f"@ck.op\ndef f({params}) -> {result}:\n    return {value}\n"


def _finished(random: Random, params: str, sums: str, result: str, batch: str = "") -> str:
    """Return a program that applies an epilogue to sums and stores them."""
    more, value = random.choice(_EPILOGUES)
    params += more.format(batch=batch)
    return _program(params, value.format(sums), f"ck.{result}[{batch}M, N]")


def _sums(product: str, dtype: str) -> str:
    return f"({product}).to(ck.f32) * 0.01" if dtype == "i8" else f"({product})"


def _operands(
    random: Random, a: str, b: str, *, batch: str = "", turned: bool = True
) -> tuple[str, str, str]:
    """Return the parameters x and w, and the expressions of A and B."""
    x_turned, w_turned = (turned and random.random() < 0.5 for _ in range(2))
    x = f"x: ck.{a}[{batch}{'K, M' if x_turned else 'M, K'}]"
    w = f"w: ck.{b}[{batch}{'K, N' if w_turned else 'N, K'}]"
    end = ".mT" if batch else ".T"
    return f"{x}, {w}", f"x{end if x_turned else ''}", f"w{'' if w_turned else end}"


def _product(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice(_types(spec))
    params, x, w = _operands(random, a, b)
    text = _finished(random, params, _sums(f"{x} @ {w}", a), _result(random, spec))
    return Written(text=text, sizes=_extents(random))


def _batched(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice(_types(spec))
    params, x, w = _operands(random, a, b, batch="G, ")
    text = _finished(random, params, _sums(f"{x} @ {w}", a), _result(random, spec), "G, ")
    return Written(text=text, sizes={**_extents(random), "G": random.choice((1, 2, 5))})


def _grouped(random: Random, spec: ArchSpec) -> Written:
    one = random.choice((_product, _product, _pair))(random, spec)
    group = [one.sizes, *(_extents(random) for _ in range(random.choice((1, 2, 3))))]
    return replace(one, group=group)


def _scaled(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice(_types(spec))
    scale, block = random.choice((("f32", 64), ("f32", 128), ("e8m0", 32), ("e8m0", 128)))
    if (
        scale == "e8m0"
        and block == 32
        and spec.tiles("fp4", "fp4", "f32")
        and random.random() < 0.3
    ):
        a = b = "fp4"
    params, x, w = _operands(random, a, b, turned=False)
    columns = random.choice(("N", "N / 128"))
    scales = {"a": (f"sx: ck.{scale}[M, K / {block}]", "scale_a=sx")}
    scales["b"] = (f"sw: ck.{scale}[{columns}, K / {block}]", "scale_b=sw.T")
    sides = [scales[side] for side in random.choice(("a", "b", "ab", "ab"))]
    params = ", ".join([params, *(param for param, _ in sides)])
    product = f"ck.gemm({x}, {w}, {', '.join(argument for _, argument in sides)})"
    text = _finished(random, params, product, random.choice(("f16", "bf16", "f32")))
    return Written(text=text, sizes=_extents(random))


def _sparse(random: Random, spec: ArchSpec) -> Written | None:
    if not any(row.sparse and row.legal for row in spec.warp_tiles):
        return None
    params, x, w = _operands(random, "f16", "f16")
    product = f'ck.gemm({x}, {w}, sparse="a")'
    return Written(text=_finished(random, params, product, "f32"), sizes=_extents(random))


def _four_bits(random: Random, spec: ArchSpec) -> Written:
    halves = [a for a, b in _types(spec) if a == b and a not in ("f32", "i8")]
    params, x, w = _operands(random, random.choice(halves), "i4", turned=False)
    text = _finished(random, params, f"({x} @ {w}) * 0.1", random.choice(("f16", "bf16", "f32")))
    return Written(text=text, sizes=_extents(random))


def _pair(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice([pair for pair in _types(spec) if pair[0] != "i8"])
    params, x, w = _operands(random, a, b)
    second = params.partition(", w")[2]
    value = f"ck.silu({x} @ {w}) * ({x} @ {w.replace('w', 'v')})"
    text = _program(f"{params}, v{second}", value, f"ck.{_result(random, spec)}[M, N]")
    return Written(text=text, sizes=_extents(random))


def _computed(random: Random, spec: ArchSpec) -> Written:
    a = random.choice([a for a, b in _types(spec) if a == b and a != "i8"])
    params, x, w = _operands(random, random.choice(("f16", "bf16", "f32")), a)
    product = f"(ck.silu({x}).to(ck.{a}) @ {w})"
    return Written(
        text=_finished(random, params, product, _result(random, spec)), sizes=_extents(random)
    )


def _gathered(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice(_types(spec))
    params, _, w = _operands(random, a, b, turned=False)
    params = f"{params.replace('M, K', 'L, K')}, rows: ck.i32[M]"
    text = _finished(random, params, _sums(f"x[rows] @ {w}", a), _result(random, spec))
    sizes = {**_extents(random), "L": random.choice(_SIDES)}
    return Written(text=text, sizes=sizes, below={2: sizes["L"]})


def _scattered(random: Random, spec: ArchSpec) -> Written:
    a, b = random.choice([pair for pair in _types(spec) if pair[0] != "i8"])
    params, x, w = _operands(random, a, b)
    params = f"y: ck.f32[V, N], ids: ck.i32[M], {params}"
    value = random.choice(("{}", "ck.relu({})")).format(f"ck.scatter_add(y, ids, {x} @ {w})")
    sizes = {**_extents(random), "V": random.choice(_SIDES)}
    text = _program(params, value, "ck.f32[V, N]")
    return Written(text=text, sizes=sizes, below={1: sizes["V"]})


def _segments(axis: str, random: Random, spec: ArchSpec) -> Written:
    """Return products of groups of rows, or pairs, or along K, whose ends are on the device."""
    a, b = random.choice([pair for pair in _types(spec) if pair[0] != "i8"])
    params, x, w = _operands(random, a, b)
    params = f"{params}, ends: ck.i32[G]"
    product = f"ck.grouped_gemm({x}, {w}, ends)"
    sizes = {**_extents(random), "G": random.choice((1, 2, 5))}
    below = {2: sizes[axis] + 1}
    if axis == "M":
        params = params.replace(f"w: ck.{b}[", f"w: ck.{b}[G, ")
        product = product.replace(w, w.replace(".T", ".mT"))
    if axis == "K":
        text = _program(params, product, f"ck.{_result(random, spec)}[G, M, N]")
    elif random.random() < 0.3:
        second = f"v: {params.partition('w: ')[2].partition(', ends')[0]}"
        value = f"ck.silu({product}) * {product.replace('w', 'v')}"
        text = _program(f"{params}, {second}", value, f"ck.{_result(random, spec)}[M, N]")
    else:
        text = _finished(random, params, product, _result(random, spec))
    return Written(text=text, sizes=sizes, below=below, rising=frozenset(below))


# --- convolutions

_IMAGE, _WINDOW, _OUTPUTS = ("D", "H", "W"), ("Z", "Y", "X"), ("Do", "Ho", "Wo")


def _convolution(direction: str, random: Random, spec: ArchSpec) -> Written | None:
    a = random.choice([a for a, b in _types(spec) if a == b and (direction == "" or a != "i8")])
    rank, groups = random.choice((1, 2, 2, 3)), random.choice((1, 1, 1, 2, 4))
    taps = [random.choice((1, 2, 3)) for _ in range(rank)]
    stride, dilation, padding = (random.choice(each) for each in ((1, 1, 2, 3), (1, 1, 2), (0, 1)))
    image = [random.choice((1, 4, 7, 13) if rank < 3 else (1, 3, 5)) for _ in range(rank)]
    outputs = [
        (extent + 2 * padding - dilation * (window - 1) - 1) // stride + 1
        for extent, window in zip(image, taps, strict=True)
    ]
    if min(outputs) < 1:
        return None
    channels, features = (groups * random.choice((1, 3, 8, 16, 24, 32)) for _ in range(2))
    sizes = {"B": random.choice((1, 2, 3)), "C": channels, "F": features, "P": channels // groups}
    inner, window, outer = (names[-rank:] for names in (_IMAGE, _WINDOW, _OUTPUTS))
    for names, extents in ((inner, image), (window, taps), (outer, outputs)):
        sizes |= dict(zip(names, extents, strict=True))
    how = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    axes = (["B", *inner, "C"], ["B", *outer, "F"], ["F", *window, "P"])
    x, y, w = (f"ck.{a}[{', '.join(names)}]" for names in axes)
    result = random.choice(("f16", "f32", a if a != "i8" else "f32"))
    texts = {
        "": (f"x: {x}, w: {w}, bias: ck.f32[F]", f"conv(x, w, {how})", "bias", y),
        "_grad_input": (f"dy: {y}, w: {w}, x: {x}", f"conv_grad_input(dy, w, {how})", "x", x),
        "_grad_weight": (f"x: {x}, dy: {y}, w: {w}", f"conv_grad_weight(x, dy, {how})", "w", w),
    }
    params, call, added, stored = texts[direction]
    value = f"{_sums(f'ck.{call}', a)} + {added}"
    return Written(text=_program(params, value, stored.replace(a, result, 1)), sizes=sizes)


# --- attention


_MASKS = ("", ", mask=ck.causal()", ", mask=ck.sliding_window(5, 2)", ", mask={}")
_SCORES = ("", ", score=lambda s: 2.0 * ck.tanh(s / 2.0)", ", score={}")


@dataclass(frozen=True)
class _Keys:
    """Where the rows of q, k and v are."""

    q: str = "B, H, S"
    k: str = "B, G, T"
    params: tuple[str, ...] = ()
    arguments: str = ""


_WHOLE = _Keys()
_PACKED = _Keys(
    "S, H",
    "T, G",
    ("mine: ck.i32[L]", "theirs: ck.i32[L]"),
    ", cu_seqlens_q=mine, cu_seqlens_k=theirs",
)
_PAGES = _Keys(
    "B, H, S",
    "N, G, R",
    ("filled: ck.i32[B]", "pages: ck.i32[B, P]"),
    ", seqlens_k=filled, block_table=pages",
)


def _attention(
    random: Random, spec: ArchSpec, *, gradient: bool = False, keys: _Keys = _WHOLE
) -> Written | None:
    tiles = spec.attention_grad_tiles if gradient else spec.attention_tiles
    names = sorted({_own(name, spec) for row in tiles for name in row.dtypes})
    if not names:
        return None
    dtype = random.choice(names)
    result = random.choice(("f16", "bf16")) if DTYPES[dtype].bytes == 1 else dtype
    params = [f"q: ck.{dtype}[{keys.q}, D]", f"k: ck.{dtype}[{keys.k}, D]"]
    params += [f"v: ck.{dtype}[{keys.k}, E]", *keys.params]
    mask, score = random.choice(_MASKS), random.choice(_SCORES)
    if "{}" in mask:
        mask = ", mask=lambda i, j: (j <= i + 20) | (i == 1)"
    if "{}" in score:
        params.append("slopes: ck.f32[H]")
        score = ", score=lambda s, h, i, j: s - slopes[h] * ck.abs((i - j).to(ck.f32))"
    more = ", dropout=0.25, seed=77, offset=3" if random.random() < 0.2 else ""
    more = "" if keys is _PAGES else more
    lse = not gradient and keys is _WHOLE and random.random() < 0.3
    lse_argument = ", return_lse=True" if lse else ""
    call = f"ck.attention(q, k, v{keys.arguments}{mask}{score}{more}{lse_argument})"
    stored = f"ck.{result}[{keys.q}, E]"
    stored = f"tuple[{stored}, ck.f32[B, H, S]]" if lse else stored
    heads = random.choice((1, 2))
    head = random.choice((8, 32, 40, 64, 72, 96, 128, 192, 256))
    sizes = {"B": random.choice((1, 2)), "H": heads * random.choice((1, 3)), "G": heads}
    sizes |= {"S": random.choice((1, 7, 31, 64, 129)), "T": random.choice((1, 5, 33, 64, 150))}
    sizes |= {"D": head, "E": head if gradient else random.choice((head, 32, 64, 128))}
    sizes |= {"L": random.choice((2, 3, 5)), "N": random.choice((2, 5))}
    sizes |= {"R": random.choice((1, 7, 16, 64)), "P": random.choice((1, 3))}
    below = {3: sizes["S"] + 1, 4: sizes["T"] + 1} if keys is _PACKED else {}
    if keys is _PAGES:
        below = {3: sizes["R"] * sizes["P"] + 1, 4: sizes["N"]}
    return Written(
        text=_program(", ".join(params), call, stored),
        sizes=sizes,
        below=below,
        rising=frozenset(below if keys is _PACKED else ()),
        gradient=gradient,
    )


# --- rows

_LENGTHS = (1, 2, 63, 64, 97, 256, 1000, 1024, 2053, 4096)
_ROWS = (
    ("x: ck.f32[M, K]", "ck.moe_gate(x, k=1)", "tuple[ck.f32[M, 1], ck.i32[M, 1]]"),
    ("x: ck.{t}[M, K]", "ck.argsort(x, 1)", "ck.i32[M, K]"),
    ("x: ck.{t}[M, K]", "ck.sample(x, 7, top_k=20, top_p=0.9)", "ck.i32[M]"),
    ("x: ck.{t}[M, K]", "ck.cumprod(ck.tanh(x), 0)", "ck.f32[M, K]"),
    ("x: ck.{t}[M, K]", "ck.softmax(x)", "ck.{t}[M, K]"),
    ("x: ck.{t}[M, K], g: ck.{t}[K]", "ck.rms_norm(x, g, eps=1e-5)", "ck.{t}[M, K]"),
    ("x: ck.{t}[M, K], g: ck.f32[K]", "ck.layer_norm(x, g, g, eps=1e-5)", "ck.f32[M, K]"),
    ("x: ck.{t}[M, K]", "ck.max(x, axis=-1), ck.sum(x, axis=-1)", "tuple[ck.{t}[M], ck.f32[M]]"),
    ("x: ck.{t}[M, K], y: ck.f32[K]", "ck.gelu(x + y)", "ck.{t}[M, K]"),
    ("x: ck.{t}[M, K]", "ck.mean(ck.square(x), axis=0)", "ck.f32[K]"),
    ("x: ck.{t}[M, K]", "ck.cumsum(x, 1)", "ck.f32[M, K]"),
    ("x: ck.{t}[M, K]", "ck.sort(x, 1)", "ck.{t}[M, K]"),
    ("x: ck.{t}[B, M, K]", "x.mT", "ck.{t}[B, K, M]"),
)
_UPSTREAM = (
    ("x: ck.{t}[M, K], g: ck.{t}[K]", "ck.rms_norm(x, g, eps=1e-5)", "ck.{t}[M, K]"),
    ("x: ck.{t}[M, K], g: ck.{t}[K]", "ck.layer_norm(x, g, g, eps=1e-5)", "ck.{t}[M, K]"),
    ("x: ck.{t}[M, K]", "ck.sum(x, axis=-1)", "ck.f32[M]"),
    ("x: ck.{t}[M, K]", "ck.max(x, axis=-1)", "ck.f32[M]"),
    ("x: ck.{t}[M, K], y: ck.{t}[M, K]", "x + y", "ck.{t}[M, K]"),
    ("x: ck.{t}[B, M, K]", "x.mT", "ck.{t}[B, K, M]"),
    ("x: ck.{t}[B, M, K]", "x.transpose(1, 0, 2)", "ck.{t}[M, B, K]"),
)


_SCATTERS = (
    ("ck.scatter(x, ids, rows)", "ck.{t}[M, K]"),
    ("ck.scatter_add(x, ids, rows)", "ck.{t}[M, K]"),
    ("ck.segment_sum(rows, ids, M)", "ck.f32[M, K]"),
)


def _scatters(random: Random, spec: ArchSpec) -> Written:
    value, result = random.choice(_SCATTERS)
    dtype = random.choice(("f16", "bf16", "f32"))
    params = f"x: ck.{dtype}[M, K], ids: ck.i32[L], rows: ck.{dtype}[L, K]"
    sizes = {"M": random.choice((1, 3, 17, 64)), "K": random.choice(_LENGTHS)}
    sizes["L"] = random.choice((1, 5, 64))
    text = _program(params, value, result.format(t=dtype))
    return Written(text=text, sizes=sizes, below={1: sizes["M"]})


def _rows(random: Random, spec: ArchSpec) -> Written:
    return _row_program(random, _ROWS, ("f16", "bf16", "f32"))


def _upstream_rows(random: Random, spec: ArchSpec) -> Written:
    written = _row_program(random, _UPSTREAM, ("f16", "bf16"))
    own = ck.dispatch.CkTileRows(
        threads=random.choice((64, 128, 256, 512)),
        vector=random.choice((1, 2, 4, 8)),
        repeats=random.choice((1, 2, 4)),
        two_pass=random.random() < 0.3,
    )
    return replace(written, own=own)


def _row_program(
    random: Random, programs: Sequence[tuple[str, str, str]], dtypes: Sequence[str]
) -> Written:
    params, value, result = random.choice(programs)
    dtype = random.choice(dtypes)
    sizes = {"B": 2, "M": random.choice((1, 3, 17, 64)), "K": random.choice(_LENGTHS)}
    used = {name: size for name, size in sizes.items() if name in params.replace("B, M", "B M")}
    text = _program(params.format(t=dtype), value, result.format(t=dtype))
    return Written(text=text, sizes=used if "B" in params else {"M": sizes["M"], "K": sizes["K"]})


FAMILIES: Mapping[str, Callable[[Random, ArchSpec], Written | None]] = {
    "product": _product,
    "batched product": _batched,
    "grouped product": _grouped,
    "scaled product": _scaled,
    "sparse product": _sparse,
    "4-bit product": _four_bits,
    "pair of products": _pair,
    "computed operand": _computed,
    "gathered rows": _gathered,
    "scattered product": _scattered,
    "product of segments": partial(_segments, "M"),
    "product of segments of K": partial(_segments, "K"),
    "convolution": partial(_convolution, ""),
    "convolution, input": partial(_convolution, "_grad_input"),
    "convolution, weight": partial(_convolution, "_grad_weight"),
    "attention": _attention,
    "attention, gradient": partial(_attention, gradient=True),
    "packed attention": partial(_attention, keys=_PACKED),
    "attention in pages": partial(_attention, keys=_PAGES),
    "rows": _rows,
    "scattered rows": _scatters,
    "CK Tile's rows": _upstream_rows,
}
"""What draws the calls of each family; None where a GPU or an extent allows none."""
