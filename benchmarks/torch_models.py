# SPDX-License-Identifier: MIT
"""Whole models through ``torch.compile(backend="cklang")``: operations, kernels, distances.

``python benchmarks/torch_models.py`` prints a table in Markdown. Models are in f16, reduced in
size, with random weights; those of transformers, torchvision and diffusers are there if these are
installed. For each model:

- the share of floating-point operations in kernels (``cklang.torch.report()``);
- the kernels of the plan, without copies that a layout may ask for;
- what Inductor would launch for the same graph on the CPU: loops that it generates, and calls of
  libraries for products, convolutions and attention. Its code is generated and not compiled;
- how far the results are from the model in float64, and how far those of eager torch are. Programs
  are computed by their reference, which rounds where kernels do.
"""

from __future__ import annotations

import copy
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import Tensor, nn
from torch._inductor.utils import fresh_inductor_cache, get_code

import cklang.torch
from tests.support.library_models import LIBRARY_MODELS
from tests.support.torch_models import MODELS, cast

OPTIONS: dict[str, Any] = {"reference": True}
_LAUNCH = re.compile(r"\b(cpp_fused\w*|(?:extern_kernels|torch\.ops|aten)\.[\w.]+)\(")
"""A call in the code that Inductor generates: one of its loops, or of a library."""

Made = tuple[nn.Module, tuple[Tensor, ...]]


def of_inductor(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[int, int]:
    """Return how many loops and how many calls of libraries Inductor generates."""
    torch._dynamo.reset()
    with torch.no_grad(), fresh_inductor_cache():
        codes = get_code(torch.compile(module), *args)
    bodies = (code[code.index("def call") :] for code in codes if "def call" in code)
    calls = [call for body in bodies for call in _LAUNCH.findall(body)]
    loops = sum(call.startswith("cpp_fused") for call in calls)
    return loops, len(calls) - loops


def line_of(name: str, make: Callable[[], Made]) -> str:
    """Return a line of the table."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    module, arguments = make()
    module = module.half().eval()
    args = tuple(cast(each, torch.float16) for each in arguments)
    wide = copy.deepcopy(module).double()
    with torch.no_grad():
        got = torch.compile(module, backend="cklang", options=OPTIONS)(*args)
        eager = module(*args)
        exact = wide(*(cast(each, torch.float64) for each in args))
    report = cklang.torch.report()
    ours, theirs = (float((each.double() - exact).abs().max()) for each in (got, eager))
    loops, calls = of_inductor(module, args)
    share = f"{report.share:.2%}"
    launched = f"{loops + calls} ({loops} + {calls})"
    return f"| {name} | {share} | {report.kernels} | {launched} | {ours:.1e} | {theirs:.1e} |"


def lines() -> Iterator[str]:
    """Yield the table."""
    yield "| model | FLOPs in kernels | kernels | Inductor | error | error of eager torch |"
    yield "|---|---|---|---|---|---|"
    for name, model in MODELS.items():
        yield line_of(name, lambda model=model: model.call(torch.float16))  # type: ignore[misc]
    for name, library in LIBRARY_MODELS.items():
        try:
            yield line_of(f"{name} of its library", library.make)
        except ImportError as missing:
            yield f"| {name} | not installed: {missing} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in lines():
        print(line, flush=True)
