# SPDX-License-Identifier: MIT
"""Products and convolutions of cklang among the kernels that Inductor chooses from.

A handler adds kernels for ``mm``, ``addmm`` and ``bmm``. For convolutions Inductor asks no handler,
but passes its list of choices through functions; one adds ours. It measures all of them on
operands like those of the graph and takes the quickest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.kernel.conv import aten_convolution
from torch._inductor.kernel.mm import aten_bias_addmm
from torch._inductor.select_algorithm import (
    ExternKernelCaller,
    ExternKernelChoice,
    get_algorithm_selector_cache,
)
from torch._inductor.virtualized import V

from cklang.torch.inductor.anchors import DTYPES, TARGETS, Anchor, Operand, op_of
from cklang.torch.inductor.record import Declined, Record
from cklang.torch.inductor.template import Caller, scheduled

_CONVOLUTION: Mapping[str, Any] = MappingProxyType(
    {
        "stride": (1,),
        "padding": (0,),
        "dilation": (1,),
        "transposed": False,
        "output_padding": (0,),
        "groups": 1,
    }
)
"""The arguments of a convolution after its operands, in order."""


def _anchor(name: str, options: Mapping[str, Any]) -> Anchor:
    """Return what a kernel of Inductor's with keyword arguments computes."""
    if name != "convolution":
        return Anchor(name)
    values = (options.get(word, usual) for word, usual in _CONVOLUTION.items())
    return Anchor(
        name, tuple(tuple(value) if isinstance(value, list) else value for value in values)
    )


def _run(
    name: str,
    device: str | None,
    *operands: torch.Tensor,
    out: torch.Tensor,
    bias: torch.Tensor | None = None,
    **options: Any,
) -> None:
    """Run a kernel as Inductor measures it, and calls it where it is no template."""
    tensors = operands if bias is None else (*operands, bias)
    with torch.no_grad():
        described = tuple(Operand(tuple(tensor.shape), tensor.dtype) for tensor in tensors)
        op = op_of(_anchor(name, options), described, tuple(out.shape), out.dtype)
        if out.is_contiguous():
            op(*tensors, out=out, device=device)
        else:
            out.copy_(op(*tensors, device=device))


@cache
def _kernel_of(name: str, device: str | None) -> ExternKernelChoice:
    """Return the kernel of a product, registered once: Inductor refuses a second of its name."""
    known = "" if device is None else "_" + "".join(filter(str.isalnum, device))
    return ExternKernelChoice(partial(_run, name, device), name=f"cklang_{name}{known}")


class _Choices(InductorChoices):
    """Inductor's choices, with cklang's among them."""

    def __init__(self, device: str | None, only: bool) -> None:
        super().__init__()
        self._device = device
        self.only = only
        self.record = Record()

    def uuid(self) -> str:
        """Return what identifies these choices in Inductor's caches."""
        return f"cklang {self._device} {self.only}"

    def get_template_configs(
        self,
        kernel_inputs: Any,
        templates: Sequence[Any],
        op_name: str,
        kwarg_overrides: dict[str, dict[str, Any]] | None = None,
    ) -> list[Any]:
        """Return the kernels for a product, ours last."""
        choices = list(
            super().get_template_configs(kernel_inputs, list(templates), op_name, kwarg_overrides)
        )
        if self._computes(kernel_inputs, templates, op_name):
            layout = kernel_inputs.output_layout(flexible=False)
            choices += self.offered(op_name, kernel_inputs.nodes(), layout, {})
        return choices

    def _computes(self, kernel_inputs: Any, templates: Sequence[Any], op_name: str) -> bool:
        if not _is_tuned() or op_name not in TARGETS:
            return False
        if op_name == "addmm":
            # Inductor asks once for torch's own kernels, and once for others. In torch 2.11 it asks
            # for all at once, with the kernel that adds a bias first.
            is_own = any(isinstance(template, ExternKernelChoice) for template in templates)
            is_own = is_own and templates[0] is not aten_bias_addmm
            scalars = [kernel_inputs.get_scalar(name) for name in ("alpha", "beta")]
            if is_own or scalars != [1, 1]:
                return False
        return _have_one_dtype(kernel_inputs.nodes())

    def offered(
        self, name: str, operands: Sequence[Any], layout: Any, options: dict[str, Any]
    ) -> list[Caller]:
        """Return our kernel for a product or a convolution; nothing if there is none."""
        caller = Caller.of(
            _kernel_of(name, self._device),
            operands,
            layout,
            _anchor(name, options),
            self._device,
            self.record,
            options,
        )
        objection = caller.objection()
        if objection is not None:
            self.record.declined.append(Declined((name,), objection))
        return [caller] if objection is None else []


def _is_tuned() -> bool:
    return bool(config.max_autotune or config.max_autotune_gemm)


def _have_one_dtype(nodes: Sequence[Any]) -> bool:
    dtypes = {node.get_dtype() for node in nodes}
    return len(dtypes) == 1 and dtypes <= DTYPES


def _with_ours(choices: list[Any]) -> list[Any]:
    """Return a list of choices with our convolution in it; ours alone if that was asked for."""
    handler = V.choices
    if not isinstance(handler, _Choices):
        return choices
    choices = [*choices, *_convolutions(handler, choices)]
    ours = [choice for choice in choices if isinstance(choice, Caller)]
    return ours if ours and handler.only else choices


def _convolutions(handler: _Choices, choices: Sequence[Any]) -> Iterator[Caller]:
    """Yield our kernel beside torch's convolution."""
    for choice in choices:
        is_torchs = isinstance(choice, ExternKernelCaller) and choice.choice is aten_convolution
        if is_torchs and _is_tuned() and _have_one_dtype(choice.input_nodes):
            options = dict(choice.kwargs)
            yield from handler.offered("convolution", choice.input_nodes, choice.layout, options)


@contextmanager
def considered(*, device: str | None = None, only: bool = False) -> Iterator[Record]:
    """Let Inductor consider products and convolutions of cklang for what it compiles here.

    Functions must be compiled with ``max_autotune``. Inductor's caches are off meanwhile: another
    process that reads them would not know the kernels. For tensors in host memory, the operations
    after a product join its kernel.

    Args:
        device: As in the call of an op.
        only: Whether Inductor has no other choice where there is ours. On an emulated GPU ours
            never is the quickest.

    Yields:
        A record of the kernels, which is filled while Inductor compiles.

    Example:
        >>> import torch
        >>> from cklang.torch.inductor import considered
        >>> product = torch.compile(lambda a, b: a @ b, options={"max_autotune": True})
        >>> with considered(device="emu:gfx942") as record:
        ...     pass  # the first call of the product, which compiles it
        >>> record.kernels
        []
    """
    handler = _Choices(device, only)
    selector = get_algorithm_selector_cache()
    selector.add_preprocessing_fn(_with_ours)
    try:
        with config.patch(force_disable_caches=True), V.set_choices_handler(handler), scheduled():
            yield handler.record
    finally:
        selector.preprocessing_fns.remove(_with_ours)
