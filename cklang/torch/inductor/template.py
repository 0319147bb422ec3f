# SPDX-License-Identifier: MIT
"""A product of cklang in Inductor's graph, and the code that calls its kernel.

Inductor's scheduler asks whether the operations after a template can be computed by its kernel. For
tensors in host memory this asks :class:`Scheduling`, which :func:`scheduled` puts in the place of
Inductor's own for as long as a context lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import config, dependencies, ir
from torch._inductor.codegen import common
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.select_algorithm import ExternKernelCaller
from torch._inductor.utils import get_fused_kernel_name
from torch._inductor.virtualized import V, ops
from torch.utils._ordered_set import OrderedSet

from cklang.torch.backend.extents import Unsupported
from cklang.torch.inductor.anchors import Anchor
from cklang.torch.inductor.fused import FusedProgram, fused, parsed
from cklang.torch.inductor.memory import View, slowest_first
from cklang.torch.inductor.record import Declined, Emitted, Record


class TemplateBuffer(ir.TemplateBuffer):
    """The result of a product, whose kernel may compute what follows."""

    def __init__(
        self, layout: Any, inputs: Sequence[Any], anchor: Anchor, device: str | None, record: Record
    ) -> None:
        super().__init__(layout=layout, inputs=inputs, make_kernel_render=None)
        self.anchor = anchor
        self.device_of_kernel = device
        self.record = record

    def extract_read_writes(self, normalize: bool = False) -> Any:
        """Return what it reads and writes, its axes in the order of memory, as loops have them."""
        strides = self.get_stride()
        order = slowest_first([sympy.sympify(stride) for stride in strides])
        name = self.get_name()

        def store(index: Sequence[Any], _: Sequence[Any]) -> Any:
            places = sum(at * strides[axis] for at, axis in zip(index, order, strict=True))
            return ops.store(name, places, "fake")

        sizes = [self.get_size()[axis] for axis in order]
        own = dependencies.extract_read_writes(store, sizes, (), normalize=normalize)
        own.reads |= super().extract_read_writes(normalize).reads
        return own

    def program(self, loops: Sequence[Any], kept: Sequence[str]) -> FusedProgram:
        """Return the program of the product and the loops after it."""
        return fused(self.anchor, self, loops, kept, self.device_of_kernel)


class Caller(ExternKernelCaller):
    """One choice for a product: it is measured like a kernel that Inductor calls.

    For tensors in host memory the choice becomes a template.
    """

    anchor: Anchor
    device_of_kernel: str | None
    record: Record

    @classmethod
    def of(
        cls,
        choice: Any,
        operands: Sequence[Any],
        layout: Any,
        anchor: Anchor,
        device: str | None,
        record: Record,
        options: dict[str, Any],
    ) -> Caller:
        """Return the choice; ``options`` are those of the registered kernel ``choice``."""
        caller = cls(choice, list(operands), layout, options, has_out_variant=True)
        caller.anchor = anchor
        caller.device_of_kernel = device
        caller.record = record
        return caller

    def objection(self) -> str | None:
        """Return why kernels do not compute it; None if they do."""
        try:
            fused(self.anchor, _Described(self), (), (_Described.NAME,), self.device_of_kernel)
        except Unsupported as refusal:
            return str(refusal)
        return None

    def output_node(self) -> Any:
        """Return the chosen kernel's result."""
        is_host = self.layout.device.type == "cpu" and config.cpu_backend == "cpp"
        if not is_host or V.graph.cpp_wrapper:
            plain: Any = super()
            return plain.output_node()
        for node in self.input_nodes:
            if isinstance(node.get_layout(), ir.FlexibleLayout):
                node.freeze_layout()
        return ir.TensorBox.create(
            TemplateBuffer(
                self.layout, self.input_nodes, self.anchor, self.device_of_kernel, self.record
            )
        )


class _Described:
    """What a template would be, before there is one."""

    NAME = "result"

    def __init__(self, caller: Caller) -> None:
        self.inputs = ir.InputsKernel.unwrap_storage(caller.input_nodes)
        self._layout = caller.layout

    def get_name(self) -> str:
        return self.NAME

    def get_dtype(self) -> torch.dtype:
        dtype: torch.dtype = self._layout.dtype
        return dtype

    def get_size(self) -> Sequence[Any]:
        return self._layout.size

    def get_stride(self) -> Sequence[Any]:
        return self._layout.stride


@cache
def kernel(text: str, device: str | None) -> Callable[..., None]:
    """Return what runs a program on tensors: its operands, then those for its results.

    Inductor's code calls this.
    """
    op = parsed(text)
    count = len(op.program.parameters)

    def run(*tensors: torch.Tensor) -> None:
        results = tensors[count:]
        out: Any = results if len(results) > 1 else results[0]
        with torch.no_grad():
            op(*tensors[:count], out=out, device=device)

    return run


