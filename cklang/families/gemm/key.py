# SPDX-License-Identifier: MIT
"""The identity of a kernel of products: what it computes, and how. Convolutions have it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from cklang.codec import later
from cklang.dims import require_integer
from cklang.errors import CkError, error
from cklang.ir.block_results import BLOCK_COLUMNS
from cklang.ir.log_sums import BLOCK_MAXIMA, BLOCK_SUMS, LOG_SUMS
from cklang.keys import Key, make_members
from cklang.types import DType, Kind, f32, i4, i32

Triple = tuple[int, int, int]


class ProductKind(Enum):
    """Which products a kernel computes."""

    GEMM = "gemm"
    BATCHED = "batched"
    """One matrix product for each index of a batch."""
    PAIR = "pair"
    """Two matrix products of one A, whose sums the epilogue takes together."""
    GROUPED = "grouped"
    """Matrix products of different sizes in one launch."""
    GROUPED_PAIR = "grouped_pair"
    """Pairs of different sizes in one launch."""
    SEGMENTED = "segmented"
    """Matrix products of consecutive rows, each segment with its own B; memory says where they
    end."""
    SEGMENTED_PAIR = "segmented_pair"
    """Pairs of these."""
    SEGMENTED_K = "segmented_k"
    """Matrix products of consecutive segments along K; memory says where they end."""
    CONV = "conv"
    """Convolution: for each group, pixels of the output by features."""
    CONV_GRAD_INPUT = "conv_grad_input"
    """The gradient of a convolution's input: pixels of the input by channels."""
    CONV_GRAD_WEIGHT = "conv_grad_weight"
    """The gradient of a convolution's weights: features by taps and channels."""


PAIRS = (ProductKind.PAIR, ProductKind.GROUPED_PAIR, ProductKind.SEGMENTED_PAIR)
"""The kinds whose epilogue takes two sums."""
SEGMENTED_ROWS = (ProductKind.SEGMENTED, ProductKind.SEGMENTED_PAIR)
"""The kinds whose rows are in segments."""
SEGMENTED = (*SEGMENTED_ROWS, ProductKind.SEGMENTED_K)
"""The kinds whose rows, or K, are in segments."""


class Layout(Enum):
    """Which axis of a matrix is contiguous: of A [M, K], B [K, N] and E [M, N]."""

    ROW = "r"
    COL = "c"
    PREPARED = "p"
    """Neither: B stands in the order in which the lanes of a warp take it."""
    LOG_SUMS = "l"
    """E is not stored; its rows hold the log-sum-exp of each block of columns."""
    SUMS = "s"
    """The same with the sum of each block."""
    MAXIMA = "m"
    """The same with its largest element."""
    WRITTEN = "w"
    """Rows of E are written to those of a table at indices."""
    ADDED = "a"
    """Rows of E are added to those of a table at indices, in any order."""

    @property
    def of_blocks(self) -> bool:
        """Whether a number is stored for each block of columns in the place of E."""
        return self in PARTS.values()

    @property
    def at_indices(self) -> bool:
        """Whether the rows of E go to those of a table."""
        return self in (Layout.WRITTEN, Layout.ADDED)


PARTS: Mapping[str, Layout] = MappingProxyType(
    {LOG_SUMS: Layout.LOG_SUMS, BLOCK_SUMS: Layout.SUMS, BLOCK_MAXIMA: Layout.MAXIMA}
)
"""The layout of E by the op whose numbers are stored in its place."""


class DKind(Enum):
    """How an operand of a function is read at (m, n).

    Of functions that compute A or B, n is the axis that is contiguous in their layout, m the other.
    """

    FULL = "full"
    """A matrix whose n axis is contiguous."""
    ROW = "row"
    """A vector along n, contiguous, the same for every m."""
    COLUMN = "column"
    """A vector along m, the same for every n."""
    SCALAR = "scalar"
    """One number."""
    STRIDED = "strided"
    """A matrix or vector with any other strides."""
    RESULT = "result"
    """A further result of the epilogue, a matrix whose n axis is contiguous: written, not read."""
    STRIDED_RESULT = "strided_result"
    """The same with any other strides."""

    GROUP_32 = "group_32"
    """A further result, a number for each row and group of 32 columns, with any strides."""
    GROUP_64 = "group_64"
    """The same of 64 columns."""
    GROUP_128 = "group_128"
    """The same of 128 columns."""
    GROUP_256 = "group_256"
    """The same of 256 columns."""

    @property
    def group(self) -> int:
        """The columns that one written number serves; 0 if each element is read or written."""
        return _GROUPS.get(self, 0)

    @property
    def contiguous(self) -> bool:
        """Whether one access moves neighbours along n."""
        return self in (DKind.FULL, DKind.ROW, DKind.RESULT)

    @property
    def written(self) -> bool:
        """Whether the epilogue writes it."""
        return self in (DKind.RESULT, DKind.STRIDED_RESULT) or self.group > 0


