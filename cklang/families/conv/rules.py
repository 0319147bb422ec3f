# SPDX-License-Identifier: MIT
"""Rules about a convolution: which algorithms its extents, strides and addresses allow."""

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise

from cklang.arch import ArchSpec
from cklang.families.bounds import among, at_least, at_most, equal, first, multiple
from cklang.families.conv.problem import ConvProblem, ConvTensor
from cklang.families.gemm.key import Algorithm, ConvSpecial, DKind, ProductKind
from cklang.families.gemm.masked import may_move, moves_masked
from cklang.families.gemm.rules import RULES as GEMM_RULES
from cklang.families.rule import RuleSet, Violation
from cklang.ir.windows import Role
from cklang.widths import ACCESS_BYTES, BUFFER_BYTES, DWORD_BYTES

RULES = RuleSet(placeholder=GEMM_RULES.placeholder, algorithms=GEMM_RULES.algorithms)
"""The rules of convolutions: those of products about algorithms, and their own about problems."""

_MOST = (1 << 30) - 1
"""Sums of two coordinates stay in 32 bits."""
_LONGEST_SIDE = 512
"""More than the sides of all tiles."""
_DEEPEST = 512
"""More than K of all tiles."""
_LONGEST_STRIDE = 46340
"""The square of a stride stays in 32 bits."""


_GROUPED_KINDS = {
    Role.WEIGHT: (DKind.FULL, DKind.STRIDED),
    Role.INPUT: (DKind.FULL, DKind.ROW, DKind.STRIDED),
    Role.OUTPUT: (DKind.FULL, DKind.ROW, DKind.STRIDED),
}
"""Kinds of epilogue operands with an axis that groups of one tile are part of."""


def _piece(p: ConvProblem, role: Role, algorithm: Algorithm) -> tuple[int, ...]:
    """Return the images and the extents in space that a product must hold at least.

    A launch cuts the batch into as many pieces as addresses need, and forward an image into bands
    of output rows along its first axis, where its pixels are not one axis. The sums of the gradient
    of the weight go over all of it.
    """
    space = list(p.input if role is Role.INPUT else p.output)
    if p.kind is ProductKind.CONV and algorithm.special is not ConvSpecial.POINTWISE_PACKED:
        axis = 3 - p.spatial
        reach = (p.window[axis] - 1) * p.dilation[axis] + 1
        space[axis] = min(space[axis], reach) if role is Role.INPUT else 1
    return (p.images if p.kind is ProductKind.CONV_GRAD_WEIGHT else 1, *space)


