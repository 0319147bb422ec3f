# SPDX-License-Identifier: MIT
"""What one compiler makes of cklang's kernels: a line of JSON for each, as ``compilers.py`` asks.

Runs with the wheel of the compiler first on PYTHONPATH:

    python benchmarks/compiler_kernels.py gfx942 --kernels 'attention|rowwise' --count 4

Names of kernels on standard input, a line each, are those that are measured already.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from unittest import mock

import numpy as np
from pass_bisection import bisected_passes, optional_pass

import cklang as ck
from cklang import emulator
from cklang.arch import arch
from cklang.build.parallel import built
from cklang.build.schedules import SCHEDULES
from cklang.device.artifact import Artifact
from cklang.errors import CkBuildError, CkInternalError
from cklang.keys import AnyKey
from cklang.prebuilding.essentials import EssentialCall, essential_calls
from cklang.runtime.op import Op
from cklang.testing import reports

_FEW_HEADS = {"B": 1, "S": 150, "H": 2}

_SMALL: Mapping[str, Mapping[str, int]] = {
    "linear": {"M": 136, "N": 264, "K": 192},
    "linear_gelu": {"M": 136, "N": 264, "K": 192},
    "linear_of_8_bits": {"M": 136, "N": 264, "K": 256},
    "convolution": {"B": 1, "S": 6, "W": 9},
    "causal_attention": _FEW_HEADS,
    "full_attention": _FEW_HEADS,
    "biased_attention": _FEW_HEADS,
    "biased_causal_attention": _FEW_HEADS,
    "normalised": {"M": 6},
    "layer_normalised": {"M": 6},
    "probabilities": {"M": 6},
}
"""Extents with which results are compared, where they are not those of the call."""

_ONE_HEAD: Mapping[str, int] = {"B": 1, "H": 1}
"""Those of an attention as long as the call's, if the small call takes another kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A kernel and the call that takes it by default."""

    call: EssentialCall
    key: AnyKey

    @property
    def op(self) -> Op:
        """The op, whose calls take this kernel whatever their extents."""
        return self.call.op.using(self.key.algorithm)

    @property
    def name(self) -> str:
        """Equal for equal kernels, whoever compiles them."""
        return f"{self.call.op.program.name} {self.key.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a compiler made of a kernel; no more than the first three where it made nothing."""

    kernel: str
    gpu: str
    problem: str = ""
    """Why there is no kernel."""
    vgprs: int = 0
    agprs: int = 0
    sgprs: int = 0
    vgpr_spills: int = 0
    sgpr_spills: int = 0
    instructions: int = 0
    """In the code, each once."""
    schedule: str = ""
    """The name of a schedule of ``cklang.build.schedules``."""
    ratio: float = 0.0
    """The largest error of a result, in units of its bound: at most 1 if it is right."""
    digest: str = ""
    """Of the result's bits; empty if the kernel was not run."""
    us: float = 0.0
    """By the clock, with the extents of the call."""
    optional: str = ""
    """Of a wrong kernel: the optional pass of LLVM with which it begins to be wrong."""


def watched(gpu: str, pattern: str = "", count: int | None = None) -> list[Watched]:
    """Return the kernels of the essential calls whose names match, each once, ``count`` at most."""
    kernels: dict[str, Watched] = {}
    for call in essential_calls(arch(gpu)):
        for key, _ in call.op.kernels(**call.arguments(), device=f"emu:{gpu}"):
            kernel = Watched(call=call, key=key)
            kernels.setdefault(key.digest, kernel)
    return [each for each in kernels.values() if re.search(pattern, each.name)][:count]


def result_of(kernel: Watched) -> tuple[float, str, Artifact]:
    """Return the largest error, a digest of the result and the kernel, for a small call.

    If small calls take other kernels, error and digest are 0 and empty.
    """
    names = kernel.call.names
    one_head = {dim: extent for dim, extent in _ONE_HEAD.items() if dim in names}
    for small in (_SMALL[kernel.call.op.program.name], one_head):
        compared = _compared(kernel, EssentialCall(op=kernel.op, names={**names, **small}))
        if compared is not None:
            return compared
    arguments = kernel.call.arguments()
    device = f"emu:{kernel.key.arch}"
    wanted = [
        each for each in kernel.op.kernels(**arguments, device=device) if each[0] == kernel.key
    ]
    (artifact,) = built(wanted)
    return 0.0, "", artifact


