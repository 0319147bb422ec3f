# SPDX-License-Identifier: MIT
"""Our attention kernels against the instances that CK Tile's own generator writes, bit for bit.

Each case is built twice: as CK Tile's example does it, from the unit of its generator with a host
program around it (``parity.cpp``), and as cklang does it. Both run on the emulator on the same
arrays. Both choose alike where CK Tile has a choice: conversions that round to nearest even.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cklang.device.device import open_device
from cklang.emulator.hipcc import driver
from cklang.families.attention.host import AttentionProblem, AttentionTensor
from cklang.families.attention.key import AttentionAlgorithm, AttentionKey, AttentionPipeline
from cklang.toolchain.compilers import find_ck_tree
from cklang.types import DType, bf16, f16, f32, fp8_fnuz
from tests.support.algorithms import ATTENTION
from tests.support.arrays import Array
from tests.support.attention_harness import build, key_of, run, stored, tensor

ARCH = "gfx942"
FLAGS = (
    "-std=c++20 -DNDEBUG -w -DCK_TILE_FMHA_FWD_FAST_EXP2=1 -fgpu-flush-denormals-to-zero "
    "-DCK_TILE_FMHA_FLOAT_TO_FLOAT16_RTN=1 -DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=0 "
    "-DCK_TILE_FMHA_FWD_SPLITKV_API=0 -DCK_TILE_FMHA_FWD_APPENDKV_API=0 "
    "-DCK_TILE_FMHA_FWD_PAGEDKV_API=0"
)
"""Those of CK Tile's example, and the conversions that ``ck_tile_attention.hpp`` chooses."""

SMALL = replace(ATTENTION, pipeline=AttentionPipeline.QR_ASYNC)
LARGE = replace(SMALL, tile=(128, 128, 32, 128, 32, 128))
QR = replace(SMALL, pipeline=AttentionPipeline.QR)
EIGHT = replace(QR, warps=(2, 1, 1), warp_tile=(32, 32, 32), pad_d=False, pad_dv=False)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One configuration: the unit of CK Tile's generator, the same algorithm of ours, a problem."""

    unit: str
    """What stands in its name: mode and dtype, then what it has."""
    hdim: int = 64
    dtype: DType = f16
    dtype_o: DType = f16
    algorithm: AttentionAlgorithm = SMALL
    what: dict[str, Any] = field(default_factory=dict)
    """Fields of our signature."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """Fields of our problem."""
    batch: int = 2
    heads: int = 2
    kv_heads: int = 2
    rows: int = 150
    keys: int = 200
    starts: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    flags: str = ""
    """Further flags for CK Tile's instance, which ours are compiled with too."""


_PLAIN = "psskddv_nlogits_nbias_nmask_nlse_ndropout_nskip"
_MASKED = "psskddv_nlogits_nbias_mask_nlse_ndropout_nskip"
_CAUSAL = {"right": 0}

