# SPDX-License-Identifier: MIT
"""Scripts for a GPU where there is none: ``cklang.torch.pretend``."""

import copy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton

import cklang as ck
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.torch import pretend
from tests.support import jit_kernels as kernels
from tests.support.algorithms import DEEP, narrow
from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("torch", "triton", "emulator")

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


@pytest.fixture
def gpu() -> Iterator[torch.device]:
    with pretend("gfx942"):
        torch.manual_seed(0)
        yield torch.device("cuda", 0)


def _state() -> Mapping[str, Any]:
    owners = (
        torch, torch.cuda, torch.version, torch.accelerator, torch.autograd, torch._C,
        torch.amp.autocast_mode.autocast,
    )  # fmt: skip
    values = {f"{i}.{name}": v for i, each in enumerate(owners) for name, v in vars(each).items()}
    driver = triton.runtime.driver._active
    return {**values, "driver": driver}


@pytest.mark.isa
def test_everything_is_restored() -> None:
    pretend("gfx942")  # what it imports is there before
    before = _state()
    with pretend("gfx942"):
        assert torch.cuda.is_available()
        assert _state() != before
    after = _state()
    assert {name for name in {*before, *after} if before.get(name) is not after.get(name)} == set()
    assert not torch.cuda.is_available()
    assert torch.ones(2).device.type == "cpu"


@pytest.mark.isa
def test_torch_says_what_the_gpu_is(gpu: torch.device) -> None:
    facts = torch.cuda.get_device_properties(0)
    assert (facts.gcnArchName, facts.multi_processor_count) == ("gfx942", 304)
    assert torch.cuda.get_device_capability() == (9, 4)
    assert torch.version.hip
    assert torch.cuda.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert triton.runtime.driver.active.get_active_torch_device() == gpu


MAKERS = {
    "device=": lambda: torch.ones(3, device="cuda"),
    "device=0": lambda: torch.ones(3, device=0),
    "cuda()": lambda: torch.ones(3).cuda(),
    "to": lambda: torch.ones(3).to("cuda:0", torch.float32),
    "to like": lambda: torch.ones(3, dtype=torch.half).to(torch.zeros(1, device="cuda")),
    "like": lambda: torch.ones_like(torch.zeros(3, device="cuda")),
    "new": lambda: torch.zeros(1, device="cuda").new_ones(3),
    "tensor": lambda: torch.tensor([1.0, 1.0, 1.0], device=torch.device("cuda")),
    "view": lambda: torch.ones(2, 3, device="cuda")[1],
    "sum": lambda: torch.ones(3, device="cuda") * 0.5 + 0.5,
    "into": lambda: torch.add(*torch.ones(2, 3, device="cuda"), out=torch.empty(3).cuda()) - 1,
    "of a list": lambda: torch.cat([torch.ones(1, device="cuda")] * 3),
    "gathered": lambda: torch.ones(9, device="cuda")[torch.tensor([1, 2, 5])],
    "copied": lambda: copy.deepcopy(torch.ones(3, device="cuda")),
}


@pytest.mark.isa
@pytest.mark.parametrize("name", MAKERS)
def test_tensors_on_the_gpu(gpu: torch.device, name: str) -> None:
    x = MAKERS[name]()
    assert x.device == gpu
    assert x.is_cuda
    assert not x.is_cpu
    assert x.get_device() == 0
    assert x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.Tensor)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert repr(x) == "tensor([1., 1., 1.], device='cuda:0')"
    assert x.cpu().device.type == "cpu"
    assert x.cpu().numpy().tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        x.numpy()


@pytest.mark.isa
def test_the_default_device(gpu: torch.device) -> None:
    torch.set_default_device("cuda")
    assert torch.ones(1).device == torch.get_default_device() == gpu
    torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"
    with gpu:
        assert torch.ones(1).device == gpu


@pytest.mark.isa
def test_copies_have_memory_of_their_own(gpu: torch.device) -> None:
    x = torch.zeros(3)
    y = x.cuda()
    assert y.cuda() is y
    assert y.to(gpu) is y
    assert x.cpu() is x
    y += 1
    z = y.cpu()
    y.zero_()
    assert (x.tolist(), z.tolist()) == ([0, 0, 0], [1, 1, 1])


@pytest.mark.isa
def test_shapes_changed_in_place(gpu: torch.device) -> None:
    x = torch.arange(6, device="cuda").reshape(2, 3)
    x.t_().unsqueeze_(0)
    assert tuple(x.shape) == (1, 3, 2)
    assert x[0, 2].tolist() == [2, 5]
    x.resize_(4, 4)
    assert tuple(x.shape) == (4, 4)
    assert x.device == gpu


@pytest.mark.isa
def test_devices_are_not_mixed(gpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="found at least two devices"):
        torch.ones(3, device="cuda") + torch.ones(3)
    with pytest.raises(CkValueError, match="E011"):
        torch.ones(3, device="cuda:1")
    with pytest.raises(CkValueError, match="E011"), pretend("gfx950"):
        pass


