# SPDX-License-Identifier: MIT
"""What ``benchmarks/compilers.py`` makes of measurements, and how it looks for a pass of LLVM."""

from pathlib import Path

import pytest
from compiler_cases import Verdict, headers_with_branches
from compiler_kernels import Measurement
from compilers import Compiler, differences, kernel_rows, page
from pass_bisection import first_wrong, optional_pass, passes_between, portable, printed_ir

from cklang.lowering import headers
from cklang.toolchain.compilers import Kind, Toolchain


@pytest.mark.parametrize("points", [1, 2, 7, 300])
def test_the_first_wrong_point_needs_few_trials(points: int) -> None:
    for first in range(points + 1):
        trials: list[int] = []

        def is_right(point: int, first: int = first, trials: list[int] = trials) -> bool:
            trials.append(point)
            return point < first

        assert first_wrong(range(points), is_right) == (first if first < points else None)
        assert len(trials) <= points.bit_length() + 1


def test_limits_with_which_nothing_runs_name_no_pass() -> None:
    names = {1: "inline", 2: "gvn", 3: "sink", 4: "licm"}

    def after_inlining(wrong: int, limit: int) -> bool | None:
        return None if limit < 2 else limit < wrong

    assert optional_pass(names, lambda limit: after_inlining(4, limit)) == "licm"
    assert optional_pass(names, lambda limit: after_inlining(2, limit)) == "none"
    assert optional_pass(names, lambda limit: after_inlining(5, limit)) == ""


def test_ir_is_read_from_what_clang_prints() -> None:
    log = (
        "$ zig clang -c\nPass Arguments:  -fix-irreducible -domtree -structurizecfg -sink\n"
        "*** IR Dump After Irreducible loops (fix-irreducible) *** (function: f)\n"
        "$f = comdat any\ndeclare void @f() nocreateundeforpoison\n"
        "; *** IR Dump After Code sinking (sink) ***\ndefine void @f()\n# exit 0, 1.000 s\n"
    )
    assert printed_ir(log) == {
        "fix-irreducible": "$f = comdat any\ndeclare void @f() nocreateundeforpoison\n",
        "sink": "define void @f()\n",
    }
    assert "nocreateundeforpoison" not in portable(log)
    assert passes_between(log, "fix-irreducible", "sink") == ("structurizecfg", "sink")


def _compiler(clang: str, **of_the_kernel: float | str) -> Compiler:
    kernel = Measurement(kernel="product", gpu="gfx942", **of_the_kernel)  # type: ignore[arg-type]
    case = Verdict(case="scan", right=False, said="race", passes="structurizecfg")
    return Compiler(release="0", clang=clang, kernels=(kernel,), cases=(case,))


def test_kernels_that_are_wrong_or_differ_are_named() -> None:
    right = _compiler("21", ratio=0.5, digest="aa")
    wrong = _compiler("22", ratio=1500.0, digest="bb", optional="gvn")
    assert list(differences([right, right])) == []
    assert list(differences([right, wrong])) == [
        "- `product` is wrong with clang 22: 1500 bounds, from the pass gvn on.",
        "- `product` has other bits with each of: 21, 22.",
    ]


def test_the_page_has_each_compiler_and_says_what_is_missing() -> None:
    failed = "zig clang failed with status 1 /x/y.hpp:7:3: error: no such type\n   7 | x"
    compilers = [_compiler("20", problem=failed), _compiler("22", vgprs=17, digest="aa", us=2.5)]
    text = page(compilers, {"gfx942": 36})
    assert list(kernel_rows(compilers)) == [
        "| `product` | 22 | 17 | 0 | 0 | 0 | 0 |  | 0.00 | aa | 2.50 |"
    ]
    assert "`y.hpp`: no such type" in text
    assert "| scan | 22 | wrong: race |  | structurizecfg |" in text
    assert "| gfx942 | 20 | 1 of 36 | 1 | 0 | 0 | 0 |  |" in text
    assert "| gfx942 | 22 | 1 of 36 | 0 | 0 | 0 | 0 | 1.00 (1.00-1.00) |" in text


def test_the_branches_of_the_lost_store_replace_what_the_headers_have(tmp_path: Path) -> None:
    ours, branching = headers.folders()[0] / "cklang", headers_with_branches(tmp_path) / "cklang"
    changed = {
        file.name
        for file in ours.glob("*.hpp")
        if file.read_bytes() != (branching / file.name).read_bytes()
    }
    assert changed == {"attention.hpp", "attention_transposed.hpp"}


@pytest.mark.parametrize(
    ("kind", "version", "older"),
    [
        (Kind.ZIG, "ziglang 0.15.2", True),
        (Kind.ZIG, "ziglang 0.17.0", False),
        (Kind.CLANG, "clang version 20.1.8", True),
        (Kind.CLANG, "clang version 22.1.0", False),
    ],
)
def test_clang_20_is_told_the_names_of_builtins_and_precompiles_nothing(
    kind: Kind, version: str, older: bool
) -> None:
    toolchain = Toolchain(kind=kind, program=Path("clang"), version=version, fingerprint="")
    flags = toolchain.hip_headers(Path("include"))
    assert ("-D__builtin_elementwise_minnum=__builtin_elementwise_min" in flags) is older
    assert toolchain.precompiles is not older