CASES = {
    "basic": Case(unit=f"fp16_batch*{_PLAIN}"),
    "whole tiles": Case(unit=f"fp16_batch*{_PLAIN}", batch=1, rows=256, keys=128),
    "grouped heads": Case(unit=f"fp16_batch*{_PLAIN}", heads=6, kv_heads=2, batch=1),
    "lse": Case(unit="fp16_batch*psskddv_nlogits_nbias_nmask_lse_ndropout_nskip",
                what={"lse": True}),
    "causal": Case(unit=f"fp16_batch*{_MASKED}", what={"mask": "causal"}, numbers=_CAUSAL),
    "causal, bottom right": Case(unit=f"fp16_batch*{_MASKED}", what={"mask": "causal"},
                                 numbers=_CAUSAL | {"from_bottom_right": True}),
    "window": Case(unit=f"fp16_batch*{_MASKED}", what={"mask": "window"},
                   numbers={"left": 30, "right": 5}, flags="-fno-slp-vectorize"),
    "bias": Case(unit="fp16_batch*_qr_vr_psskddv_nlogits_bias_nmask_nlse_ndropout_nskip",
                 algorithm=QR, what={"score": "bias"}),
    "alibi": Case(unit="fp16_batch*psskddv_nlogits_alibi_nmask_nlse_ndropout_nskip",
                  what={"score": "alibi"}, numbers={"from_bottom_right": True}),
    "soft cap": Case(unit="fp16_batch*psskddv_logits_nbias_nmask_nlse_ndropout_nskip",
                     what={"score": "soft_cap"}, numbers={"soft_cap": 2.0}),
    "dropout": Case(unit="fp16_batch*psskddv_nlogits_nbias_nmask_nlse_dropout_nskip",
                    what={"dropout": True}, numbers={"dropout": 0.25}, flags="-fno-slp-vectorize"),
    "packed": Case(unit=f"fp16_group*{_PLAIN}", what={"packed": True},
                   starts=((0, 70, 75, 150), (0, 130, 130, 200))),
    "bf16": Case(unit=f"bf16_batch*{_PLAIN}", hdim=128, dtype=bf16, dtype_o=bf16, algorithm=LARGE,
                 batch=1),
    "fp8 to bf16": Case(unit="fp8bf16_batch*pssk_nlogits_nbias_nmask_nlse_ndropout_nskip_squant",
                        dtype=fp8_fnuz, dtype_o=bf16, algorithm=EIGHT, batch=1,
                        numbers={"scale_p": 240.0, "scale_o": 0.01}),
}  # fmt: skip


def built(case: Case, folder: Path) -> Path:
    """Return CK Tile's instance of a case as a program."""
    source = find_ck_tree().include.parent / "example" / "ck_tile" / "01_fmha"
    options = ("--targets", ARCH, "--api", "fwd", "--optdim", str(case.hdim))
    pattern = f"fmha_fwd_d{case.hdim}_{case.unit}*"
    command = [sys.executable, str(source / "generate.py"), *options, "--filter", pattern]
    subprocess.run([*command, "--output_dir", str(folder)], check=True)
    (unit,) = folder.glob("fmha_fwd_d*.cpp")
    (traits,) = set(re.findall(r"using (trait_\w+) =", unit.read_text()))
    program = folder / "parity"
    words = [
        *f"{FLAGS} {case.flags}".split(),
        f"--offload-arch={ARCH}",
        *("-I", str(source)),
        f'-DUNIT="{unit}"',
        f"-DTRAITS={traits}",
        str(Path(__file__).with_name("parity.cpp")),
        *("-o", str(program)),
    ]
    driver.build(words, sys.stderr.write)
    return program


def arrays_of(case: Case) -> dict[str, Array]:
    """Return the arrays of a case: inputs, and results full of what no kernel leaves there."""
    rng = np.random.default_rng(0)

    def values(dtype: DType, *shape: int) -> Array:
        numbers = rng.uniform(-1, 1, shape)
        return numbers.astype(dtype.numpy) if dtype.bits == 8 else stored(numbers, dtype)

    batch = 1 if case.starts else case.batch
    q = values(case.dtype, batch, case.heads, case.rows, case.hdim)
    k, v = (values(case.dtype, batch, case.kv_heads, case.keys, case.hdim) for _ in range(2))
    arrays = {"q": q, "k": k, "v": v, "o": np.full(q.shape, 77, values(case.dtype_o, 1).dtype)}
    square = (batch, case.heads, case.rows, case.keys)
    if case.what.get("score") == "bias":
        arrays["bias"] = values(f16, *square)
    if case.what.get("score") == "alibi":
        arrays["bias"] = np.abs(values(f32, batch, case.heads)) / 10
    if case.what.get("lse"):
        arrays["lse"] = np.full(q.shape[:3], 77, np.float32)
    if case.what.get("dropout"):
        arrays["random"] = np.full(square, 77, np.uint8)
    for name, starts in zip(("starts_q", "starts_k"), case.starts or (), strict=False):
        arrays[name] = np.array(starts, np.int32)
    return arrays


