# SPDX-License-Identifier: MIT
"""Try an op on drawn calls, and show the smallest one whose result is wrong as a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from cklang.device.arrays import to_numpy
from cklang.errors import CkError, CkMismatchError, CkUnsupportedError, error
from cklang.frontend.signature import Parameter
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing.drawn_calls import NOTHING, Call, calls
from cklang.testing.report import Report, reference_values
from cklang.testing.strategies import Layout, Values

__all__ = ["check", "check_call"]

Expected = Callable[..., Any]


def check(
    op: Op,
    against: Expected | None = None,
    *,
    dims: Mapping[str, int | Sequence[int] | st.SearchStrategy[int]] = NOTHING,
    constants: Mapping[str, Sequence[Any]] = NOTHING,
    values: Sequence[Values] = (Values.SMALL, Values.ORDINARY),
    layouts: Sequence[Layout] = (Layout.ROW, Layout.PADDED_ROW),
    largest: int = 130,
    examples: int = 20,
    rtol: float = 0.0,
    device: str | None = None,
) -> int:
    """Run an op on drawn calls, and compare every result.

    Extents, dtypes of dtype variables, presence of optional parameters, constants, numbers and
    strides are drawn from the op's signature. A failing call is shrunk to the smallest one that
    fails, and the error shows it as a test that can be pasted into a file.

    Args:
        op: The op.
        against: What the op should compute: a function of the op's parameters, in its order, that
            takes float arrays as float64 and returns what the op returns. None: the op's own
            program, evaluated by the NumPy reference. That finds wrong kernels; a function of your
            own finds wrong programs too.
        dims: As of :func:`cklang.testing.calls`.
        constants: As there.
        values: As there.
        layouts: As there.
        largest: As there.
        examples: How many calls are drawn, 1 or more. The same ones in each run.
        rtol: How far beyond the reference's bound a result may be from ``against``, relative to
            the largest magnitude of the result: for what the op rounds on its way, and
            ``against`` does not.
        device: As of a call.

    Returns:
        How many calls ran. Those that no kernel of this installation can compute are not counted.

    Example:
        >>> from cklang.testing import check
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> check(linear, lambda x, w: np.maximum(x @ w.T, 0), examples=5)
        5

    Raises:
        CkMismatchError: T005, a result is wrong: with the worst element and the smallest call.
        CkValueError: T006, no drawn call can run; T007, T008, of ``dims`` and ``constants``.
    """
    drawn = calls(
        op, dims=dims, constants=constants, values=values, layouts=layouts, largest=largest
    )
    trial = _Trial(against=against, rtol=rtol, device=device)

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def run(call: Call) -> None:
        trial.run(call)

    try:
        run()
    except Unsatisfiable:
        pass
    except CkMismatchError as mismatch:
        raise trial.failure(mismatch) from None
    if not trial.ran and trial.refusal is not None:
        call, reason = trial.refusal
        raise error(
            "T006", count=trial.refused, op=op.program.name, call=call.source(), reason=reason
        )
    return trial.ran


def check_call(
    call: Call,
    against: Expected | None = None,
    *,
    rtol: float = 0.0,
    device: str | None = None,
) -> None:
    """Run one call, and compare every result; otherwise as :func:`check`.

    Args:
        call: What is called.
        against: As of :func:`check`.
        rtol: As there.
        device: As of a call.

    Example:
        >>> from cklang.testing import Call, check_call
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> check_call(Call(op=linear, dims={"M": 2, "N": 3, "K": 4}))

    Raises:
        CkMismatchError: T001, with the worst element; T002, another shape or dtype than
            ``against`` returns; T004, most of the result has no finite bound.
        CkError: What the call raises.
    """
    arguments = call.arguments()
    got = call.op(**arguments, device=device)
    for each in _compared(call, arguments, got, against, rtol):
        each.check(unchecked=1 if call.values in (Values.WIDE, Values.SPECIAL) else 0.05)


@dataclass(slots=True, kw_only=True)
class _Trial:
    """What the drawn calls of one op came to."""

    against: Expected | None
    rtol: float
    device: str | None
    ran: int = 0
    refused: int = 0
    refusal: tuple[Call, CkError] | None = None
    failing: list[Call] = field(default_factory=list)
    """The calls that failed; the last is the smallest, since the search ends with it."""

    def run(self, call: Call) -> None:
        try:
            check_call(call, self.against, rtol=self.rtol, device=self.device)
        except CkMismatchError:
            self.failing.append(call)
            raise
        except CkUnsupportedError as refusal:
            self.refused += 1
            self.refusal = call, refusal
            reject()
        self.ran += 1

    def failure(self, mismatch: CkMismatchError) -> CkError:
        """Return the error that shows the smallest failing call, with a test as its note."""
        call = self.failing[-1]
        mistake = error(
            "T005",
            op=call.op.program.name,
            other="its reference" if self.against is None else _name(self.against),
            device=self.device or "the device of calls",
            worst=str(mismatch),
            call=call.source(),
        )
        mistake.add_note("\n" + _test(call, self.against, self.rtol, self.device))
        return mistake


def _compared(
    call: Call,
    arguments: Mapping[str, Any],
    got: Any,
    against: Expected | None,
    rtol: float,
) -> list[Report]:
    function = call.op.ir(**arguments)
    arrays = reference_values(call.op, function, (), arguments)
    references, own_bounds = evaluate_with_bound(function, arrays)
    expected, bounds = list(references), list(own_bounds)
    results = [to_numpy("result", each) for each in (got if isinstance(got, tuple) else (got,))]
    if against is not None:
        wanted = against(*_wide_arguments(call.op.program.signature.parameters, arguments))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        bounds = [
            bound + _rounding(np.asarray(want, np.float64), result.dtype, rtol)
            for bound, want, result in zip(bounds, wanted, results, strict=True)
        ]
        expected = [
            np.asarray(want).astype(result.dtype)
            for want, result in zip(wanted, results, strict=True)
        ]
    return [
        Report(got=result, expected=reference, bound=bound)
        for result, reference, bound in zip(results, expected, bounds, strict=True)
    ]


def _wide_arguments(parameters: Sequence[Parameter], arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the arguments as ``against`` takes them: float arrays as float64, None if left out."""
    for parameter in parameters:
        default = parameter.default if parameter.has_default else None
        value = arguments.get(parameter.name, default)
        is_float = isinstance(value, np.ndarray) and value.dtype.kind not in "iub"
        yield value.astype(np.float64) if is_float else value


