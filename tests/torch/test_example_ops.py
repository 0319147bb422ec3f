# SPDX-License-Identifier: MIT
"""``torch.library.opcheck`` of every op of the examples, with the arguments of its first call.

Kernels are replaced by the reference.
"""

import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack

import cklang as ck
from tests.torch.test_tracing import traced_values

pytestmark = pytest.mark.usefixtures("torch", "no_kernels")

EXAMPLES = Path(__file__).parents[2] / "examples"
ON_DEVICES = ("08_attention_serving.py", "16_device_arrays.py", "22_llama_decode.py")
"""These also launch kernels that are no ops, or have arrays on the emulated GPU."""
NAMES = sorted(
    path.name
    for path in EXAMPLES.glob("[0-9]*.py")
    if "@ck.op" in path.read_text() and path.name not in ON_DEVICES
)
TESTS = ("test_schema", "test_autograd_registration", "test_faketensor")
DYNAMIC = "test_aot_dispatch_dynamic"
NARROW = frozenset({torch.float8_e4m3fn, torch.float8_e4m3fnuz})
"""torch cannot multiply these by a number, which its test of schemas does."""


class EnoughError(Exception):
    """All ops of an example were called."""


def first_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[ck.Op, Sequence[Any]]:
    """Return the arguments of the first call of each op of an example, and of its gradients."""
    path = EXAMPLES / name
    names = set(re.findall(r"@ck\.op.*\ndef (\w+)", path.read_text()))
    calls: dict[ck.Op, Sequence[Any]] = {}
    called = ck.Op._called

    def record(op: ck.Op, values: Sequence[Any], out: Any, device: Any) -> Any:
        calls.setdefault(op, tuple(values))
        if names <= {each.program.name for each in calls}:
            raise EnoughError
        return called(op, values, out, device)

    with monkeypatch.context() as patch:
        patch.setattr(ck.Op, "_called", record)
        patch.setattr(ck.Op, "last", MagicMock())  # of which examples print launches
        patch.setattr(sys, "argv", [str(path)])
        with pytest.raises(EnoughError):
            runpy.run_path(str(path), run_name="__main__")
    return calls


def as_torch(value: Any) -> Any:
    """Return an argument as torch has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, ck.DeviceArray):
        return from_dlpack(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "fiu" and value.dtype.isbuiltin:
        return torch.from_numpy(value)
    bits = torch.from_numpy(value.view(f"u{value.dtype.itemsize}"))
    return bits.view(getattr(torch, value.dtype.name))


def expect_nothing_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the ops of an example with ``opcheck``."""
    for op, values in first_calls(name, monkeypatch).items():
        custom, args = traced_values(op, [as_torch(each) for each in values])
        is_narrow = any(isinstance(x, torch.Tensor) and x.dtype in NARROW for x in args)
        results = torch.library.opcheck(custom, args, test_utils=(*TESTS[is_narrow:], DYNAMIC))
        assert set(results.values()) == {"SUCCESS"}, op.program.name


@pytest.mark.parametrize("name", NAMES)
def test_torch_finds_nothing_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_nothing_wrong(name, monkeypatch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", ON_DEVICES)
def test_torch_finds_nothing_wrong_on_devices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_nothing_wrong(name, monkeypatch)
