# SPDX-License-Identifier: MIT
"""torch tensors are read in place, bfloat16 among them, and results are torch tensors."""

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cklang.device import arrays
from cklang.device.arrays import HOST, Library
from cklang.types import bf16, f16
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("torch")


def test_a_view_is_read_in_place() -> None:
    tensor = torch.arange(24, dtype=torch.float16).reshape(4, 6)[:, 1:]
    read = arrays.read("x", tensor)
    assert read.pointer == tensor.data_ptr()
    assert (read.shape, read.strides) == ((4, 5), (6, 1))
    assert (read.dtype, read.place, read.library) == (f16, HOST, Library.TORCH)


def test_bfloat16_needs_no_copy() -> None:
    tensor = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)
    read = arrays.read("x", tensor)
    assert read.dtype == bf16
    memory = memoryview((ctypes.c_char * 4).from_address(read.pointer))
    same: np.ndarray = np.frombuffer(memory, dtype=ml_dtypes.bfloat16)
    assert same.tolist() == [1.5, -2.0]


def test_results_are_torch_tensors() -> None:
    result = arrays.maker((2, 3), bf16, Library.TORCH)()
    assert result.dtype == torch.bfloat16
    assert tuple(result.shape) == (2, 3)


def test_calls_follow_the_current_stream_of_the_gpu_of_the_arrays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda gpu: SimpleNamespace(cuda_stream=100 + gpu)
    )
    assert arrays.current_stream(Library.TORCH, "hip:1") == 101
    assert arrays.current_stream(Library.TORCH, HOST) is None
    assert arrays.current_stream(Library.NUMPY, "hip:1") is None


def fake_mode() -> Any:
    return FakeTensorMode()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: torch.zeros(2, 2, requires_grad=True), "A005"),
        (lambda: torch.zeros(2, 2).to_sparse(), "A084"),
        (lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), "A084"),
        (lambda: torch.zeros(2, 2, dtype=torch.complex64), "A083"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8), "A085"),
        (lambda: torch.zeros(2, 2, dtype=torch.int16), "A002"),
        (lambda: torch.zeros(2, 2, dtype=torch.complex64).conj().imag, "A006"),
        (lambda: torch.zeros(2, 2, device="meta"), "A082"),
        (lambda: fake_mode().from_tensor(torch.zeros(2, 2)), "A089"),
    ],
)
def test_tensors_that_cannot_be_read(make: Any, code: str) -> None:
    with expect_error(code):
        arrays.read("x", make())


def test_no_gradient_is_asked_for_under_no_grad() -> None:
    tensor = torch.zeros(2, 2, requires_grad=True)
    with torch.no_grad():
        assert arrays.read("x", tensor).shape == (2, 2)