def _rounding(expected: Any, dtype: Any, rtol: float) -> Any:
    """Return how far rounding to ``dtype`` and ``rtol`` let a result be from ``expected``."""
    with np.errstate(all="ignore"):
        stored = expected.astype(dtype).astype(np.float64)
        step = 2 * np.abs(stored - expected)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    return np.where(np.isfinite(step), step, 0.0) + rtol * largest


def _test(call: Call, against: Expected | None, rtol: float, device: str | None) -> str:
    """Return a test that makes one call."""
    name = call.op.program.name
    more = [] if against is None else [_name(against)]
    more += [f"rtol={rtol}"] if rtol else []
    more += [f"device={device!r}"] if device is not None else []
    functions = [*_imports(call.op.program, name), *_imports(against, _name(against))]
    return "\n".join(
        [
            "import cklang as ck",
            "from cklang.testing import Call, check_call",
            "from cklang.testing.strategies import Layout, Values",
            *functions,
            "",
            f"def test_{name}():",
            f"    call = {call.source()}",
            f"    check_call({', '.join(['call', *more])})",
        ]
    )


def _imports(function: Any, name: str) -> list[str]:
    """Return the line that imports a function of a module; none for one that has no such name."""
    function = getattr(function, "function", function)
    module = getattr(function, "__module__", "__main__")
    if module == "__main__" or getattr(function, "__qualname__", "") != name:
        return []
    return [f"from {module} import {name}"]


def _name(function: Expected | None) -> str:
    """Return how a test names a function; one without a name is called ``expected``."""
    name = str(getattr(function, "__name__", "expected"))
    return name if name.isidentifier() else "expected"
