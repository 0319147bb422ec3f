# SPDX-License-Identifier: MIT
"""Problems of convolutions without arrays: their numbers, their rules, and what is selected."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.families import key_from_json
from cklang.families.conv.problem import ConvProblem, conv_problem
from cklang.families.conv.rules import RULES
from cklang.families.gemm.key import Algorithm, ConvSpecial, DKind, GemmKey, Pipeline, Reduction
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.selection.diagnose import advise
from cklang.selection.rules import candidates, violations
from tests.support.algorithms import NARROW, WIDE, pipelined
from tests.support.arrays import half
from tests.support.errors import expect_error
from tests.support.typed import only

DIRECTIONS = ("conv", "conv_grad_input", "conv_grad_weight")


def refusing(problem: ConvProblem, algorithm: Algorithm, gpu: str = "gfx942") -> set[str]:
    rejections = violations(algorithm, problem.signature, arch(gpu), problem)
    return {rejection.rule for rejection in rejections}


def test_tensors_have_six_axes() -> None:
    problem = conv_problem((2, 14, 13, 64), (96, 3, 5, 16), groups=4, stride=(2, 1), padding=1)
    assert (problem.groups, problem.features, problem.channels) == (4, 24, 16)
    assert (problem.input, problem.output, problem.window) == ((1, 14, 13), (1, 7, 11), (1, 3, 5))
    # n, z, y, x, g, c; g, k, z, y, x, c; n, z, y, x, g, k
    assert problem.a.strides == (14 * 13 * 64, 0, 13 * 64, 64, 16, 1)
    assert problem.b.strides == (24 * 240, 240, 0, 80, 16, 1)
    assert problem.e.strides == (7 * 11 * 96, 0, 11 * 96, 96, 24, 1)
    assert (problem.a.span, problem.b.span, problem.e.span) == (23296, 23040, 14784)


def test_groups_apart_are_the_same_problem() -> None:
    within = conv_problem((2, 9, 64), (96, 3, 16), groups=4)
    apart = conv_problem((2, 9, 4, 16), (4, 24, 3, 16), spatial=1)
    assert within == apart


@pytest.mark.parametrize(
    ("direction", "product"),
    [
        ("conv", (4, 2 * 7 * 11, 24, 15 * 16)),
        ("conv_grad_input", (4 * 2, 2 * 7 * 13, 16, 180)),
        ("conv_grad_weight", (4, 24, 15 * 16, 2 * 7 * 11)),
    ],
)
def test_it_is_matrix_products(direction: str, product: tuple[int, ...]) -> None:
    numbers: dict[str, Any] = {"groups": 4, "stride": (2, 1), "padding": 1, "direction": direction}
    problem = conv_problem((2, 14, 13, 64), (96, 3, 5, 16), **numbers)
    assert problem.product() == product
    assert (problem.products, problem.m, problem.n, problem.k) == product
    merged = problem.product(2)
    assert merged[0] * 2 == product[0]
    # Blocks on a diagonal: both sides of the weight grow.
    grows = {"conv": (1, 2, 2), "conv_grad_input": (1, 2, 2), "conv_grad_weight": (2, 2, 1)}
    assert merged[1:] == tuple(n * by for n, by in zip(product[1:], grows[direction], strict=True))


@pytest.mark.parametrize(
    ("w", "numbers", "special"),
    [
        ((64, 3, 3, 64), {"padding": 1}, set()),
        ((64, 1, 1, 64), {}, {"pointwise", "pointwise_packed"}),
        ((64, 1, 1, 64), {"stride": 2}, {"pointwise"}),
        ((64, 1, 1, 64), {"padding": 1}, set()),
        ((64, 1, 3, 64), {}, set()),
        ((64, 3, 3, 1), {"groups": 64}, {"depthwise"}),
        ((128, 3, 3, 1), {"groups": 64}, set()),
        ((64, 5, 5, 1), {"groups": 64}, set()),
    ],
)
def test_specials_are_what_the_problem_is(
    w: tuple[int, ...], numbers: dict[str, Any], special: set[str]
) -> None:
    problem = conv_problem((2, 14, 14, 64), w, **numbers)
    assert {each.value for each in problem.specials} == special | {"default"}
    for each in ConvSpecial:
        refused = "conv-special" in refusing(problem, replace(NARROW, special=each))
        assert refused == (each not in problem.specials)


@given(
    groups=st.sampled_from((1, 2, 16)),
    features=st.sampled_from((1, 8, 12, 32)),
    channels=st.sampled_from((1, 2, 8, 12, 32, 1 << 12)),
    side=st.sampled_from((3, 8, 1 << 9)),
    stride=st.integers(1, 2),
    alignment=st.sampled_from((2, 4, 16)),
    direction=st.sampled_from(DIRECTIONS),
)
@settings(max_examples=40)
def test_short_cuts_of_rules_give_the_rules_answers(
    groups: int,
    features: int,
    channels: int,
    side: int,
    stride: int,
    alignment: int,
    direction: str,
) -> None:
    problem = conv_problem(
        (2, side, side, groups * channels),
        (groups * features, 3, 3, channels),
        groups=groups,
        stride=stride,
        alignment=alignment,
        direction=direction,
    )
    spec = arch("gfx942")
    algorithms = [
        replace(each, groups_merged=merged, pad_m=padded, pad_n=padded, pad_k=padded, split_k=split)
        for each in (NARROW, WIDE)
        for merged in (1, 2, 16)
        for padded in (True, False)
        for split in (1, 4)
        if groups % merged == 0
    ]
    for rule in RULES.problems:
        answers: dict[object, set[bool]] = {}
        for algorithm in algorithms:
            refused = rule.check(problem, algorithm, spec) is not None
            answers.setdefault(rule.decision_key(algorithm), set()).add(refused)
        assert all(len(each) == 1 for each in answers.values()), rule.id
        if rule.always_satisfied(problem, spec):
            assert set().union(*answers.values()) == {False}, rule.id


INPUT: dict[str, Any] = {"direction": "conv_grad_input"}
WEIGHT: dict[str, Any] = {"direction": "conv_grad_weight"}
LARGE: dict[str, Any] = {"x": (64, 1024, 1024, 64), "w": (64, 3, 3, 64), "padding": 1}


@pytest.mark.parametrize(
    ("rule", "problem", "algorithm"),
    [
        ("conv-extents", conv_problem((0, 9, 9, 8), (8, 3, 3, 8)), NARROW),
        ("conv-extents", conv_problem((1, 9, 9, 0), (8, 3, 3, 0)), NARROW),
        ("conv-extents", conv_problem((1, 99_999, 8), (8, 1, 8), stride=50_000), NARROW),
        ("conv-extents", conv_problem((1, 2**30, 1), (1, 1, 1)), NARROW),
        ("conv-pixels", conv_problem((2**15, 2**15, 1), (1, 1, 1), **WEIGHT), NARROW),
        ("conv-pixels", conv_problem((1, 2**15, 2**15, 1), (1, 1, 1, 1), **INPUT), NARROW),
        ("conv-taps", conv_problem((1, 2**16, 2**15), (1, 2**16, 2**15)), NARROW),
        ("conv-size", conv_problem(**LARGE, **WEIGHT), NARROW),
        ("conv-size", conv_problem((1, 2**14, 2**15, 4), (4, 1, 1, 4), **INPUT), NARROW),
        ("conv-size", conv_problem((1, 9, 2**28, 8), (4, 5, 1, 8)), NARROW),
        ("conv-merged", conv_problem((1, 9, 9, 6), (6, 3, 3, 1), groups=6), WIDE),
        ("conv-vector-a", conv_problem((1, 9, 9, 12), (16, 3, 3, 12)), WIDE),
        ("conv-vector-b", conv_problem((1, 9, 9, 12), (16, 3, 3, 12)), WIDE),
        ("conv-vector-e", conv_problem((1, 9, 9, 16), (12, 3, 3, 16)), WIDE),
        ("conv-vector-a", conv_problem((1, 9, 9, 16), (16, 3, 3, 16), alignment=2), WIDE),
        ("conv-pad-m", conv_problem((1, 9, 9, 16), (64, 1, 1, 16)), replace(WIDE, pad_m=False)),
        ("conv-pad-n", conv_problem((1, 8, 8, 32), (65, 1, 1, 32)), replace(NARROW, pad_n=False)),
        ("conv-pad-k", conv_problem((1, 8, 8, 24), (64, 1, 1, 24)), replace(WIDE, pad_k=False)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rules(rule: str, problem: ConvProblem, algorithm: Algorithm) -> None:
    if rule == "conv-merged":
        algorithm = replace(NARROW, groups_merged=4)
    assert rule in refusing(problem, algorithm)


def test_rules_let_pass_what_is_legal() -> None:
    for direction in DIRECTIONS:
        problem = conv_problem(
            (2, 14, 14, 64), (64, 3, 3, 16), groups=4, padding=1, direction=direction
        )
        assert refusing(problem, WIDE) == set()
        assert refusing(problem, replace(NARROW, groups_merged=4)) == set()
    assert len({rule.id for rule in RULES.problems}) == len(RULES.problems)


def test_strides_that_a_rule_sees() -> None:
    problem = conv_problem((2, 14, 14, 64), (64, 3, 3, 64))
    far = replace(problem.a, strides=(20_000, 0, 14 * 65, 65, 0, 1))
    assert "conv-vector-a" in refusing(replace(problem, a=far), WIDE)
    gaps = replace(problem.b, strides=(0, 3 * 3 * 65, 0, 3 * 65, 65, 1))
    assert "conv-weight" in refusing(replace(problem, b=gaps), NARROW)
    flat = conv_problem((2, 14, 14, 64), (64, 1, 1, 64))
    holes = replace(flat.a, strides=(20_000, 0, 14 * 64, 64, 0, 1))
    packed = replace(NARROW, special=ConvSpecial.POINTWISE_PACKED)
    assert "conv-packed" in refusing(replace(flat, a=holes), packed)
    assert refusing(flat, packed) == set()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_gradient_of_the_input_has_phases(direction: str) -> None:
    problem = conv_problem((2, 32, 32, 64), (64, 2, 2, 64), stride=2, direction=direction)
    unpadded = refusing(problem, replace(WIDE, pad_m=False, pad_k=False))
    assert ("conv-pad-m" in unpadded) == (direction == "conv_grad_input")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("dtype", [ck.f16, ck.bf16, ck.f32], ids=str)
def test_every_problem_has_a_kernel(direction: str, gpu: str, dtype: ck.types.DType) -> None:
    """Vector accesses are as wide as the channels allow: single elements where they are odd."""
    e = ck.f32 if direction == "conv_grad_weight" else dtype
    for channels, wide in ((64, True), (63, False)):
        w = (channels, 3, 3, channels)
        problem = conv_problem((2, 14, 14, channels), w, direction=direction, dtype=dtype, e=e)
        algorithm = ck.dispatch.select(problem, arch=gpu).key.algorithm
        assert (algorithm.vector_a * dtype.bytes == 16) == wide
        assert (algorithm.vector_b * dtype.bytes == 16) == wide
        assert wide or algorithm.vector_e == 1


def test_epilogue_operands_have_kinds() -> None:
    kinds = (DKind.FULL, DKind.ROW, DKind.COLUMN, DKind.SCALAR, DKind.STRIDED)
    for direction in DIRECTIONS:
        problem = conv_problem(
            (2, 14, 14, 64),
            (64, 3, 3, 16),
            groups=4,
            direction=direction,
            d=[(ck.f16, kind) for kind in kinds],
        )
        chosen = ck.dispatch.select(problem, arch="gfx942").key
        assert [d.kind for d in chosen.signature.d] == list(kinds)
        full, row, *single = chosen.algorithm.vector_d
        assert full == row == 8
        assert single == [1, 1, 1]


def test_keys_are_lossless() -> None:
    problem = conv_problem((2, 9, 9, 9, 16), (16, 3, 3, 3, 16), direction="conv_grad_input")
    key = ck.dispatch.select(problem, arch="gfx942").key
    assert key.signature.spatial == 3
    again = key_from_json(json.loads(json.dumps(key.to_json())))
    assert again == key
    assert again.digest == key.digest
    plane = replace(key.signature, spatial=2)
    assert replace(key, signature=plane).digest != key.digest


def test_a_registry_holds_them() -> None:
    mine = ck.dispatch.Registry("convolutions")
    problem = conv_problem((2, 14, 14, 64), (64, 1, 1, 64))
    text = "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"
    functions = Functions(epilogue=parse_function(text))
    problem = replace(problem, functions=functions.digest)
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 16)}
    widths = {"vector_a": 8, "vector_b": 8, "vector_e": 8}
    among = ck.dispatch.pattern(**tile, **widths, special=["pointwise_packed", "depthwise"])
    assert mine.declare(problem.signature, functions, "gfx942", among) == 2
    chosen = ck.dispatch.select(problem, registry=mine, arch="gfx942", strategy="first_fit")
    assert chosen.key.algorithm.special is ConvSpecial.POINTWISE_PACKED
    assert ck.dispatch.Registry.from_json(json.loads(json.dumps(mine.to_json()))).same_as(mine)


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": ck.bf16},
        {"e": ck.f32},
        {"direction": "conv_grad_input"},
        {"d": [(ck.f16, DKind.ROW)]},
        {"x": (2, 14, 64), "w": (64, 3, 64)},
        {"functions": "0" * 64},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_kernel_serves_its_own_signature_alone(other: dict[str, Any]) -> None:
    """Rank, direction, element types and epilogue are part of what is looked for."""
    text = "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"
    functions = Functions(epilogue=parse_function(text))
    numbers: dict[str, Any] = {
        "x": (2, 14, 14, 64),
        "w": (64, 3, 3, 64),
        "functions": functions.digest,
    }
    mine = ck.dispatch.Registry("one kernel")
    problem = conv_problem(**numbers)
    mine.add(GemmKey(problem.signature, WIDE, "gfx942"), functions)
    assert (
        ck.dispatch.select(problem, registry=mine, arch="gfx942").origin == "registry 'one kernel'"
    )
    chosen = ck.dispatch.select(conv_problem(**numbers | other), registry=mine, arch="gfx942")
    assert "registry" not in chosen.origin


UPSTREAM = (
    ((16, 64, 64), (1, 4, 1), (16, 16, 16)),
    ((32, 64, 64), (2, 2, 1), (16, 16, 16)),
    ((64, 64, 64), (4, 1, 1), (16, 16, 16)),
    ((32, 128, 64), (1, 4, 1), (32, 32, 16)),
    ((64, 128, 64), (2, 2, 1), (32, 32, 16)),
    ((128, 128, 64), (4, 4, 1), (32, 32, 16)),
    ((16, 64, 128), (1, 4, 1), (16, 16, 32)),
    ((32, 64, 128), (2, 2, 1), (16, 16, 32)),
    ((64, 64, 128), (4, 1, 1), (16, 16, 32)),
    ((128, 64, 128), (8, 2, 1), (16, 16, 32)),
)
"""Tile, warps and warp tile of the kernels that CK Tile's dispatcher declares by default."""


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("tile", "warps", "warp_tile"), UPSTREAM, ids=str)
def test_tiles_of_upstreams_default_set(
    tile: tuple[int, int, int],
    warps: tuple[int, int, int],
    warp_tile: tuple[int, int, int],
    direction: str,
) -> None:
    """All are legal where the GPU has the warps: sixteen of them run on gfx950 alone."""
    problem = conv_problem((2, 14, 14, 64), (64, 3, 3, 64), padding=1, direction=direction)
    tiling = replace(WIDE, tile=tile, warps=warps, warp_tile=warp_tile, vector_a=4)
    for gpu in ("gfx942", "gfx950"):
        for pipeline in (Pipeline.COMPV3, Pipeline.MEM):
            algorithm = replace(tiling, pipeline=pipeline)
            # Stores are as wide as the tile can be dealt out.
            refused = [
                refusing(problem, replace(algorithm, vector_e=vector), gpu) for vector in (8, 4, 2)
            ]
            expected = {"warps"} if math.prod(warps) > 4 and gpu == "gfx942" else set()
            assert expected in refused


