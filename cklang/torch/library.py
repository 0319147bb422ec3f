# SPDX-License-Identifier: MIT
"""Ops as custom ops of torch: registered when torch first traces one, under ``torch.ops.cklang``.

The name of a custom op is that of the op and a hash of its text, so that a program which
``torch.export`` saved finds it in another process as soon as the op is registered there.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cklang.errors import error
from cklang.frontend.program import Program
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.tracing import TracedArgumentError
from cklang.torch.batching import register_batching
from cklang.torch.fake import fake_results, fake_rule
from cklang.torch.gradient import autograd_kernel
from cklang.torch.schema import Form, schema_of

NAMESPACE = "cklang"
LIBRARY: Any = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
"""Registrations last as long as the process."""
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
DEVICES = ("CPU", "CUDA")
"""What runs an op: tensors of other devices have no kernel, and torch says so."""

_HASH_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Registered:
    """The custom op of an op."""

    name: str
    forms: dict[Form, Any] = field(default_factory=dict)
    """Its overloads by how they are called."""


_kernels: dict[Any, Callable[..., Any]] = {}
"""What computes each overload that returns new tensors."""
_registered: WeakKeyDictionary[AnyOp, _Registered] = WeakKeyDictionary()
_names: set[str] = set()


def custom_op_of(op: AnyOp, *, tensors: Iterable[str] = (), out: bool = False) -> Any:
    """Return the custom op that a call of ``op`` becomes while torch traces it.

    Args:
        op: An op.
        tensors: The parameters of rank 0 for which the call passes a tensor, not a number.
        out: Whether the call passes ``out=``. The custom op then writes its last arguments,
            ``out`` or ``out0``, ``out1``, ..., and returns nothing.

    Returns:
        A ``torch._ops.OpOverload``. It takes a value for each parameter by position, and
        ``device=`` by name.

    Example:
        >>> import torch
        >>> from cklang.torch import custom_op_of
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return x @ w.T
        >>> custom = custom_op_of(linear)
        >>> custom._schema.name.startswith("cklang::linear_"), len(custom._schema.arguments)
        (True, 3)
        >>> torch_x, torch_w = torch.empty(256, 64), torch.empty(512, 64)
        >>> custom(torch_x.half().to("meta"), torch_w.half().to("meta")).shape
        torch.Size([256, 512])
    """
    entry = _registered.get(op)
    if entry is None:
        entry = _registered[op] = _Registered(name=_free_name(op))
    form = Form(tensors=tuple(tensors), is_out=out)
    overload = entry.forms.get(form)
    if overload is None:
        overload = entry.forms[form] = _register(op, entry.name, form)
    return overload


def name_of(overload: Any) -> tuple[str, str]:
    """Return the names of a custom op below ``torch.ops.cklang`` and of its overload."""
    return overload._opname, overload._overloadname


def kernel_of(overload: object) -> Callable[..., Any] | None:
    """Return what computes a custom op of an op, below autograd; None of anything else.

    It takes what the overload takes, and goes through no dispatcher.
    """
    return _kernels.get(overload)


def _register(op: AnyOp, name: str, form: Form) -> Any:
    results = len(op.program.signature.results)
    LIBRARY.define(schema_of(name, op.program.parameters, results, form), tags=TAGS)
    overloaded = name if form.overload == "default" else f"{name}.{form.overload}"
    qualname = f"{NAMESPACE}::{overloaded}"
    kernel = _kernel_with_out(op) if form.is_out else _kernel(op)
    for device in DEVICES:
        LIBRARY.impl(overloaded, kernel, device)
    overload = getattr(getattr(getattr(torch.ops, NAMESPACE), name), form.overload)
    fake = _fake(op, form)
    torch.library.register_fake(qualname, fake, lib=LIBRARY)
    if not form.is_out:
        rule = fake_rule(fake)
        torch.library.register_torch_dispatch(qualname, FakeTensorMode, rule, lib=LIBRARY)
    if form.is_out:
        refuse_gradients(op.program.name, overload, overloaded)
    else:
        _kernels[overload] = kernel
        autograd = autograd_kernel(op, overload, kernel)
        LIBRARY.impl(overloaded, autograd, "Autograd", with_keyset=True)
        register_batching(op, overload, qualname, LIBRARY)
    return overload


def _kernel(op: AnyOp) -> Callable[..., Any]:
    def run(*values: Any, device: str | None = None) -> Any:
        try:
            return op._called(values, None, device)
        except TracedArgumentError:
            # Below autograd nobody records what is computed.
            with torch.no_grad():
                return op._called(values, None, device)

    return run


def _kernel_with_out(op: AnyOp) -> Callable[..., None]:
    def run(*values: Any, device: str | None = None, **outs: Any) -> None:
        targets = tuple(outs.values())
        with torch.no_grad():
            op._called(values, targets if len(targets) > 1 else targets[0], device)

    return run


def _fake(op: AnyOp, form: Form) -> Callable[..., Any]:
    def give(*values: Any, device: str | None = None, **outs: Any) -> Any:
        del device
        results = fake_results(op, values)
        if form.is_out:
            _expect_like(list(outs.values()), results)
            return None
        return results[0] if len(results) == 1 else tuple(results)

    return give


def _expect_like(outs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
    for out, result in zip(outs, results, strict=True):
        if out.dtype != result.dtype:
            raise error("A040", got=out.dtype, want=result.dtype)
        if out.shape != result.shape:
            raise error("A041", got=tuple(out.shape), want=tuple(result.shape))


def refuse_gradients(name: str, overload: Any, overloaded: str) -> None:
    """Let an overload that writes its arguments refuse those that require a gradient.

    ``name`` is what messages call the op, ``overloaded`` its name in the library.
    """
    arguments = [argument.name for argument in overload._schema.arguments]

    def refuse(keyset: Any, *values: Any, **more: Any) -> Any:
        if torch.is_grad_enabled():
            pairs = {**dict(zip(arguments, values, strict=False)), **more}
            for argument, value in pairs.items():
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    raise error("A087", op=name, name=argument)
        with torch._C._AutoDispatchBelowAutograd():
            return overload.redispatch(keyset & torch._C._after_autograd_keyset, *values, **more)

    LIBRARY.impl(overloaded, refuse, "Autograd", with_keyset=True)
    # It counts the versions of what is written, so that autograd sees a saved tensor overwritten.
    LIBRARY.m.register_ad_inplace_or_view_fallback(f"{NAMESPACE}::{overloaded}")


def _free_name(op: AnyOp) -> str:
    digest = hashlib.sha256(_identity(op.program).encode()).hexdigest()[:_HASH_DIGITS]
    stem = f"{op.program.name}_{digest}"
    name, number = stem, 2
    while name in _names:
        # The same text again, with other choices of kernels or in a cell that was run twice.
        name, number = f"{stem}_{number}", number + 1
    _names.add(name)
    return name


def _identity(program: Any) -> str:
    """Return a text that differs between programs, and is the same in every process."""
    if isinstance(program, Program):
        texts = [program.definition.text.source.text]
        texts += [f"{capture.words}={_shown(capture.value)}" for capture in program.captures]
        return "\n".join(texts)
    ir = getattr(program, "ir", None)
    types = [f"{parameter.name}: {parameter.type}" for parameter in program.parameters]
    return str(ir) if ir is not None else "\n".join([program.name, *types])


def _shown(value: object) -> str:
    inner = getattr(value, "program", None) or getattr(value, "definition", None)
    text = getattr(getattr(inner, "text", None), "source", None)
    if isinstance(inner, Program):
        return _identity(inner)
    if text is not None:
        return str(text.text)
    return repr(value) if type(value).__repr__ is not object.__repr__ else type(value).__name__
