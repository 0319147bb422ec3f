# SPDX-License-Identifier: MIT
"""Products of cklang among the kernels that Inductor chooses from under ``max_autotune``.

Inductor lets a handler add kernels for ``mm``, ``addmm`` and ``bmm``: functions that it calls
with the operands and ``out=``. It measures all of them on operands like those of the graph and
calls the quickest. Such a kernel has no place for an epilogue: what follows it stays a kernel of
Inductor's own. ``torch.compile(backend="cklang")`` is for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

from cklang.runtime.ir_text import parse
from cklang.runtime.op import Op

__all__ = ["considered", "product_of"]

_DTYPES: Mapping[torch.dtype, str] = MappingProxyType(
    {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
)
_PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        "mm": """func @mm(%a: {t}[M, K], %b: {t}[K, N]) -> {t}[M, N] {{
  %0: f32[M, N] = gemm(%a, %b)
  %1: {t}[M, N] = cast(%0) {{to = {t}}}
  return %1
}}""",
        "bmm": """func @bmm(%a: {t}[B, M, K], %b: {t}[B, K, N]) -> {t}[B, M, N] {{
  %0: f32[B, M, N] = gemm(%a, %b)
  %1: {t}[B, M, N] = cast(%0) {{to = {t}}}
  return %1
}}""",
        "addmm": """func @addmm(%c: {t}[M, N], %a: {t}[M, K], %b: {t}[K, N]) -> {t}[M, N] {{
  %0: f32[M, N] = gemm(%a, %b)
  %1: f32[M, N] = cast(%c) {{to = f32}}
  %2: f32[M, N] = add(%0, %1)
  %3: {t}[M, N] = cast(%2) {{to = {t}}}
  return %3
}}""",
    }
)
"""The programs by the name that Inductor has for them, of a dtype t."""


@cache
def product_of(name: str, dtype: torch.dtype) -> Op:
    """Return the op that computes ``mm``, ``bmm`` or ``addmm`` of a dtype.

    Example:
        >>> import torch
        >>> from cklang.torch.inductor import product_of
        >>> product_of("mm", torch.float16).program.name
        'mm'
    """
    text = _PROGRAMS[name].format(t=_DTYPES[dtype])
    # f32 is not cast.
    lines = [line for line in text.splitlines() if "cast" not in line or dtype != torch.float32]
    if dtype == torch.float32:
        text = "\n".join(lines).replace("%0, %1", "%0, %c")
        last = "%2" if name == "addmm" else "%0"
        text = text.replace("return %1", f"return {last}").replace("return %3", f"return {last}")
    return parse(text)


def _run(name: str, device: str | None, *operands: torch.Tensor, out: torch.Tensor) -> None:
    with torch.no_grad():
        product_of(name, out.dtype)(*operands, out=out, device=device)


def _kernel_of(name: str, device: str | None) -> ExternKernelChoice:
    """Return the kernel of a product, registered once."""
    known = "" if device is None else "_" + "".join(filter(str.isalnum, device))
    own = f"cklang_{name}{known}"
    kernel: Callable[..., Any] = partial(_run, name, device)
    choice: Any = ExternKernelChoice
    registered: ExternKernelChoice = choice.lookup(own) or choice(kernel, name=own)
    return registered


class _Choices(InductorChoices):
    """Inductor's choices, with cklang's among them."""

    def __init__(self, device: str | None) -> None:
        super().__init__()
        self._device = device

    def uuid(self) -> str:
        """Return what identifies these choices in Inductor's caches."""
        return f"cklang {self._device}"

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
            layout = kernel_inputs.output_layout()
            choice: Any = _kernel_of(op_name, self._device)
            choices.append(choice.bind(kernel_inputs.nodes(), layout))
        return choices

    def _computes(self, kernel_inputs: Any, templates: Sequence[Any], op_name: str) -> bool:
        is_tuned = config.max_autotune or config.max_autotune_gemm
        if not is_tuned or op_name not in _PROGRAMS:
            return False
        if op_name == "addmm":
            # Inductor asks once for torch's own kernels, and once for others.
            is_own = any(isinstance(each, ExternKernelChoice) for each in templates)
            scalars = [kernel_inputs.get_scalar(name) for name in ("alpha", "beta")]
            if is_own or scalars != [1, 1]:
                return False
        dtypes = {node.get_dtype() for node in kernel_inputs.nodes()}
        return len(dtypes) == 1 and dtypes <= set(_DTYPES)


@contextmanager
def considered(*, device: str | None = None) -> Iterator[None]:
    """Let Inductor consider products of cklang for what it compiles in this context.

    Functions must be compiled with ``max_autotune``. Inductor's caches are off meanwhile: another
    process that reads them would not know the kernels.

    Args:
        device: As in the call of an op.

    Example:
        >>> import torch
        >>> from cklang.torch.inductor import considered
        >>> product = torch.compile(lambda a, b: a @ b, options={"max_autotune": True})
        >>> with considered(device="emu:gfx942"):
        ...     pass  # the first call of the product, which compiles it
    """
    with config.patch(force_disable_caches=True), V.set_choices_handler(_Choices(device)):
        yield
