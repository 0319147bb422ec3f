# SPDX-License-Identifier: MIT
"""The HIP tests once more, with a hip-python of the 7 series in an environment of its own."""

import os
from pathlib import Path

import pytest

from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("emulator")


_VERSION = "7.2.2.562.43"
_HERE = Path(__file__).parent
_FILES = (
    *("test_hip", "test_hip_devices", "test_hip_memory", "test_hip_functions"),
    *("test_hip_streams", "test_hip_graph", "test_hip_bad_input"),
)


@pytest.mark.usefixtures("compiler")
def test_hip_python_7(tmp_path: Path) -> None:
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    packages = tmp_path / "packages"
    # The package needs no other; a folder in front of all others hides the version installed.
    run_python(*pip, "--no-deps", "--target", packages, f"hip-python=={_VERSION}")
    root = _HERE.parents[1]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    folders = [str(packages), str(root), *inherited]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    where = "import hip; print(hip.__file__)"
    assert run_python("-c", where, env=environment).stdout.startswith(str(packages))
    files = [str(_HERE / f"{name}.py") for name in _FILES]
    pytest_ = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    run_python(*pytest_, *files, cwd=root, env=environment)
