# SPDX-License-Identifier: MIT
"""The gradients of one attention as plain data, and what one of their kernels costs.

What is measured is the whole of ``ck.attention_grad``: the kernel that is asked about, with the
forward one before it and the sums after it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.errors import error
from cklang.keys import AnyKey
from cklang.ops.attention_backward import GradientKind, PreparedGradients, prepare_gradients
from cklang.runtime.ir_text import op_from_ir
from cklang.tune.called import part_of, part_of_task
from cklang.tune.task import TuningTask

Array = npt.NDArray[Any]


def prepared(task: TuningTask, key: AnyKey, arrays: Sequence[Array]) -> PreparedGradients:
    """Return the gradients of a call with one algorithm; that of o is made here, from a seed."""
    op = op_from_ir(task.program).using(key.algorithm)
    return prepare_gradients(
        op, arrays, {}, grad=gradient_of_o(task), kind=_kind(task), device=None
    )


def gradient_of_o(task: TuningTask) -> Array:
    """Return what the gradient of o is taken to be."""
    o = task.fused.results[0]
    shape = task.places[o.name].shape
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(o.type.dtype.numpy)


def gradient_error_ratio(task: TuningTask, key: AnyKey, arrays: Sequence[Array]) -> float:
    """Take the gradients of a part of ``arrays``; return the largest error in its bound's units."""
    from cklang.reference.attention_grad import SharedBias, gradients_with_bound
    from cklang.reference.distance import largest_ratio

    part = part_of_task(task)
    some = part_of(task, arrays)
    ready = prepared(part, key, some)
    ready.run()
    grad = gradient_of_o(part)
    function, bias = part.program, None
    if ready.bias is not None:
        place = [param.name for param in function.params].index(ready.bias.value.name)
        bias = SharedBias(param=place, axes=ready.bias.axes)
    want, bound = gradients_with_bound(function, some, grad, bias)
    gradients = [result for result in ready.results if result is not None]
    return max(
        largest_ratio(gradient, wanted, within)
        for gradient, wanted, within in zip(gradients, want, bound, strict=True)
    )


def _kind(task: TuningTask) -> GradientKind:
    if task.gradient is None:
        raise error("Z002", what="a task without gradients is taken for one with them")
    return task.gradient
