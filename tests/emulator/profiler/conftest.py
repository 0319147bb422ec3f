# SPDX-License-Identifier: MIT
"""HIP programs that are profiled, compiled once, and a profile of each."""

import os
import subprocess
from pathlib import Path

import pytest

from cklang.emulator.engine.recording import recorded_launches
from cklang.emulator.profiler.session import Profile
from tests.support.hip_programs import built

HERE = Path(__file__).parent
_GPUS = ("gfx942", "gfx90a")


def profiled(program: Path, folder: Path, gpu: str, *words: str, workgroups: int = 8) -> Profile:
    """Return the profile of a program that runs on an emulated GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"CKLANG_GPUS": gpu, "CKLANG_PROFILE": f"{workgroups}:{folder}"}
    subprocess.run([program, *words], env={**os.environ, **settings}, check=True, timeout=120)
    (records,) = folder.glob("*.records")
    return Profile(recorded_launches(records.read_bytes()))


@pytest.fixture(scope="session")
def transpose_program(emulator: None) -> Path:
    return built(HERE / "transpose.hip", *_GPUS)


@pytest.fixture(scope="session")
def transpose(tmp_path_factory: pytest.TempPathFactory, transpose_program: Path) -> Profile:
    return profiled(transpose_program, tmp_path_factory.mktemp("records"), "gfx942", "256")


@pytest.fixture(scope="session")
def copy_program(emulator: None) -> Path:
    return built(HERE / "copy.hip", *_GPUS)


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory, copy_program: Path) -> dict[str, Profile]:
    """The copy of 1,048,576 doubles on two GPUs."""
    folder = tmp_path_factory.mktemp("copies")
    return {gpu: profiled(copy_program, folder / gpu, gpu) for gpu in _GPUS}
