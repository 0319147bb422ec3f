# SPDX-License-Identifier: MIT
"""Other machines as an executor: a Dask cluster, found by the address of its scheduler."""

import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from cklang.errors import error

_PATIENCE = "30s"


@contextmanager
def workers_of(address: str) -> Iterator[Executor]:
    """Give the workers of the Dask scheduler at ``address`` (``tcp://host:8786``).

    A task whose worker dies runs again on another one.

    Example:
        >>> with ck.workers_of("tcp://scheduler:8786") as executor:  # doctest: +SKIP
        ...     summary = ck.dispatch.Registry("mine").build(executor=executor)

    Raises:
        CkUnsupportedError: C004, Dask is not installed.
        CkDeviceError: C005, nobody answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as problem:
        raise error("C004") from problem
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as problem:
        raise error("C005", address=address, problem=str(problem)) from problem
    with client, client.get_executor(pure=False) as executor:
        yield executor


def gave_up(problem: BaseException) -> bool:
    """Whether Dask says of a task that every worker that tried it died."""
    dask = sys.modules.get("distributed")
    return dask is not None and isinstance(problem, dask.KilledWorker)