def _compared(kernel: Watched, call: EssentialCall) -> tuple[float, str, Artifact] | None:
    """Return the same for a call; None if it takes another kernel."""
    shapes, gpu = call.arguments(), f"emu:{kernel.key.arch}"
    taken = {key.digest for key, _ in call.op.kernels(**shapes, device=gpu)}
    if kernel.key.digest not in taken:
        return None
    rng = np.random.default_rng(1)
    arguments = {
        name: rng.standard_normal(array.shape).astype(array.dtype) for name, array in shapes.items()
    }
    got = call.op(**arguments, device=gpu)
    assert call.op.last is not None
    launches = {each.key.digest: each for each in call.op.last.launches}
    ratio = max(report.ratio for report in reports(call.op, list(arguments.values()), got))
    digest = hashlib.sha256(got.tobytes()).hexdigest()[:12]
    return float(ratio), digest, launches[kernel.key.digest].artifact


def measure(kernel: Watched) -> Measurement:
    """Compile a kernel, run it, and predict its time."""
    gpu = kernel.key.arch
    try:
        ratio, digest, artifact = result_of(kernel)
    except CkBuildError as problem:
        said = " ".join([problem.message, *problem.notes])
        return Measurement(kernel=kernel.name, gpu=gpu, problem=said[:300])
    large = kernel.call.arguments()
    used = artifact.resources
    code = emulator.disassemble(gpu, artifact.code_object.read_bytes())
    return Measurement(
        kernel=kernel.name,
        gpu=gpu,
        vgprs=used.vgprs,
        agprs=used.agprs,
        sgprs=used.sgprs,
        vgpr_spills=used.vgpr_spills,
        sgpr_spills=used.sgpr_spills,
        instructions=len(re.findall(r"^ *[0-9a-f]+: ", code, re.MULTILINE)),
        schedule=artifact.schedule,
        ratio=round(ratio, 3),
        digest=digest,
        us=round(ck.predict(kernel.op, **large, device=f"emu:{gpu}").us, 2),
        optional="" if ratio <= 1 else breaking_pass(kernel),
    )


def breaking_pass(kernel: Watched) -> str:
    """Return the optional pass with which a kernel begins to be wrong."""
    _, artifact = _after_passes(kernel, -1)
    names = bisected_passes((artifact.folder / "log.txt").read_text("utf-8"))
    return optional_pass(names, lambda limit: _is_right_after(kernel, limit))


def _after_passes(kernel: Watched, limit: int) -> tuple[float, Artifact]:
    """Return the largest error of a kernel after ``limit`` optional passes, and the kernel."""
    flags = ("-mllvm", f"-opt-bisect-limit={limit}")
    only = (replace(SCHEDULES[0], name=f"after {limit} optional passes", flags=flags),)
    with mock.patch("cklang.build.schedules.SCHEDULES", only):
        ratio, _, artifact = result_of(kernel)
    return ratio, artifact


def _is_right_after(kernel: Watched, limit: int) -> bool | None:
    try:
        return _after_passes(kernel, limit)[0] <= 1
    except CkInternalError:  # a function is still a call: there is no kernel
        return None


def measurements(
    gpus: list[str], pattern: str, count: int | None, known: Collection[str] = ()
) -> Iterator[Measurement]:
    """Yield a measurement of each kernel of some GPUs that is not known."""
    for gpu in gpus:
        for kernel in watched(gpu, pattern, count):
            if kernel.name not in known:
                yield measure(kernel)


def main() -> None:
    """Print a line of JSON for each kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpus", nargs="+")
    parser.add_argument("--kernels", default="", help="an expression that names must match")
    parser.add_argument("--count", type=int, help="of kernels of each GPU, at most")
    asked = parser.parse_args()
    known = frozenset(sys.stdin.read().splitlines())
    for each in measurements(asked.gpus, asked.kernels, asked.count, known):
        print(json.dumps(asdict(each)), flush=True)


if __name__ == "__main__":
    main()
