# SPDX-License-Identifier: MIT
"""Which rows CK Tile's own kernels compute, and by which algorithms."""

from collections.abc import Iterable, Sequence

from cklang.arch import ArchSpec
from cklang.families.bounds import (
    among,
    at_least,
    at_most,
    equal,
    first,
    multiple,
    narrow_access,
)
from cklang.families.ck_rows.key import CkTileRows, CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.problem import WINDOW_AXES, CkTileRowsProblem
from cklang.families.lines import MAX_AXES
from cklang.families.rowwise.problem import RowwiseTensor
from cklang.families.rule import RuleSet, Violation
from cklang.families.tensor_layout import packed_strides
from cklang.types import DType, bf16, f16, f32, fp8, fp8_fnuz, i8
from cklang.widths import ACCESS_BYTES

TILE = 64
"""Rows and columns of a tile of a transpose."""

_WAVE = 64
_NORMS = (
    UpstreamKernel.RMSNORM2D,
    UpstreamKernel.LAYERNORM2D,
    UpstreamKernel.SMOOTHQUANT,
    UpstreamKernel.ADD_RMSNORM2D_RDQUANT,
)
"""Kernels whose workgroups keep a row."""

_REDUCED = (UpstreamKernel.REDUCE_SUM, UpstreamKernel.REDUCE_MAX)

_SINGLE = (UpstreamKernel.PERMUTE, UpstreamKernel.TOPK_SOFTMAX)
"""Kernels that load an element at a time."""

_SCALES = 1
"""Which operand of a smooth quantisation is the f32 scales of columns."""

_MOST = {i8: 127.0, fp8: 448.0, fp8_fnuz: 240.0}
"""What the largest of a row becomes: the largest number of what is quantised."""
_TYPES: dict[UpstreamKernel, tuple[tuple[DType, ...], tuple[DType, ...]]] = {
    **dict.fromkeys(_NORMS[:2], ((f16, bf16), (f16, bf16, f32))),
    **dict.fromkeys(_NORMS[2:], ((f16, bf16), tuple(_MOST))),
    **dict.fromkeys(_REDUCED, ((f16, bf16, f32), (f32,))),
    **dict.fromkeys(
        (UpstreamKernel.POOL_SUM, UpstreamKernel.POOL_MAX), ((f16, bf16, f32), (f16, bf16, f32))
    ),
    UpstreamKernel.IMAGE_TO_COLUMN: ((f16, bf16), (f16, bf16)),
    UpstreamKernel.TOPK_SOFTMAX: ((f16, bf16, f32), (f32,)),
    UpstreamKernel.ELEMENTWISE_ADD: ((f16,), (f16,)),
    UpstreamKernel.BATCHED_TRANSPOSE: ((f16, bf16), (f16, bf16)),
    UpstreamKernel.PERMUTE: ((f16, bf16, f32), (f16, bf16, f32)),
}
"""What each kernel reads and writes here."""

RULES = RuleSet(placeholder=CkTileRows())
"""The rules of CK Tile's kernels of rows."""


@RULES.algorithm("ck-rows-wave", "CK Tile's kernels of rows are used with waves of 64", reads=())
def _wave(_a: CkTileRows, _s: CkTileRowsSignature, spec: ArchSpec) -> Violation | None:
    return equal("the lanes of a wave", spec.wave_size, _WAVE)


@RULES.algorithm("ck-rows-types", "CK Tile's kernels read and write these types", reads=())
def _types(_a: CkTileRows, s: CkTileRowsSignature, spec: ArchSpec) -> Violation | None:
    if s.result.encoding not in ("", spec.fp8):
        return Violation(what="the result's type", value=str(s.result), bound=f"{spec.fp8} here")
    read, written = _TYPES[s.kernel]
    if violation := among("the operands' type", s.dtype, read):
        return violation
    violation = among("the result's type", s.result, written)
    return violation or (equal("the result's type", s.result, s.dtype) if s.kernel.copies else None)


