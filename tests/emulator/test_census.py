# SPDX-License-Identifier: MIT
"""Every form of instruction that was found in kernels of CK Tile's templates is emulated.

``benchmarks/instruction_coverage.py --forms`` found them in the code objects that
``benchmarks/ck_kernels.py`` compiles and in those of cklang's own kernels. Of the amd-aiter
package's code objects, all of which the script counts, some are counted here.
"""

import json
from pathlib import Path

import pytest
from instruction_coverage import default_folder, measure

from cklang import emulator
from tests.support.assembly import DEVICES
from tests.support.read_back import read_words

pytestmark = pytest.mark.usefixtures("emulator")

FORMS: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "data" / "census.json").read_text("utf-8")
)


def test_all_gpus_are_there() -> None:
    assert set(FORMS) == set(DEVICES)
    assert all(len(codes) > 250 for codes in FORMS.values())


@pytest.mark.parametrize("gpu", DEVICES)
def test_every_form_is_emulated_and_read_as_clang_writes_it(gpu: str) -> None:
    code = bytes.fromhex("".join(FORMS[gpu]))
    census = emulator.instruction_census(gpu, code)
    assert (census.undecoded, census.missing) == (0, {})
    assert len(read_words(code, gpu).splitlines()) == len(FORMS[gpu])


def test_code_objects_of_amd_aiter() -> None:
    """One in forty."""
    paths = sorted(default_folder().rglob("*.co"))
    assert len(paths) > 2000
    counted = measure(paths[::40])
    assert set(counted) == {"gfx942", "gfx950"}
    for census in counted.values():
        assert (census.undecoded, dict(census.missing)) == (0, {})
        assert census.executed.total() > 100_000
