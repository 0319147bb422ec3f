# SPDX-License-Identifier: MIT
"""``layout="nchw"``: channels before the axes in space, put last by a transpose kernel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.build import bundle
from cklang.build.builder import Builder, shared_builder
from cklang.build.store import Store
from cklang.device.device import open_device
from cklang.device.module_cache import load_shim
from cklang.errors import CkError
from cklang.families.layout_copy.key import LayoutCopyKey, layout_copy_key
from cklang.families.layout_copy.lower import LayoutCopyShim
from cklang.families.layout_copy.plan import LayoutCopy
from cklang.families.tensor_layout import packed_strides
from cklang.frontend.ops.conv_arguments import LAYOUTS
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.ir.windows import Role
from cklang.runtime.launch import described_stage
from cklang.runtime.op import Op
from cklang.runtime.standalone_launch import standalone_launch
from tests.support.algorithms import narrow
from tests.support.arrays import eighths
from tests.support.checks import check, launches
from tests.support.coverage import Covered

N, K, C, P, G = ck.dims("N K C P G")
D, H, W, Do, Ho, Wo = ck.dims("D H W Do Ho Wo")


@ck.op
def forward(
    x: ck.f16[N, C, H, W], w: ck.f16[K, P, 3, 3], bias: ck.f16[K], res: ck.f16[N, K, Ho, Wo]
) -> ck.f16[N, K, Ho, Wo]:
    y = ck.conv(x, w, stride=(2, 1), padding=((0, 1), (2, 2)), groups=3, layout="nchw")
    return ck.relu(y + bias[:, None, None]) + res


@ck.op
def input_gradient(
    dy: ck.f16[N, K, Ho, Wo], w: ck.f16[K, C, 3, 3], x: ck.f16[N, C, H, W]
) -> ck.f16[N, C, H, W]:
    return ck.where(x > 0.0, ck.conv_grad_input(dy, w, padding=1, stride=2, layout="nchw"), 0.0)


@ck.op
def weight_gradient(
    x: ck.f16[N, C, H, W], dy: ck.f16[N, K, Ho, Wo], w: ck.f16[K, C, 3, 3]
) -> ck.f16[K, C, 3, 3]:
    return w - 0.25 * ck.conv_grad_weight(x, dy, padding=1, stride=2, layout="nchw")


SHAPES = {
    forward: ((2, 15, 7, 7), (9, 5, 3, 3), (9,), (2, 9, 3, 9)),
    input_gradient: ((2, 9, 5, 5), (9, 7, 3, 3), (2, 7, 9, 9)),
    weight_gradient: ((2, 7, 9, 9), (2, 9, 5, 5), (9, 7, 3, 3)),
}
"""Odd extents: one kernel, which moves single elements, makes all copies."""


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [eighths(*shape, seed=place) for place, shape in enumerate(shapes)]


def copies(op: Op) -> list[str]:
    """What the last call copied."""
    problems = (launch.problem for launch in launches(op))
    return [each.source for each in problems if isinstance(each, LayoutCopy)]


def channels_last(array: np.ndarray) -> np.ndarray:
    """The same array, in memory as torch's channels_last."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def single(op: Op) -> Op:
    return op.using(narrow(len(op.program.signature.tensors) - 2))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", SHAPES, ids=lambda op: op.program.name)
def test_arrays_are_copied_only_where_they_must(op: Op, covered: Covered) -> None:
    args = numbers(*SHAPES[op])
    narrow = single(op)
    want = check(narrow, args)
    names = [parameter.name for parameter in op.program.parameters]
    assert copies(narrow) == [*names[:2], *copies(narrow)[2:]]
    assert len(copies(narrow)) == 3
    text = narrow.explain(*args, device="emu:gfx942")
    assert text.count("so that channels are last") == 2
    assert text.count("so that channels are where the program has them") == 1
    # The first operand as torch's channels_last tensors have it, and the result likewise.
    out = channels_last(np.empty(want.shape, np.float16))
    check(narrow, [channels_last(args[0]), *args[1:]], out=out)
    assert copies(narrow) == [names[1]]
    np.testing.assert_array_equal(out, want)
    name = {"forward": "conv", "input_gradient": "conv_grad_input"}
    covered(f"{name.get(op.program.name, 'conv_grad_weight')} 2D, nchw", "f16", "gfx942")


