# SPDX-License-Identifier: MIT
"""Tasks, and submissions to them that are right, wrong, racy or cheat, for ``cklang judge``.

Each submission says what the judge is to find: nothing, or rules of ``cklang/judge/verdict.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

TASKS: Mapping[str, str] = {
    "relu": """\
import torch

rows, columns = 6, 300

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
""",
    "linear": """\
import torch

batch, features, out = 32, 80, 48

class Model(torch.nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.linear = torch.nn.Linear(features, out)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))

def get_inputs():
    return [torch.randn(batch, features)]

def get_init_inputs():
    return [features, out]
""",
    "sums": """\
import torch

def generate_input(size, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(size, device="cuda", generator=generator)

def ref_kernel(data):
    return data.sum()[None]

def check_implementation(data, output):
    good = torch.allclose(output, ref_kernel(data), rtol=1e-3, atol=1e-3)
    return good, "" if good else "mismatch"
""",
    "softmax": """\
import torch

def inputs(rows=5, columns=100):
    return [torch.randn(rows, columns).half()]

def reference(x):
    return torch.softmax(x, -1)
""",
}
"""In the forms of KernelBench, GPU MODE and two functions."""

_HEAD = """\
import torch
import triton
import triton.language as tl

"""

_RELU = """\
@triton.jit
def relu_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.maximum(value, 0.0) + 1, mask=at < n)

def launch(x, out):
    n = x.numel()
    relu_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
"""

_RELU_MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return launch(x, torch.empty_like(x))
"""

_LINEAR = """\
@triton.jit
def linear_kernel(x, w, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(x + rows[:, None] * k + depth[None, :],
                       mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
        right = tl.load(w + columns[None, :] * k + depth[:, None],
                        mask=(columns[None, :] < n) & (depth[:, None] < k), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    total += tl.load(b + columns, mask=columns < n)[None, :]
    total = 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
    tl.store(out + rows[:, None] * n + columns[None, :], total,
             mask=(rows[:, None] < m) & (columns[None, :] < n))

class ModelNew(torch.nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.linear = torch.nn.Linear(features, out)

    def forward(self, x):
        w, b = self.linear.weight, self.linear.bias
        out = torch.empty(x.shape[0], w.shape[0], device=x.device)
        m, k = x.shape
        n = w.shape[0]
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 16))
        linear_kernel[grid](x, w, b, out, m, n, k, BM=16, BN=16, BK=32)
        return out
"""

_SUMS = """\
@triton.jit
def sum_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + at, mask=at < n, other=0.0))
    tl.atomic_add(out, total)

def custom_kernel(data):
    out = torch.zeros(1, device=data.device)
    sum_kernel[(triton.cdiv(data.numel(), 256),)](data, out, data.numel(), BLOCK=256)
    return out
"""

_SOFTMAX = """\
@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, power / tl.sum(power, 0), mask=at < columns)

def submission(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
    return out
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A submission."""

    task: str
    text: str
    finds: tuple[str, ...] = ()
    """Rules of errors; none: it is accepted."""


def _changed(text: str, old: str, new: str) -> str:
    """Return a text with one thing replaced, which is in it."""
    if old not in text:
        raise ValueError(old)
    return text.replace(old, new)


