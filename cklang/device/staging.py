# SPDX-License-Identifier: MIT
"""Arrays of the host on a GPU that has its own memory: copied there, and the result back."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.toolchain.log import say_once

if TYPE_CHECKING:
    from cklang.device.device import Device

_KEPT = 16
"""An address on the device is as far from a multiple of this as that of the host, so that accesses
of a lane are as wide there. Device memory begins at multiples of a cache line, host memory need
not: NumPy's large arrays begin 16 bytes behind one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRegion:
    """Bytes of host memory that a launch touches: ``pointer + low`` up to ``pointer + high``."""

    pointer: int
    low: int
    high: int
    written: bool


@contextmanager
def staged(device: Device, regions: Sequence[HostRegion]) -> Iterator[list[int]]:
    """Give the addresses of copies of ``regions`` on the device, in order.

    Written regions are copied back at the end; bytes between their rows go there and back
    unchanged. The caller waits for its kernels inside the block.
    """
    if not device.host_memory:
        say_once(
            "transfer",
            logging.WARNING,
            f"arrays in host memory are copied to {device} and back at each call; "
            "device arrays (torch, CuPy) are used in place",
        )
    allocations: list[int] = []
    try:
        addresses = [_copy_in(device, region, allocations) for region in regions]
        yield addresses
        for region, address in zip(regions, addresses, strict=True):
            if region.written:
                size = region.high - region.low
                device.copy_out(region.pointer + region.low, address + region.low, size)
    finally:
        for memory in allocations:
            device.free(memory)


@contextmanager
def placed(device: Device, regions: Sequence[HostRegion]) -> Iterator[list[int]]:
    """Give the addresses of ``regions`` on the device: their own where it uses host memory."""
    if device.host_memory:
        yield [region.pointer for region in regions]
        return
    with staged(device, regions) as addresses:
        yield addresses


def _copy_in(device: Device, region: HostRegion, allocations: list[int]) -> int:
    start, size = region.pointer + region.low, region.high - region.low
    shift = start % _KEPT
    memory = device.allocate(size + shift)
    allocations.append(memory)
    if size:
        device.copy_in(memory + shift, start, size)
    return memory + shift - region.low
