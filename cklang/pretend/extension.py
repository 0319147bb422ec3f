# SPDX-License-Identifier: MIT
"""``torch.utils.cpp_extension`` for HIP: sources become a module whose kernels are emulated.

The device code and the host's part of HIP sources are compiled by ``cklang hipcc``, C++ and the
module by the machine's g++, whose C++ library torch is built with.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from filelock import FileLock
from torch.utils.hipify.hipify_python import PYTORCH_MAP, RE_PYTORCH_PREPROCESSOR

from cklang.emulator import library_path
from cklang.emulator.hipcc.driver import build
from cklang.errors import CkBuildError, error
from cklang.pretend.tensor import seen_by_extensions
from cklang.toolchain.compilers import Kind, find_toolchain, run_tool
from cklang.toolchain.paths import cache_root

_TORCH = Path(torch.__file__).parent
_HEADERS = Path(__file__).parent / "headers"
"""What torch's headers include where HIP is compiled, and no wheel for the CPU has."""
_INCLUDE = (
    *(_HEADERS, _TORCH / "include", _TORCH / "include" / "torch" / "csrc" / "api" / "include"),
    Path(sysconfig.get_paths()["include"]),
)
_LIBRARIES = ("c10", "torch", "torch_cpu", "torch_python")
_FLAGS = ("-std=c++20", "-fPIC", "-w")
_HEAD = "#include <torch/extension.h>\n"
_HIP_HEAD = "#include <torch/types.h>\n#include <hip/hip_runtime.h>\n"
_HIP_SUFFIXES = (".cu", ".hip")
_FOLDER = re.compile(r"^ (/\S+)$", re.MULTILINE)


def hipified(text: str) -> str:
    """Return CUDA source with HIP's names, as torch translates its own.

    Example:
        >>> hipified("cudaStream_t s; cudaDeviceSynchronize();")
        'hipStream_t s; hipDeviceSynchronize();'
    """
    # Names that follow another character are found.
    return RE_PYTORCH_PREPROCESSOR.sub(lambda match: str(PYTORCH_MAP[match[0]]), f"\n{text}")[1:]


def functions(gpu: str) -> Mapping[str, Callable[..., Any]]:
    """Return the functions of ``torch.utils.cpp_extension`` that are pretended."""

    def load_inline(
        name: str,
        cpp_sources: Any,
        cuda_sources: Any = None,
        functions: Any = None,
        extra_cflags: Sequence[str] = (),
        extra_cuda_cflags: Sequence[str] = (),
        extra_ldflags: Sequence[str] = (),
        extra_include_paths: Sequence[str] = (),
        **_: Any,
    ) -> Any:
        cpp = _HEAD + "\n".join(_texts(cpp_sources)) + _bindings(functions)
        files = {f"{name}.cpp": cpp}
        if cuda_sources:
            files[f"{name}.hip"] = _HIP_HEAD + hipified("\n".join(_texts(cuda_sources)))
        flags = (tuple(extra_cflags or ()), tuple(extra_cuda_cflags or ()))
        return _module(name, files, gpu, *flags, extra_ldflags or (), extra_include_paths or ())

    def load(
        name: str,
        sources: Any,
        extra_cflags: Sequence[str] = (),
        extra_cuda_cflags: Sequence[str] = (),
        extra_ldflags: Sequence[str] = (),
        extra_include_paths: Sequence[str] = (),
        **_: Any,
    ) -> Any:
        paths = [Path(name) for name in ([sources] if isinstance(sources, str) else sources)]
        files = dict(map(_read, paths))
        include = [*(extra_include_paths or ()), *{str(path.parent) for path in paths}]
        flags = (tuple(extra_cflags or ()), tuple(extra_cuda_cflags or ()))
        return _module(name, files, gpu, *flags, extra_ldflags or (), include)

    return {"load_inline": load_inline, "load": load}


