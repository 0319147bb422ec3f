# SPDX-License-Identifier: MIT
"""The Python of docs/several_gpus.md under ``torchrun``."""

import re
from pathlib import Path

import pytest

from tests.support.hip_programs import plain_environment
from tests.support.processes import run_python

PAGE = Path(__file__).parents[2] / "docs" / "several_gpus.md"


@pytest.mark.usefixtures("emulator", "torch")
def test_ranks_read_their_neighbours(tmp_path: Path) -> None:
    (code,) = re.findall(r"(?ms)^```py\n(.*?)^```", PAGE.read_text())
    script = tmp_path / "neighbours.py"
    script.write_text(code)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2)
    environment = {**plain_environment(), "CKLANG_GPUS": "gfx942*2", "OMP_NUM_THREADS": "1"}
    done = run_python(*launcher, script, env=environment)
    # Ranks share their output, where one may write into a line of the other.
    said = re.findall(r"rank \d reads \d of rank \d", done.stdout)
    assert sorted(said) == ["rank 0 reads 2 of rank 1", "rank 1 reads 1 of rank 0"]
