# SPDX-License-Identifier: MIT
"""How long a call takes on a GPU, by the clock: ``cklang.predict``."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from cklang.device.device import open_device
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.profiler import prediction
from cklang.errors import error
from cklang.selection.context import current, using


def predict(
    op: Callable[..., Any],
    *args: Any,
    device: str | None = None,
    workgroups: int | None = None,
    board: str | None = None,
    caches: str | None = None,
    compiler: str | None = None,
    **kwargs: Any,
) -> prediction.Prediction:
    """Return how long a call takes on the GPU that ``device`` emulates.

    A few workgroups of each kernel are executed, and no others, so results of the call are
    incomplete and are dropped. A program that changes its arguments changes them, maybe twice.

    Args:
        op: What is called.
        *args: Its arguments.
        device: As in a call; it must be an emulated one.
        workgroups: How many of each launch are executed, evenly spaced over the grid, and timed.
            By default three or a few more; where they execute different numbers of instructions,
            as those of causal attention, the call is repeated with eleven, which are timed, else
            the first one is. A number that divides an extent of the grid meets the same places of
            an axis again and again.
        board: With the GPU: ``MI300X``, ``MI300A``, ``MI325X`` or ``MI355X``. It says how many
            compute units there are, how quick memory is and what power it may draw, as far as that
            is known of it. By default the first one that is known.
        caches: What kernels find in the caches: ``"warm"``, what another launch of the same kernel
            leaves there; ``"cold"``, nothing; ``"as in the call"``, what the kernels before leave,
            where the call is repeated. The last one is the default for calls of several kernels;
            a single kernel is warm.
        compiler: What compiles the kernels, as in :func:`cklang.using`: ``rocm7`` to compare with
            times that were taken with ROCm 7. Each kernel of the result names its compiler.
        **kwargs: Further arguments of the op.

    Example:
        >>> @ck.op
        ... def product(x: ck.f16["M", "K"], w: ck.f16["N", "K"]) -> ck.f16["M", "N"]:
        ...     return x @ w.T
        >>> a = np.zeros((256, 256), np.float16)
        >>> ck.predict(product, a, a, device="emu:gfx942").kernels[0].workgroups  # doctest: +SKIP
        16

    Raises:
        CkUnsupportedError: K050, the clock has no constants for the GPU, or it is a real one, or
            nothing is known of the board.
        CkValueError: A133, ``caches`` is another word; A134, the call launched nothing.
        CkBuildError: B002, B007, the compiler cannot be used or is not there.
        CkError: As the call itself.
    """
    opened = open_device(device)
    if not opened.emulated:
        raise error("K050", what="emulation", name=opened.name, known="emulated devices")
    constants_of(opened.spec.name, board)  # before the call takes its time

    def call() -> None:
        op(*args, device=opened.name, **kwargs)
        opened.synchronize()  # a call on arrays of the device does not wait

    with nullcontext() if compiler is None else using(compiler=compiler):
        kernels = getattr(op, "kernels", None)
        if kernels is not None and getattr(current().strategy, "launches", False):
            kernels(*args, device=opened.name, **kwargs)  # not while launches are recorded
        return prediction.predict(
            call,
            board=board,
            caches=caches,
            workgroups=workgroups,
            spec=opened.spec if board is None else opened.spec.on_board(board),
        )
