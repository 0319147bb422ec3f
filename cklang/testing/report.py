# SPDX-License-Identifier: MIT
"""Hold the result of an op against its reference: how far it is, and how far it may be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklang.device.arrays import is_scalar, plain, to_numpy
from cklang.display import ShownAsText
from cklang.ir.nodes import Function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.distance import largest_ratio
from cklang.runtime.op import Op
from cklang.testing.compare import UNCHECKED, assert_close, unchecked_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(ShownAsText):
    """A result beside its reference.

    Example:
        >>> from cklang.testing import Report
        >>> expected = np.array([1.0, 2.0, 4.0])
        >>> result = Report(got=np.array([1.0, 2.125, 4.0]), expected=expected, bound=expected / 8)
        >>> print(result)
        largest error 0.125 at [1], its bound 0.25; ... 0.50 (legal: 1); ...
    """

    got: Any
    expected: Any
    bound: Any
    """The absolute error that each element may have."""

    @property
    def passed(self) -> bool:
        """Whether every element is within its bound and hardly any bound is infinite.

        Example:
            >>> result.passed
            True
        """
        return self.ratio <= 1 and self.unchecked <= UNCHECKED

    @property
    def ratio(self) -> float:
        """The largest error in units of its bound: at most 1 if the result is right.

        Example:
            >>> result.ratio
            0.5
        """
        return largest_ratio(self.got, self.expected, self.bound)

    @property
    def unchecked(self) -> float:
        """The share of elements, 0 to 1, whose bound is infinite though the reference is finite.

        Example:
            >>> result.unchecked
            0.0
        """
        return unchecked_share(self.expected, self.bound)

    def check(self, *, unchecked: float = UNCHECKED) -> None:
        """Raise unless every element is within its bound.

        Args:
            unchecked: The largest share of elements that may have an infinite bound.

        Example:
            >>> result.check()  # within the bounds

        Raises:
            CkMismatchError: T001, with the worst element; T002, another shape or dtype; T004, more
                elements than ``unchecked`` allows are not checked.
        """
        assert_close(self.got, self.expected, self.bound, unchecked=unchecked)

    def __str__(self) -> str:
        with np.errstate(invalid="ignore"):
            distance = np.abs(self.got.astype(np.float64) - self.expected.astype(np.float64))
        finite = np.where(np.isfinite(distance), distance, 0.0)
        if not finite.size:
            return "no element to compare"
        worst = np.unravel_index(int(np.argmax(finite)), finite.shape)
        return (
            f"largest error {finite[worst]:.3g} at [{', '.join(str(int(i)) for i in worst)}], "
            f"its bound {self.bound[worst]:.3g}; "
            f"largest error in units of its bound {self.ratio:.2f} (legal: 1); "
            f"{self.unchecked:.2%} of the elements not checked (legal: {UNCHECKED:.0%})"
        )


def report(op: Op, args: Sequence[Any], result: Any, **kwargs: Any) -> Report:
    """Compare what ``op(*args, **kwargs)`` returned with the reference of the same program.

    Of an op with several results the first is compared; :func:`reports` compares all.

    Args:
        op: The op that was called.
        args: Its arguments: NumPy arrays, numbers or CPU tensors, unchanged since the call.
        result: What the call returned.
        kwargs: The call's compile-time options.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> from cklang.testing import report
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
        >>> report(linear, (x, w), linear(x, w)).passed
        True

    Raises:
        CkError: As the call itself would for arguments that do not fit the op.
    """
    return reports(op, args, result, **kwargs)[0]


def reports(op: Op, args: Sequence[Any], result: Any, **kwargs: Any) -> tuple[Report, ...]:
    """Compare each result of a call with the reference; otherwise as :func:`report`.

    Args:
        op: The op that was called.
        args: Its arguments: NumPy arrays, numbers or CPU tensors, unchanged since the call.
        result: What the call returned.
        kwargs: The call's compile-time options.

    Example:
        >>> from cklang.testing import reports
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def both(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f32[M, N]]:
        ...     return ck.relu(x @ w.T), x @ w.T
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
        >>> [each.passed for each in reports(both, (x, w), both(x, w))]
        [True, True]

    Raises:
        CkError: As the call itself would for arguments that do not fit the op.
    """
    function = op.ir(*args, **kwargs)
    arrays = reference_values(op, function, args, kwargs)
    expected, bounds = evaluate_with_bound(function, arrays)
    results = result if isinstance(result, tuple) else (result,)
    return tuple(
        Report(got=to_numpy("result", array), expected=reference, bound=bound)
        for array, reference, bound in zip(results, expected, bounds, strict=True)
    )


def reference_values(
    op: Op, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Return the arguments of a call as the reference takes them: one for each of ``function``."""
    names = (parameter.name for parameter in op.program.parameters)
    values = {**dict(zip(names, args, strict=False)), **kwargs}
    pairs = [(param.name, values[param.name]) for param in function.params]
    return [plain(value) if is_scalar(value) else to_numpy(name, value) for name, value in pairs]
