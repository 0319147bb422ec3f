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
from cklang.fusion.attention_plan import AttentionFunctions, AttentionPlan
from cklang.reference.attention_grad import gradients_with_bound
from cklang.reference.distance import largest_ratio
from cklang.runtime.attention.backward import PreparedGradients, prepare_gradients
from cklang.runtime.attention.gradients import GradientKind, forward_case, grad_case
from cklang.runtime.attention.problem import AttentionGradCase
from cklang.runtime.tune.attention import AttentionRun, part_of, run_of

if TYPE_CHECKING:
    from cklang.runtime.bind import Binding

__all__ = ["GradientRun", "gradient_error_ratio", "gradient_runs_of", "prepared"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientRun:
    """The gradients of q, k and v of one attention of one call."""

    forward: AttentionRun
    deterministic: bool

    @property
    def filling(self) -> AttentionFunctions:
        """What fills the stencil of the kernel that gives the parts."""
        return self.forward.plan.kernel.functions

    @property
    def problem(self) -> AttentionGradCase:
        """The problem that this kernel is selected for."""
        run = self.forward
        case = forward_case(run.plan.kernel, run.places, dict(run.dims))
        return grad_case(case, self.deterministic, bias_grad=False)

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        data: dict[str, Any] = encode(self)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> GradientRun:
        """Read it back."""
        return decode(GradientRun, dict(data), "gradient")


def gradient_runs_of(
    plan: AttentionPlan, binding: Binding, *, deterministic: bool
) -> tuple[GradientRun, ...]:
    """Return the gradients of a bound call; none if there is no score."""
    return tuple(
        GradientRun(forward=run, deterministic=deterministic)
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
        kind=GradientKind(deterministic=run.deterministic),
        device=None,
    )


def gradient_of_o(run: GradientRun) -> Array:
    """Return what the gradient of o is taken to be."""
    o = run.forward.plan.kernel.o
    shape = run.forward.places[o.name].shape
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(o.type.dtype.numpy)


def gradient_error_ratio(run: GradientRun, key: AttentionGradKey, arrays: Sequence[Array]) -> float:
    """Take the gradients of a part of ``arrays``; return the largest error in its bound's units."""
    part = GradientRun(forward=run.forward.part, deterministic=run.deterministic)
    some = part_of(run.forward, arrays)
    ready = prepared(part, key, some)
    ready.run()
    grad = gradient_of_o(part)
    want, bound = gradients_with_bound(part.forward.plan.function, some, grad)
    return max(
        largest_ratio(each, wanted, within)
        for each, wanted, within in zip(ready.results, want, bound, strict=False)
    )
