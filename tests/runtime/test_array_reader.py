# SPDX-License-Identifier: MIT
"""The C function that reads arrays for a call's key says what Python says, or nothing."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cklang.frontend.signature import Parameter
from cklang.runtime import call_key
from cklang.runtime.array_reader import ArrayReader, array_comparer, array_reader
from cklang.runtime.tracing import TracedArgumentError
from cklang.source import Source, Span
from cklang.types import dims, f16
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("torch")

N = dims("N")
SPAN = Span(source=Source(name="t", text=""), line=1, column=0, end_line=1, end_column=1)
PARAMETER = Parameter(name="x", type=f16[N], span=SPAN)
DTYPES = (np.float16, np.float32, np.int8, np.int32, np.int64, np.bool_, ml_dtypes.bfloat16)
TORCH_DTYPES = (
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.int32,
    torch.bool,
)


@pytest.fixture(scope="module")
def reader() -> ArrayReader:
    function = array_reader(torch)
    assert function is not None, "the toolchain has a compiler"
    return function


def keys(reader: ArrayReader, value: Any, out: Any = None) -> list[tuple[Any, Any]]:
    """Return key and addresses of a call as Python reads it, and as C does."""
    answers = []
    for function in (None, reader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(call_key, "_reader", function)
            call = call_key.of_call([PARAMETER], (value,), out, ("about",))
            answers.append((call.key, call.addresses))
    return answers


@st.composite
def views(draw: st.DrawFn, dtype: Any) -> Any:
    """Draw a strided view of an array: offset, step, order of axes, axes without elements."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    array = np.zeros(shape, dtype)
    for axis in range(array.ndim):
        start, step = draw(st.integers(0, 2)), draw(st.sampled_from((1, 2, -1)))
        array = np.moveaxis(np.moveaxis(array, axis, 0)[start::step], 0, axis)
    return array.transpose(draw(st.permutations(range(array.ndim))))


@given(st.sampled_from(DTYPES).flatmap(views))
def test_numpy_arrays_have_the_same_key(reader: ArrayReader, array: Any) -> None:
    by_python, by_c = keys(reader, array, out=array)
    assert by_python == by_c
    assert by_c[1] == [array.ctypes.data] * 2


@given(st.data())
def test_tensors_have_the_same_key(reader: ArrayReader, data: st.DataObject) -> None:
    array = np.abs(data.draw(views(np.uint8)).astype(np.uint8))
    tensor = torch.empty(array.shape, dtype=data.draw(st.sampled_from(TORCH_DTYPES)))
    order = data.draw(st.permutations(range(tensor.ndim)))
    tensor = tensor.permute(order)[data.draw(st.integers(0, 2)) :] if tensor.ndim else tensor
    by_python, by_c = keys(reader, tensor, out=tensor)
    assert by_python == by_c
    assert by_c[1] == [tensor.data_ptr()] * 2


@given(st.data(), st.booleans())
def test_a_known_key_tells_which_calls_are_like_its_own(
    reader: ArrayReader, data: st.DataObject, is_torch: bool
) -> None:
    comparer = array_comparer()
    assert comparer is not None
    dtypes = st.sampled_from((np.float16, np.float32, np.int8))
    calls = [[data.draw(dtypes.flatmap(views)) for _ in range(2)] for _ in range(2)]
    # Also two that differ in one array alone, or not at all.
    calls.append([calls[0][0].copy(order="K"), calls[data.draw(st.integers(0, 1))][1]])
    if is_torch:
        calls = [[torch.from_numpy(x.copy()).t_() if x.ndim == 2 else x for x in c] for c in calls]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_key, "_reader", reader)
        patch.setattr(call_key, "_comparer", comparer)
        about = ("about", None)
        known, *others = [
            call_key.of_call([PARAMETER] * 2, call, None, about) for call in (calls[0], *calls)
        ]
        for call, other in zip(calls, others, strict=True):
            again = call_key.repeated(known.key, about, call)
            assert (again is not None) == (known.key == other.key)
            if again is not None:
                assert (again.key, again.addresses) == (other.key, other.addresses)
            assert call_key.repeated(known.key, ("another", None), call) is None
            assert call_key.repeated(known.key, about, call[:1]) is None
            assert call_key.repeated(known.key, about, [*call, None]) is None


