# SPDX-License-Identifier: MIT
"""How many waves a SIMD holds at a time, and what keeps it from holding more."""

from dataclasses import dataclass
from math import ceil, prod

from cklang.arch import ArchSpec
from cklang.emulator.engine.recording import RecordedLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The workgroups and waves of a compute unit."""

    workgroups: int
    """Workgroups that a compute unit holds at a time, if the grid has so many."""
    waves: int
    """Waves on a compute unit with so many workgroups."""
    most_waves: int
    """Waves that a compute unit has room for."""
    limits: tuple[tuple[str, int], ...]
    """Workgroups that each resource has room for, the scarcest first."""
    grid: float
    """Workgroups of the launch for each compute unit."""

    @property
    def share(self) -> float:
        """Waves over the most that there can be."""
        return self.waves / self.most_waves

    @property
    def limiter(self) -> str:
        """What there is least of; ``grid`` where the launch is too small to fill the GPU."""
        return "grid" if self.grid < self.workgroups else self.limits[0][0]

    def __str__(self) -> str:
        limits = ", ".join(f"{name} {count}" for name, count in self.limits)
        few = " only" if self.limiter == "grid" else ""
        return (
            f"a compute unit has room for {self.waves} of {self.most_waves} waves "
            f"({self.share:.0%}), by workgroups: {limits}; the grid has{few} {self.grid:.3g} "
            "workgroups for each"
        )


def occupancy_of(launch: RecordedLaunch, spec: ArchSpec) -> Occupancy:
    """Return how many workgroups of a launch a compute unit holds, by the emulator's rule.

    On RDNA the workgroups are those of a work-group processor; half of them count here.
    """
    joined = spec.compute_units_per_multiprocessor
    per_group = ceil(prod(launch.block) / launch.lanes)
    widths = spec.wave_size / launch.lanes
    granule = max(1, int(spec.vgpr_granule * widths))
    rows = int(spec.vgprs_per_simd_lane * widths)
    taken = ceil(max(launch.vgprs, 1) / granule) * granule
    simds = spec.simds_per_cu * joined
    limits = {
        "vector registers": rows // taken * simds // per_group,
        "wave slots": spec.max_waves_per_simd * simds // per_group,
    }
    if launch.lds_bytes:
        limits["LDS"] = spec.lds_bytes * joined // launch.lds_bytes
    per_unit = {name: count / joined for name, count in limits.items()}
    workgroups = max(1, int(min(per_unit.values())))
    return Occupancy(
        workgroups=workgroups,
        waves=min(workgroups * per_group, spec.max_waves_per_simd * spec.simds_per_cu),
        most_waves=spec.max_waves_per_simd * spec.simds_per_cu,
        limits=tuple(sorted(((n, int(c)) for n, c in per_unit.items()), key=lambda row: row[1])),
        grid=prod(launch.groups) / spec.compute_units,
    )
