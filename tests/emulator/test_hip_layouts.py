# SPDX-License-Identifier: MIT
"""Enumerators and structures of our headers beside those of AMD's package libamdhip64-dev.

Its headers come with ``python benchmarks/rocm_libraries.py``; without them the test is skipped.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cklang.emulator.hip.headers import KERNELS, PROGRAMS
from cklang.toolchain.compilers import find_toolchain, run_tool
from cklang.toolchain.paths import cache_root

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENUM = re.compile(r"enum\s+\w*\s*(?::\s*\w+\s*)?\{([^{}]*)\}")
_ENUMERATOR = re.compile(r"\b(hip[A-Z]\w*|HIP_\w+)\s*(?:=|,|$)")
_STRUCT = re.compile(r"\}\s*(hip[A-Z]\w*)\s*;|\bstruct\s+(hip[A-Z]\w*)\s*\{")
#: The ends of enumerations that have grown since version 6.4.
_GROWN = {"HIP_FUNC_ATTRIBUTE_MAX", "hipErrorTbd", "hipFuncAttributeMax", "hipLimitRange"}


def facts_of(text: str) -> list[str]:
    """Expressions of what headers define: enumerators, and the sizes of structures."""
    plain = _COMMENT.sub("", text)
    enumerators = {name for body in _ENUM.findall(plain) for name in _ENUMERATOR.findall(body)}
    structures = {name for pair in _STRUCT.findall(plain) for name in pair if name}
    return sorted(enumerators - _GROWN) + [f"sizeof({name})" for name in sorted(structures)]


def values(facts: Sequence[str], include: Sequence[Path], folder: Path) -> Mapping[str, int]:
    """What the facts are that headers know; those they do not know are left out."""
    source, output, log = folder / "facts.cpp", folder / "facts.s", folder / "log"
    known = {name for path in include for name in re.findall(r"\w+", _text(path))}
    declared = [fact for fact in facts if fact.removeprefix("sizeof(").rstrip(")") in known]
    rows = "".join(f"  (long long)({fact}),\n" for fact in declared)
    source.write_text(
        f"#include <hip/hip_runtime_api.h>\nextern const long long facts[];\n"
        f"const long long facts[] = {{\n{rows}}};\n"
    )
    toolchain = find_toolchain()
    paths = [word for path in include for word in ("-isystem", str(path))]
    start = (*toolchain.clang, *toolchain.host_target(), *toolchain.host_headers())
    options = ("-std=c++17", "-w", "-D__HIP_PLATFORM_AMD__", *paths, "-x", "c++", "-S")
    command = [*start, *options, str(source), "-o", str(output)]
    run_tool(command, log=log, environment=toolchain.environment())
    words = re.findall(r"\.quad\s+(-?\d+)", output.read_text().partition("facts:")[2])
    return dict(zip(declared, map(int, words[: len(declared)]), strict=True))


def _text(include: Path) -> str:
    files = sorted((include / "hip").rglob("*.h"))
    return _COMMENT.sub("", "".join(path.read_text(errors="replace") for path in files))


@pytest.mark.usefixtures("compiler")
def test_values_and_sizes_are_those_of_amds_headers(tmp_path: Path) -> None:
    headers = sorted(cache_root().glob("rocm_libraries/*/root/usr/include/hip/hip_runtime_api.h"))
    if not headers:
        pytest.skip("no headers of AMD: python benchmarks/rocm_libraries.py gets them")
    facts = facts_of(_text(PROGRAMS) + _text(KERNELS))
    theirs = values(facts, [headers[0].parents[1]], tmp_path)
    ours = values(list(theirs), [PROGRAMS, KERNELS], tmp_path)
    assert len(theirs) > 350
    assert ours == theirs
