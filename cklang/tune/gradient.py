# SPDX-License-Identifier: MIT
"""The gradients of one attention as plain data, and what one of their kernels costs.

What is measured is the whole of ``ck.attention_grad``: the kernel that is asked about, with the
forward one before it and the sums after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cklang.attention_keys import AttentionGradKey
from cklang.codec import decode, encode
from cklang.families.attention.plan import AttentionFunctions, AttentionPlan
from cklang.families.attention.problem import AttentionGradCase
from cklang.families.attention_backward.stages import GradientKind, forward_case, grad_case
from cklang.ops.attention_backward import PreparedGradients, bias_of, prepare_gradients
from cklang.reference.attention_grad import SharedBias, gradients_with_bound
from cklang.reference.distance import largest_ratio
from cklang.tune.attention import AttentionRun, part_of, run_of

if TYPE_CHECKING:
    from cklang.runtime.bind import Binding

__all__ = ["GradientRun", "gradient_error_ratio", "gradient_runs_of", "prepared"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientRun:
    """The gradients of one attention of one call."""

    forward: AttentionRun
    kind: GradientKind

    @property
    def filling(self) -> AttentionFunctions:
        """What fills the stencil of the kernel that gives the parts."""
        return self.kind.functions(self.forward.plan.kernel)

    @property
    def problem(self) -> AttentionGradCase:
        """The problem that this kernel is selected for."""
        run = self.forward
        case = forward_case(run.plan.kernel, run.places, dict(run.dims))
        return grad_case(case, self.kind.deterministic, self.kind.bias)

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        data: dict[str, Any] = encode(self)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> GradientRun:
        """Read it back."""
        return decode(GradientRun, dict(data), "gradient")


def gradient_runs_of(
    plan: AttentionPlan, binding: Binding, kind: GradientKind
) -> tuple[GradientRun, ...]:
    """Return the gradients of a bound call; none if there is no score.

    Raises:
        CkUnsupportedError: G008, there is no bias whose gradient a kernel gives.
    """
    if kind.bias:
        bias_of(plan, binding)
    return tuple(
        GradientRun(forward=run, kind=kind)
        for run in run_of(plan, binding)
        if run.problem.problem.seqlen_k
    )


def prepared(run: GradientRun, key: AttentionGradKey, arrays: Sequence[Array]) -> PreparedGradients:
    """Return the gradients of a call with one algorithm; that of o is made here, from a seed."""
    from cklang.runtime.op import op_from_ir

    op = op_from_ir(run.forward.function).using(key.algorithm)
    return prepare_gradients(
        op,
        arrays,
        {},
        grad=gradient_of_o(run),
        kind=run.kind,
        device=None,
    )


def gradient_of_o(run: GradientRun) -> Array:
    """Return what the gradient of o is taken to be."""
    o = run.forward.plan.kernel.o
    shape = run.forward.places[o.name].shape
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(o.type.dtype.numpy)


def gradient_error_ratio(run: GradientRun, key: AttentionGradKey, arrays: Sequence[Array]) -> float:
    """Take the gradients of a part of ``arrays``; return the largest error in its bound's units."""
    part = GradientRun(forward=run.forward.part, kind=run.kind)
    some = part_of(run.forward, arrays)
    ready = prepared(part, key, some)
    ready.run()
    grad = gradient_of_o(part)
    function, bias = part.forward.plan.function, None
    if ready.bias is not None:
        place = [param.name for param in function.params].index(ready.bias.value.name)
        bias = SharedBias(param=place, axes=ready.bias.axes)
    want, bound = gradients_with_bound(function, some, grad, bias)
    found = [each for each in ready.results if each is not None]
    return max(
        largest_ratio(each, wanted, within)
        for each, wanted, within in zip(found, want, bound, strict=True)
    )