@pytest.mark.usefixtures("stencils")
def test_declared_copies_are_bundled_and_made_without_headers(tmp_path: Path) -> None:
    args, registry = numbers(*SHAPES[forward]), ck.dispatch.Registry("nchw")
    single(forward).declare(*args, device="emu:gfx942", registry=registry)
    assert ck.dispatch.Registry.from_json(registry.to_json()).same_as(registry)
    copy_keys = [kernel.key for kernel in registry if kernel.key.family == "layout_copy"]
    assert copy_keys == [layout_copy_key("gfx942", 2, 1, 1)], (
        "odd extents: one kernel for all copies"
    )
    builder, path = shared_builder(), tmp_path / "nchw.ckb"
    stencil = builder.stencil_files((copy_keys[0], NO_FUNCTIONS))
    bundle.write(path, [stencil], compiler=builder.toolchain.identity, headers="a tree")
    lacking = Builder(Store(tmp_path / "cache"), builder.toolchain, None, ((path, 0),))
    (artifact,) = lacking.build_all([(copy_keys[0], NO_FUNCTIONS)])
    assert artifact.key == copy_keys[0]
    assert artifact.code_object.stat().st_size > 0


@pytest.mark.usefixtures("stencils")
def test_arrays_with_gaps() -> None:
    """A crop of a larger image, every second channel of a weight."""
    x, w, bias, res = numbers((2, 15, 12, 9), (9, 10, 3, 3), (9,), (2, 9, 3, 18))
    args = [x[:, :, 2:9, 1:8], w[:, ::2], bias, res[..., ::2]]
    narrow = single(forward)
    want = check(narrow, args)
    out = np.zeros((2, 9, 6, 9), np.float16)
    check(narrow, args, out=out[:, :, 1::2])
    np.testing.assert_array_equal(out[:, :, 1::2], want)
    assert not out[:, :, ::2].any()
    with pytest.raises(CkError, match="A031"):
        narrow(x[:, :, 2:9, 7:0:-1], *args[1:], device="emu:gfx942")


@pytest.mark.usefixtures("stencils")
def test_torch_tensors(torch: Any) -> None:
    """Numbers of few bits have exact sums, so both round alike; channels_last is read as it is."""
    args = [torch.from_numpy(array) for array in numbers(*SHAPES[forward])]
    args[0] = args[0].to(memory_format=torch.channels_last)
    narrow = single(forward)
    got = narrow(*args, device="emu:gfx942")
    assert copies(narrow)[0] == "w"
    x, w, bias, res = (tensor.double() for tensor in args)
    padded = torch.nn.functional.pad(x, (2, 2, 0, 1))
    y = torch.nn.functional.conv2d(padded, w, bias, stride=(2, 1), groups=3)
    assert torch.equal(got, (torch.relu(y) + res).half())


@ck.op
def chain(x: ck.f16[N, C, H, W], w: ck.f16[C, C, 3, 3]) -> ck.f16[N, C, H, W]:
    y = ck.relu(ck.conv(x, w, padding=1, layout="nchw")).to(ck.f16)
    return ck.conv(y, w, padding=1, layout="nchw") + x