def test_refusal_says_what_would_be_legal() -> None:
    problem = conv_problem((2, 14, 14, 64), (64, 3, 3, 64))
    pointwise = replace(WIDE, special=ConvSpecial.POINTWISE)
    (advice,) = advise(pointwise, problem.signature, "gfx942", problem)
    assert "special is pointwise, must be one of default" in str(advice)


def test_tensors_beyond_two_gigabytes() -> None:
    """Images are cut into pieces within a launch; one sum over all of them cannot be."""
    assert conv_problem(**LARGE).a.span * 2 > 2**32
    for direction in DIRECTIONS[:2]:
        assert ck.dispatch.select(conv_problem(**LARGE, direction=direction), arch="gfx942")
    with expect_error("K101", "conv-size"):
        ck.dispatch.select(conv_problem(**LARGE, **WEIGHT), arch="gfx942")


def test_an_image_beyond_two_gigabytes_is_cut_in_bands() -> None:
    """The input rows of one output row must be within reach, not all of the image."""
    image = conv_problem((1, 2**15, 2**15, 4), (4, 3, 3, 4), padding=1, dilation=(5, 1))
    assert image.a.span * 2 == 2**33
    chooses_values = pipelined(NARROW, Pipeline.MEM)
    # 11 rows of an image: the window's, with its holes. Whose loads are moved has less room.
    for stride, refused, moved_is_refused in (
        (2**17, set(), set()),
        (2**25, set(), {"conv-size"}),
        (2**26, set(), {"conv-size"}),
        (2**27, {"conv-size"}, {"conv-size"}),
    ):
        rows = replace(image, a=replace(image.a, strides=(0, 0, stride, 4, 0, 1)))
        assert refusing(rows, chooses_values) == refused
        assert refusing(rows, NARROW) == moved_is_refused
    flat = conv_problem((1, 2**15, 2**15, 4), (4, 1, 1, 4))
    packed = replace(NARROW, special=ConvSpecial.POINTWISE_PACKED)
    assert refusing(flat, packed) == {"conv-pixels", "conv-size"}
    assert ck.dispatch.select(flat, arch="gfx942").key.algorithm.special is ConvSpecial.POINTWISE


