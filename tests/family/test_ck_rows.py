# SPDX-License-Identifier: MIT
"""CK Tile's own kernels of rows as algorithms: what they compute, and what rules refuse."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkUnsupportedError
from cklang.families import key_from_json, plan_of
from cklang.families.ck_rows.key import CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.recognise import matched
from cklang.families.rowwise.fuse import FusedRows
from cklang.keys import Key
from cklang.runtime.op import Op
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.typed import instance

B, M, K = ck.dims("B M K")


@ck.op
def rms_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    return ck.rms_norm(x, gain, eps=1e-5)


@ck.op
def layer_norm(x: ck.bf16[M, K], gain: ck.bf16[K], bias: ck.bf16[K]) -> ck.bf16[M, K]:
    return ck.layer_norm(x, gain, bias, eps=1e-6)


@ck.op
def row_sum(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.sum(x, axis=-1)


@ck.op
def row_max(x: ck.f16[M, K]) -> ck.f32[M]:
    return ck.max(x, axis=-1)


@ck.op
def transposed(x: ck.f16[B, M, K]) -> ck.f16[B, K, M]:
    return x.mT


@ck.op
def swapped(x: ck.f16[B, M, K]) -> ck.f16[M, B, K]:
    return x.transpose(1, 0, 2)


@ck.op
def added(x: ck.f16[M, K], y: ck.f16[M, K]) -> ck.f16[M, K]:
    return x + y


@ck.op
def softmax(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.softmax(x)


def kernel_of(op: Op) -> str:
    """Return which of CK Tile's kernels computes an op; empty if none does."""
    (kernel,) = (instance(FusedRows, each) for each in plan_of(op.program.specialise()).kernels)
    match = matched(kernel.body)
    return "" if match is None else match.kernel.value


