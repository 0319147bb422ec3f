# SPDX-License-Identifier: MIT
"""Cycles by kernel, stage, source line and instruction as a file for speedscope.app."""

import json
from collections.abc import Sequence
from typing import Any

from cklang.emulator.profiler.model import LaunchProfile

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def document(launches: Sequence[LaunchProfile]) -> str:
    """Return a profile for each launch as JSON text; weights are cycles of waves."""
    frames: dict[tuple[str, str, int], int] = {}

    def frame(name: str, file: str = "", line: int = 0) -> int:
        return frames.setdefault((name, file, line), len(frames))

    profiles = [_profile(launch, frame) for launch in launches]
    shared = [
        {"name": name} | ({"file": file, "line": line} if file else {})
        for name, file, line in frames
    ]
    data = {"$schema": _SCHEMA, "shared": {"frames": shared}, "profiles": profiles}
    return json.dumps(data, ensure_ascii=False) + "\n"


def _profile(launch: LaunchProfile, frame: Any) -> dict[str, Any]:
    samples, weights = [], []
    for row in launch.instructions:
        stack = [frame(launch.kernel), frame(row.stage)]
        if row.place is not None:
            stack.append(frame(row.place.short, row.place.file, row.place.line))
        stack.append(frame(row.text))
        for reason, cycles in row.lost.items():
            samples.append([*stack, frame(f"waits: {reason}")])
            weights.append(cycles)
        samples.append(stack)
        weights.append(max(row.cycles - row.stall, 0))
    return {
        "type": "sampled",
        "name": f"{launch.number}: {launch.kernel} on {launch.gpu}",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
