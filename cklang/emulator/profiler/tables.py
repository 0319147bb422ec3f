# SPDX-License-Identifier: MIT
"""A profile as JSON and as CSV."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.counters import absent
from cklang.emulator.profiler.model import InstructionProfile, LaunchProfile, kernel_rows

_COLUMNS = (
    "launch", "kernel", "address", "instruction", "file", "line", "phase", "stage", "hits",
    "cycles", "stall", "reason", "lanes", "bytes", "efficiency", "conflicts",
)  # fmt: skip


def as_json(launches: Sequence[LaunchProfile]) -> str:
    """Return everything as JSON text."""
    data = {
        "kernels": [asdict(row) for row in kernel_rows(launches)],
        "launches": [launch_record(launch) for launch in launches],
        "absent_counters": _absent(launches),
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _absent(launches: Sequence[LaunchProfile]) -> dict[str, str]:
    """Return the counters that some launch lacks, with the reasons."""
    return {name: why for launch in launches for name, why in absent(launch.counted).items()}


def launch_record(launch: LaunchProfile) -> dict[str, Any]:
    """Return a launch as JSON's types."""
    roofline, occupancy = launch.roofline, launch.occupancy
    return {
        "number": launch.number,
        "kernel": launch.kernel,
        "symbol": launch.detail.launch.kernel,
        "gpu": launch.gpu,
        "source": "clock",
        "us": launch.us,
        "cycles": launch.cycles,
        "error": launch.error,
        "under_load": None if launch.under_load is None else asdict(launch.under_load),
        "groups": launch.groups,
        "block": launch.block,
        "waves": launch.waves,
        "registers": launch.detail.launch.vgprs,
        "lds_bytes": launch.detail.launch.lds_bytes,
        "occupancy": asdict(occupancy)
        | {
            "limiter": occupancy.limiter,
            "share": occupancy.share,
            "limits": dict(occupancy.limits),
        },
        "roofline": asdict(roofline)
        | {"bound": roofline.bound, "share": roofline.share, "intensity": roofline.intensity},
        "bound": launch.bound,
        "limits": {limit.name: limit.share for limit in launch.limits},
        "lost": launch.lost,
        "unknown": [asdict(row) for row in launch.unknown],
        "counters": {c.name: {"value": c.value, "origin": c.origin} for c in launch.counters},
        "stages": [asdict(row) | {"lost": dict(row.lost)} for row in launch.stages],
        "sources": [
            asdict(row) | {"place": str(row.place), "lost": dict(row.lost)}
            for row in launch.sources
        ],
        "instructions": [
            _instruction(row) | {"lost": dict(row.lost)} for row in launch.instructions
        ],
        "advice": [asdict(row) for row in advice_of(launch)],
    }


def _instruction(row: InstructionProfile) -> dict[str, Any]:
    return {
        "address": row.address,
        "instruction": row.text,
        "file": None if row.place is None else row.place.file,
        "line": None if row.place is None else row.place.line,
        "phase": row.phase,
        "stage": row.stage,
        "hits": row.hits,
        "cycles": row.cycles,
        "stall": row.stall,
        "reason": next(iter(row.lost), ""),
        "lanes": row.lanes,
        "bytes": row.bytes,
        "efficiency": row.efficiency,
        "conflicts": row.conflicts,
    }


def as_csv(launches: Sequence[LaunchProfile]) -> str:
    """Return the instructions of all launches as comma-separated text with a line of names."""
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    table.writeheader()
    for launch in launches:
        for row in launch.instructions:
            about = {"launch": launch.number, "kernel": launch.kernel}
            table.writerow(about | _instruction(row))
    return text.getvalue()
