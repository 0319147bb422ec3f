# SPDX-License-Identifier: MIT
"""Tasks: what a submission is to compute, in the forms of KernelBench, GPU MODE and our own."""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_map

from cklang.errors import error

_SEED = 42
"""The seed of the parameters of a model, as KernelBench's own harness has it."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How tasks of one kind are written."""

    name: str
    needs: tuple[str, ...]
    """Names that the task's module has."""
    entry: str
    """What the submission's module has."""


KERNELBENCH = Form(name="KernelBench", needs=("Model", "get_inputs"), entry="ModelNew")
GPU_MODE = Form(name="GPU MODE", needs=("generate_input", "ref_kernel"), entry="custom_kernel")
FUNCTIONS = Form(name="functions", needs=("inputs", "reference"), entry="submission")
FORMS = (KERNELBENCH, GPU_MODE, FUNCTIONS)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task, and the sizes it is asked for."""

    path: Path
    form: Form
    module: ModuleType
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def named_sizes(self) -> Mapping[str, int]:
        """All sizes that may be made smaller, as they are."""
        if self.form is not KERNELBENCH:
            return self.sizes
        numbers = {k: v for k, v in vars(self.module).items() if type(v) is int}
        return {**numbers, **self.sizes}

    def inputs(self, sizes: Mapping[str, int], seed: int) -> list[Any]:
        """Return the arguments of a submission."""
        torch.manual_seed(seed)
        if self.form is KERNELBENCH:
            vars(self.module).update(sizes)
            return list(self.module.get_inputs())
        if self.form is GPU_MODE:
            return [self.module.generate_input(**sizes, seed=seed)]
        return list(self.module.inputs(**sizes))

    def initial(self, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arguments of a model's constructor."""
        vars(self.module).update(sizes if self.form is KERNELBENCH else {})
        make: Callable[[], Sequence[Any]] = getattr(self.module, "get_init_inputs", list)
        return list(make())

    def model(self, sizes: Mapping[str, int]) -> torch.nn.Module | None:
        """Return KernelBench's model; None for other tasks."""
        if self.form is not KERNELBENCH:
            return None
        initial = self.initial(sizes)
        torch.manual_seed(_SEED)
        model: torch.nn.Module = self.module.Model(*initial)
        return model

    def expected(self, sizes: Mapping[str, int], inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Return what the reference computes, in float64 where it can be, and in its own dtypes."""
        model = self.model(sizes)
        call = model if model is not None else self._function()
        wide = copy.deepcopy(model).double() if model is not None else call
        with torch.no_grad():
            own = call(*copied(inputs))
            try:
                exact = wide(*tree_map(_doubled, copied(inputs)))
            except (RuntimeError, TypeError):
                exact = own  # it names dtypes itself
        return exact, own

    def _function(self) -> Callable[..., Any]:
        name = "ref_kernel" if self.form is GPU_MODE else "reference"
        function: Callable[..., Any] = getattr(self.module, name)
        return function

    def own_check(self, inputs: Sequence[Any], outputs: Any) -> str:
        """Return what GPU MODE's own check objects to; empty if nothing."""
        check = getattr(self.module, "check_implementation", None)
        if self.form is not GPU_MODE or check is None:
            return ""
        answer = check(copied(inputs)[0], outputs)
        if isinstance(answer, tuple):
            return "" if answer[0] else str(answer[1])
        return str(answer or "")


def copied(values: Any) -> Any:
    """Return values with tensors of their own memory."""
    return tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, values)


def _doubled(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


def load_task(path: Path, sizes: Mapping[str, int]) -> Task:
    """Return the task in a Python file.

    Raises:
        CkValueError: Z010, there is no such file, or it has none of the three forms.
    """
    module = load_module(path, "cklang_judge_task")
    for form in FORMS:
        if all(hasattr(module, name) for name in form.needs):
            return Task(path=path, form=form, module=module, sizes=sizes)
    forms = "; ".join(f"{form.name}: {', '.join(form.needs)}" for form in FORMS)
    raise error("Z010", name=str(path), problem=f"it is no task, which has ({forms})")


def load_module(path: Path, name: str) -> ModuleType:
    """Run a Python file as a module.

    Raises:
        CkValueError: Z010, there is no such file.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise error("Z010", name=str(path), problem="there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module
