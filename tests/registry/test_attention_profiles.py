# SPDX-License-Identifier: MIT
"""Profiles of attention, and bundles of its stencils."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang import knobs
from cklang.arch import arch
from cklang.build import bundle
from cklang.build.stencil_files import StencilFiles
from cklang.cli import build as command
from cklang.cli.main import main
from cklang.errors import CkError
from cklang.families.attention.helper_keys import Rotary, append_key, combine_key
from cklang.families.attention.key import AttentionSignature, MaskKind, ScoreKind
from cklang.fusion.functions import NO_FUNCTIONS
from cklang.keys import AnyKey
from cklang.selection.registry import Registry
from cklang.selection.rules import violations
from cklang.selection.space import attention_pattern
from cklang.types import DTYPES, bf16, f16, f32
from tests.support.attention_keys import (
    HELPERS,
    PLAIN,
    PROBLEM,
    arrays,
    attention_keys,
    capped,
    key,
)
from tests.support.no_headers import run_without_headers, stand_in

# --- bundles


def test_bundles_hold_attention(tmp_path: Path, no_headers: None) -> None:
    qs = key(tile=(128, 64, 32, 64, 32, 64), pipeline="qs")
    helpers = (
        combine_key("gfx942", f16, lse=True),
        append_key("gfx942", bf16, Rotary.NONE, paged=False),
    )
    bundled: list[AnyKey] = [qs, *helpers]
    path = tmp_path / "attention.ckb"
    files = [stand_in(tmp_path / str(place), each) for place, each in enumerate(bundled)]
    bundle.write(path, files, compiler="a compiler", headers="a tree")
    contents = bundle.read(path)
    assert list(contents.keys) == bundled
    assert all(contents.find(each, "source") is not None for each in bundled)
    with knobs.scope(CKLANG_BUNDLE=str(path)):
        chosen = ck.dispatch.select(PROBLEM, registry=Registry("empty"), arch="gfx942")
        assert chosen.key == qs
        assert "no CK Tile headers" in chosen.origin
        with pytest.raises(CkError, match="CK-K102"):
            ck.dispatch.select(PROBLEM, registry=Registry("empty"), arch="gfx950")


# --- profiles

PROFILES = ("flash", "pytorch", "aiter", "fp32", "fp8", "ck_default")


NO_KERNELS = {("fp8", "gfx90a"), ("fp8", "gfx1100"), ("fp32", "gfx1100"), ("fp32", "gfx1201")}


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_sets_of_legal_kernels(name: str, gpu: str) -> None:
    registry = Registry(name)
    if (name, gpu) in NO_KERNELS:
        with pytest.raises(CkError, match="CK-K008"):
            registry.declare_profile(name, gpu)
        return
    assert registry.declare_profile(name, gpu, heads=[128]) == len(registry) > 10
    assert registry.declare_profile(name, gpu, heads=[128]) == 0
    chosen = attention_keys(registry)
    for each in chosen[::7]:
        assert next(violations(each.algorithm, each.signature, arch(gpu)), None) is None
    dtypes = {each.signature.dtype.family for each in chosen}
    assert dtypes == WITH[name] - ({"fp8"} if ("fp8", gpu) in NO_KERNELS else set())
    assert {each.key.arch for each in registry} == {gpu}


WITH = {
    "flash": {"f16", "bf16"},
    "pytorch": {"f16", "bf16"},
    "aiter": {"f16", "bf16", "fp8"},
    "fp32": {"f32"},
    "fp8": {"fp8"},
    "ck_default": {"f16", "bf16", "fp8"},
}


def test_ck_default_has_every_feature_of_the_receipt() -> None:
    """Upstream's receipt 0: everything but f32, with what its generator crosses."""
    registry = Registry("all")
    registry.declare_profile("ck_default", "gfx942", dtypes=["f16", "fp8"])
    forward = attention_keys(registry)
    of_f16 = {k.signature for k in forward if k.signature.dtype == f16}
    for name, values in {
        "score": {ScoreKind.NONE, ScoreKind.SOFT_CAP, ScoreKind.FUNCTION},
        "mask": {MaskKind.NONE, MaskKind.CAUSAL, MaskKind.WINDOW},
        **{flag: {False, True} for flag in ("lse", "dropout", "packed", "paged", "split")},
    }.items():
        assert {getattr(s, name) for s in of_f16} == values
    assert {k.algorithm.tile[5] for k in forward} >= {32, 64, 128, 256}
    backward = [each.key for each in registry if each.key.family == "attention_backward"]
    assert {(k.signature.forward.score, k.signature.bias_grad) for k in backward} == {
        (ScoreKind.NONE, False),
        (ScoreKind.BIAS, False),
        (ScoreKind.BIAS, True),
        (ScoreKind.FUNCTION, False),
    }
    # A call in splits finds the kernel that combines them, whatever it stores.
    stored = {k.key.signature.dtype_o for k in registry if k.key.family == "combine"}
    assert stored == {f16, bf16, f32, DTYPES["fp8_fnuz"]}
    # The smaller profiles are parts of it.
    flash = Registry("flash")
    flash.declare_profile("flash", "gfx942", dtypes=["f16"])
    assert {each.key for each in flash} <= {each.key for each in registry}


