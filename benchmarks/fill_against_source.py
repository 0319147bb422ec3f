# SPDX-License-Identifier: MIT
"""Whether a filled stencil has the machine code of the same kernel compiled from source.

    python benchmarks/fill_against_source.py

For products, a convolution and attention with some functions on three GPUs: compiles the source
with its function inline, fills the stencil with it, and compares the two instruction streams,
operands and all, labels numbered by their first use. Counts, not times: they are the same on every
machine.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import cklang as ck
from cklang.build import code_object, steps
from cklang.build.builder import shared_builder
from cklang.runtime.op import Op

M, N, K = ck.dims("M N K")
B, H, S, T, D = ck.dims("B H S T D")
X, W, C, F = ck.dims("X W C F")
V: Any = ck.dtype_var("V", ck.f16, ck.bf16)


@ck.op
def plain(x: V[M, K], w: V[N, K]) -> V[M, N]:
    """A product alone."""
    return x @ w.T


@ck.op
def gelu(x: V[M, K], w: V[N, K], bias: V[N], res: V[M, N]) -> V[M, N]:
    """Bias, gelu and residual."""
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def tanh(x: V[M, K], w: V[N, K], column: ck.f32[M]) -> V[M, N]:
    """A factor for each row, and tanh."""
    return ck.tanh((x @ w.T) * column[:, None])


@ck.op
def conv(x: V[X, W, C], w: V[F, 3, C], bias: V[F]) -> V[X, W, F]:
    """A convolution, bias and silu."""
    return ck.silu(ck.conv(x, w, padding=1) + bias)


@ck.op
def scored(q: V[B, H, S, D], k: V[B, H, T, D], v: V[B, H, T, D], slope: ck.f32[H]) -> V[B, H, S, D]:
    """Attention with a score and a mask of the user's."""
    return ck.attention(
        q,
        k,
        v,
        score=lambda s, h, i, j: s + slope[h] * (j - i).to(ck.f32),
        mask=lambda i, j: i + j > 30,
    )


@dataclass(frozen=True)
class Comparison:
    """Two instruction streams."""

    filled: tuple[str, ...]
    source: tuple[str, ...]
    filled_facts: code_object.KernelFacts
    source_facts: code_object.KernelFacts

    @property
    def same(self) -> bool:
        """Whether the streams are equal, operands and all."""
        return self.filled == self.source

    def more(self, kind: str) -> str:
        """Return how many instructions of a kind both have, or by mnemonic who has more."""
        counts = [
            Counter(name for name in map(mnemonic, text) if kind_of(name) == kind)
            for text in (self.filled, self.source)
        ]
        if counts[0] == counts[1]:
            return f"{counts[0].total()} {kind}"
        more = ", ".join(
            f"{name} {counts[0][name] - counts[1][name]:+}"
            for name in sorted(counts[0] | counts[1])
            if counts[0][name] != counts[1][name]
        )
        return f"{counts[0].total()} and {counts[1].total()} {kind} ({more})"

    @property
    def other(self) -> int:
        """How many instructions of the filled kernel, by mnemonic, the source has not in order."""
        names = [list(map(mnemonic, text)) for text in (self.filled, self.source)]
        blocks = SequenceMatcher(a=names[0], b=names[1], autojunk=False).get_matching_blocks()
        return len(self.filled) - sum(block.size for block in blocks)


KINDS = ("matrix", "memory", "other")
_MATRIX = ("mfma", "wmma")
_MEMORY = ("buffer_", "global_", "flat_", "scratch_", "ds_", "s_load", "s_buffer")


def mnemonic(instruction: str) -> str:
    """Return the name of an instruction."""
    return instruction.split()[0]


def kind_of(name: str) -> str:
    """Return which of ``KINDS`` a mnemonic is."""
    if any(part in name for part in _MATRIX):
        return "matrix"
    return "memory" if name.startswith(_MEMORY) else "other"


_LABEL = re.compile(r"\.?L?BB\d+_\d+|\.Lpost_getpc\d+|\.Ltmp\d+")


def instructions(assembly: str) -> Iterator[str]:
    """Yield the instructions of an assembly text; labels are numbered as they come."""
    numbers: dict[str, str] = {}
    for line in assembly.splitlines():
        text = line.partition(";")[0].rstrip()
        if re.match(r"\t[a-z]", text):
            yield _LABEL.sub(
                lambda label: numbers.setdefault(label.group(), f"L{len(numbers)}"), text.strip()
            )


def compare(op: Op, args: tuple[Any, ...], gpu: str) -> Comparison:
    """Build the first kernel of a call both ways."""
    stage = op._choices(args, {}, None, f"emu:{gpu}")[0].main
    builder = shared_builder()
    source, tools = builder.source(stage.key, stage.functions), builder.toolchain
    stencil = builder.stencil_of(stage.key, source).bitcode
    streams, facts = [], []
    with tempfile.TemporaryDirectory() as name:
        for way in ("filled", "source"):
            folder = Path(name) / way
            folder.mkdir()
            if way == "filled":
                steps.link_fill(stencil, source.fill, gpu, folder, tools)
                text = steps.assembly(stencil, source.fill, gpu, folder, tools)
            else:
                steps.compile_inline(source.inline, gpu, folder, tools, builder.tree)
                text = steps.assembly(folder / "kernel.bc", None, gpu, folder, tools)
            streams.append(tuple(instructions(text.file.read_text())))
            facts.append(code_object.read(folder / "kernel.hsaco").kernels[0])
    filled, inline = streams
    return Comparison(filled, inline, *facts)


def cases() -> Iterator[tuple[str, Op, tuple[Any, ...], str]]:
    """Yield what is compared: a name, an op, its arguments and a GPU."""
    for gpu, dtype in (
        ("gfx942", np.float16),
        ("gfx950", ml_dtypes.bfloat16),
        ("gfx1201", np.float16),
    ):
        x, w, res = (np.zeros((512, 512), dtype) for _ in range(3))
        yield "x @ w.T", plain, (x, w), gpu
        yield "gelu(x @ w.T + bias) + res", gelu, (x, w, res[0], res), gpu
        yield "tanh((x @ w.T) * column)", tanh, (x, w, np.zeros(512, np.float32)), gpu
    x, w = np.zeros((2, 256, 64), np.float16), np.zeros((128, 3, 64), np.float16)
    yield "silu(conv(x, w) + bias)", conv, (x, w, x[0, :128, 0].copy()), "gfx942"
    q = np.zeros((1, 2, 256, 64), np.float16)
    for gpu in ("gfx942", "gfx1201"):
        yield "attention, score and mask", scored, (q, q, q, np.zeros(2, np.float32)), gpu


def main() -> None:
    """Print a line for each kernel."""
    for name, op, args, gpu in cases():
        comparison = compare(op, args, gpu)
        a, b = comparison.filled_facts, comparison.source_facts
        print(
            f"{gpu:8} {name:28} {'same' if comparison.same else 'differs':8}"
            f"{len(comparison.filled):6} and {len(comparison.source):6} instructions, "
            f"{comparison.other:5} others; VGPRs {a.vgprs} {b.vgprs}, AGPRs {a.agprs} {b.agprs}, "
            f"SGPRs {a.sgprs} {b.sgprs}, LDS {a.lds_bytes} {b.lds_bytes}, "
            f"spills {a.vgpr_spills} {b.vgpr_spills}; {'; '.join(map(comparison.more, KINDS))}",
            flush=True,
        )


if __name__ == "__main__":
    main()
