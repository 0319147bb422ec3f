# SPDX-License-Identifier: MIT
"""Arguments against parameters: what is read from arrays, and each mismatch by its code."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.device import arrays
from cklang.errors import CkError
from cklang.frontend.signature import Annotation, Parameter
from cklang.runtime.bind import Binding, assign, bind, check_out
from cklang.source import Source, Span
from cklang.types import bf16, const, dims, dtype_var, f16, f32, i32
from tests.support.arrays import half
from tests.support.errors import expect_error

M, N, K = dims("M N K")
T: Any = dtype_var("T", f16, bf16)
SPAN = Span(source=Source(name="t", text=""), line=1, column=0, end_line=1, end_column=1)
RESULT = f16[M, N]


def parameter(name: str, type_: Annotation, **more: Any) -> Parameter:
    return Parameter(name=name, type=type_, span=SPAN, **more)


GEMM = [parameter("x", f16[M, K]), parameter("w", f16[N, K]), parameter("bias", f16[N])]


def call(*args: Any, parameters: Any = GEMM, result: Any = RESULT, **kwargs: Any) -> Binding:
    return bind(parameters, (result,), assign("linear", parameters, args, kwargs))


def refused(*args: Any, **kwargs: Any) -> CkError:
    with pytest.raises(CkError) as caught:
        call(*args, **kwargs)
    return caught.value


def test_dims_are_solved() -> None:
    binding = call(half(3, 5), half(4, 5), bias=half(4))
    assert binding.dims == {"M": 3, "K": 5, "N": 4}
    assert binding.results[0].shape == (3, 4)
    assert binding.results[0].dtype == f16


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((half(3, 5), half(4, 5)), "A010", ["linear() is missing bias", "x, w, bias"]),
        ((half(3, 5), half(4, 5), half(4), 1), "A011", ["takes 3 positional arguments", "got 4"]),
        ((half(3, 5), half(4, 6), half(4)), "A025", ["K is 6", "axis 1 of w", "5 in axis 1 of x"]),
        ((half(3, 5), half(4, 5), half(9)), "A025", ["N is 9", "bias", "4 in axis 0 of w"]),
        ((half(3), half(4, 5), half(4)), "A021", ["x has rank 1", "f16[M, K]"]),
        ((half(3, 5, 1), half(4, 5), half(4)), "A021", ["x has rank 3"]),
        (
            (half(3, 5).astype("f8"), half(4, 5), half(4)),
            "A020",
            ["f64", "x.astype(numpy.float16)"],
        ),
        ((half(3, 5).astype(">f2"), half(4, 5), half(4)), "A003", ["x", ">f2"]),
        ((half(3, 5).astype("c8"), half(4, 5), half(4)), "A002", ["complex64"]),
        (([[1.0]], half(4, 5), half(4)), "A001", ["x must be an array, not list"]),
        (("x.npy", half(4, 5), half(4)), "A152", ["x must be an array or a number, not the text"]),
        ((None, half(4, 5), half(4)), "A001", ["NoneType"]),
        ((half(3, 5), half(4, 5), 2.0), "A001", ["bias must be an array, not float"]),
    ],
)
def test_mismatches(args: tuple[Any, ...], code: str, words: list[str]) -> None:
    problem = refused(*args)
    assert problem.code == code
    for word in words:
        assert word in str(problem)


def test_unknown_and_repeated_names() -> None:
    assert refused(half(3, 5), half(4, 5), half(4), scale=1).code == "A011"
    assert refused(half(3, 5), half(4, 5), half(4), w=half(4, 5)).code == "A012"


def test_all_mismatches_are_told_at_once() -> None:
    text = str(refused(half(3, 5).astype("f4"), half(4, 6), half(7)))
    assert "CK-A020 x has dtype f32" in text
    assert "also: CK-A025 K is 6" in text
    assert "also: CK-A025 N is 7" in text


def test_fixed_extents() -> None:
    parameters = [parameter("x", f16[M, 128])]
    assert call(half(3, 128), parameters=parameters, result=f16[M, 128]).dims == {"M": 3}
    problem = refused(half(3, 127), parameters=parameters, result=f16[M, 128])
    assert problem.code == "A024"
    assert "extent 127" in str(problem)


def test_dtype_variables() -> None:
    parameters = [parameter("x", T[M, K]), parameter("w", T[N, K])]
    one = np.zeros((2, 2), ml_dtypes.bfloat16)
    assert call(one, one, parameters=parameters, result=T[M, N]).results[0].dtype == bf16
    assert refused(one, half(2, 2), parameters=parameters, result=T[M, N]).code == "A023"
    single = one.astype("f4")
    assert refused(single, single, parameters=parameters, result=T[M, N]).code == "A022"


def test_plain_numbers_for_rank_0() -> None:
    parameters = [parameter("x", f16[M, N]), parameter("alpha", f32[()]), parameter("n", i32[()])]
    binding = call(half(2, 2), 1.5, 3, parameters=parameters)
    assert np.asarray(binding.arrays["alpha"].owner) == np.float32(1.5)
    assert np.asarray(binding.arrays["alpha"].owner).dtype == np.float32
    assert call(half(2, 2), np.float32(2), 3, parameters=parameters).arrays["alpha"].dtype == f32
    assert refused(half(2, 2), 1.5, 3.5, parameters=parameters).code == "A028"
    assert refused(half(2, 2), True, 3, parameters=parameters).code == "A028"
    assert refused(half(2, 2), 1.5, 1 << 40, parameters=parameters).code == "A007"
    for number in (np.float64(2), np.float16(2), np.int64(2), 2):
        cell = call(half(2, 2), number, np.int64(3), parameters=parameters).arrays["alpha"]
        assert cell.dtype == f32
        assert np.asarray(cell.owner) == 2
    assert refused(half(2, 2), 1.5, np.float64(3), parameters=parameters).code == "A028"
    assert refused(half(2, 2), np.True_, 3, parameters=parameters).code == "A028"
    assert refused(half(2, 2), 1.5, np.int64(1 << 40), parameters=parameters).code == "A007"


def test_constants_and_defaults() -> None:
    cap = parameter("cap", const[float], default=30.0, keyword_only=True)
    parameters = [parameter("x", f16[M, N]), cap]
    assert call(half(2, 2), parameters=parameters).consts == {"cap": 30.0}
    assert call(half(2, 2), cap=3, parameters=parameters).consts == {"cap": 3.0}
    assert refused(half(2, 2), 3.0, parameters=parameters).code == "A011"
    assert refused(half(2, 2), cap="3", parameters=parameters).code == "F024"


def test_unaligned_elements_are_refused() -> None:
    raw = np.zeros(13, np.uint8)[1:].view(np.uint8)
    odd = np.ndarray((2, 3), np.float16, buffer=raw.data, offset=0)
    if odd.ctypes.data % 2 == 0:
        odd = np.ndarray((2, 2), np.float16, buffer=raw.data, offset=1)
    with expect_error("A004"):
        arrays.read("x", odd)


class TestOut:
    """The output array a caller passes."""

    binding = staticmethod(lambda: call(half(3, 5), half(4, 5), half(4)))

    def code(self, out: np.ndarray[Any, Any]) -> str:
        with pytest.raises(CkError) as caught:
            check_out(arrays.read("out", out), self.binding())
        return caught.value.code

    def test_legal(self) -> None:
        check_out(arrays.read("out", half(3, 4)), self.binding())
        check_out(arrays.read("out", half(3, 9)[:, 2:6]), self.binding())

    def test_dtype(self) -> None:
        assert self.code(np.zeros((3, 4), np.float32)) == "A040"

    def test_shape(self) -> None:
        assert self.code(half(4, 3)) == "A041"

    def test_read_only(self) -> None:
        out = half(3, 4)
        out.flags.writeable = False
        assert self.code(out) == "A042"

    def test_every_element_the_same(self) -> None:
        out = np.lib.stride_tricks.as_strided(half(4), (3, 4), (0, 2))
        assert self.code(out) == "A045"

    def test_overlap_with_an_input(self) -> None:
        x = half(3, 5)
        binding = call(x, half(4, 5), half(4))
        with expect_error("A043", "x"):
            check_out(arrays.read("out", x.reshape(-1)[:12].reshape(3, 4)), binding)

    def test_interleaved_views_do_not_overlap(self) -> None:
        both = half(3, 9)
        binding = call(both[:, :5], half(4, 5), half(4))
        check_out(arrays.read("out", both[:, 5:]), binding)


class Face:
    """An array of some other library."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.__array_interface__ = array.__array_interface__
        self.keep = array


class Capsule:
    """An array that offers DLPack only."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("wrap", [Face, Capsule])
def test_other_libraries_are_read_in_place(wrap: Any) -> None:
    array = half(3, 5)[:, 1:]
    read = arrays.read("x", wrap(array))
    assert read.pointer == array.ctypes.data
    assert read.shape == (3, 4)
    assert read.strides == (5, 1)


@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
    steps=st.lists(st.sampled_from([-2, -1, 0, 1, 3]), min_size=3, max_size=3),
)
def test_extent_covers_exactly_what_is_touched(shape: tuple[int, ...], steps: list[int]) -> None:
    strides = tuple(steps[: len(shape)])
    touched = [
        sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*shape)
    ]
    want = (min(touched) * 2, max(touched) * 2 + 2) if touched else (0, 0)
    assert arrays.extent_of(shape, strides, 2) == want