def test_what_profiles_are_for() -> None:
    registry = Registry("flash")
    registry.declare_profile("flash", "gfx942", dtypes=["f16"], heads=[64])
    kinds = {each.key.family for each in registry}
    assert kinds == {"attention", "attention_backward", *HELPERS}
    assert {(k.signature.packed, k.signature.split) for k in attention_keys(registry)} == {
        (False, False),
        (True, False),
        (False, True),
    }
    assert not all(k.algorithm.pad_k for k in attention_keys(registry))
    torch = Registry("pytorch")
    torch.declare_profile("pytorch", "gfx942", dtypes=["f16"], heads=[64])
    assert not any(k.signature.packed for k in attention_keys(torch))
    # Functions that change nothing stand for those of the users.
    scored = next(
        kernel
        for kernel in torch
        if kernel.key.family == "attention" and kernel.key.signature.score is ScoreKind.FUNCTION
    )
    functions = scored.functions
    assert functions["score"].results == functions["score"].params[:1]
    with pytest.raises(CkError, match="CK-K001"):
        torch.declare_profile("flush", "gfx942")


def test_a_profile_names_algorithms_for_a_signature_of_its_own() -> None:
    mine = Registry("mine")
    assert mine.declare(PLAIN, NO_FUNCTIONS, "gfx942", "flash") > 7
    assert {k.algorithm.pad_k for k in attention_keys(mine)} == {True, False}
    whole = ck.dispatch.attention_problem(1, 2, 128, 256, 64)
    chosen = ck.dispatch.select(whole, registry=mine, arch="gfx942", strategy="first_fit")
    assert not chosen.key.algorithm.pad_k
    ragged = ck.dispatch.attention_problem(1, 2, 128, 250, 64)
    assert ck.dispatch.select(ragged, registry=mine, arch="gfx942").key.algorithm.pad_k
    single = AttentionSignature(dtype=f32, dtype_o=f32, dtype_bias=f32)
    for wrong, name in ((single, "flash"), (replace(PLAIN, packed=True), "pytorch")):
        with pytest.raises(CkError, match="CK-K008"):
            Registry("mine").declare(wrong, NO_FUNCTIONS, "gfx942", name)
    with pytest.raises(CkError, match="CK-K001"):
        Registry("mine").declare(PLAIN, NO_FUNCTIONS, "gfx942", "compute")


