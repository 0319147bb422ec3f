# SPDX-License-Identifier: MIT
"""Which algorithms move which windows, and the grid of all that there are."""

from __future__ import annotations

import math

from cklang.arch import ArchSpec
from cklang.families.bounds import among, at_least, at_most, first, multiple, narrow_access
from cklang.families.grid import independent
from cklang.families.rule import RuleSet, Violation
from cklang.families.windows.key import (
    WindowAlgorithm,
    Windowed,
    WindowSignature,
    read_places,
)
from cklang.families.windows.problem import WindowProblem
from cklang.types import DType, bf16, bool_, f16, f32, i8, i32

_FLOATS: tuple[DType, ...] = (f16, bf16, f32)
_READ: tuple[DType, ...] = (*_FLOATS, i32, i8, bool_)

_MOST_LOADS = 200
"""Loads of a thread at most: the kernel has an instruction for each."""

_LOADS_OF_PLANES = 110
"""The same of a thread with several planes: after more, the lines that neighbouring threads share
have left the L1, by the clock."""

_MOST_PRODUCTS = 4096
"""Products of a thread at most, for the same reason."""

_MOST_WEIGHTS = 128
"""Weights at most: of a channel in LDS, or of all features for a row of pixels as scalars."""

_REGISTERS = 240
"""Registers for sums, a row of pixels and weights at most."""

_ROWS_OF_FEATURES = 4
"""Rows of a thread of some features at most: with more, weights move between registers."""

_REACH = 1 << 30
"""CK_WINDOW_REACH."""

_VECTORS = (1, 2, 4, 8)
_COLUMNS = (1, 2, 4, 8)
_ROWS = (1, 2, 4, 7, 8, 16)
_THREADS = (64, 256)
_PLANES = (1, 2, 4)

RULES = RuleSet(placeholder=WindowAlgorithm(vector=1, columns=1, rows=1))
"""The rules of windows over images."""


def loads_of(a: WindowAlgorithm, s: WindowSignature) -> int:
    """Return how many vectors of pixels a thread loads."""
    planes = read_places(a.planes, s.stride[0], s.window[0], s.dilation[0])
    return _loads_of_plane(a, s) * planes * s.channels


def _loads_of_plane(a: WindowAlgorithm, s: WindowSignature) -> int:
    (_, sy, sx), (_, dy, dx), (_, y, x) = s.stride, s.dilation, s.window
    return read_places(a.rows, sy, y, dy) * read_places(a.columns, sx, x, dx)


def registers_of(a: WindowAlgorithm, s: WindowSignature) -> int:
    """Return about how many registers a thread takes."""
    columns = read_places(a.columns, s.stride[2], s.window[2], s.dilation[2])
    if not s.neighbours:
        loaded = 3 * loads_at_once(a, s) // 2 if has_features(a, s) else 3 * columns
        return a.vector * a.pixels + loaded + 24
    weights = math.prod(s.window) * s.channels if s.how is Windowed.PRODUCTS else 0
    return a.vector * (a.pixels + 2 * columns + min(weights, 64)) + columns + 24


def has_features(a: WindowAlgorithm, s: WindowSignature) -> bool:
    """Whether a thread has several features, which share its pixels."""
    return a.vector > 1 and not s.neighbours


def unrolled_of(a: WindowAlgorithm, s: WindowSignature) -> int:
    """Return how many planes times channels the code has taps of; a loop has the others."""
    return 1 if has_features(a, s) else s.window[0] * s.channels


def loads_at_once(a: WindowAlgorithm, s: WindowSignature) -> int:
    """Return how many vectors of pixels the code loads without a loop."""
    return _loads_of_plane(a, s) if has_features(a, s) else loads_of(a, s)