@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_sums_are_shared_where_there_are_few_tiles(gpu: str) -> None:
    """Of the gradient of a weight with one tile and 25088 steps, and of a deep small image."""
    w = (64, 3, 3, 64)
    for x, direction in (((32, 56, 56, 64), "conv_grad_weight"), ((2, 7, 7, 64), "conv")):
        algorithm = ck.dispatch.select(conv_problem(x, w, padding=1, direction=direction), arch=gpu)
        shared = algorithm.key.algorithm
        assert shared.split_k > 1 or shared.stream_k
        assert shared.reduction in (Reduction.WORKSPACE, Reduction.TREE)
    many = conv_problem((64, 112, 112, 64), w, padding=1)
    chosen = ck.dispatch.select(many, arch=gpu).key.algorithm
    assert (chosen.split_k, chosen.stream_k, chosen.reduction) == (1, False, Reduction.NONE)


@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_narrow_groups_share_a_tile(gpu: str) -> None:
    """Where those of one group would be mostly padding, and loads of single elements."""
    depthwise = ck.dispatch.select(
        conv_problem((8, 56, 56, 32), (32, 3, 3, 1), groups=32), arch=gpu
    )
    algorithm = depthwise.key.algorithm
    assert algorithm.special is ConvSpecial.DEPTHWISE
    assert algorithm.groups_merged > 1
    # Accesses of images go on from group to group, those of weights end in each.
    assert (algorithm.vector_a, algorithm.vector_b, algorithm.vector_e) == (8, 1, 8)
    for direction in ("conv", "conv_grad_input"):
        narrow, wide = (
            ck.dispatch.select(
                conv_problem(
                    (8, 28, 28, 256), (256, 3, 3, c), groups=256 // c, direction=direction
                ),
                arch=gpu,
            ).key.algorithm
            for c in (8, 64)
        )
        assert narrow.groups_merged > 1
        assert wide.groups_merged == 1