def test_programs_are_recognised_by_what_they_compute() -> None:
    @ck.op
    def by_hand(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
        wide = x.to(ck.f32)
        power = ck.mean(ck.square(wide), axis=-1, keepdims=True)
        return wide * ck.rsqrt(power + 1e-5) * gain

    @ck.op
    def of_two(x: ck.f16[M, K], y: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
        return x * ck.rsqrt(ck.mean(ck.square(y), axis=-1, keepdims=True) + 1e-5) * gain

    @ck.op
    def doubled(x: ck.f16[M, K]) -> ck.f32[M]:
        return ck.sum(x, axis=-1) * 2.0

    @ck.op
    def rounded(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
        return ck.rms_norm(x.to(ck.bf16), gain, eps=1e-5)

    kernels = {each: kernel_of(each) for each in (rms_norm, layer_norm, row_sum, row_max)}
    assert kernels == {
        rms_norm: "rmsnorm2d",
        layer_norm: "layernorm2d",
        row_sum: "reduce_sum",
        row_max: "reduce_max",
    }
    assert kernel_of(by_hand) == "rmsnorm2d"
    assert kernel_of(added) == "elementwise_add"
    assert kernel_of(transposed) == "batched_transpose"
    assert [kernel_of(each) for each in (of_two, doubled, rounded, softmax)] == [""] * 4


@pytest.mark.parametrize(
    ("op", "algorithm", "sizes", "rule"),
    [
        (
            rms_norm,
            ck.dispatch.CkTileRows(threads=64, vector=8),
            {"M": 2, "K": 1024},
            "ck-rows-length",
        ),
        (
            rms_norm,
            ck.dispatch.CkTileRows(threads=64, vector=8),
            {"M": 2, "K": 100},
            "ck-rows-access",
        ),
        (rms_norm, ck.dispatch.CkTileRows(threads=96), {"M": 2, "K": 64}, "ck-rows-threads"),
        (rms_norm, ck.dispatch.CkTileRows(vector=16), {"M": 2, "K": 64}, "ck-rows-vector"),
        (row_sum, ck.dispatch.CkTileRows(two_pass=True), {"M": 2, "K": 64}, "ck-rows-repeats"),
        (transposed, ck.dispatch.CkTileRows(vector=8), {"B": 2, "M": 60, "K": 64}, "ck-rows-tiles"),
        (swapped, ck.dispatch.CkTileRows(vector=8), {"B": 2, "M": 60, "K": 64}, "ck-rows-vector"),
        (added, ck.dispatch.CkTileRows(vector=8), {"M": 2, "K": 64}, "ck-rows-vector"),
        (added, ck.dispatch.CkTileRows(vector=4), {"M": 3, "K": 63}, "ck-rows-access"),
        (
            transposed,
            ck.dispatch.CkTileRows(vector=4),
            {"B": 1, "M": 64, "K": 64},
            "ck-rows-vector",
        ),
    ],
)
def test_a_rule_says_what_does_not_fit(
    op: Op, algorithm: ck.dispatch.CkTileRows, sizes: dict[str, int], rule: str
) -> None:
    with expect_error("K101", match=rule, kind=CkUnsupportedError):
        op.using(algorithm).explain(*drawn(op, sizes), device="emu:gfx942")


def test_strides_types_and_gpus() -> None:
    x, gain = drawn(rms_norm, {"M": 4, "K": 64})
    own = rms_norm.using(ck.dispatch.CkTileRows(threads=64))
    with pytest.raises(CkUnsupportedError, match="ck-rows-contiguous"):
        own.explain(np.asfortranarray(x), gain, device="emu:gfx942")
    with pytest.raises(CkUnsupportedError, match="ck-rows-wave"):
        own.explain(x, gain, device="emu:gfx1201")
    with expect_error("X031"):
        softmax.using(ck.dispatch.CkTileRows()).explain(x, device="emu:gfx942")
    pair = drawn(added, {"M": 4, "K": 128})
    with pytest.raises(CkUnsupportedError, match="ck-rows-contiguous"):
        added.using(ck.dispatch.CkTileRows(vector=4)).explain(
            pair[0][:, :64], pair[1][:, :64], device="emu:gfx942"
        )


def test_other_algorithms_are_not_affected() -> None:
    x, gain = drawn(rms_norm, {"M": 4, "K": 512})
    ours = rms_norm.using(ck.dispatch.RowwiseAlgorithm(threads=64, vector=8, chunks=1))
    assert "64 threads a row" in ours.explain(x, gain, device="emu:gfx942")
    theirs = ours.using(ck.dispatch.CkTileRows(threads=64))
    text = theirs.explain(x, gain, device="emu:gfx942")
    assert "CK Tile's kernel: 64 threads, 1 vectors of 8" in text


def test_keys_are_read_back() -> None:
    for kernel in UpstreamKernel:
        signature = CkTileRowsSignature(kernel=kernel, dtype=ck.f16, result=ck.f16)
        key: Key[Any, Any] = Key(signature, ck.dispatch.CkTileRows(threads=64), "gfx942")
        assert key_from_json(key.to_json()) == key


WIDE = ck.dispatch.CkTileRows(threads=256, vector=8, repeats=2)
KERNELS: list[tuple[Op, ck.dispatch.CkTileRows, tuple[dict[str, int], ...]]] = [
    (rms_norm, WIDE, ({"M": 5, "K": 4096}, {"M": 1, "K": 8}, {"M": 3, "K": 2056})),
    (layer_norm, WIDE, ({"M": 5, "K": 4096}, {"M": 1, "K": 8}, {"M": 3, "K": 2056})),
    (
        row_sum,
        ck.dispatch.CkTileRows(),
        ({"M": 5, "K": 4096}, {"M": 1, "K": 8}, {"M": 3, "K": 5000}),
    ),
    (
        row_max,
        ck.dispatch.CkTileRows(),
        ({"M": 5, "K": 4096}, {"M": 1, "K": 8}, {"M": 3, "K": 5000}),
    ),
    (
        transposed,
        ck.dispatch.CkTileRows(),
        ({"B": 3, "M": 128, "K": 192}, {"B": 1, "M": 64, "K": 64}),
    ),
    (
        transposed,
        ck.dispatch.CkTileRows(threads=64, vector=1),
        ({"B": 3, "M": 100, "K": 77}, {"B": 2, "M": 3, "K": 9}),
    ),
    (
        added,
        ck.dispatch.CkTileRows(vector=4, repeats=2),
        ({"M": 5, "K": 1000}, {"M": 1, "K": 4}, {"M": 2, "K": 1024}),
    ),
    (
        swapped,
        ck.dispatch.CkTileRows(vector=1),
        ({"B": 3, "M": 20, "K": 77}, {"B": 2, "M": 3, "K": 9}),
    ),
]


def check_kernel(
    op: Op,
    algorithm: ck.dispatch.CkTileRows,
    shapes: tuple[dict[str, int], ...],
    gpu: str,
    covered: Covered,
) -> None:
    """Check a kernel of CK Tile's on a GPU, and record it."""
    own = op.using(algorithm)
    for sizes in shapes:
        check(own, drawn(op, sizes), gpu)
    (launch,) = launches(own)
    signature: Any = launch.key.signature
    assert launch.key.family == "ck_rows"
    assert launch.resources.spills == 0
    covered(f"CK Tile's own {signature.kernel.value}", str(signature.dtype), gpu)


def name_of(value: object) -> str:
    return value.program.name if isinstance(value, Op) else value if isinstance(value, str) else ""


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "algorithm", "shapes"), KERNELS, ids=name_of)
def test_the_kernels(
    op: Op, algorithm: ck.dispatch.CkTileRows, shapes: tuple[dict[str, int], ...], covered: Covered
) -> None:
    check_kernel(op, algorithm, shapes, "gfx942", covered)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx950"])
@pytest.mark.parametrize(("op", "algorithm", "shapes"), KERNELS, ids=name_of)
def test_the_kernels_elsewhere(
    op: Op,
    algorithm: ck.dispatch.CkTileRows,
    shapes: tuple[dict[str, int], ...],
    gpu: str,
    covered: Covered,
) -> None:
    check_kernel(op, algorithm, shapes, gpu, covered)


@pytest.mark.usefixtures("compiler")
def test_two_passes_and_rows_with_gaps() -> None:
    own = rms_norm.using(ck.dispatch.CkTileRows(threads=64, vector=8, two_pass=True))
    x, gain = drawn(rms_norm, {"M": 3, "K": 4104})
    check(own, (x, gain))
    check(own, (x[:, :2056], gain[:2056]))


@pytest.mark.usefixtures("emulator")
def test_a_result_with_gaps_is_refused() -> None:
    (x,) = drawn(swapped, {"B": 2, "M": 6, "K": 4})
    out = np.zeros((6, 2, 16), np.float16)[:, :, :4]
    with pytest.raises(CkUnsupportedError, match="ck-rows-copy"):
        swapped.using(ck.dispatch.CkTileRows(vector=1))(x, out=out, device="emu:gfx942")


@pytest.mark.usefixtures("compiler")
def test_maxima_of_nan_and_infinity() -> None:
    x = np.zeros((4, 4096), np.float16)
    x[0, 7], x[1, 4095], x[2], x[3, 1] = np.nan, np.inf, -np.inf, -1
    y = row_max.using(ck.dispatch.CkTileRows())(x, device="emu:gfx942")
    np.testing.assert_array_equal(y, [np.nan, np.inf, -np.inf, 0])
