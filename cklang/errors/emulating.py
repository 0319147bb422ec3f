# SPDX-License-Identifier: MIT
"""Errors of the emulator."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# E: emulator
E001 CkUnsupportedError the emulator needs a CPU with AVX2, FMA and F16C; this one lacks {missing}
    = run on an x86-64 machine of 2015 or newer, or on a real GPU
E002 CkDeviceError the emulator's library {path} does not load: {problem}
    = remove the file; the next call compiles it again
E003 CkDeviceError device {device} of the emulator has not launched a kernel
    = launch a kernel there first
E004 CkDeviceError {function} is no kernel of a loaded module
    = load its code object first and launch the function that hipModuleGetFunction returns
E005 CkDeviceError the emulator has no instruction tables for {arch!r}
    = name a GPU that is emulated, such as gfx942; docs/emulator.md lists them
E006 CkUnsupportedError Triton is not installed, whose compiler makes the kernels
    = pip install 'cklang[torch,triton]'
E007 CkUnsupportedError FlyDSL is not installed, whose compiler makes the kernels
    = pip install 'cklang[torch,flydsl]'
E008 CkValueError autotune={got!r} is no way to choose among the configurations of a Triton kernel
    = write autotune="measure" (the fastest in emulated launches) or autotune="first"
E009 CkUnsupportedError {package} {version} is installed, and cklang knows the versions {known}
    = pip install 'cklang[torch]', or 'cklang[triton]', chooses one of them
"""
)