@pytest.mark.usefixtures("compiler")
def test_nothing_is_copied_between_kernels_of_an_op() -> None:
    """What one kernel hands to the next has its channels last, and w is copied once for both."""
    args = numbers((1, 8, 6, 8), (8, 8, 3, 3))
    check(chain, args)
    assert copies(chain)[:2] == ["x", "w"]
    assert len(copies(chain)) == 3
    assert len(launches(chain)) == 5


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_mean_the_same(name: str) -> None:
    """The functions on arrays, where every layout is the channels-last one with axes exchanged."""
    layout = LAYOUTS[name]
    space = (5, 4, 3)[: layout.spatial]
    x, w = (2, *space, 2, 3), (2, 4, *(2,) * layout.spatial, 3)
    groups = None
    if not layout.apart:
        x, w, groups = (*x[:-2], 6), (8, *w[2:]), 2
    arrays = dict(zip((Role.INPUT, Role.WEIGHT), numbers(x, w), strict=True))
    last = ck.conv(*arrays.values(), groups=groups, spatial=layout.spatial)
    operands = [array.transpose(layout.back(role)) for role, array in arrays.items()]
    got = ck.conv(*operands, groups=groups, layout=name)
    np.testing.assert_array_equal(got.transpose(layout.perm(Role.OUTPUT)), last)
    size = {"size": space}
    dx = ck.conv_grad_input(got, operands[1], groups=groups, layout=name, **size)
    want = ck.conv_grad_input(
        last, arrays[Role.WEIGHT], groups=groups, spatial=layout.spatial, **size
    )
    np.testing.assert_array_equal(dx.transpose(layout.perm(Role.INPUT)), want)
    dw = ck.conv_grad_weight(operands[0], got, groups=groups, layout=name)
    assert dw.shape == operands[1].shape


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layout": "nchv"}, "legal: nwc, ncw, nwgc, ngcw, nhwc, nchw"),
        ({"layout": "ncdhw"}, "layout ncdhw has 5 axes, the operands 4 and 4"),
        ({"layout": "nchw", "spatial": 1}, "the numbers of spatial axes differ"),
        ({"layout": "nchw", "groups": 4}, "x [N, C, …]"),
    ],
)
def test_layouts_that_do_not_fit(arguments: dict[str, Any], words: str) -> None:
    x, w = numbers((1, 6, 5, 5), (4, 6, 3, 3))
    with pytest.raises(CkError, match="F067") as refusal:
        ck.conv(x, w, **arguments)
    assert words in str(refusal.value)


@ck.op
def line(x: ck.f16[N, G, C, W], w: ck.f16[G, K, C, 3]) -> ck.f16[N, G, K, Wo]:
    return ck.conv(x, w, padding=1, layout="ngcw")


@ck.op
def volume(x: ck.f16[N, C, D, H, W], w: ck.f16[K, C, 2, 2, 2]) -> ck.f16[N, K, Do, Ho, Wo]:
    return ck.conv(x, w, layout="ncdhw")


@pytest.mark.full
@pytest.mark.parametrize("op", [line, volume], ids=lambda op: op.program.name)
def test_other_ranks(op: Op, covered: Covered) -> None:
    shapes = {line: ((2, 2, 8, 19), (2, 16, 8, 3)), volume: ((1, 8, 3, 4, 5), (16, 8, 2, 2, 2))}
    check(op, numbers(*shapes[op]))
    assert len(copies(op)) == 3
    covered(f"conv {'1D' if op is line else '3D'}, nchw", "f16", "gfx942")


# --- the kernel itself