def _read(path: Path) -> tuple[str, str]:
    """Return the name and the text that a source is compiled with."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in _HIP_SUFFIXES:
        return f"{path.stem}.hip", hipified(text)
    return f"{path.stem}.cpp", text


def _texts(sources: Any) -> list[str]:
    return [sources] if isinstance(sources, str) else list(sources or ())


def _bindings(functions: Any) -> str:
    """Return the module of some functions, by name, or with a docstring each."""
    if functions is None:
        return ""
    names = [functions] if isinstance(functions, str) else functions
    rows = "".join(f'm.def("{name}", &{name});\n' for name in names)
    return f"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{rows}}}\n"


def _module(
    name: str,
    files: Mapping[str, str],
    gpu: str,
    flags: Sequence[str],
    hip_flags: Sequence[str],
    link: Sequence[str],
    include: Sequence[str],
) -> Any:
    """Return the module of some sources, compiled if that was not done before."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise error("E010", what="torch.utils.cpp_extension without g++")
    facts = [*files.items(), gpu, flags, hip_flags, link, include, torch.__version__]
    facts += [find_toolchain().identity, str(library_path())]
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
    folder = cache_root() / "extensions" / f"{name}-{digest}"
    library = folder / f"{name}.so"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        if not library.is_file():
            more = [f"-I{path}" for path in include] + [f"-DTORCH_EXTENSION_NAME={name}"]
            objects = [
                _compiled(folder / file, text, compiler, gpu, [*more, *flags], [*more, *hip_flags])
                for file, text in files.items()
            ]
            _link(objects, library, compiler, link)
    return _Extension(_imported(name, library))


def _compiled(
    source: Path,
    text: str,
    compiler: str,
    gpu: str,
    flags: Sequence[str],
    hip_flags: Sequence[str],
) -> Path:
    """Return the object of a source."""
    source.write_text(text, encoding="utf-8")
    output = source.with_suffix(f"{source.suffix}.o")
    if source.suffix == ".hip":
        _compile_hip(source, output, compiler, gpu, hip_flags)
    else:
        command = [compiler, *_FLAGS, *_options(_INCLUDE), *flags, "-O1", "-c", str(source)]
        _run([*command, "-o", str(output)], source.parent)
    return output


def _options(folders: Iterable[Path]) -> list[str]:
    return [word for folder in folders for word in ("-isystem", str(folder))]


def _run(command: Sequence[str], folder: Path) -> str:
    """Run a compiler.

    Raises:
        CkBuildError: B001, it failed; its words are in the error.
    """
    environment = find_toolchain().environment()
    return run_tool(list(command), log=folder / "build.log", environment=environment).output


def _compile_hip(source: Path, output: Path, compiler: str, gpu: str, flags: Sequence[str]) -> None:
    """Compile a HIP source with the C++ library of the machine's g++."""
    said: list[str] = []
    words = ["-c", str(source), "-o", str(output), f"--offload-arch={gpu}", *_FLAGS]
    words += [*(f"-I{folder}" for folder in _INCLUDE), *flags]
    try:
        build(words, said.append, headers=_headers(compiler, source.parent))
    except CkBuildError as problem:
        problem.add_note("".join(said))
        raise


def _headers(compiler: str, folder: Path) -> list[str] | None:
    """Return flags for the headers of the machine's C++ library, as its g++ names them."""
    toolchain = find_toolchain()
    if toolchain.kind is not Kind.ZIG:
        return None
    text = _run([compiler, "-E", "-x", "c++", "/dev/null", "-v"], folder)
    clang = toolchain.bundled / "include"
    system = [Path(name) for name in _FOLDER.findall(text) if Path(name).is_dir()]
    # clang's own headers take the place of gcc's.
    libraries = [path for path in system if "/gcc/" not in str(path)]
    cxx = [path for path in libraries if "c++" in path.parts]
    rest = [path for path in libraries if path not in cxx]
    return ["-nostdinc", "-nostdinc++", *_options([*cxx, clang, *rest])]


def _link(objects: Sequence[Path], library: Path, compiler: str, flags: Sequence[str]) -> None:
    folders = (_TORCH / "lib", library_path().parent)
    where = [word for path in folders for word in (f"-L{path}", f"-Wl,-rpath,{path}")]
    named = [f"-l{part}" for part in (*_LIBRARIES, "amdhip64")]
    draft = library.with_suffix(".draft")
    command = [compiler, "-shared", *map(str, objects), *where, *named, *flags, "-o", str(draft)]
    _run(command, library.parent)
    draft.replace(library)


def _imported(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise error("E002", path=library, problem="it is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Extension:
    """A module whose functions see tensors on the GPU."""

    def __init__(self, module: ModuleType) -> None:
        self.__name__ = module.__name__
        for name, value in vars(module).items():
            if callable(value) and not isinstance(value, type):
                setattr(self, name, _seeing(value))


def _seeing(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with seen_by_extensions(), torch._C.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return call