_GROUPS = {getattr(DKind, f"GROUP_{columns}"): columns for columns in BLOCK_COLUMNS}
GROUP_KINDS: Mapping[int, DKind] = MappingProxyType({n: kind for kind, n in _GROUPS.items()})
"""How numbers of groups of so many columns are written."""


READ_KINDS = tuple(kind for kind in DKind if not kind.written)
"""How an operand may be read."""


class Pipeline(Enum):
    """CK Tile's block GEMM pipelines."""

    MEM = "mem"
    """Many tiles of K in flight, for problems that wait for memory."""
    COMPV3 = "compv3"
    """One LDS buffer, the next tile in registers."""
    COMPV4 = "compv4"
    """Two LDS buffers, used in turn."""
    COMPV5 = "compv5"
    """Two wave groups along K, one loading while the other computes."""
    COMPV6 = "compv6"
    """One LDS buffer, the next two tiles in registers."""
    COMP_ASYNC = "comp_async"
    """Two LDS buffers that global memory is loaded into directly."""
    BASIC_V1 = "basic_v1"
    """The plain loop: one LDS buffer, the next tile in registers."""
    PRESHUFFLE_V2 = "preshuffle_v2"
    """A through two LDS buffers, a prepared B from memory straight into registers."""


class Scheduler(Enum):
    """How a pipeline interleaves loads and matrix instructions."""

    DEFAULT = "default"
    """No hints to the compiler; what the basic pipelines have."""
    INTRAWAVE = "intrawave"
    """Loads and matrix instructions of one wave alternate."""
    INTERWAVE = "interwave"
    """Waves take turns at loading and computing."""


class EpilogueKind(Enum):
    """How the accumulator tile reaches global memory."""

    CSHUFFLE = "cshuffle"
    """Through LDS, so that stores are wide."""
    DEFAULT = "default"
    """From the registers in which the matrix instructions leave it."""


class Reduction(Enum):
    """How workgroups that share a tile of E bring their sums together; the last one finishes it."""

    NONE = "none"
    """Every tile is one workgroup's."""
    ATOMIC = "atomic"
    """They add to one place: least memory, and an order of summation that is not the same twice."""
    WORKSPACE = "workspace"
    """Each writes its sums to a place of its own; the last adds them up, always in one order."""
    TREE = "tree"
    """The same places, added up in pairs, then pairs of pairs, always in one order."""


class ConvSpecial(Enum):
    """Convolutions that a kernel is made for, because it can leave out what they do not need."""

    DEFAULT = "default"
    """All of them."""
    POINTWISE = "pointwise"
    """Windows of one tap, no padding: no element is outside the image."""
    POINTWISE_PACKED = "pointwise_packed"
    """Stride 1 too, and pixels of one stride: a matrix product."""
    DEPTHWISE = "depthwise"
    """Three taps along each axis, one channel and one feature a group: divisors are constants."""


