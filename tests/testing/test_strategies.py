# SPDX-License-Identifier: MIT
"""The strategies give what they promise, and reach the hard cases."""

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang import Op, dims, op, types
from cklang.ir.nodes import Function
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS, Kind
from cklang.testing import calls
from cklang.testing.strategies import Layout, Values, arrays, extents, laid_out, shapes, strided
from cklang.testing.whole_programs import ops
from cklang.types import DType, TensorType
from tests.support.programs import arguments, epilogues, gemm_functions, without_dead_code

LONG = settings(max_examples=3000, deadline=None, database=None)
FLOATS = [ck.f16, ck.bf16, ck.f32]


@given(shapes(2))
def test_extents_are_in_range(shape: tuple[int, int]) -> None:
    assert all(1 <= extent <= 300 for extent in shape)


@pytest.mark.parametrize("extent", [1, 127, 129, 293, 300])
def test_extents_reach_primes_and_edges(extent: int) -> None:
    assert find(extents(), lambda drawn: drawn == extent, settings=LONG) == extent


@given(st.sampled_from([*FLOATS, ck.i8, ck.i32, ck.bool_]), shapes(2, 20), st.data())
def test_arrays_have_their_dtype_and_shape(
    dtype: DType, shape: tuple[int, int], data: st.DataObject
) -> None:
    array = data.draw(arrays(dtype, shape))
    assert array.dtype == dtype.numpy
    assert array.shape == shape


def _has_subnormal(array: Array) -> bool:
    wide = np.abs(array.astype(np.float64))
    return bool(((wide > 0) & (wide < 2.0**-14)).any())


@pytest.mark.parametrize(
    "wanted",
    [
        lambda a: np.isnan(a.astype(np.float64)).any(),
        lambda a: (a.astype(np.float64) == -np.inf).any(),
        lambda a: (a.astype(np.float64) == 32768).any(),
        _has_subnormal,
    ],
)
def test_special_values_are_reached(wanted: object) -> None:
    find(arrays(ck.f16, (16, 16), [Values.SPECIAL]), wanted, settings=LONG)  # type: ignore[arg-type]


@given(arrays(ck.f32, (4, 64), [Values.CANCELLING]))
def test_cancelling_rows_sum_to_little(array: Array) -> None:
    assert (np.abs(array.sum(axis=1)) < 0.1 * np.abs(array).sum(axis=1)).all()


DTYPES = [dtype for dtype in vars(types).values() if isinstance(dtype, DType)]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("values", Values)
def test_arrays_of_every_dtype_are_drawn(dtype: DType, values: Values) -> None:
    array = find(arrays(dtype, (3, 5), [values]), lambda _: True)
    assert (array.dtype, array.shape) == (dtype.numpy, (3, 5))


@given(st.data(), ops(steps=5))
@settings(max_examples=15, deadline=None)
def test_whole_programs_are_ops_that_can_be_planned(data: st.DataObject, op: Op) -> None:
    call = data.draw(calls(op, dims={"C": [8, 40]}, largest=6))
    assert op.fusion(**call.arguments()).kernels


@given(st.sampled_from(list(Layout)), shapes(2, 12), st.integers(1, 9))
def test_layouts_keep_the_numbers(layout: Layout, shape: tuple[int, int], pad: int) -> None:
    array = np.random.default_rng(0).standard_normal(shape)
    view = laid_out(array, layout, pad)
    np.testing.assert_array_equal(view, array)
    assert not np.shares_memory(view, array)


def test_layouts_have_their_strides() -> None:
    array = np.zeros((5, 7), np.float16)
    strides = {
        layout: tuple(s // 2 for s in laid_out(array, layout, 3).strides) for layout in Layout
    }
    assert strides == {
        Layout.ROW: (7, 1),
        Layout.COLUMN: (1, 5),
        Layout.PADDED_ROW: (10, 1),
        Layout.PADDED_COLUMN: (1, 8),
        Layout.OFFSET: (13, 1),
        Layout.STEPPED: (28, 2),
    }
    for layout in Layout:
        assert laid_out(np.zeros((), np.float16), layout).shape == ()
        assert laid_out(np.zeros(3, np.float16), layout).shape == (3,)


@given(st.data())
def test_arguments_fit_their_function(data: st.DataObject) -> None:
    function = data.draw(gemm_functions(reads=6))
    given_arrays = data.draw(arguments(function))
    sizes: dict[object, int] = {}
    for param, array in zip(function.params, given_arrays, strict=True):
        assert array.dtype == param.type.dtype.numpy
        assert array.ndim == param.type.rank
        for extent, size in zip(param.type.shape, array.shape, strict=True):
            assert size == (extent if isinstance(extent, int) else sizes.setdefault(extent, size))


def test_most_pointwise_ops_are_drawn_soon() -> None:
    ops: set[str] = set()

    @settings(LONG, max_examples=400, derandomize=True, phases=[Phase.generate])
    @given(gemm_functions(depth=10, reads=1))
    def draw(function: Function) -> None:
        ops.update(operation.op for operation in function.body)

    draw()
    pointwise = {op for op, row in OPS.items() if row.kind is Kind.POINTWISE}
    assert len(ops & pointwise) > 0.7 * len(pointwise)


@given(epilogues(depth=4, reads=2))
def test_epilogues_are_regions_of_scalars(region: Function) -> None:
    assert all(value.type.rank == 0 for value in region.values())
    assert len(region.params) <= 3
    assert region.results[0].type == TensorType(dtype=ck.f32)


@given(gemm_functions())
def test_nothing_is_dead(function: Function) -> None:
    assert without_dead_code(function) == function


@given(strided(np.arange(12.0).reshape(3, 4)))
def test_strided_views_are_equal(view: Array) -> None:
    np.testing.assert_array_equal(view, np.arange(12.0).reshape(3, 4))


@given(strided(np.arange(12.0).reshape(3, 4), tuple(Layout)))
def test_wilder_views_are_drawn_on_request(view: Array) -> None:
    np.testing.assert_array_equal(view, np.arange(12.0).reshape(3, 4))


def test_wilder_views_are_those_without_a_contiguous_axis() -> None:
    array = np.zeros((3, 4))
    stepped = find(strided(array, tuple(Layout)), lambda a: min(a.strides) > a.itemsize)
    assert stepped.strides == (128, 16)


BATCH, M, N, K = dims("BATCH M N K")


@op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return x @ w.T + bias + res


@op
def batched(x: ck.i8[BATCH, M, K], w: ck.i8[BATCH, K, N], s: ck.f32[M]) -> ck.f32[BATCH, M, N]:
    return (x @ w) * s[:, None]


@pytest.mark.parametrize("program", [linear, batched], ids=repr)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_operands_of_ops_take_what_is_drawn_by_default(program: Op, data: st.DataObject) -> None:
    sizes: dict[object, int] = {}
    given_arrays = []
    for parameter in program.program.signature.tensors:
        assert isinstance(parameter.type, TensorType)
        shape = [sizes.setdefault(dim, data.draw(extents(40))) for dim in parameter.type.shape]
        array = data.draw(arrays(parameter.type.dtype, shape))
        given_arrays.append(data.draw(strided(array)))
    assert program.problems(*given_arrays)
