# SPDX-License-Identifier: MIT
"""Models of transformers, torchvision and diffusers through ``torch.compile(backend="cklang")``.

They are skipped where the library is not installed. Programs are computed by their reference.
"""

import copy
from typing import Any

import pytest
import torch

import cklang.torch
from tests.support.library_models import LIBRARY_MODELS
from tests.support.optional import needed
from tests.support.torch_models import cast

pytestmark = pytest.mark.usefixtures("torch")

OPTIONS: dict[str, Any] = {"reference": True}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIBRARY_MODELS)
def test_kernels_compute_a_model_of_a_library(name: str) -> None:
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    torch.manual_seed(0)
    model = LIBRARY_MODELS[name]
    needed(model.package)
    module, args = model.make()
    module = module.half().eval()
    args = tuple(cast(each, torch.float16) for each in args)
    wide = copy.deepcopy(module).double()
    with torch.no_grad():
        got = torch.compile(module, backend="cklang", options=OPTIONS)(*args)
        eager = module(*args)
        exact = wide(*(cast(each, torch.float64) for each in args))
    ours, theirs = (float((each.double() - exact).abs().max()) for each in (got, eager))
    assert ours <= 2 * theirs + torch.finfo(torch.float16).eps * float(exact.abs().max())
    report = cklang.torch.report()
    assert len(report.graphs) == 1
    assert report.share >= 0.95, str(report)
