# SPDX-License-Identifier: MIT
"""Exported calls: run from C, from Python without cklang, and from torch; refused by name."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.exporting import Exported
from cklang.runtime.op import Op
from cklang.testing import reports
from cklang.toolchain.compilers import find_toolchain
from tests.support.arrays import drawn
from tests.support.errors import expect_error
from tests.support.gemm_ops import linear
from tests.support.modules import module_of

B, M, N, K = ck.dims("B M N K")
GPUS = ("gfx942", "gfx1100")


@ck.op
def mean_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> tuple[ck.f16[M, K], ck.f32[M]]:
    return ck.rms_norm(x, gain), ck.sum(x, axis=-1) / K


@ck.op
def chain(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[K, N]) -> ck.f16[M, K]:
    hidden = (x @ w.T).to(ck.f16)
    return hidden @ v.T


@ck.op
def put(cache: ck.inout[ck.f16[M, K]], slots: ck.i32[B], rows: ck.f16[B, K]) -> ck.f16[M, K]:
    return ck.scatter(cache, slots, rows)


SIZES = {"M": 70, "N": 64, "K": 64}
OTHER = {"M": 33, "N": 64, "K": 64}


def exported(op: Op, folder: Path, *gpus: str) -> Exported:
    problems = [sizes_of(op, each) for each in (SIZES, OTHER)]
    return ck.export(op, problems, gpus or GPUS[:1], folder)


def sizes_of(op: Op, sizes: dict[str, int]) -> dict[str, int]:
    names = "MK" if op is mean_norm else "MNK"
    return {name: sizes[name] for name in names}


def loaded(written: Exported) -> Any:
    open_device("emu:gfx942").activate()  # another test may have used another GPU
    return module_of(written.folder / f"{written.name}.py").load(str(emulator.library_path()))


def results_of(op: Op, args: list[Any]) -> list[Any]:
    got = op(*args, device="emu:gfx942")
    return list(got) if isinstance(got, tuple) else [got]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("op", [linear, mean_norm, chain], ids=lambda op: op.program.name)
def test_the_python_file_makes_the_calls(op: Op, tmp_path: Path) -> None:
    calls = loaded(exported(op, tmp_path))
    assert calls.gpu == "gfx942"
    for sizes in (SIZES, OTHER):
        args = drawn(op, sizes_of(op, sizes))
        want = results_of(op, args)
        outs = tuple(np.zeros_like(each) for each in want)
        workspace = np.zeros(max(calls.workspace_bytes(*args, out=outs), 1), np.uint8)
        calls(*args, out=outs, workspace=workspace)
        calls.synchronize()
        for one, other in zip(outs, want, strict=True):
            assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.usefixtures("compiler")
def test_a_result_in_an_argument(tmp_path: Path) -> None:
    written = ck.export(put, [{"M": 9, "K": 64, "B": 3}], ["gfx942"], tmp_path)
    calls = loaded(written)
    cache, rows = np.zeros((9, 64), np.float16), np.ones((3, 64), np.float16)
    calls(cache, np.array([7, 1, 4], np.int32), rows, out=cache)
    calls.synchronize()
    assert list(np.flatnonzero(cache.any(axis=1))) == [1, 4, 7]


@pytest.mark.usefixtures("compiler")
def test_torch_tensors_and_what_was_not_exported(tmp_path: Path, torch: Any) -> None:
    calls = loaded(exported(linear, tmp_path))
    x, w = (torch.from_numpy(each) for each in drawn(linear, SIZES))
    y = torch.empty(70, 64, dtype=torch.float16)
    assert calls(x, w, out=y) is y
    calls.synchronize()
    (report,) = reports(linear, (x, w), y)
    report.check()
    refused = (
        (x[:5], w, y[:5]),
        (x.float(), w, y),
        (x.t().contiguous().t(), w, y),
        (x, w, torch.empty(64, 70, dtype=torch.float16).t()),
    )
    for *args, out in refused:
        with pytest.raises(ValueError, match=r"no call of linear .* only with f16\[70, 64\]"):
            calls(*args, out=out)


@pytest.mark.usefixtures("compiler")
def test_the_files_need_no_cklang(tmp_path: Path) -> None:
    """The commands of docs/export.md, in a process that cannot import cklang."""
    page = Path("docs/export.md").read_text().partition("### On the emulator")[2]
    (script,) = re.findall(r"```py\n(.*?)```", page, re.S)
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.S)
    ((settings, shown),) = re.findall(r"\n(.*) python use.py  # (.*)\n$", commands)
    problem = {"M": 16, "N": 4096, "K": 4096}
    ck.export(linear, [problem], GPUS[:1], tmp_path / "linear_kernels")
    alone = "import sys\nsys.modules['cklang'] = None\n"
    (tmp_path / "use.py").write_text(alone + script)
    library = {"LD_LIBRARY_PATH": str(emulator.library_path().parent)}
    for xnack in (True, False):
        names = dict(word.split("=") for word in settings.split() if xnack or "XNACK" not in word)
        done = subprocess.run(
            [sys.executable, "use.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**names, **library},
            check=False,
        )
        assert (done.stdout.strip() == shown) is xnack, done.stderr
    assert "reaches with XNACK alone" in done.stderr


C_HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "chain.h"

int hipSetDevice(int device);
int hipDeviceSynchronize(void);
int hipMalloc(void** memory, size_t bytes);
int hipMemcpy(void* target, const void* source, size_t bytes, int kind);

static void* on_device(const char* file, size_t bytes) {
  void *content = malloc(bytes), *memory = NULL;
  FILE* in = fopen(file, "rb");
  if (in == NULL || fread(content, 1, bytes, in) != bytes) exit(10);
  fclose(in);
  if (hipMalloc(&memory, bytes) != 0 || hipMemcpy(memory, content, bytes, 1) != 0) exit(11);
  free(content);
  return memory;
}
"""
"""What programs that call the exported chain begin with."""

