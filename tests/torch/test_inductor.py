# SPDX-License-Identifier: MIT
"""Products of cklang among the kernels that Inductor chooses from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._inductor import select_algorithm

from cklang.torch.inductor import considered, product_of
from tests.support.by_reference import replace_kernels

OPTIONS: dict[str, Any] = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
"""Without torch's own kernels: on the CPU there are no others beside ours."""


def half(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(shape, generator=generator).half()


PRODUCTS: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "mm": (torch.mm, (half(9, 20), half(20, 12))),
    "transposed": (lambda a, b: a @ b.T, (half(9, 20), half(12, 20))),
    "addmm": (torch.addmm, (half(12), half(9, 20), half(20, 12))),
    "bmm": (torch.bmm, (half(3, 9, 20), half(3, 20, 12))),
    "with an epilogue": (lambda a, b: torch.relu(a @ b) + 1, (half(9, 20), half(20, 12))),
}


def _case(name: str) -> Any:
    # The epilogue is a kernel in C++ that Inductor compiles.
    return pytest.param(name, marks=[pytest.mark.full] * (name == "with an epilogue"))


@pytest.mark.parametrize("name", map(_case, PRODUCTS))
def test_inductor_calls_our_product_where_it_is_the_only_choice(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_kernels(monkeypatch)
    function, args = PRODUCTS[name]
    torch._dynamo.reset()
    calls: list[str] = []
    run_op = torch.no_grad

    def counted() -> Any:
        calls.append("call")
        return run_op()

    with considered(device="emu:gfx942"):
        compiled = torch.compile(function, options=OPTIONS)
        result = compiled(*args)
        monkeypatch.setattr("cklang.torch.inductor.torch.no_grad", counted)
        again = compiled(*args)
    assert calls == ["call"]
    torch.testing.assert_close(result, function(*args), rtol=2e-3, atol=2e-3)
    assert torch.equal(result, again)


def test_our_product_is_measured_beside_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)
    torch._dynamo.reset()
    names: list[list[str]] = []
    select = select_algorithm.AlgorithmSelectorCache.benchmark_choices

    def noted(choices: Any, *args: Any, **more: Any) -> Any:
        times = select(choices, *args, **more)
        names.append([choice.name for choice in choices])
        assert all(time > 0 for time in times.values())
        return times

    monkeypatch.setattr(
        select_algorithm.AlgorithmSelectorCache, "benchmark_choices", staticmethod(noted)
    )
    with considered(device="emu:gfx942"):
        a, b = half(9, 20), half(20, 12)
        result = torch.compile(torch.mm, options={"max_autotune": True})(a, b)
    torch.testing.assert_close(result, a @ b, rtol=2e-3, atol=2e-3)
    assert any({"cklang_mm_emugfx942", "mm"} <= set(each) for each in names), names


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_programs_round_once(name: str, dtype: torch.dtype) -> None:
    function = product_of(name, dtype).program.specialise()
    assert function.results[0].type.dtype.name in str(dtype).replace("loat", "")
    assert [each.op for each in function.body].count("gemm") == 1