def _triple(what: str, value: object) -> None:
    if not isinstance(value, tuple) or len(value) != 3:
        raise error("K013", name=what, got=value)
    for axis, extent in zip("mnk", value, strict=True):
        if type(extent) is not int or extent < 1:  # thousands are made: no text for each
            require_integer(f"{what} {axis}", extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DOperand:
    """An operand of a function: its element type and how it is read."""

    dtype: DType
    kind: DKind


def accumulator(dtype_a: DType, *, scaled: bool = False) -> DType:
    """Return the type of the sums that an epilogue takes.

    ``scaled``: whether the sums of blocks of K are multiplied by scales.

    Example:
        >>> [str(accumulator(ck.i8, scaled=each)) for each in (False, True)]
        ['i32', 'f32']
    """
    return i32 if dtype_a.kind is Kind.INT and not scaled else f32


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scales of A or B: their element type, and the block that each is for."""

    dtype: DType
    block: tuple[int, int]
    """Rows of A or columns of B, and elements along K."""

    def __str__(self) -> str:
        return f"{self.dtype} for {self.block[0]}x{self.block[1]}"


def _misplaced(of: str, operands: tuple[DOperand, ...]) -> CkError:
    return error("K048", of=of, got=", ".join(operand.kind.value for operand in operands))


def _listed(operands: tuple[DOperand, ...]) -> str:
    return ", ".join(f"{operand.dtype} {operand.kind.value}" for operand in operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a kernel computes: E[m, n] = f(sum over k of A[m, k] B[k, n], D0[m, n], ...).

    Further results of f are the last operands of ``d``. Of a pair f takes two sums: A multiplied by
    B, and by a second matrix of B's dtype and layout.
    """

    kind: ProductKind = ProductKind.GEMM
    dtype_a: DType
    dtype_b: DType
    dtype_acc: DType
    dtype_e: DType
    layout_a: Layout
    layout_b: Layout
    layout_e: Layout = Layout.ROW
    d: tuple[DOperand, ...] = ()
    """What f reads; then its further results."""
    sparse: bool = False
    """Whether only the first two of each four of A along K count that are not zero."""
    a: tuple[DOperand, ...] = ()
    """What the function reads that computes A's elements as they are loaded; none: A is stored."""
    b: tuple[DOperand, ...] = ()
    """The same for B."""
    spatial: int = 0
    """Axes in space of a convolution, 1 to 3; 0 of other families."""
    scale_a: Scale | None = None
    """What the sum over each block of K is multiplied by."""
    scale_b: Scale | None = None
    functions: str = ""
    """Digest of f and of the functions of A and B; empty in the key of a stencil."""
    gather: DType | None = later(default=None)  # noqa: RUF009 - a field, which cannot change
    """The type of the indices at which the rows of A are read; None if they follow each other."""
    scatter: DType | None = later(default=None)  # noqa: RUF009 - a field, which cannot change
    """The type of the indices at which the rows of E are stored; None if they follow each other."""

    def __post_init__(self) -> None:
        written = [operand.kind.written for operand in self.d]
        if written != sorted(written):
            raise _misplaced("the epilogue", self.d)
        for name, operands in (("A", self.a), ("B", self.b)):
            if any(operand.kind.written for operand in operands):
                raise _misplaced(f"the function of {name}", operands)
        layouts = ("layout_a", "layout_b", "layout_e")
        make_members(self, {"kind": ProductKind, **dict.fromkeys(layouts, Layout)})

    @property
    def family(self) -> str:
        """The family of kernels that compute it."""
        return "conv" if self.spatial else "gemm"

    def label(self, algorithm: Algorithm) -> Sequence[str]:
        """Return what the label of a kernel says of it."""
        a = algorithm
        dtypes = "_".join(dict.fromkeys(d.name for d in (self.dtype_a, self.dtype_b, self.dtype_e)))
        shape = ("x".join(map(str, t)) for t in (a.tile, a.warps, a.warp_tile))
        counts = {"d": len(self.d), "a": len(self.a), "b": len(self.b)}
        computed = "".join(f"{name}{n}" for name, n in counts.items() if n or name == "d")
        sparse = ["sparse"] if self.sparse else []
        gathered = [f"at_{self.gather}"] if self.gather else []
        gathered += [f"to_{self.scatter}"] if self.scatter else []
        scales = [f"s{s.block[0]}x{s.block[1]}" for s in (self.scale_a, self.scale_b) if s]
        operands = [*sparse, dtypes, self.layouts, *gathered, computed, *scales]
        return [self.kind.value, *operands, a.pipeline.value, a.epilogue.value, *shape]

    @property
    def sums(self) -> int:
        """How many sums the epilogue takes for each element."""
        return 2 if self.kind in PAIRS else 1

    @property
    def reads(self) -> tuple[DOperand, ...]:
        """What the epilogue reads."""
        return tuple(operand for operand in self.d if not operand.kind.written)

    @property
    def operands(self) -> int:
        """How many arrays the epilogue reads or writes beside E: indices of its rows are one."""
        return len(self.d) + (self.scatter is not None)

    @property
    def group(self) -> int:
        """The columns in a group whose largest value the epilogue takes; 0 if it takes none."""
        return next((operand.kind.group for operand in self.d if operand.kind.group), 0)

    @property
    def layouts(self) -> str:
        """The layouts of A, B and E as CK Tile people write them: ``rcr``."""
        return self.layout_a.value + self.layout_b.value + self.layout_e.value

    @property
    def multiplied(self) -> tuple[str, str, str]:
        """The families of A, B and the accumulator as matrix instructions take them.

        4-bit integers are made elements of A's type on the way; sums of a block that has scales are
        the instructions', whatever they are scaled to.
        """
        b = self.dtype_a if self.dtype_b == i4 else self.dtype_b
        acc = accumulator(self.dtype_a) if self.block_k else self.dtype_acc
        return self.dtype_a.family, b.family, acc.name

    @property
    def words(self) -> str:
        """What is computed, for messages."""
        sparse = "sparse " if self.sparse else ""
        types = f"{sparse}{self.dtype_a} by {self.dtype_b} to {self.dtype_e}"
        further = self.d[len(self.reads) :]
        text = f"{types}, layouts {self.layouts}, epilogue operands {_listed(self.reads) or 'none'}"
        text += f", further results {_listed(further)}" if further else ""
        for name, operands in (("A", self.a), ("B", self.b)):
            text += f", {name} computed from {_listed(operands)}" if operands else ""
        text += f", rows of A at indices of {self.gather}" if self.gather else ""
        verb = "added" if self.layout_e is Layout.ADDED else "written"
        text += f", rows of E {verb} at indices of {self.scatter}" if self.scatter else ""
        for name, scale in (("A", self.scale_a), ("B", self.scale_b)):
            text += f", {name} scaled by {scale}" if scale else ""
        return text

    @property
    def block_k(self) -> int:
        """How many elements along K share a scale; 0 if there are no scales."""
        return next((scale.block[1] for scale in (self.scale_a, self.scale_b) if scale), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """How a kernel computes a product: every choice that CK Tile's templates take.

    Example:
        >>> algorithm = ck.dispatch.Algorithm(
        ...     tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16),
        ...     vector_a=8, vector_b=8, vector_e=8,
        ... )
        >>> algorithm.pipeline.value, algorithm.scheduler.value, algorithm.split_k
        ('compv3', 'intrawave', 1)
        >>> problem = ck.dispatch.problem(256, 512, 64)
        >>> ck.dispatch.advise(algorithm, problem.signature, "gfx942")  # no rule objects
        ()
    """

    tile: Triple
    """Block tile (m, n, k) in elements."""
    warps: Triple
    """Warps of a block along m, n and k."""
    warp_tile: Triple
    """Matrix instruction tile of a warp (m, n, k)."""
    pipeline: Pipeline = Pipeline.COMPV3
    scheduler: Scheduler = Scheduler.INTRAWAVE
    epilogue: EpilogueKind = EpilogueKind.CSHUFFLE
    pad_m: bool = True
    pad_n: bool = True
    pad_k: bool = True
    vector_a: int
    """Elements of A that one load moves along its contiguous axis."""
    vector_b: int
    vector_e: int
    vector_d: tuple[int, ...] = ()
    """Elements that one load of each D operand moves along n (1 for kinds not contiguous in n)."""
    block_per_cu: int = 1
    split_k: int = 1
    """Workgroups that share the K of a tile of E."""
    stream_k: bool = False
    """Whether as many workgroups as run at once share all steps along K of all tiles evenly."""
    reduction: Reduction = Reduction.NONE
    persistent: bool = False
    double_buffer: bool = False
    num_wave_groups: int = 1
    transpose_c: bool = False
    special: ConvSpecial = ConvSpecial.DEFAULT
    groups_merged: int = 1
    """Groups of a convolution that share a tile."""

    def __post_init__(self) -> None:
        for name in ("tile", "warps", "warp_tile"):
            _triple(name, getattr(self, name))
        for name in (
            "vector_a",
            "vector_b",
            "vector_e",
            "block_per_cu",
            "split_k",
            "groups_merged",
        ):
            require_integer(name, getattr(self, name))
        require_integer("num_wave_groups", self.num_wave_groups)
        for width in self.vector_d:
            require_integer("vector_d", width)
        make_members(
            self,
            {
                "pipeline": Pipeline,
                "scheduler": Scheduler,
                "epilogue": EpilogueKind,
                "reduction": Reduction,
                "special": ConvSpecial,
            },
        )


GemmKey: TypeAlias = Key[Signature, Algorithm]
"""The identity of a kernel of products or of convolutions."""
