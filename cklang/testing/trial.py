# SPDX-License-Identifier: MIT
"""Try an op on drawn calls, and show the smallest one whose result is wrong as a test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from cklang.device.arrays import to_numpy
from cklang.errors import CkError, CkMismatchError, CkUnsupportedError, error
from cklang.frontend.signature import Parameter
from cklang.ir.numeric import Array
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing.compare import UNCHECKED
from cklang.testing.drawn_calls import NOTHING, Call, calls
from cklang.testing.printed_test import name_of, printed_test
from cklang.testing.report import Report, reference_values
from cklang.testing.strategies import Layout, Values

Expected = Callable[..., Any]
Library = Literal["numpy", "torch"]
"""Whose arrays a function to compare with takes."""

_DEFAULTS = {"rtol": 0.0, "unchecked": UNCHECKED, "library": "numpy", "device": None}


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
    unchecked: float = UNCHECKED,
    library: Library = "numpy",
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
        unchecked: The largest share of elements of a result, 0 to 1, whose bound may be infinite:
            long chains of functions need more. Of calls with wide or special values it is 1.
        library: What ``against`` takes and returns: arrays of NumPy, or tensors of torch.
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
        CkValueError: T006, no drawn call can run; T007, T008, of ``dims`` and ``constants``;
            A141, of ``library``.
        Exception: What a call or ``against`` raises, with the smallest call that raises it.
    """
    _expect_library(library)
    drawn = calls(
        op, dims=dims, constants=constants, values=values, layouts=layouts, largest=largest
    )
    options = {"rtol": rtol, "unchecked": unchecked, "library": library, "device": device}
    trial = _Trial(against=against, options=options)

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
    except Exception as mistake:
        # What hypothesis notes names neither the arrays nor how to make them again.
        mistake.__notes__ = trial.notes()
        raise
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
    unchecked: float = UNCHECKED,
    library: Library = "numpy",
    device: str | None = None,
) -> None:
    """Run one call, and compare every result; otherwise as :func:`check`.

    Args:
        call: What is called.
        against: As of :func:`check`.
        rtol: As there.
        unchecked: As there.
        library: As there.
        device: As of a call.

    Example:
        >>> from cklang.testing import Call, check_call
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> check_call(Call(op=linear, dims={"M": 2, "N": 3, "K": 4}))

    Raises:
        CkMismatchError: T001, with the worst element; T004, most of the result has no finite
            bound; A140, ``against`` returns another number of results, or other shapes.
        CkValueError: A141, of ``library``.
        CkError: What the call raises.
    """
    _expect_library(library)
    arguments = call.arguments()
    got = call.op(**arguments, device=device)
    for report in _compared(call, arguments, got, against, rtol, library):
        report.check(unchecked=1 if call.values in (Values.WIDE, Values.SPECIAL) else unchecked)


@dataclass(slots=True, kw_only=True)
class _Trial:
    """What the drawn calls of one op came to."""

    against: Expected | None
    options: Mapping[str, Any]
    """The further arguments of :func:`check_call`."""
    ran: int = 0
    refused: int = 0
    refusal: tuple[Call, CkError] | None = None
    failing: list[Call] = field(default_factory=list)
    """The calls that failed; the last is the smallest, since the search ends with it."""

    def run(self, call: Call) -> None:
        try:
            check_call(call, self.against, **self.options)
        except CkUnsupportedError as refusal:
            self.refused += 1
            self.refusal = call, refusal
            reject()
        except Exception:
            self.failing.append(call)
            raise
        self.ran += 1

    def failure(self, mismatch: CkMismatchError) -> CkError:
        """Return the error that shows the smallest failing call, with a test as its note."""
        call = self.failing[-1]
        mistake = error(
            "T005",
            op=call.op.program.name,
            other="its reference" if self.against is None else name_of(self.against),
            device=self.options["device"] or "the device of calls",
            worst=str(mismatch),
            call=call.source(),
        )
        mistake.add_note("\n" + self.test())
        return mistake

    def notes(self) -> list[str]:
        """Return what to add to an error of a call: the smallest call that raises it."""
        if not self.failing:
            return []
        return [f"the smallest failing call is {self.failing[-1].source()}", "\n" + self.test()]

    def test(self) -> str:
        """Return the smallest failing call as a test."""
        options = [f"{k}={v!r}" for k, v in self.options.items() if v != _DEFAULTS[k]]
        return printed_test(self.failing[-1], self.against, ", ".join(options))


def _expect_library(library: str) -> None:
    if library not in get_args(Library):
        raise error("A141", got=library, known=" or ".join(map(repr, get_args(Library))))


def _compared(
    call: Call,
    arguments: Mapping[str, Any],
    got: Any,
    against: Expected | None,
    rtol: float,
    library: Library,
) -> list[Report]:
    function = call.op.ir(**arguments)
    arrays = reference_values(call.op, function, (), arguments)
    references, own_bounds = evaluate_with_bound(function, arrays)
    expected, bounds = list(references), list(own_bounds)
    results = [to_numpy("result", result) for result in (got if isinstance(got, tuple) else (got,))]
    if against is not None:
        wanted = _wanted(call, arguments, against, library)
        _expect_shapes(call, against, wanted, results)
        bounds = [
            bound + _rounding(want, result.dtype, rtol)
            for bound, want, result in zip(bounds, wanted, results, strict=True)
        ]
        expected = [want.astype(result.dtype) for want, result in zip(wanted, results, strict=True)]
    return [
        Report(got=result, expected=reference, bound=bound)
        for result, reference, bound in zip(results, expected, bounds, strict=True)
    ]


def _wanted(
    call: Call, arguments: Mapping[str, Any], against: Expected, library: Library
) -> list[Array]:
    """Return what ``against`` gives for the arguments of a call."""
    values = list(_wide_arguments(call.op.program.signature.parameters, arguments))
    if library == "torch":
        from torch import from_numpy

        values = [from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for v in values]
    results = against(*values)
    tensors = results if isinstance(results, tuple | list) else (results,)
    return [np.asarray(_of_torch(v) if hasattr(v, "detach") else v) for v in tensors]


def _of_torch(tensor: Any) -> Array:
    """Return a tensor as an array, floats of any width as float64."""
    host = tensor.detach().cpu()
    array: Array = (host.double() if host.is_floating_point() else host).numpy()
    return array


def _expect_shapes(
    call: Call, against: Expected, wanted: Sequence[Array], results: Sequence[Array]
) -> None:
    shapes, own = ([array.shape for array in arrays] for arrays in (wanted, results))
    if shapes != own:
        raise error(
            "A140",
            against=name_of(against),
            got=", ".join(map(str, shapes)) or "nothing",
            op=call.op.program.name,
            want=", ".join(map(str, own)),
        )


def _wide_arguments(parameters: Sequence[Parameter], arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the arguments as ``against`` takes them: float arrays as float64, None if left out."""
    for parameter in parameters:
        default = parameter.default if parameter.has_default else None
        value = arguments.get(parameter.name, default)
        is_float = isinstance(value, np.ndarray) and value.dtype.kind not in "iub"
        yield value.astype(np.float64) if is_float else value


def _rounding(expected: Any, dtype: Any, rtol: float) -> Any:
    """Return how far rounding to ``dtype`` and ``rtol`` let a result be from ``expected``."""
    expected = np.asarray(expected, np.float64)
    with np.errstate(all="ignore"):
        stored = expected.astype(dtype).astype(np.float64)
        step = 2 * np.abs(stored - expected)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    return np.where(np.isfinite(step), step, 0.0) + rtol * largest