def test_what_is_chosen_unasked_gives_the_same_bits() -> None:
    for direction in DIRECTIONS:
        problem = conv_problem((2, 14, 14, 64), (64, 3, 3, 64), direction=direction)
        algorithms = candidates(problem.signature, "gfx942")
        assert {a.reduction for a in algorithms} <= {
            Reduction.NONE,
            Reduction.WORKSPACE,
            Reduction.TREE,
        }
        shares = direction != "conv_grad_input"
        assert any(a.split_k > 1 for a in algorithms) == shares
        assert any(a.stream_k for a in algorithms) == (direction == "conv_grad_weight")


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("K001", {"direction": "backward"}),
        ("F067", {"groups": 3}),
        ("F067", {"padding": -1}),
        ("F067", {"stride": (1, 1, 1)}),
        ("F067", {"dilation": 99}),
    ],
)
def test_no_problem(code: str, arguments: dict[str, object]) -> None:
    with expect_error(code):
        conv_problem((2, 14, 14, 64), (64, 3, 3, 64), **arguments)  # type: ignore[arg-type]


N, H, W, C, K, Ho, Wo = ck.dims("N H W C K Ho Wo")


@ck.op
def plain(x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, Ho, Wo, K]:
    return ck.conv(x, w, stride=2)


@pytest.mark.usefixtures("emulator")
def test_results_take_derived_extents() -> None:
    problem = only(ConvProblem, plain.problems(half(2, 9, 8, 16), half(24, 3, 3, 16)))
    assert problem.output == (1, 4, 3)
    without = conv_problem((2, 9, 8, 16), (24, 3, 3, 16), stride=2, functions=problem.functions)
    assert [each.strides for each in problem.inputs] == [each.strides for each in without.inputs]
    assert problem.signature == without.signature
    assert plain(half(0, 9, 8, 16), half(24, 3, 3, 16)).shape == (0, 4, 3, 24)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("x", "w", "code", "words"),
    [
        ((2, 16, 9, 8), (24, 3, 3, 16), "A025", "channels last"),
        ((2, 9, 8, 16), (24, 3, 3, 8), "A025", "channels last"),
        ((2, 2, 8, 16), (24, 3, 3, 16), "I033", "input 2 and weight 3"),
        ((2, 9, 8, 0), (24, 3, 3, 0), "K101", "channels of a group is 0"),
    ],
)
def test_calls_that_are_refused(
    x: tuple[int, ...], w: tuple[int, ...], code: str, words: str
) -> None:
    with expect_error(code, words):
        plain(half(*x), half(*w))


@pytest.mark.usefixtures("emulator")
def test_groups_of_calls_are_products() -> None:
    with expect_error("G004"):
        plain.grouped([(half(1, 9, 8, 16), half(24, 3, 3, 16))])


@pytest.mark.parametrize("kind", [DKind.ROW, DKind.COLUMN, DKind.SCALAR])
def test_groups_of_a_tile_need_operands_with_their_axis(kind: DKind) -> None:
    """One number for each group is read as a scalar, which has no place for several groups."""
    problem = conv_problem((1, 9, 9, 8), (8, 3, 3, 1), groups=8, d=[(ck.f16, kind)])
    step = replace(problem.d[0], strides=(*problem.d[0].strides[:4], 1, 0))
    algorithm = replace(NARROW, groups_merged=4, vector_d=(1,))
    refused = "conv-merged" in refusing(replace(problem, d=(step,)), algorithm)
    assert refused == (kind is not DKind.ROW)