def theirs(case: Case, program: Path, arrays: dict[str, Array], folder: Path) -> dict[str, Array]:
    """Return what CK Tile's instance writes."""
    n = case.numbers
    mask = 0 if "mask" not in case.what else 2 if n.get("from_bottom_right") else 1
    problem = {
        "rows": case.rows,
        "keys": case.keys,
        "batch": batch_of(case),
        "longest": longest(case),
        "hdim_q": case.hdim,
        "hdim_v": case.hdim,
        "heads": case.heads,
        "kv_heads": case.kv_heads,
        "scale": case.hdim**-0.5,
        "scale_p": n.get("scale_p", 1),
        "scale_o": n.get("scale_o", 1),
        "soft_cap": n.get("soft_cap", 0),
        "slopes": case.what.get("score") == "alibi",
        "left": n.get("left", -1),
        "right": n.get("right", -1),
        "mask": mask,
        "dropout": n.get("dropout", 0),
        "seed": 77,
        "offset": 3,
    }
    lines = [f"{name} {float(value)!r}" for name, value in problem.items()]
    (folder / "problem").write_text("\n".join(lines))
    for name, array in arrays.items():
        (folder / name).write_bytes(array.tobytes())
    number = open_device(f"emu:{ARCH}").index
    environment = {**os.environ, "HIP_VISIBLE_DEVICES": str(number)}
    subprocess.run([str(program), str(folder)], check=True, env=environment)
    return {
        name: np.frombuffer((folder / name).read_bytes(), arrays[name].dtype)
        for name in ("o", "lse", "random")
        if name in arrays
    }


def batch_of(case: Case) -> int:
    """Return how many sequences a case has."""
    return len(case.starts[0]) - 1 if case.starts else case.batch


def longest(case: Case) -> int:
    """Return the queries of the longest sequence."""
    return int(np.diff(case.starts[0]).max()) if case.starts else case.rows


def ours(case: Case, arrays: dict[str, Array]) -> None:
    """Write with our kernel."""
    key: AttentionKey = key_of(
        case.dtype,
        case.algorithm,
        ARCH,
        **({"lse": False, "dtype_o": case.dtype_o, "dtype_bias": f16} | case.what),
    )
    score = case.what.get("score")
    seeds = np.array([77, 3], np.int32)
    tensors = [name for name in ("q", "k", "v", "o", "lse", "random") if name in arrays]
    arguments: dict[str, Any] = {name: tensor(arrays[name]) for name in tensors}
    if score == "bias":
        arguments["bias"] = tensor(arrays["bias"])
    if score == "alibi":
        arguments["slopes"] = AttentionTensor(
            pointer=arrays["bias"].ctypes.data, stride_batch=case.heads, stride_head=1
        )
    arguments |= {n: arrays[n].ctypes.data for n in ("starts_q", "starts_k") if n in arrays}
    problem = AttentionProblem(
        batch=batch_of(case),
        heads=case.heads,
        kv_heads=case.kv_heads,
        seqlen_q=longest(case),
        seqlen_k=case.keys,
        hdim_q=case.hdim,
        hdim_v=case.hdim,
        scale=case.hdim**-0.5,
        seed=seeds.ctypes.data,
        offset=seeds.ctypes.data + 4,
        **arguments,
        **case.numbers,
    )
    run(build(key), problem)


def check(name: str, folder: Path) -> None:
    case = CASES[name]
    arrays = arrays_of(case)
    want = theirs(case, built(case, folder), arrays, folder)
    ours(case, arrays)
    for each, bits in want.items():
        mine, other = (x.view(np.uint8).reshape(-1, x.itemsize) for x in (arrays[each], bits))
        wrong = (mine.ravel() != other.ravel()).reshape(mine.shape).any(1).sum()
        assert not wrong, f"{each}: {wrong} of {len(mine)} elements differ"
        assert not (arrays[each] == 77).all(), "nothing was written"


def test_the_table_of_configurations_is_complete() -> None:
    text = Path(__file__).parents[2].joinpath("docs", "upstream.md").read_text()
    _, _, table = text.partition("| configuration | instance")
    assert re.findall(r"^\| ([^|`]+?) \|", table, re.M) == list(CASES)
    assert len(CASES) == 14


@pytest.mark.usefixtures("compiler")
def test_basic_case(tmp_path: Path) -> None:
    check("basic", tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in CASES if name != "basic"])
def test_further_cases(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)