class Scheduling(CppScheduling):
    """Inductor's scheduling for the CPU, which knows our templates too."""

    def can_fuse_vertical(self, node1: Any, node2: Any) -> bool:
        """Tell whether the kernel of ``node1`` computes ``node2`` too."""
        template = _template_of(node1)
        if template is None:
            return bool(_own(super()).can_fuse_vertical(node1, node2))
        nodes = [*node1.get_nodes(), *node2.get_nodes()]
        try:
            self._program(template, nodes)
        except Unsupported as refusal:
            names = tuple(node.get_name() for node in nodes)
            declined = Declined(names, str(refusal))
            if declined not in template.record.declined:
                template.record.declined.append(declined)
            return False
        return True

    def _program(self, template: TemplateBuffer, nodes: Sequence[Any]) -> FusedProgram:
        """Return the program of a template and the nodes after it."""
        loops = [node.node for node in nodes if node.node is not template]
        if not all(isinstance(loop, ir.ComputedBuffer) for loop in loops):
            raise Unsupported("it is a kernel of another library")
        return template.program(loops, self._kept(nodes))

    def _kept(self, nodes: Sequence[Any]) -> list[str]:
        """Return the buffers of fused nodes that others read."""
        own = OrderedSet(node.get_name() for node in nodes)
        names = [buffer.get_name() for node in nodes for buffer in node.get_outputs()]
        removable = _own(self.scheduler).can_buffer_be_removed_through_fusion
        return [name for name in names if not removable(name, own)]

    def codegen_template(
        self, template_node: Any, epilogue_nodes: Sequence[Any], prologue_nodes: Sequence[Any]
    ) -> None:
        """Write the call of a kernel."""
        template = _template_of(template_node)
        if template is None:
            _own(super()).codegen_template(template_node, epilogue_nodes, prologue_nodes)
            return
        nodes = [template_node, *epilogue_nodes]
        program = self._program(template, nodes)
        for node in nodes:
            node.mark_run()
        name = self._defined(program, template, nodes)
        _own(self).codegen_comment(nodes, name)
        wrapper: Any = V.graph.wrapper_code
        views = [_written(view) for view in (*program.reads, *program.writes)]
        wrapper.writeline(wrapper.wrap_kernel_call(name, views))
        kept = {view.buffer for view in program.writes}
        V.graph.removed_buffers |= OrderedSet(
            buffer.get_name()
            for node in nodes
            for buffer in node.get_outputs()
            if buffer.get_name() not in kept
        )
        self.free_buffers_in_scheduler()

    def _defined(
        self, program: FusedProgram, template: TemplateBuffer, nodes: Sequence[Any]
    ) -> str:
        """Return the name of a program's kernel in Inductor's code; define it if it is new."""
        wrapper: Any = V.graph.wrapper_code
        body = f"kernel(r'''\n{program.text}\n''', {template.device_of_kernel!r})"
        name: str | None = wrapper.src_to_kernel.get(body)
        if name is None:
            words = get_fused_kernel_name(nodes, config.cpp.descriptive_names)
            name = "_".join(["cklang", words, wrapper.next_kernel_suffix()])
            wrapper.src_to_kernel[body] = name
            wrapper.add_import_once("from cklang.torch.inductor.template import kernel")
            wrapper.define_kernel(name, body, gpu=False)
        names = tuple(node.get_name() for node in nodes)
        template.record.kernels.append(Emitted(name, names, program.text))
        return name


def _own(untyped: Any) -> Any:
    """Return an object of Inductor, whose methods have no types."""
    return untyped


def _template_of(node: Any) -> TemplateBuffer | None:
    template = node.get_template_node() if node.is_template() else None
    return template if isinstance(template, TemplateBuffer) else None


def _written(view: View) -> str:
    """Return a view as Inductor's code."""
    wrapper: Any = V.graph.wrapper_code
    sizes, strides = map(wrapper.codegen_python_shape_tuple, (view.size, view.stride))
    offset = wrapper.codegen_python_sizevar(view.offset)
    return f"reinterpret_tensor({view.buffer}, {sizes}, {strides}, {offset})"


@contextmanager
def scheduled() -> Iterator[None]:
    """Let Inductor compile for the CPU with :class:`Scheduling`, in this context."""
    common.init_backend_registration()
    own = common.device_codegens["cpu"]

    def made(scheduler: Any) -> Any:
        return (
            _own(Scheduling)(scheduler)
            if config.cpu_backend == "cpp"
            else own.scheduling(scheduler)
        )

    common.device_codegens["cpu"] = replace(own, scheduling=made)
    try:
        yield
    finally:
        common.device_codegens["cpu"] = own
