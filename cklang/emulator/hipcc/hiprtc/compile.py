# SPDX-License-Identifier: MIT
"""What ``hiprtcCompileProgram`` starts: ``python -m cklang.emulator.hipcc.hiprtc.compile FOLDER``.

The folder has the files ``source``, ``name``, ``arch``, and where there are any ``options``,
``expressions`` and ``headers`` (a line each; the text of header n is in ``header-n``). It gets
``code``, a fat binary; ``log``; and ``names``, the names of the expressions in the code, each
with a 0 byte behind it.
"""

import shutil
import struct
import sys
from pathlib import Path

from cklang.arch import base_name
from cklang.elf import sections_of, symbols_of
from cklang.emulator.hipcc import driver, fat_binary
from cklang.errors import CkError

_ARCH_OPTIONS = ("--gpu-architecture=", "--offload-arch=")
# The address of each named entity lies in a variable whose name we know.
_MARK = "__cklang_name_"
_VARIABLE = 'extern "C" __device__ __attribute__((used)) const void*'
_RELATIVE = 13  # R_AMDGPU_RELATIVE64: an address in the code object, put there when it is loaded


def main(folder: Path) -> int:
    """Compile what is in a folder; return the status of the process."""
    said: list[str] = []
    try:
        compile_folder(folder, said)
    except CkError as problem:
        said.append(f"{problem}\n")
        return 1
    finally:
        (folder / "log").write_text("".join(said), "utf-8")
    return 0


def compile_folder(folder: Path, said: list[str]) -> None:
    """Compile what is in ``folder``; ``said`` gets what the compiler says."""
    includes = folder / "include"
    for number, name in enumerate(_lines(folder / "headers")):
        file = includes / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / f"header-{number}", file)
    expressions = _lines(folder / "expressions")
    source = folder / "program.hip"
    name = (folder / "name").read_text("utf-8")
    marks = [
        f"{_VARIABLE} {_MARK}{n} = (const void*)&{text};\n" for n, text in enumerate(expressions)
    ]
    text = (folder / "source").read_text("utf-8")
    source.write_text(f'#line 1 "{name}"\n{text}\n{"".join(marks)}', "utf-8")
    options = _lines(folder / "options")
    archs = [o.partition("=")[2] for o in options if o.startswith(_ARCH_OPTIONS)]
    arch = base_name((archs or [(folder / "arch").read_text("utf-8")])[0])
    rest = [o for o in options if not o.startswith(_ARCH_OPTIONS)]
    prelude = ["-include", "hip/hip_runtime.h", "-D__HIPCC_RTC__=1", f"-I{includes}"]
    code = folder / "code"
    words = ["--genco", f"--offload-arch={arch}", *prelude, *rest, str(source), "-o", str(code)]
    driver.build(words, said.append)
    (image,) = fat_binary.entries(code.read_bytes()).values()
    names = names_of(image, len(expressions))
    (folder / "names").write_bytes(b"".join(name.encode() + b"\0" for name in names))


def names_of(image: bytes, count: int) -> list[str]:
    """Return the names of what the first ``count`` marked variables of a code object point to."""
    rows = sections_of(image)
    sections = {section.name: section for section in rows}
    table = symbols_of(sections[".dynsym"], rows)
    symbols = {symbol.name: symbol.value for symbol in table}
    at_address = {value: name for name, value in symbols.items() if not name.endswith(".kd")}
    targets: dict[int, int] = {}
    relocations = sections[".rela.dyn"].content if ".rela.dyn" in sections else b""
    for offset, info, addend in struct.iter_unpack("<QQq", relocations):
        number, kind = info >> 32, info & 0xFFFFFFFF
        targets[offset] = addend if kind == _RELATIVE else table[number].value + addend
    return [at_address[targets[symbols[f"{_MARK}{n}"]]] for n in range(count)]


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.is_file() else []


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