def test_optional_arguments_are_compared_and_numbers_are_not(reader: ArrayReader) -> None:
    comparer = array_comparer()
    assert comparer is not None
    array = np.zeros((2, 3), np.float16)
    key: list[Any] = ["about", None]
    assert reader(array, key, [])
    assert comparer(tuple(key), 1, (None, array)) == [array.ctypes.data]
    assert comparer(tuple(key), 1, (array, None)) is None
    assert comparer(tuple(key), 1, (0, array)) is None
    assert comparer((*key, float), 1, (None, array, 1.0)) is None
    assert comparer(tuple(key), 1, 3) is None  # type: ignore[arg-type]


def test_a_tensor_that_wants_a_gradient_is_not_like_one_that_does_not(reader: ArrayReader) -> None:
    comparer = array_comparer()
    assert comparer is not None
    weight = torch.nn.Parameter(torch.zeros(3, 4))
    key: list[Any] = []
    with torch.no_grad():
        assert reader(weight, key, [])
        assert comparer(tuple(key), 0, (weight,)) == [weight.data_ptr()]
    assert comparer(tuple(key), 0, (weight,)) is None


def test_an_array_that_cannot_be_written_has_another_key_as_out(reader: ArrayReader) -> None:
    array = np.zeros(4, np.float16)
    before = keys(reader, array, out=array)
    array.flags.writeable = False
    after = keys(reader, array, out=array)
    assert before[0] == before[1] != after[1] == after[0]


def test_parameters_are_read_where_no_gradient_is_wanted(
    reader: ArrayReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = torch.nn.Parameter(torch.zeros(3, 4))
    key: list[Any] = []
    addresses: list[int] = []
    assert not reader(weight, key, addresses)
    assert (key, addresses) == ([], [])
    with torch.no_grad():
        assert reader(weight, key, addresses)
    assert addresses == [weight.data_ptr()]
    monkeypatch.setattr(call_key, "_reader", reader)
    with pytest.raises(TracedArgumentError):
        call_key.of_call([PARAMETER], (weight,), None, ())


class _Own(torch.Tensor):
    """A class that computes for its tensors."""


class _OwnArray(np.ndarray[Any, Any]):
    """A class of arrays."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "value",
    [
        1.5,
        "text",
        None,
        [1.0],
        np.float16(1),
        np.zeros(4).view(_OwnArray),
        np.ma.masked_array(np.zeros(4), mask=True),
        torch.zeros(4).as_subclass(_Own),
        torch.zeros(4, 4).to_sparse(),
        torch.zeros(4, 4).to_mkldnn(),
        torch.zeros(4, device="meta"),
        torch.zeros(4, dtype=torch.complex64).conj().imag,
        torch.zeros(4, requires_grad=True),
    ],
    ids=str,
)
def test_whatever_has_no_memory_of_its_own_is_left_to_python(
    reader: ArrayReader, value: Any
) -> None:
    key: list[Any] = []
    addresses: list[int] = []
    assert reader(value, key, addresses) is False
    assert (key, addresses) == ([], [])


def test_an_error_of_python_says_what_it_said_before(
    reader: ArrayReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_key, "_reader", reader)
    with expect_error("A152"):
        call_key.of_call([PARAMETER], ("text",), None, ())


def test_numpy_alone_is_read_before_torch_is_imported() -> None:
    function = array_reader(None)
    assert function is not None
    key: list[Any] = []
    addresses: list[int] = []
    assert function(np.zeros(4, np.float16), key, addresses)
    assert not function(torch.zeros(4), key, addresses)
    assert array_reader(torch) is not None, "torch's tensors are read again"


def test_without_a_compiler_python_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cklang.runtime.array_reader._library", lambda: None)
    assert array_reader(torch) is None