@RULES.problem("conv-extents", "kernels have something to sum, and count in 32 bits", reads=())
def _extents(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    counts = {
        "images": p.images,
        "groups": p.groups,
        "features of a group": p.features,
        "channels of a group": p.channels,
        "the least extent of the input": min(p.input),
    }
    padded = [sum(axes) for axes in zip(p.input, p.before, p.after, strict=True)]
    return (
        first(at_least(what, count, 1) for what, count in counts.items())
        or at_most("the longest padded axis", max(padded), _MOST)
        or at_most("the greatest stride", max(p.stride), _LONGEST_STRIDE)
    )


@RULES.problem("conv-pixels", "pixels of a product are counted in 32 bits", reads=("special",))
def _pixels(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return first(
        at_most(f"the pixels of the {role.value}", math.prod(_piece(p, role, algorithm)), _MOST)
        for role in (Role.INPUT, Role.OUTPUT)
    )


@RULES.problem(
    "conv-taps", "taps and channels of a product are counted in 32 bits", reads=("groups_merged",)
)
def _taps(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    channels = max(p.channels, p.features) * algorithm.groups_merged
    return at_most("taps times channels of a product", math.prod(p.window) * channels, _MOST)


def _room(p: ConvProblem, algorithm: Algorithm) -> int:
    """Return the bytes that a tensor of a product may span.

    A buffer's 2 GiB; where loads of nothing are moved by as much, less what is read beside A and B.
    """
    if not moves_masked(p.signature, algorithm):
        return BUFFER_BYTES
    return BUFFER_BYTES - _bytes_beside(p, algorithm.tile[2], algorithm.groups_merged)


def _bytes_beside(p: ConvProblem, tile_k: int, merged: int) -> int:
    """Return how far the loop over K and windows go beyond the ends of A and B, or of an image.

    Both ``describe_masked_conv.hpp`` and this know that the loop loads at most three tiles beyond
    its end, whose taps, features or images go on from the last.
    """
    beyond = 3 * tile_k
    x, w, y = (p.tensors[role].strides for role in (Role.INPUT, Role.WEIGHT, Role.OUTPUT))
    tap, a, b = max(w[2:5]), beyond, beyond
    # Of a phase of the stride, for each tap along the first axis, at least.
    taps = math.prod(max(p.window[i] // p.stride[i], 1) for i in range(4 - p.spatial, 3))

    def more(size: int) -> int:
        return beyond // max(size, 1) + 1

    if p.kind is ProductKind.CONV:
        a += _covered(p, x) + more(p.channels * merged * taps) * _step(p, x)
        b += more(p.channels * merged) * tap
    elif p.kind is ProductKind.CONV_GRAD_INPUT:
        a += 2 * _covered(p, y) + more(p.features * merged * taps) * _step(p, y)
        b += more(p.features * merged) * tap + beyond * w[1] + more(p.features) * w[0]
    else:
        images = more(math.prod(p.output))
        a += images * _image(p.output, y)
        b += images * _image(p.input, x) + _covered(p, x)
    return max(a * p.a.dtype.bytes, b * p.b.dtype.bytes)


def _covered(p: ConvProblem, strides: Sequence[int]) -> int:
    """Return the elements that windows with their padding reach over."""
    axes = zip(p.window, p.dilation, p.before, p.after, strides[1:4], strict=True)
    return sum(((n - 1) * far + before + after) * s for n, far, before, after, s in axes)


def _image(extents: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements of an image, with the gaps in them."""
    return max(sum(n * s for n, s in zip(extents, strides[1:4], strict=True)), strides[0])


def _step(p: ConvProblem, strides: Sequence[int]) -> int:
    """Return the step from one tap to the next along the first axis, which goes on beyond K."""
    first_axis = 3 - p.spatial
    return p.dilation[first_axis] * strides[1 + first_axis]


def _all_in_a_buffer(p: ConvProblem, spec: ArchSpec) -> bool:
    """Tell whether whole tensors fit a descriptor; groups that a tile merges may reach further."""
    room = BUFFER_BYTES - _bytes_beside(p, _DEEPEST, merged=1)
    return p.groups == 1 and all(t.span * t.dtype.bytes <= room for t in p.inputs)


@RULES.problem(
    "conv-size",
    "a buffer descriptor counts bytes in 32 bits: of the images, rows and groups of a product",
    reads=("groups_merged", "special", "tile", "pipeline"),
    decision_key=lambda a: (a.groups_merged, a.special, a.tile if may_move(a) else None),
    always_satisfied=_all_in_a_buffer,
)
def _size(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    room = _room(p, algorithm)
    return first(
        at_most(
            f"the span in bytes of what a product may meet of {name}",
            _span_of_tile(p, role, tensor, algorithm) * tensor.dtype.bytes,
            room,
        )
        for name, role, tensor in _named(p)
    )


def _named(p: ConvProblem) -> list[tuple[str, Role, ConvTensor]]:
    """Return each operand with its name, and the role whose axes it has."""
    named = list(zip("ABE", p.roles, p.inputs[:3], strict=True))
    return named + [(f"D{i}", p.result, d) for i, d in enumerate(p.d)]


def _group_axis(role: Role) -> int:
    return 0 if role is Role.WEIGHT else 4


def _span_of_tile(p: ConvProblem, role: Role, tensor: ConvTensor, algorithm: Algorithm) -> int:
    """Return how many elements one product may reach over."""
    extents = list(p.extents(role))
    extents[_group_axis(role)] = algorithm.groups_merged
    if role is not Role.WEIGHT:
        extents[:4] = _piece(p, role, algorithm)
    return 1 + sum((n - 1) * step for n, step in zip(extents, tensor.strides, strict=True))


def _images_of_piece(p: ConvProblem, room: int) -> int:
    """Return the images of each of as few equal pieces of a batch as can be addressed."""

    def fits(images: int) -> bool:
        return all(
            _elements((images, *p.extents(role)[1:]), tensor) * tensor.dtype.bytes <= room
            for _, role, tensor in _named(p)
            if role is not Role.WEIGHT
        )

    if fits(p.images):
        return p.images
    parts = (p.images // n for n in range(2, p.images + 1) if p.images % n == 0)
    return next((images for images in parts if fits(images)), 1)


def _elements(extents: Sequence[int], tensor: ConvTensor) -> int:
    return 1 + sum((n - 1) * step for n, step in zip(extents, tensor.strides, strict=True))


def _stored_bytes(p: ConvProblem, algorithm: Algorithm) -> int:
    """Return the bytes from the start of a product's result to the end of its tiles."""
    tile, merged = algorithm.tile[:2], algorithm.groups_merged
    role, e = p.result, p.tensors[p.result]
    extents = list(p.extents(role))
    extents[_group_axis(role)] = merged
    axes: tuple[int, ...] = (1,)
    rows = p.features * merged
    if role is not Role.WEIGHT:
        axes, extents[0] = (0, 1, 2, 3), _images_of_piece(p, _room(p, algorithm))
        rows = math.prod(extents[:4])
    beyond = -rows % tile[0]
    phases = math.prod(p.stride) if p.kind is ProductKind.CONV_GRAD_INPUT else 1
    if phases > 1:
        # Each phase of the stride is a product of some of the pixels.
        beyond = tile[0] * phases
    reached = _elements(extents, e)
    if beyond:
        # The rest of a row is what the last one spans.
        inner = [1 if axis in axes else n for axis, n in enumerate(extents)]
        last = _offset_of(rows + beyond - 1, [(extents[axis], e.strides[axis]) for axis in axes])
        reached = max(reached, last + _elements(inner, e))
    columns_beyond = -p.product(merged)[2] % tile[1]
    return (reached + columns_beyond * max(e.strides[4:])) * e.dtype.bytes


def _offset_of(row: int, axes: Sequence[tuple[int, int]]) -> int:
    """Return the offset of a row, counted along axes of (extent, stride), on beyond the first."""
    place = 0
    for extent, stride in reversed(axes[1:]):
        row, index = divmod(row, extent)
        place += index * stride
    return place + row * axes[0][1]


def _is_cut_in_rows(p: ConvProblem, room: int) -> bool:
    """Whether an image of the result is beyond reach, so that launches store bands of its rows."""
    if p.result is Role.WEIGHT:
        return False
    e = p.tensors[p.result]
    return _elements((1, *p.extents(p.result)[1:]), e) * e.dtype.bytes > room


def _is_near(p: ConvProblem, spec: ArchSpec) -> bool:
    """Whether a result ends far below 2 GiB, whatever the tile."""
    e = p.tensors[p.result]
    beyond = _LONGEST_SIDE * (e.strides[0] + e.strides[1] + max(e.strides[4:]))
    return (_elements(p.extents(p.result), e) + beyond) * e.dtype.bytes <= BUFFER_BYTES


@RULES.problem(
    "conv-store-span",
    "whole tiles are stored, and what is beyond a result must not come round to its start",
    reads=("tile", "groups_merged", "pipeline"),
    decision_key=lambda a: (a.tile, a.groups_merged, may_move(a)),
    always_satisfied=_is_near,
)
def _store_span(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if _is_cut_in_rows(p, _room(p, algorithm)):
        return None
    m, n, _ = algorithm.tile
    what = f"the span of E in bytes, in whole tiles of {m}x{n},"
    return at_most(what, _stored_bytes(p, algorithm), BUFFER_BYTES)


@RULES.problem(
    "conv-special",
    "a kernel that leaves something out is for convolutions that do not need it",
    reads=("special",),
)
def _special(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return among(
        "special", algorithm.special.value, sorted(special.value for special in p.specials)
    )


@RULES.problem(
    "conv-packed",
    "without coordinates of pixels, those of a tensor have one stride",
    reads=("special",),
)
def _packed(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if algorithm.special is not ConvSpecial.POINTWISE_PACKED:
        return None
    for name, role, tensor in _named(p):
        if role is not Role.WEIGHT and not _joined(p.extents(role)[:4], tensor.strides[:4]):
            strides = ", ".join(map(str, tensor.strides[:4]))
            what = f"the strides of {name} along images and space"
            return Violation(what=what, value=strides, bound="those of one axis")
    return None


def _joined(extents: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether axes can be counted as one."""
    axes = [(n, step) for n, step in zip(extents, strides, strict=True) if n > 1]
    pairs = pairwise(axes)
    return all(outer == inner * n for (_, outer), (n, inner) in pairs)


@RULES.problem(
    "conv-merged",
    "a tile takes whole groups, whose channels go on from one to the next",
    reads=("groups_merged",),
)
def _merged(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    merged = algorithm.groups_merged
    if merged == 1:
        return None
    violation = multiple("the groups", p.groups, merged)
    if violation is not None:
        return violation
    for name, role, tensor in _named(p):
        apart = role is Role.WEIGHT
        if not apart and not _joined((merged, p.extents(role)[5]), tensor.strides[4:]):
            return Violation(
                what=f"the stride of {name} from group to group",
                value=str(tensor.strides[4]),
                bound=f"{p.extents(role)[5]}, where groups share a tile",
            )
    return first(
        Violation(
            what=f"the kind of D{i}", value=d.kind.value, bound="one that has the groups' axis"
        )
        for i, d in enumerate(p.d)
        if d.strides[_group_axis(p.result)] and d.kind not in _GROUPED_KINDS[p.result]
    )


@RULES.problem(
    "conv-weight",
    "as rows of features, taps and channels of a weight are one axis",
    reads=("groups_merged",),
)
def _weight(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if p.kind is ProductKind.CONV_GRAD_INPUT:
        return None
    extents, strides = p.extents(Role.WEIGHT), p.tensors[Role.WEIGHT].strides
    # Blocks of merged groups count taps apart from channels.
    from_channels = algorithm.groups_merged == 1
    inner = ((p.channels,), (1,)) if from_channels else ((), ())
    if _joined((*extents[2:5], *inner[0]), (*strides[2:5], *inner[1])) and (
        not from_channels or _goes_on(extents, strides)
    ):
        return None
    name = "E" if p.result is Role.WEIGHT else "B"
    what, value = f"the strides of {name} along taps", ", ".join(map(str, strides[2:5]))
    return Violation(what=what, value=value, bound="those of one axis that the channels begin")


def _goes_on(extents: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether the taps go on from the channels, also where there is one channel."""
    steps = [step for n, step in zip(extents[2:5], strides[2:5], strict=True) if n > 1]
    return not steps or steps[-1] == extents[5]


def _vector_fits(
    name: str, role: Role, tensor: ConvTensor, p: ConvProblem, width: int, merged: int
) -> Violation | None:
    """Whether every vector of ``width`` elements stays in the channels it may, and is aligned."""
    of_group = p.extents(role)[5]
    row = of_group if role is Role.WEIGHT else of_group * merged
    return multiple(f"the channels of {name} that a vector may reach", row, width) or _aligned(
        name, role, tensor, width, merged
    )


def _aligned(
    name: str, role: Role, tensor: ConvTensor, width: int, merged: int
) -> Violation | None:
    """Whether accesses start at whole dwords, or at whole elements if they are narrower."""
    size = tensor.dtype.bytes
    unit = min(width * size, DWORD_BYTES)
    group = _group_axis(role)
    steps = [s * (merged if axis == group else 1) for axis, s in enumerate(tensor.strides[:5])]
    violation = multiple(f"the address alignment of {name} in bytes", tensor.alignment, unit)
    return violation or first(
        multiple(f"a stride of {name} in bytes", s * size, unit) for s in steps
    )


def _vector_rule(letter: str) -> None:
    field = f"vector_{letter.lower()}"
    place = "ABE".index(letter)

    def fits(p: ConvProblem, width: int, merged: int) -> Violation | None:
        return _vector_fits(letter, p.roles[place], p.inputs[place], p, width, merged)

    def check(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
        return fits(p, getattr(algorithm, field), algorithm.groups_merged)

    def widest_fits(p: ConvProblem, spec: ArchSpec) -> bool:
        """Tell whether the widest access does: then all do, and those of merged groups too."""
        return fits(p, ACCESS_BYTES // p.inputs[place].dtype.bytes, 1) is None

    RULES.problem(
        f"conv-vector-{letter.lower()}",
        f"each vector access of {letter} is aligned and stays in its channels",
        reads=(field, "groups_merged"),
        always_satisfied=widest_fits,
    )(check)


for _letter in "ABE":
    _vector_rule(_letter)


@RULES.problem(
    "conv-vector-d",
    "each vector load of an epilogue operand is aligned and stays in its channels",
    reads=("vector_d", "groups_merged"),
)
def _vector_d(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return equal("the number of vector_d", len(algorithm.vector_d), len(p.d)) or first(
        _vector_fits(f"D{i}", p.result, d, p, width, algorithm.groups_merged)
        for i, (d, width) in enumerate(zip(p.d, algorithm.vector_d, strict=True))
        if d.kind in (DKind.FULL, DKind.ROW)
    )


def _pad_rule(axis: str, place: int) -> None:
    field = f"pad_{axis.lower()}"

    def check(p: ConvProblem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
        if getattr(algorithm, field):
            return None
        # Phases of the stride have different extents.
        phased = p.kind is ProductKind.CONV_GRAD_INPUT and math.prod(p.stride) > 1
        if phased and axis in "MK":
            return Violation(what=field, value="false", bound="true, where phases differ")
        unit = algorithm.tile[place] * (algorithm.split_k if axis == "K" else 1)
        return multiple(axis, p.product(algorithm.groups_merged)[1 + place], unit)

    def decides(algorithm: Algorithm) -> Hashable:
        if getattr(algorithm, field):
            return True
        return algorithm.tile[place], algorithm.groups_merged, algorithm.split_k

    RULES.problem(
        f"conv-pad-{axis.lower()}",
        f"without padding along {axis} the extent must be whole tiles",
        reads=(field, "tile", "groups_merged", "split_k"),
        decision_key=decides,
    )(check)


for _place, _axis in enumerate("MNK"):
    _pad_rule(_axis, _place)