@pytest.mark.isa
def test_what_is_not_pretended_says_so(gpu: torch.device) -> None:
    with pytest.raises(CkUnsupportedError, match=r"torch\.cuda\.memory_allocated"):
        torch.cuda.memory_allocated()
    with pytest.raises(CkUnsupportedError, match=r"torch\.cuda\.CUDAGraph"):
        torch.cuda.CUDAGraph()
    with pytest.warns(UserWarning, match=r"torch\.compile is not pretended"):
        assert torch.compile(linear) is linear


@pytest.mark.isa
def test_streams_events_and_seeds(gpu: torch.device) -> None:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
        begin.record()
        end.record()
    torch.cuda.synchronize()
    assert begin.elapsed_time(end) >= 0
    assert torch.cuda.current_stream().query()
    torch.cuda.manual_seed_all(3)
    x = torch.randn(3, device="cuda")
    generator = torch.Generator(device="cuda").manual_seed(3)
    assert generator.device == gpu
    assert torch.equal(x, torch.randn(3, device="cuda", generator=generator))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.norm(self.conv(x))).mean((2, 3))
        heads = y.reshape(1, 1, -1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)[0, 0]
        return self.linear(y)


@pytest.mark.isa
def test_a_model_trains_as_on_the_cpu(gpu: torch.device) -> None:
    model = Model()
    twin = copy.deepcopy(model)
    parameter = model.linear.weight
    assert model.cuda().linear.weight is parameter
    assert parameter.is_cuda
    images = torch.randn(2, 3, 8, 8)
    for each, x in ((model, images.cuda()), (twin, images)):
        optimizer = torch.optim.AdamW(each.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(each(x), torch.tensor([1, 4]).to(x.device)).backward()
            optimizer.step()
    for name, value in model.state_dict().items():
        assert value.is_cuda
        torch.testing.assert_close(value.cpu(), twin.state_dict()[name])


@pytest.mark.isa
def test_functions_with_their_own_gradient(gpu: torch.device) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            assert x.is_cuda
            assert gradient.is_cuda
            assert torch.tensor(2.0, device=gradient.device).is_cuda
            return gradient * 2

    x = torch.ones(3, device="cuda", requires_grad=True)
    host = torch.ones(3, requires_grad=True)
    (Double.apply(x) * host.cuda()).sum().backward()
    assert x.grad is not None
    assert host.grad is not None
    assert (x.grad.device, host.grad.device.type) == (gpu, "cpu")
    assert x.grad.tolist() == host.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.isa
def test_autocast(gpu: torch.device) -> None:
    x = torch.randn(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
        assert (x @ x).dtype == torch.float16
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.nn.functional.linear(x, x).dtype == torch.bfloat16


@pytest.mark.isa
def test_kernels_of_triton(gpu: torch.device) -> None:
    x, y = torch.rand(2, 1000, device="cuda")
    out = torch.empty_like(x)
    kernels.add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)
    with pytest.raises(ValueError, match=r"\(at 1\) cannot be accessed from Triton"):
        kernels.add[(4,)](x, y.cpu(), out, 1000, BLOCK=256)


@pytest.mark.usefixtures("stencils")
def test_kernels_of_cklang(gpu: torch.device) -> None:
    x, w = (torch.randn(rows, 32, dtype=torch.float16, device="cuda") for rows in (64, 48))
    y = linear.using(narrow(0, warp_tile=DEEP))(x, w)
    assert y.device == gpu
    want = np.maximum(x.cpu().float().numpy() @ w.cpu().float().numpy().T, 0)
    np.testing.assert_allclose(y.cpu().float().numpy(), want, atol=0.02, rtol=0.01)


SCRIPT = """
import sys, torch, beside
assert __name__ == "__main__"
print(torch.cuda.get_device_properties(0).gcnArchName, beside.x.device, *sys.argv[1:])
sys.exit(3 if "--fail" in sys.argv else 0)
"""


@pytest.mark.isa
def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = ("-m", "cklang.cli.main", "run", "--torch", "gfx950")
    assert run_python(*command, script, "--steps", "3").stdout == "gfx950 cuda:0 --steps 3\n"
    assert run_python(*command, "-m", "script", cwd=tmp_path).stdout == "gfx950 cuda:0\n"


@pytest.mark.isa
@pytest.mark.parametrize("words", [(), ("no_such.py",)])
def test_a_program_that_is_not_there(words: tuple[str, ...], capsys: Any) -> None:
    from cklang.cli.main import main

    before = list(sys.argv)
    assert main(["run", "--torch", "gfx942", *words]) == 1
    assert "CK-Z010" in capsys.readouterr().err
    sys.argv = before


CUDA = r"""
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) out[at] = a[at] + b[at];
}
torch::Tensor add(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && b.is_cuda(), "tensors must be on the GPU");
    auto out = torch::empty(a.sizes(), a.options());
    cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    int n = a.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""


@pytest.mark.full
def test_extensions_of_hip(gpu: torch.device) -> None:
    from torch.utils.cpp_extension import load_inline

    declared = "torch::Tensor add(torch::Tensor a, torch::Tensor b);"
    module = load_inline("adding", declared, cuda_sources=CUDA, functions=["add"])
    a, b = torch.randn(2, 1000, device="cuda")
    out = module.add(a, b)
    assert out.device == gpu
    assert torch.equal(out, a + b)
    with pytest.raises(RuntimeError, match="tensors must be on the GPU"):
        module.add(a.cpu(), b)