C_PROGRAM = """
int main(int count, char** arguments) {
  (void)count;
  chain_calls* calls = NULL;
  if (hipSetDevice(atoi(arguments[2])) != 0) return 1;
  if (chain_load(arguments[1], &calls) != 0) return 2;
  int64_t x_shape[] = {70, 64}, w_shape[] = {64, 64}, strides[] = {64, 1};
  chain_tensor tensors[] = {{"f16", 2, x_shape, strides}, {"f16", 2, w_shape, strides},
      {"f16", 2, w_shape, strides}, {"f16", 2, x_shape, strides}};
  int call = chain_find(calls, tensors);
  if (call < 0) return 3;
  x_shape[0] = 71;
  if (chain_find(calls, tensors) != -1) return 4;
  void* addresses[] = {on_device("x", 70 * 64 * 2), on_device("w", 64 * 64 * 2),
      on_device("v", 64 * 64 * 2), NULL};
  void* workspace = NULL;
  if (hipMalloc(&addresses[3], 70 * 64 * 2) != 0) return 5;
  if (chain_workspace(calls, call) == 0) return 6;
  if (chain_launch(calls, call, addresses, NULL, NULL) == 0) return 7;
  if (hipMalloc(&workspace, chain_workspace(calls, call)) != 0) return 5;
  if (chain_launch(calls, call, addresses, workspace, NULL) != 0) return 8;
  if (hipDeviceSynchronize() != 0) return 9;
  static char result[70 * 64 * 2];
  if (hipMemcpy(result, addresses[3], sizeof result, 2) != 0) return 12;
  chain_unload(calls);
  fwrite(result, 1, sizeof result, stdout);
  return 0;
}
"""


def printed_by(
    program: str, folder: Path, args: Sequence[Any], gpus: str, *words: int
) -> np.ndarray:
    """Return the rows that a C program prints, which calls the export of ``chain`` in a folder."""
    library = emulator.library_path()
    (folder / "main.c").write_text(C_HEAD + program)
    for name, array in zip("xwv", args, strict=True):
        array.tofile(folder / name)
    zig = find_toolchain().program
    warn = ["-Wall", "-Wextra", "-Werror"]
    for command in (
        [zig, "cc", "-std=c11", *warn, "-c", "main.c", "-o", "main.o"],
        [zig, "c++", "-std=c++17", *warn, "-c", "chain.cpp", "-o", "chain.o"],
        [zig, "c++", "main.o", "chain.o", library, f"-Wl,-rpath,{library.parent}", "-o", "main"],
    ):
        subprocess.run([str(part) for part in command], cwd=folder, check=True)
    done = subprocess.run(
        [str(folder / "main"), str(folder), *map(str, words)],
        cwd=folder,
        capture_output=True,
        env={"CKLANG_GPUS": gpus},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.float16).reshape(-1, 64)


@pytest.mark.usefixtures("compiler")
def test_a_c_program_makes_the_calls(tmp_path: Path) -> None:
    exported(chain, tmp_path, *GPUS)
    args = drawn(chain, SIZES)
    for place, gpu in enumerate(GPUS):
        got = printed_by(C_PROGRAM, tmp_path, args, ",".join(GPUS), place)
        assert np.array_equal(got, chain(*args, device=f"emu:{gpu}"))


@pytest.mark.usefixtures("compiler")
def test_the_folder_is_small_and_says_what_it_holds(tmp_path: Path) -> None:
    written = exported(mean_norm, tmp_path, *GPUS)
    packed = sum(len(gzip.compress(path.read_bytes())) for path in written.code_objects)
    assert packed <= 150_000 * len(GPUS)
    assert "4 calls of mean_norm on gfx942, gfx1100" in str(written)
    manifest = json.loads((tmp_path / "mean_norm.json").read_text())
    assert {kernel["gpu"] for kernel in manifest["kernels"]} == set(GPUS)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *(f"mean_norm.{kind}" for kind in ("h", "cpp", "py", "json")),
        *(kernel["file"] for kernel in manifest["kernels"]),
    }


@pytest.mark.parametrize(
    ("code", "problems", "gpus", "more"),
    [
        ("K071", [SIZES], ["gfx942"], {"name": "my-op"}),
        ("K071", [SIZES], ["gfx942"], {"name": "class"}),
        ("K072", [], ["gfx942"], {}),
        ("K072", [SIZES], [], {}),
        ("K004", [SIZES], ["gfx000"], {}),
        ("K019", [{"M": 4}], ["gfx942"], {}),
    ],
)
def test_bad_input(code: str, problems: Any, gpus: Any, more: Any, tmp_path: Path) -> None:
    with expect_error(code):
        ck.export(linear, problems, gpus, tmp_path / "folder", **more)
    assert not (tmp_path / "folder").exists()


def test_prepared_weights_are_refused(tmp_path: Path) -> None:
    x, w = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    prepared = ck.prepare(w, linear, device="emu:gfx942")
    with expect_error("K070"):
        ck.export(linear, [(x, prepared)], ["gfx942"], tmp_path)
