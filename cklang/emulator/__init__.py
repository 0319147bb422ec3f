# SPDX-License-Identifier: MIT
"""AMD GPUs, emulated on the CPU: code objects run at ISA level, behind HIP's own interface.

:func:`load` makes ``libamdhip64.so``, if this machine does not have it yet, and loads it into the
process; from then on hip-python, or any other user of HIP, talks to emulated devices. The other
functions tell what HIP has no call for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cklang.emulator.engine.build import library_path
    from cklang.emulator.engine.library import (
        Census,
        KernelFacts,
        LineRow,
        Stats,
        blocking_launches,
        deadlock_threshold,
        disassemble,
        fault,
        fidelity,
        instruction_census,
        kernel_facts,
        last_error,
        last_numerics,
        line_table,
        load,
        max_resident_workgroups,
        numerics,
        quiet,
        sanitize,
        schedule,
        stats,
        timeout,
        translation,
        vector_width,
        workgroups,
    )
    from cklang.emulator.engine.operation_fidelity import (
        FidelityReport,
        OperationFidelity,
        fidelity_report,
    )
    from cklang.emulator.engine.recording import (
        MEMORY_LINE,
        RecordedLaunch,
        RecordedWave,
        Recording,
        timing,
    )
    from cklang.emulator.profiler.prediction import Prediction, predict

__all__ = [
    "MEMORY_LINE",
    "Census",
    "FidelityReport",
    "KernelFacts",
    "LineRow",
    "OperationFidelity",
    "Prediction",
    "RecordedLaunch",
    "RecordedWave",
    "Recording",
    "Stats",
    "blocking_launches",
    "deadlock_threshold",
    "disassemble",
    "fault",
    "fidelity",
    "fidelity_report",
    "instruction_census",
    "kernel_facts",
    "last_error",
    "last_numerics",
    "library_path",
    "line_table",
    "load",
    "max_resident_workgroups",
    "numerics",
    "predict",
    "quiet",
    "sanitize",
    "schedule",
    "stats",
    "timeout",
    "timing",
    "translation",
    "vector_width",
    "workgroups",
]

_MODULES: Mapping[str, tuple[str, ...]] = {
    "engine.build": ("library_path",),
    "engine.operation_fidelity": ("FidelityReport", "OperationFidelity", "fidelity_report"),
    "engine.recording": ("MEMORY_LINE", "RecordedLaunch", "RecordedWave", "Recording", "timing"),
    "profiler.prediction": ("Prediction", "predict"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
"""Modules that names are imported from when they are first asked for; the others are in
``engine.library``. The rooms beside ``engine`` are imported without it."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF.get(name, 'engine.library')}"), name)
    globals()[name] = value
    return value