@RULES.algorithm(
    "ck-rows-threads", "a workgroup is some whole waves, a power of two", reads=("threads",)
)
def _threads(a: CkTileRows, _s: CkTileRowsSignature, spec: ArchSpec) -> Violation | None:
    most = spec.max_threads_per_block
    if _WAVE <= a.threads <= most and a.threads & (a.threads - 1) == 0:
        return None
    bound = f"a power of two from {_WAVE} to {most}"
    return Violation(what="the threads of a workgroup", value=str(a.threads), bound=bound)


@RULES.algorithm(
    "ck-rows-waves",
    "waves of CK Tile's add_rmsnorm2d_rdquant have no barrier between two reductions in one LDS",
    reads=("threads",),
)
def _waves(a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    if s.kernel is not UpstreamKernel.ADD_RMSNORM2D_RDQUANT or a.threads <= _WAVE:
        return None
    return Violation(what="the threads of a workgroup", value=str(a.threads), bound=str(_WAVE))


@RULES.algorithm(
    "ck-rows-vector", "an access moves at most 16 bytes, in powers of two", reads=("vector",)
)
def _vector(a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    if s.kernel is UpstreamKernel.ELEMENTWISE_ADD:
        # CK Tile counts 16 bytes of what it computes in.
        return narrow_access("the vector", a.vector, f32)
    is_wide = s.kernel is UpstreamKernel.IMAGE_TO_COLUMN
    if is_wide or not (s.kernel.copies or s.kernel.pools or s.kernel in _SINGLE):
        # The scales of columns have 32 bits, and are read in two accesses if need be.
        return narrow_access("the vector", a.vector, s.dtype)
    if s.kernel in _SINGLE or s.kernel.pools:
        return equal("the vector", a.vector, 1)
    full = ACCESS_BYTES // s.dtype.bytes
    if a.vector in (1, full):
        return None
    return Violation(what="the vector", value=str(a.vector), bound=f"1 or {full}")


@RULES.algorithm(
    "ck-rows-repeats",
    "norms keep some vectors of a row, or read it twice unless it is a sum; others do neither",
    reads=("threads", "repeats", "two_pass"),
)
def _repeats(a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    # That of a sum which is quantised reads the rounded sum again.
    violation = equal("two_pass", a.two_pass, False)
    if s.kernel in _NORMS:
        return violation if s.kernel is UpstreamKernel.ADD_RMSNORM2D_RDQUANT else None
    return violation or (equal("repeats", a.repeats, 1) if s.kernel.copies else None)


@RULES.problem("ck-rows-length", "a workgroup keeps its row", reads=("threads", "vector"))
def _length(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel not in _NORMS or a.two_pass or p.length <= a.longest:
        return None
    bound = f"at most {a.longest}, or an algorithm with two_pass=True"
    return Violation(what="the length of a row", value=str(p.length), bound=bound)


@RULES.problem(
    "ck-rows-contiguous",
    "rows have one stride and their elements none between them",
    reads=("vector",),
)
def _contiguous(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    kernel = p.signature.kernel
    if kernel.copies or kernel.pools:
        return None
    if len(p.rows) != 1 or len(p.elements) != 1:
        got = f"{len(p.rows)} of rows and {len(p.elements)} of elements"
        return Violation(what="the number of axes", value=got, bound="1 of each")
    violation = first(
        equal(f"the stride of elements of {tensor.value}", tensor.elements[0], 1)
        for tensor in (*p.operands, *p.of_elements)
    )
    if violation is None and kernel is UpstreamKernel.ELEMENTWISE_ADD:
        return equal("the number of rows", p.rows[0], 1)
    return violation or _steps(p, p.vectors, 0) or _steps(p, p.of_rows, 1)


def _steps(p: CkTileRowsProblem, tensors: Iterable[RowwiseTensor], step: int) -> Violation | None:
    """Return the tensor whose rows have another stride, if there are several."""
    if p.rows == (1,):
        return None
    return first(equal(f"the stride of rows of {x.value}", x.rows[0], step) for x in tensors)


@RULES.problem(
    "ck-rows-one-stride",
    "the rows of a sum and of its norm have one stride, and those of a gate's results",
    reads=(),
)
def _one_stride(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel is UpstreamKernel.TOPK_SOFTMAX:
        return _steps(p, p.results, p.results[0].rows[0])
    if p.signature.kernel is not UpstreamKernel.ADD_RMSNORM2D_RDQUANT:
        return None
    matrix, *others = p.matrices
    return _steps(p, (*others, *p.of_elements), matrix.rows[0])


@RULES.problem("ck-rows-operands", "operands have one type; scales of columns are f32", reads=())
def _operands(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    dtype, kernel = p.signature.dtype, p.signature.kernel
    legal = [dtype for _ in p.operands]
    if kernel is UpstreamKernel.SMOOTHQUANT:
        legal[_SCALES] = f32
    tensors = list(p.operands)
    if kernel is UpstreamKernel.ADD_RMSNORM2D_RDQUANT:
        tensors, legal = [*tensors, p.result], [*legal, dtype]
    return first(
        equal(f"the type of {tensor.value}", tensor.dtype, wanted)
        for tensor, wanted in zip(tensors, legal, strict=True)
    )


@RULES.problem(
    "ck-rows-most", "scales of rows are their largest over the largest number stored", reads=()
)
def _most(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if not p.signature.kernel.quantises:
        return None
    violation = equal("the divisor of the largest", p.most, _MOST[p.signature.result])
    return violation or equal("the type of the scales", p.results[-1].dtype, f32)


@RULES.problem(
    "ck-rows-windows",
    "windows lie side by side, two axes of an image with contiguous channels",
    reads=(),
)
def _windows(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if not p.signature.kernel.pools:
        return None
    if len(p.rows) != WINDOW_AXES or len(p.elements) != WINDOW_AXES - 1:
        got = f"{len(p.rows)} of rows and {len(p.elements)} of windows"
        return Violation(what="the number of axes", value=got, bound="3 of rows and 2 of windows")
    x = p.operands[0]
    steps = tuple(extent * step for extent, step in zip(p.elements, x.elements, strict=True))
    if x.rows != (*steps, 1) or min(steps) < 0:
        return Violation(what="the strides of x", value=str(x.rows), bound=str((*steps, 1)))
    if p.result.rows[-1] != 1 or min(p.result.rows) < 0:
        got = str(p.result.rows)
        return Violation(what="the strides of the result", value=got, bound="positive, the last 1")
    return None


@RULES.problem("ck-rows-access", "rows begin and end with a whole access", reads=("vector",))
def _access(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel is UpstreamKernel.IMAGE_TO_COLUMN:
        return multiple("the length of a line of a window", p.length, a.vector)
    if p.signature.kernel.copies or p.signature.kernel.pools:
        return None
    steps = [abs(part.rows[0]) for part in (p.operands[0], *p.results) if part.elements == (1,)]
    return multiple("the length of a row", p.length, a.vector) or first(
        multiple("the stride of rows", step, a.vector) for step in steps
    )


@RULES.problem(
    "ck-rows-tiles", "a transpose in vectors has whole tiles of 64 by 64", reads=("vector",)
)
def _tiles(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel is not UpstreamKernel.BATCHED_TRANSPOSE or a.vector == 1:
        return None
    return multiple("the rows of the operand", p.length, TILE) or multiple(
        "its columns", p.rows[-1], TILE
    )


@RULES.problem(
    "ck-rows-copy", "a copy has memory without gaps, and up to four axes beside the last", reads=()
)
def _copy(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if not p.signature.kernel.copies:
        return None
    extents = (*p.rows, *p.elements)

    def steps(strides: Sequence[int]) -> tuple[int, ...]:
        return tuple(0 if n == 1 else step for n, step in zip(extents, strides, strict=True))

    stored, packed = (*p.result.rows, *p.result.elements), packed_strides(extents)
    return (
        equal("the strides of the result", steps(stored), steps(packed))
        or at_most("the axes that count rows", len(p.rows), MAX_AXES)
        or at_least("a stride of the operand", min(*p.operands[0].rows, *p.operands[0].elements), 0)
    )