@RULES.algorithm("window-types", "windows are of floats of 16 or 32 bits", reads=())
def _types(_a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    floats = {"images": s.dtype_a, "weights": s.dtype_b, "the result": s.dtype_e}
    wrong = (among(f"the type of {what}", dtype, _FLOATS) for what, dtype in floats.items())
    return first([*wrong, *(among("the type of an operand", d.dtype, _READ) for d in s.d)])


@RULES.algorithm(
    "window-weights", "weights stand in LDS or in scalar registers", reads=("vector", "rows")
)
def _weights(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    weights = math.prod(s.window) * s.channels
    if has_features(a, s):
        weights = min(a.rows, s.window[1]) * s.window[2] * a.vector
    return at_most("the weights that a thread has at once", weights, _MOST_WEIGHTS)


@RULES.algorithm("window-threads", "a workgroup has 64 or 256 threads", reads=("threads",))
def _threads(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    return among(
        "the threads of a workgroup", a.threads, _THREADS[1:] if s.neighbours else _THREADS
    )


@RULES.algorithm(
    "window-vector",
    "vectors are of neighbouring channels of groups of one, or of features of a group",
    reads=("vector",),
)
def _vector(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    if not s.neighbours:
        return multiple("the features of a group", s.features, a.vector)
    most = 1 if s.channels * s.features > 1 else max(_VECTORS)
    types = (s.dtype_a, s.dtype_e)
    wide = (narrow_access("the channels of a thread", a.vector, dtype) for dtype in types)
    return at_most("the channels of a thread", a.vector, most) or first(wide)


@RULES.algorithm(
    "window-columns",
    "neighbouring threads have neighbouring pixels where channels are not contiguous",
    reads=("columns",),
)
def _columns(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    return at_most("the columns of a thread", a.columns, max(_COLUMNS) if s.neighbours else 1)


@RULES.algorithm(
    "window-planes",
    "planes share what they read where windows have several, but not in a loop over these",
    reads=("vector", "planes"),
)
def _planes(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    most = 1 if has_features(a, s) or s.window[0] == 1 else max(_PLANES)
    return at_most("the planes of a thread", a.planes, most)


@RULES.algorithm(
    "window-code",
    "a kernel has an instruction for each load and product of a thread",
    reads=("vector", "columns", "rows", "planes"),
)
def _code(a: WindowAlgorithm, s: WindowSignature, _spec: ArchSpec) -> Violation | None:
    if a.pixels == a.vector == 1:
        return None
    products = math.prod(s.window[1:]) * unrolled_of(a, s) * a.pixels * a.vector
    loads = _MOST_LOADS if a.planes == 1 else _LOADS_OF_PLANES
    rows = _ROWS_OF_FEATURES if has_features(a, s) else max(_ROWS)
    return (
        at_most("the rows of a thread", a.rows, rows)
        or at_most("the loads of a thread", loads_at_once(a, s), loads)
        or at_most("the products of a thread", products, _MOST_PRODUCTS)
        or at_most("the registers of a thread", registers_of(a, s), _REGISTERS)
    )


@RULES.problem("window-channels", "channels are whole vectors", reads=("vector",))
def _channels(p: WindowProblem, a: WindowAlgorithm, _spec: ArchSpec) -> Violation | None:
    x = p.extents
    if not p.neighbours:
        return None
    wrong = [multiple("the channels", x.groups * x.features, a.vector)]
    for tensor in (p.a, p.e, *p.d):
        if tensor in p.d and tensor.strides[4] != 1:
            continue
        wrong += [multiple("a stride", step, a.vector) for step in tensor.strides[:4]]
        size = min(a.vector * tensor.dtype.bytes, 4)
        wrong.append(multiple("the alignment of an address", tensor.alignment, size))
    return first(wrong)


@RULES.problem("window-lines", "channels or pixels along x are contiguous", reads=())
def _lines(p: WindowProblem, _a: WindowAlgorithm, _spec: ArchSpec) -> Violation | None:
    steps = (tensor.strides[3] for tensor in (p.a, p.e))
    return None if p.contiguous else at_most("the stride along x", max(steps), 1)


@RULES.problem("window-strides", "buffers begin with the first element of an image", reads=())
def _strides(p: WindowProblem, _a: WindowAlgorithm, _spec: ArchSpec) -> Violation | None:
    tensors = [tensor for tensor in p.inputs if tensor is not p.b]
    return at_least("a stride", min(min(tensor.strides) for tensor in tensors), 0)


@RULES.problem("window-reach", "an image has fewer than 2^30 bytes", reads=())
def _reach(p: WindowProblem, _a: WindowAlgorithm, _spec: ArchSpec) -> Violation | None:
    tensors = [tensor for tensor in p.inputs if tensor is not p.b]
    images = p.extents.images - 1
    sizes = ((t.span - images * t.strides[0]) * t.dtype.bytes for t in tensors)
    return first(at_most("the bytes of an image", size, _REACH - 1) for size in sizes)


GRID = independent(
    WindowAlgorithm,
    {
        "vector": _VECTORS,
        "columns": _COLUMNS,
        "rows": _ROWS,
        "threads": _THREADS,
        "planes": _PLANES,
    },
    RULES,
)
"""All algorithms."""
