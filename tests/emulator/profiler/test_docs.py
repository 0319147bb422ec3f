# SPDX-License-Identifier: MIT
"""The output in ``docs/profile.md`` is what the profiler prints."""

import re
from pathlib import Path

import pytest

from cklang.emulator.profiler.session import Profile

_PAGE = Path(__file__).parents[3] / "docs" / "profile.md"
_OUTPUT = re.compile(r"(<!-- output: transpose -->\n```text\n)(.*?)(```)", re.DOTALL)


def test_the_output_of_the_page_is_printed(
    transpose: Profile, request: pytest.FixtureRequest
) -> None:
    page = _PAGE.read_text()
    printed = str(transpose)
    if request.config.getoption("--update-golden"):
        _PAGE.write_text(_OUTPUT.sub(lambda match: match[1] + printed + match[3], page))
        return
    (shown,) = [match[2] for match in _OUTPUT.finditer(page)]
    assert shown == printed
