# SPDX-License-Identifier: MIT
"""The decoder held against clang's assembler, on whole code objects."""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cklang import emulator
from cklang.emulator.engine.library import text_section
from cklang.toolchain.compilers import find_toolchain

#: Instructions on halves of registers, which compilers for gfx12 write.
HALVES = {"gfx1201": ("-Xclangas", "-target-feature", "-Xclangas", "+real-true16")}
#: Two halves of a dual instruction that read one register: newer compilers pair them, and our
#: assembler refuses to.
_REFUSED = re.compile(r"v_dual_\w+ v\d+, \S+, (v\d+) :: v_dual_\w+ v\d+, \S+, \1$")
#: A literal that the linker has filled in with a number the assembler would write inline.
_INLINE = re.compile(r"\b0x(?:fffffff[0-9a-f]|[0-3]?[0-9a-f]|40)\b")


@cache
def read_back(code: bytes, arch: str) -> str:
    """`read_words` of a code object, once a code object in a process."""
    return read_words(text_section(code), arch)


def read_back_products(code_object: Path, arch: str) -> None:
    """Check that a kernel that a test built reads back, and that it multiplies matrices."""
    assert "v_mfma" in read_back(code_object.read_bytes(), arch)


def read_words(words: bytes, arch: str) -> str:
    """Check machine code → our text → clang's assembler → the same machine code; return the text.

    Recent compilers for RDNA mark unused operands of an instruction, which ours does not: there it
    is the text that must come back. So it is where a linker wrote a small number as a literal.
    """
    toolchain, text = find_toolchain(), _text(words, arch)
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "kernel.s"), Path(folder, "kernel.o")
        source.write_text(f".text\n{_source(words, arch)}", "utf-8")
        target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", *HALVES.get(arch, ()))
        run = subprocess.run(
            [*toolchain.clang, *target, "-x", "assembler", "-c", str(source), "-o", str(output)],
            capture_output=True,
            text=True,
            check=False,
            env=toolchain.environment(),
        )
        assert run.returncode == 0, run.stderr[:2000]
        again = text_section(output.read_bytes())
        by_text = not arch.startswith("gfx9") or _INLINE.search(text) is not None
        assert again == words or (by_text and _inlined(_text(again, arch)) == _inlined(text))
    return text


def _inlined(text: str) -> str:
    return _INLINE.sub(lambda match: str(int.from_bytes(_dword(match[0]), signed=True)), text)


def _dword(literal: str) -> bytes:
    return int(literal, 16).to_bytes(4)


def _text(words: bytes, arch: str) -> str:
    lines = emulator.disassemble(arch, words).splitlines()
    return "".join(line.split(": ", 1)[1] + "\n" for line in lines)


def _source(words: bytes, arch: str) -> str:
    """The text, with words where the assembler would refuse it."""
    lines = [line.split(": ", 1) for line in emulator.disassemble(arch, words).splitlines()]
    starts = [int(start, 16) for start, _ in lines]
    result = []
    for (_, text), start, end in zip(lines, starts, [*starts[1:], len(words)], strict=True):
        raw = ", ".join(map(str, words[start:end]))
        result.append(f".byte {raw}\n" if _REFUSED.match(text) else f"{text}\n")
    return "".join(result)
