# SPDX-License-Identifier: MIT
"""What a kernel takes of the GPU."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a kernel takes of the GPU, as its code object says."""

    vgprs: int
    """Vector registers a lane: the unified count on GPUs where AGPRs are part of it."""
    agprs: int
    sgprs: int
    lds_bytes: int
    """Static LDS of one workgroup."""
    scratch_bytes: int
    """Private memory of one lane."""
    vgpr_spills: int
    sgpr_spills: int
    kernarg_bytes: int

    @property
    def spills(self) -> int:
        """Registers of both kinds that live in memory."""
        return self.vgpr_spills + self.sgpr_spills

    def __str__(self) -> str:
        return (
            f"{self.vgprs} VGPRs ({self.agprs} of them AGPRs), {self.sgprs} SGPRs, "
            f"{self.lds_bytes} B LDS, {self.spills} spills"
        )
