# SPDX-License-Identifier: MIT
"""The emulated kernel driver: alone, and below AMD's own runtime from Debian's packages.

The packages come with ``python benchmarks/rocm_libraries.py``; without them tests are skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cklang.arch import all_archs, arch
from cklang.elf import sections_of, symbols_of
from cklang.emulator.rocm import start, topology
from cklang.toolchain.paths import cache_root
from tests.support import kernel_driver
from tests.support.assembly import assemble
from tests.support.errors import expect_error
from tests.support.hip_programs import built
from tests.support.processes import run_python

_DOUBLE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  v_lshlrev_b32 v2, 1, v2
  global_store_dword v1, v2, s[6:7]
"""


def properties(texts: dict[str, str], node: int) -> dict[str, int]:
    rows = texts[f"{topology.NODES}/{node}/properties"].splitlines()
    return {name: int(value) for name, _, value in (row.partition(" ") for row in rows)}


@pytest.mark.parametrize("name", [spec.name for spec in all_archs()])
def test_a_node_has_the_facts_of_its_gpu(name: str) -> None:
    spec = arch(name)
    node = properties(topology.files([spec], cores=4, memory_bytes=1 << 30), 1)
    major, minor, stepping = spec.version
    assert node["gfx_target_version"] == 10000 * major + 100 * minor + stepping
    assert node["simd_count"] == spec.compute_units * spec.simds_per_cu
    assert node["cu_per_simd_array"] * node["array_count"] >= spec.compute_units
    assert (node["wave_front_size"], node["num_xcc"]) == (spec.wave_size, spec.chiplets)


def test_all_nodes_are_linked_with_each_other() -> None:
    specs = [arch("gfx942"), arch("gfx942"), arch("gfx1100")]
    texts = topology.files(specs, cores=4, memory_bytes=1 << 30)
    kinds = {}
    for node in range(4):
        assert properties(texts, node)["io_links_count"] == 3
        for link in range(3):
            text = texts[f"{topology.NODES}/{node}/io_links/{link}/properties"]
            facts = dict(line.split() for line in text.splitlines())
            kinds[int(facts["node_from"]), int(facts["node_to"])] = facts["type"]
    assert {pair for pair, kind in kinds.items() if kind == "11"} == {(1, 2), (2, 1)}
    assert {properties(texts, node)["drm_render_minor"] for node in (1, 2, 3)} == {128, 129, 130}


def test_a_gpu_that_is_none_is_refused() -> None:
    with expect_error("Z010", match="gfx000"):
        start.gpus("gfx90a,gfx000")


def test_a_folder_without_the_runtime_is_refused(tmp_path: Path) -> None:
    with expect_error("Z010", match="libhsa-runtime64"):
        start.command(["rocminfo"], tmp_path)


@pytest.mark.usefixtures("emulator")
def test_a_kernel_runs_from_a_queue(tmp_path: Path) -> None:
    """Memory, a queue with its doorbell, a signal and an event, with the driver's calls alone."""
    code = assemble({"double": _DOUBLE}, "gfx942")
    file = tmp_path / "double.o"
    file.write_bytes(code)
    sections = sections_of(code)
    (table,) = (section for section in sections if section.name == ".dynsym")
    symbols = symbols_of(table, sections)
    offset = next(symbol.value for symbol in symbols if symbol.name.endswith(".kd"))
    environment = {**os.environ, **start.settings("gfx942")}
    done = run_python(kernel_driver.__file__, file, offset, env=environment)
    assert done.stdout == "1 1 1000 Invalid argument\nTrue\n"


@pytest.fixture
def root() -> Path:
    runtimes = sorted(cache_root().glob(f"rocm_libraries/*/root/{start.SYSTEM}/{start.RUNTIME}"))
    if not runtimes:
        pytest.skip("AMD's runtime is missing: python benchmarks/rocm_libraries.py gets it")
    return runtimes[0].parents[3]


AMDS = {
    "breadth_first": ("gfx942", "0 failed, 0 wrong\n"),
    "in_order": ("gfx942", "1.5 from thread 3\n0 failed\n"),
    "peers": ("gfx942,gfx942", "0 failed\n"),
    "random_arrays": ("gfx90a", "0 failed\n"),
    "sorting": ("gfx942,gfx942", "0 failed, sorted\n"),
    "words": ("gfx1100", "0 failed\n"),
}
"""Programs that check themselves, the GPUs they run on, and what they print."""

_CALL = """
import numpy as np
import cklang as ck

M, N, K = ck.dims("M N K")

@ck.op
def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T)

x, w = (np.random.default_rng(0).uniform(-1, 1, (128, 64)).astype(np.float16) for _ in "ab")
real = product(x, w)
print("libamdhip64.so.6" in open("/proc/self/maps").read())
np.save("result.npy", real)
"""


@pytest.mark.usefixtures("compiler")
def test_an_op_runs_on_amds_runtime_as_on_ours(root: Path, tmp_path: Path) -> None:
    """As on a machine with a GPU: ``CKLANG_DEVICE=hip:0``."""
    script = tmp_path / "call.py"
    script.write_text(_CALL)
    results = []
    for device in ("hip:0", "emu:gfx942"):
        amds = device == "hip:0"
        settings = start.settings("gfx942") if amds else {}
        done = subprocess.run(
            start.command([sys.executable, str(script)], root if amds else None),
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
            env={**os.environ, **settings, "CKLANG_DEVICE": device},
        )  # fmt: skip
        assert done.stdout == f"{amds}\n", done.stderr
        results.append((tmp_path / "result.npy").read_bytes())
    assert results[0] == results[1]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", AMDS)
def test_programs_run_on_amds_runtime(name: str, root: Path) -> None:
    gpus, expected = AMDS[name]
    program = built(name, *dict.fromkeys(gpus.split(",")))
    done = subprocess.run(
        start.command([str(program)], root), capture_output=True, text=True, timeout=300,
        env={**os.environ, **start.settings(gpus)}, check=False,
    )  # fmt: skip
    assert done.stdout == expected, done.stdout + done.stderr