def copied(
    array: np.ndarray, target: np.ndarray, key: LayoutCopyKey | None = None
) -> LayoutCopyKey:
    """Copy ``array`` to the places of ``target`` by a kernel, and return the kernel's key."""
    size = array.itemsize
    copy = LayoutCopy(
        source="x",
        target="y",
        shape=array.shape,
        bytes=size,
        source_strides=tuple(step // size for step in array.strides),
        target_strides=tuple(step // size for step in target.strides),
        source_alignment=4 if array.ctypes.data % 4 == 0 else size,
        target_alignment=4 if target.ctypes.data % 4 == 0 else size,
    )
    gpu = "gfx942" if key is None else key.arch
    key = key or copy.key(arch(gpu))
    stage = replace(copy.stage(arch(gpu), "a test"), key=key)
    artifacts = shared_builder().build_all([(key, NO_FUNCTIONS)])
    addresses = {"x": array.ctypes.data, "y": target.ctypes.data}
    with standalone_launch(open_device(f"emu:{gpu}"), [stage], artifacts, addresses) as launch:
        launch()
    return key


@st.composite
def views(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of one shape whose axes lie in any order in memory, with gaps."""
    rank = draw(st.integers(1, 6))
    shape = tuple(draw(st.integers(1, 7 if rank > 3 else 70)) for _ in range(min(rank, 3)))
    shape += tuple(draw(st.integers(1, 4)) for _ in range(rank - 3))

    def lying() -> np.ndarray:
        order = draw(st.permutations(range(rank)))
        gaps = tuple(draw(st.integers(1, 2)) for _ in range(rank))
        storage = np.full([shape[a] * gaps[a] for a in order], -1, np.int16)
        part = storage[tuple(slice(0, None, gaps[a]) for a in order)]
        return part.transpose([order.index(a) for a in range(rank)])

    return lying(), lying()


@pytest.mark.usefixtures("stencils")
@given(pair=views())
@settings(max_examples=25)
def test_any_strides(pair: tuple[np.ndarray, np.ndarray]) -> None:
    """One kernel, which moves single elements, copies all and writes nothing in between."""
    source, target = pair
    source[...] = (np.arange(source.size) % 30011).reshape(source.shape)
    copied(source, target, layout_copy_key("gfx942", 2, 1, 1))
    np.testing.assert_array_equal(target, source)
    whole = target.base if target.base is not None else target
    assert np.count_nonzero(whole == -1) == whole.size - target.size


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize(
    ("dtype", "shape", "widths"),
    [(np.int16, (3, 72, 9, 8), (8, 8)), (np.int16, (2, 72, 7, 5), (1, 8))],
    ids=["wide", "narrow"],
)
def test_vectors(dtype: type, shape: tuple[int, ...], widths: tuple[int, int]) -> None:
    """Widths follow the extents; tiles end inside the matrix."""
    source: np.ndarray = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    target: np.ndarray = np.zeros((*shape[:1], *shape[2:], shape[1]), dtype)
    view = np.moveaxis(target, -1, 1)
    key = copied(source, view)
    assert (key.signature.source_vector, key.signature.target_vector) == widths
    np.testing.assert_array_equal(view, source)


@pytest.mark.full
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32], ids=str)
def test_elements_and_gpus(gpu: str, dtype: type, covered: Covered) -> None:
    from cklang.families.layout_copy.lower import widths

    size = np.dtype(dtype).itemsize
    for width in widths(size):
        shape = (2, 72, 9 * 8) if width > 1 else (2, 67, 71)
        source: np.ndarray = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        target: np.ndarray = np.zeros((2, *shape[:0:-1]), dtype)
        copied(source, target.transpose(0, 2, 1), layout_copy_key(gpu, size, width, width))
        np.testing.assert_array_equal(target.transpose(0, 2, 1), source)
    covered("transpose", f"{size} bytes", gpu)


@pytest.mark.usefixtures("stencils")
def test_launch_of_more_than_two_gigabytes() -> None:
    """Nothing runs: a tile is within reach however large the tensor is."""
    shape = (3, 64, 2**14, 2**14)
    copy = LayoutCopy(
        source="x",
        target="y",
        shape=shape,
        bytes=2,
        source_strides=packed_strides(shape, range(4)),
        target_strides=packed_strides(shape, (0, 2, 3, 1)),
        source_alignment=4,
        target_alignment=4,
    )
    stage = copy.stage(arch("gfx942"), "a test")
    (artifact,) = shared_builder().build_all([(stage.key, NO_FUNCTIONS)])
    # 2 channels at once, which lie half a GiB apart.
    assert described_stage(artifact, stage).shape.grid == (3 * 32 * 2**28 // 1024, 1, 1)
    request = replace(copy.request, rows=64)
    assert load_shim(artifact, LayoutCopyShim).describe(request) == (
        "a tile spans more than 2^31 bytes or has a negative stride"
    )
