# SPDX-License-Identifier: MIT
"""Default kernels take no longer than they did, by the clock."""

import pytest
from kernelbench import ROWS

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("name", ROWS)
def test_the_default_is_as_quick_as_it_was(name: str) -> None:
    """Where it is much quicker, the row's limit should follow."""
    predicted = ROWS[name].predicted().us
    assert 0.8 * ROWS[name].most < predicted <= 1.03 * ROWS[name].most