def test_the_command_line_bundles_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fake:
        """Stands for the compilers, which other tests run."""

        class toolchain:  # noqa: N801
            identity = "a compiler"

        class tree:  # noqa: N801
            identity = "a tree"

        count = 0

        def stencil_files(self, wanted: Any) -> StencilFiles:
            self.count += 1
            return stand_in(tmp_path / str(self.count), wanted[0])

    monkeypatch.setattr(command, "built", lambda kernels, executor: ())
    monkeypatch.setattr(command, "shared_builder", Fake)
    path = tmp_path / "fp32.ckb"
    words = ["build", "--bundle", str(path), "--profile", "fp32", "--arch", "gfx942"]
    assert main([*words, "--head", "64", "--element", "f32"]) == 0
    bundled = list(bundle.read(path).keys)
    assert f"{len(bundled)} stencils" in capsys.readouterr().out
    assert {k.algorithm.tile[5] for k in bundled if k.family == "attention"} == {64}
    kinds = {k.family for k in bundled}
    assert kinds == {"attention", "attention_backward", "reduce"}
    assert main([*words[:-1], "gfx1201"]) == 1
    assert "fp32" in capsys.readouterr().err
    program = tmp_path / "program.py"
    program.write_text(OP)
    dims = [f"{name}={extent}" for name, extent in {"B": 1, "H": 2, "S": 1, "T": 4096}.items()]
    words = ["build", f"{program}:one", *dims, "--bundle", str(path), "--arch", "gfx942"]
    for more, kinds in (([], {"attention", "combine"}), (["--gradient"], GRADIENTS)):
        assert main([*words, *more]) == 0
        assert {key.family for key in bundle.read(path).keys} == kinds


GRADIENTS = {"attention", "combine", "attention_backward", "reduce"}

OP = """
import cklang as ck
B, H, S, T = ck.dims("B H S T")
@ck.op
def one(
    q: ck.f16[B, H, S, 64], k: ck.f16[B, H, T, 64], v: ck.f16[B, H, T, 64]
) -> ck.f16[B, H, S, 64]:
    return ck.attention(q, k, v)
"""

PROGRAM = """
import numpy as np
import cklang as ck

B, H, S, T, D = ck.dims("B H S T D")

@ck.op
def mine(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D], far: ck.f32[H]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(
        q, k, v, score=lambda s, h: ck.tanh(s) * far[h], mask=lambda i, j: i + j > 3,
        return_lse=True,
    )

rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((1, 2, n, 64)).astype(np.float16) for n in (40, 90, 90))
far = np.array([0.5, 2.0], np.float32)
got, lse = mine(q, k, v, far, device="emu:gfx942")
s = np.tanh(q.astype(np.float32) @ k.astype(np.float32).swapaxes(2, 3) / 8) * far[:, None, None]
s = np.where(np.add.outer(np.arange(40), np.arange(90)) > 3, s, -np.inf)
w = np.exp(s)
want = w @ v.astype(np.float32) / w.sum(-1, keepdims=True)
assert np.allclose(got.astype(np.float32), want, atol=5e-3), abs(got - want).max()
assert np.allclose(lse, np.log(w.sum(-1)), atol=1e-3)
print(mine.last.launches[0].key)
"""


@pytest.mark.usefixtures("compiler")
def test_a_machine_without_headers_links_new_functions(tmp_path: Path) -> None:
    """Another process, which sees no headers, fills the stencil with functions of its own."""
    from cklang.build.builder import shared_builder

    mine = Registry("mine")
    op = capped.using(registry=mine)
    some = attention_pattern(tile=(128, 64, 32, 64, 32, 64), pipeline="qr_async", block_per_cu=2)
    args = [*arrays(), np.zeros(2, np.float32)]
    assert op.declare(*args, device="emu:gfx942", among=some, registry=mine) == 1
    assert not mine.build().failures
    builder = shared_builder()
    path = tmp_path / "attention.ckb"
    files = (builder.stencil_files((kernel.key, kernel.functions)) for kernel in mine)
    bundle.write(path, files, compiler=builder.toolchain.identity, headers=builder.tree.identity)
    assert "qr_async" in run_without_headers(PROGRAM, path, tmp_path)