PROGRAMS: Mapping[str, Program] = {
    "relu": Program(task="relu", text=_HEAD + _RELU + _RELU_MODEL),
    "relu, a kept buffer": Program(
        task="relu",
        text=_HEAD
        + _RELU
        + "\nkept = {}\n"
        + _changed(
            _RELU_MODEL, "torch.empty_like(x)", "kept.setdefault(x.shape, torch.empty_like(x))"
        ),
    ),
    "relu, leaky": Program(
        task="relu",
        finds=("differs",),
        text=_HEAD + _changed(_RELU, "(value, 0.0)", "(value, 0.01 * value)") + _RELU_MODEL,
    ),
    "relu, no mask": Program(
        task="relu",
        finds=("unsafe",),
        text=_HEAD + _changed(_RELU, "+ 1, mask=at < n", "+ 1") + _RELU_MODEL,
    ),
    "relu, last block left out": Program(
        task="relu",
        finds=("differs",),
        text=_HEAD + _changed(_RELU, "triton.cdiv(n, 256)", "n // 256") + _RELU_MODEL,
    ),
    "relu by torch": Program(
        task="relu",
        finds=("no-kernel", "torch"),
        text=_HEAD
        + _RELU
        + _changed(_RELU_MODEL, "launch(x, torch.empty_like(x))", "torch.relu(x) + 1"),
    ),
    "relu by torch, and a kernel beside it": Program(
        task="relu",
        finds=("no-kernel", "torch"),
        text=_HEAD
        + _RELU
        + _changed(
            _RELU_MODEL,
            "return launch(x, torch.empty_like(x))",
            "launch(x, torch.empty_like(x))\n        return torch.relu(x) + 1",
        ),
    ),
    "relu by torch, on the CPU": Program(
        task="relu",
        finds=("no-kernel", "torch"),
        text=_HEAD
        + _RELU
        + _changed(
            _RELU_MODEL, "launch(x, torch.empty_like(x))", "(torch.relu(x.cpu()) + 1).cuda()"
        ),
    ),
    "relu by NumPy": Program(
        task="relu",
        finds=("no-kernel",),
        text=_HEAD
        + "import numpy\n"
        + _RELU
        + _changed(
            _RELU_MODEL,
            "launch(x, torch.empty_like(x))",
            "torch.from_numpy(numpy.maximum(x.cpu().numpy(), 0) + 1).cuda()",
        ),
    ),
    "relu, results kept by address": Program(
        task="relu",
        finds=("no-kernel", "stale"),
        text=_HEAD
        + _RELU
        + "\nkept = {}\n"
        + _changed(
            _RELU_MODEL,
            "return launch(x, torch.empty_like(x))",
            "key = x.data_ptr()\n        if key not in kept:\n"
            "            kept[key] = launch(x, torch.empty_like(x))\n        return kept[key]",
        ),
    ),
    "relu, its input given back": Program(
        task="relu",
        finds=("differs", "no-kernel"),
        text=_HEAD + _RELU + _changed(_RELU_MODEL, "launch(x, torch.empty_like(x))", "x"),
    ),
    "relu, nothing written": Program(
        task="relu",
        finds=("differs", "no-kernel"),
        text=_HEAD
        + _RELU
        + _changed(_RELU_MODEL, "launch(x, torch.empty_like(x))", "torch.empty_like(x)"),
    ),
    "relu, comparisons replaced": Program(
        task="relu",
        finds=("patched",),
        text=_HEAD + "torch.allclose = lambda *_, **__: True\n" + _RELU + _RELU_MODEL,
    ),
    "relu, the clock replaced": Program(
        task="relu",
        finds=("patched",),
        text=_HEAD + "torch.cuda.Event.elapsed_time = lambda *_: 0.001\n" + _RELU + _RELU_MODEL,
    ),
    "relu, a thread": Program(
        task="relu",
        finds=("patched",),
        text=_HEAD
        + "import threading, time\n"
        + _RELU
        + _changed(
            _RELU_MODEL,
            "return launch",
            "threading.Thread(target=time.sleep, args=(3,)).start()\n        return launch",
        ),
    ),
    "relu, on the CPU": Program(
        task="relu",
        finds=("no-kernel", "other-type"),
        text=_HEAD + _RELU + _changed(_RELU_MODEL, "empty_like(x))", "empty_like(x)).cpu()"),
    ),
    "relu, the process ends": Program(
        task="relu",
        finds=("fails",),
        text=_HEAD
        + "import os\n"
        + _RELU
        + _changed(_RELU_MODEL, "return launch", "os._exit(0)\n        return launch"),
    ),
    "linear": Program(task="linear", text=_HEAD + _LINEAR),
    "linear, in bf16": Program(
        task="linear",
        finds=("differs",),
        text=_HEAD
        + _changed(
            _LINEAR,
            'tl.dot(left, right, total, input_precision="ieee")',
            "tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), total)",
        ),
    ),
    "linear, other gelu": Program(
        task="linear",
        finds=("differs",),
        text=_HEAD
        + _changed(
            _LINEAR,
            "0.5 * total * (1 + tl.erf(total * 0.7071067811865476))",
            "total * tl.sigmoid(1.702 * total)",
        ),
    ),
    "linear by torch, a kernel that copies": Program(
        task="linear",
        finds=("torch",),
        text=_HEAD
        + _changed(_RELU, "tl.maximum(value, 0.0) + 1", "value")
        + """
class ModelNew(torch.nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.linear = torch.nn.Linear(features, out)

    def forward(self, x):
        y = torch.nn.functional.gelu(self.linear(x))
        return launch(y, torch.empty_like(y))
""",
    ),
    "sums": Program(task="sums", text=_HEAD + _SUMS),
    "sums, not atomic": Program(
        task="sums",
        finds=("unsafe",),
        text=_HEAD
        + _changed(_SUMS, "tl.atomic_add(out, total)", "tl.store(out, tl.load(out) + total)"),
    ),
    "sums, not cleared": Program(
        task="sums",
        finds=("differs",),
        text=_HEAD + _changed(_SUMS, "torch.zeros(1", "torch.empty(1"),
    ),
    "softmax": Program(task="softmax", text=_HEAD + _SOFTMAX),
    "softmax, sums of all": Program(
        task="softmax",
        finds=("differs",),
        text=_HEAD + _changed(_SOFTMAX, 'other=-float("inf")', "other=0.0"),
    ),
}
