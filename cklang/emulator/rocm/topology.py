# SPDX-License-Identifier: MIT
"""What the kernel driver's folder below ``/sys`` says of a machine with some GPUs.

Node 0 is the CPU, each GPU is a node behind it. The names of the files and of what is in them are
the driver's (``drivers/gpu/drm/amd/amdkfd/kfd_topology.c`` of Linux).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cklang.arch import ArchSpec

NODES = "sys/devices/virtual/kfd/kfd/topology/nodes"
FIRST_GPU, FIRST_RENDER = 1000, 128
"""The number for calls, and that of the render node, of the first GPU."""
_AMD = 0x1002
_SIMD_ID_BASE = 0x80001000
_FIRMWARE = 600
_CACHE_DATA_OF_GPU = 1 | 8
_PUBLIC_MEMORY = 1
_PCI, _XGMI = 2, 11
_WEIGHTS = {_PCI: 20, _XGMI: 15}
_DOORBELLS_OF_8_BYTES = 2 << 12
_CORRECTED_SRAM, _SHARED_MEMORY = 1 << 26, 1 << 27
_HIVE = 0xCB1A


def files(specs: Sequence[ArchSpec], *, cores: int, memory_bytes: int) -> dict[str, str]:
    r"""Return the text of each file, by its path without the first slash.

    Example:
        >>> from cklang.arch import arch
        >>> texts = files([arch("gfx90a")], cores=8, memory_bytes=1 << 34)
        >>> texts[f"{NODES}/1/gpu_id"], "simd_count 440" in texts[f"{NODES}/1/properties"]
        ('1000\n', True)
    """
    topology = str(Path(NODES).parent)
    texts = {
        "sys/module/amdgpu/initstate": "live\n",
        f"{topology}/generation_id": "1\n",
        f"{topology}/system_properties": _text(platform_oem=0, platform_id=0, platform_rev=0),
    }
    for number in range(len(specs) + 1):
        node = _cpu(specs, cores, memory_bytes) if number == 0 else _gpu(specs, number)
        texts |= {f"{NODES}/{number}/{name}": text for name, text in node.items()}
    return texts


def of_machine(specs: Sequence[ArchSpec]) -> dict[str, str]:
    """Return the files for this machine's CPU and memory."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return files(specs, cores=os.cpu_count() or 1, memory_bytes=memory_bytes)


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write files below ``folder``."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _text(**values: int) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def _cpu(specs: Sequence[ArchSpec], cores: int, memory_bytes: int) -> dict[str, str]:
    links = dict(_links(specs, 0))
    properties = _text(
        cpu_cores_count=cores, simd_count=0, mem_banks_count=1, caches_count=0,
        io_links_count=len(links), p2p_links_count=0, cpu_core_id_base=0,
    )  # fmt: skip
    bank = _text(heap_type=0, size_in_bytes=memory_bytes, flags=0, width=64, mem_clk_max=0)
    node = {"gpu_id": "0\n", "name": "\n", "properties": properties}
    return node | {"mem_banks/0/properties": bank} | links


def _gpu(specs: Sequence[ArchSpec], number: int) -> dict[str, str]:
    spec, links = specs[number - 1], dict(_links(specs, number))
    caches = [size for size in (spec.l2_bytes, spec.last_level_cache_bytes) if size]
    node = {
        "gpu_id": f"{FIRST_GPU + number - 1}\n",
        "name": f"{spec.family}\n",
        "properties": _text(**_properties(specs, number, caches=len(caches), links=links)),
        "mem_banks/0/properties": _text(
            heap_type=_PUBLIC_MEMORY, size_in_bytes=spec.memory_bytes, flags=0,
            width=spec.memory_bus_bits, mem_clk_max=int(spec.memory_clock_hz / 1e6),
        ),
    }  # fmt: skip
    for index, size in enumerate(caches):
        node[f"caches/{index}/properties"] = _text(
            processor_id_low=_SIMD_ID_BASE, level=index + 2, size=size // 1024,
            cache_line_size=128, cache_lines_per_tag=1, association=16, latency=0,
            type=_CACHE_DATA_OF_GPU,
        )  # fmt: skip
    return node | links


def _properties(
    specs: Sequence[ArchSpec], number: int, *, caches: int, links: Mapping[str, str]
) -> dict[str, int]:
    spec = specs[number - 1]
    major, minor, stepping = spec.version
    simds = spec.compute_units * spec.simds_per_cu
    arrays = spec.shader_arrays
    return {
        "cpu_cores_count": 0,
        "simd_count": simds,
        "mem_banks_count": 1,
        "caches_count": caches,
        "io_links_count": len(links),
        "p2p_links_count": 0,
        "cpu_core_id_base": 0,
        "simd_id_base": _SIMD_ID_BASE,
        "max_waves_per_simd": spec.max_waves_per_simd,
        "lds_size_in_kb": spec.lds_bytes // 1024,
        "gds_size_in_kb": 0,
        "num_gws": 64,
        "wave_front_size": spec.wave_size,
        "array_count": arrays,
        "simd_arrays_per_engine": spec.shader_arrays_per_engine,
        "cu_per_simd_array": -(-spec.compute_units // arrays),
        "simd_per_cu": spec.simds_per_cu,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": 10000 * major + 100 * minor + stepping,
        "vendor_id": _AMD,
        "device_id": spec.pci_device_id,
        "location_id": number << 8,
        "domain": 0,
        "drm_render_minor": FIRST_RENDER + number - 1,
        "hive_id": _HIVE if _in_hive(spec) else 0,
        "num_sdma_engines": 2,
        "num_sdma_xgmi_engines": 0,
        "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 24,
        "max_engine_clk_fcompute": int(spec.clock_hz / 1e6),
        "local_mem_size": 0,
        "fw_version": _FIRMWARE,
        "capability": _DOORBELLS_OF_8_BYTES
        | _SHARED_MEMORY
        | (_CORRECTED_SRAM if _in_hive(spec) else 0),
        "debug_prop": 0,
        "sdma_fw_version": _FIRMWARE,
        "unique_id": number,
        "num_xcc": spec.chiplets,
        "max_engine_clk_ccompute": int(spec.clock_hz / 1e6),
    }


def _in_hive(spec: ArchSpec) -> bool:
    """Whether such GPUs are linked with each other: those of data centres are."""
    return not spec.has_wmma


def _links(specs: Sequence[ArchSpec], number: int) -> Iterator[tuple[str, str]]:
    """Yield the files of the links of a node to all others."""
    others = (other for other in range(len(specs) + 1) if other != number)
    for index, other in enumerate(others):
        both = [specs[node - 1] for node in (number, other) if node]
        kind = _XGMI if len(both) == 2 and all(map(_in_hive, both)) else _PCI
        weight = _WEIGHTS[kind] * (len(both) if kind == _PCI else 1)
        yield (
            f"io_links/{index}/properties",
            _text(
                type=kind, version_major=0, version_minor=0, node_from=number, node_to=other,
                weight=weight, min_latency=0, max_latency=0, min_bandwidth=0, max_bandwidth=0,
                recommended_transfer_size=0, flags=1,
            ),
        )  # fmt: skip
