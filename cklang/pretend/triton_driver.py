# SPDX-License-Identifier: MIT
"""Triton's driver where torch believes in a GPU: tensors and new memory are there."""

from collections.abc import Sequence
from typing import Any

import torch

from cklang.emulator.triton.driver import EmulatedDriver, _Launcher
from cklang.pretend.tensor import GPU, GpuTensor


class _GpuLauncher(_Launcher):
    """Launches kernels on tensors of the GPU alone, as Triton does."""

    def _run(self, grid: tuple[int, int, int], function: Any, arguments: Sequence[Any]) -> None:
        for place, value in enumerate(arguments):
            if isinstance(value, torch.Tensor) and not isinstance(value, GpuTensor):
                raise ValueError(  # noqa: TRY004 - as Triton does
                    f"Pointer argument (at {place}) cannot be accessed from Triton (cpu tensor?)"
                )
        super()._run(grid, function, arguments)


class GpuDriver(EmulatedDriver):
    """The driver of a pretended GPU."""

    launcher_cls = _GpuLauncher

    def get_active_torch_device(self) -> Any:
        """Return the GPU."""
        return GPU

    def get_device_interface(self) -> Any:
        """Return torch's module for it."""
        return torch.cuda
