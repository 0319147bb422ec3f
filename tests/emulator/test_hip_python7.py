# SPDX-License-Identifier: MIT
"""The HIP tests once more, with a hip-python of the 7 series in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("emulator")


_VERSION = "7.2.2.562.43"
_HERE = Path(__file__).parent
_FILES = (
    *("test_hip", "test_hip_devices", "test_hip_memory", "test_hip_functions"),
    *("test_hip_streams", "test_hip_graph", "test_hip_bad_input"),
)


@pytest.mark.usefixtures("compiler")
def test_hip_python_7(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    packages = tmp_path / "packages"
    # The package needs no other; a folder in front of all others hides the version installed.
    command = [*pip, "--no-deps", "--target", str(packages), f"hip-python=={_VERSION}"]
    subprocess.run(command, check=True, timeout=120)
    root = _HERE.parents[1]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    folders = [str(packages), str(root), *inherited]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    where = "import hip; print(hip.__file__)"
    completed = subprocess.run(
        [sys.executable, "-c", where],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert completed.stdout.startswith(str(packages))
    files = [str(_HERE / f"{name}.py") for name in _FILES]
    tests = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        tests, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
