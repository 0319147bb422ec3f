# SPDX-License-Identifier: MIT
"""Errors that a test expects, by their code."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cklang.errors import CkError


@contextmanager
def expect_error(
    code: str, *words: str, match: str | None = None, kind: type[CkError] = CkError
) -> Iterator[pytest.ExceptionInfo[CkError]]:
    """Expect an error of the library that has a code, and each of the words in its text."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    text = str(caught.value)
    assert caught.value.code == code, f"not {code}: {text}"
    missing = [each for each in words if each not in text]
    assert not missing, f"{missing} not in: {text}"
