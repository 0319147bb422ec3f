# SPDX-License-Identifier: MIT
"""Errors of the toolchain, the build, the kernel cache, devices, and the emulator."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# B: build and toolchain
B001 CkBuildError no compiler was found: neither ROCm's amdclang++, nor clang {oldest} or newer on
    PATH, nor the ziglang package
    = {get}
B002 CkBuildError {got!r} cannot be used as the compiler: {problem}
    = CKLANG_CLANG, or compiler=, must name a clang of version {oldest} or newer, or zig
B003 CkBuildError there is no {tool} for {program}
    = install lld and llvm, or: {get}
B004 CkBuildError no CK Tile headers were found: neither ROCm's nor the amd-aiter package
    = {get}
B005 CkBuildError CKLANG_CK_DIR={got} holds no ck_tile/core.hpp, nor does its include folder
    = it must be a composable_kernel checkout or its include folder
B006 CkBuildError the ziglang compiler cannot build for {got}
    = on Linux: {known}; elsewhere set CKLANG_CLANG to a clang with its own system headers
B007 CkBuildError there is no clang 20, which ROCm 7's compiler is made from
    = pip install --target {folder} ziglang==0.15.2
B010 CkBuildError {tool} failed with status {status}
    = the whole output: {log}
B011 CkInternalError the filled kernel still calls {names}; the epilogue was not inlined
    = please report it with {log}
B014 CkInternalError a kernel that the rules call legal does not compile: {problem}
    = family {family} on {gpu} needs a rule against it; please report it with this text
    = signature: {signature}
    = algorithm: {algorithm}
    = {log}
    = op.using(...) with another algorithm computes the same meanwhile
B012 CkBuildError {path} is not an AMD GPU code object: {problem}
    = such a file is an ELF file for amdgcn, as hipcc --genco writes it
B013 CkBuildError the host shim {path} has version {got!r}; this cklang reads version {want}
    = clear the kernel cache: cklang cache clear
B040 CkValueError {path} is no stencil bundle: {problem}
    = cklang build --bundle FILE writes one
B020 CkBuildError kernel {label} is gone from the cache right after it was built
    = another process cleared the cache; call again
# HIP programs
B030 CkBuildError hipcc: {what} failed
    = -v prints the commands
B031 CkValueError hipcc: {word!r}: {problem}
    = a source of another name is read after -x hip (or c++, or c)
B032 CkValueError hipcc: {flag} cannot be honoured: {reason}
    = leave {flag} out; `cklang hipcc --help` lists what is honoured
B033 CkValueError hipcc: no source and no object is named
    = cklang hipcc --help
B034 CkValueError hipcc: {count} sources have one output each, but -o names only {output}
    = leave -o out, or compile one source at a time
B035 CkValueError hipcc: {flag} does not say {problem}
    = add --offload-device-only and one --offload-arch, or --offload-host-only
# C: kernel cache
C001 CkBuildError the kernel cache cannot write {folder}: {problem}
    = set CKLANG_CACHE_DIR to a folder that you may write to, with 500 MB of room: the emulator
      takes 150 MB, a kernel 1 to 5 MB. `cklang cache trim --most GB` makes room in a full one
C002 CkInternalError the cache entry {folder} has no file {name!r}
    = its files: {known}
C003 CkBuildError the {kind} {digest} that came from another machine was not taken in: {problem}
    = it was damaged on the way, or built by another version of cklang; build it here
C004 CkUnsupportedError work for other machines goes through Dask, which is not installed
    = pip install 'cklang[dist]'
C005 CkDeviceError the Dask scheduler at {address} cannot be used: {problem}
    = start one with: dask scheduler; and on each machine: dask worker ADDRESS
# D: device
D001 CkValueError there is no device {got!r}
    = devices: {known}
D003 CkDeviceError {call} on {device} failed: {status} ({words})
    = look for the first error of the process: a fault of a launch shows at a later call too
D004 CkDeviceError the call asks for a real GPU, but this machine has none that HIP can use
    = leave CKLANG_DEVICE out, or set it to emu:gfx942, to run on an emulated one
D005 CkDeviceError this process has the HIP library for {loaded!r} devices; {wanted!r} needs the
    other
    = choose one of the two before the first call, or use two processes
D007 CkUnsupportedError {label} refuses {problem}: {verdict}
    = leave the choice of the kernel to cklang, or name another algorithm with op.using(...)
D008 CkInternalError the arguments of {label} hold no address of operand {index}
    = please report it with this text
D009 CkDeviceError the temporaries of the call need {need} of {device}, and {free} are free
    = call the op on parts of its batch, each with out= a part of the result; store large
      temporaries in a narrower dtype, .to(ck.f16); or delete arrays that nothing needs
D010 CkDeviceError this process was forked from one that had used {device}, and HIP does not survive
    a fork
    = multiprocessing.get_context('spawn') starts workers with a device of their own
D020 CkValueError a profile cannot be written to {path!r}
    = names end in {known}; a name without an ending becomes a folder for rocprofv3's viewers
D021 CkValueError the profile is empty: nothing was launched on an emulated GPU
    = call ops with device='emu:gfx942', or run a HIP program of cklang hipcc, inside of it
D030 CkDeviceError {what}
    = `run` starts it again; what it printed last says why it ended
D031 CkValueError {got!r} is no command of the debugger
    = {hint}; `help` lists all
D032 CkValueError {got!r} is no place to stop at: {problem}
    = write file.cpp:18, 18 (of the file that is shown), *0x40 (bytes from the kernel's start),
      @v_mfma* (operations) or the name of a kernel; then conditions: workgroup 3 wave 1 lane 5
D033 CkValueError no launch is under control
    = `run` goes to the first breakpoint, `start` to the first launch
D034 CkValueError {got!r} is no value: {problem}
    = write v3, v[0:3], a5, s4, s[4:5], exec, vcc, scc, m0, mode, pc or kernarg; {variables}
D035 CkValueError no wave {got} is running
    = `info waves` lists those that have begun and whose workgroups have not ended
D036 CkValueError {got!r} is no format
    = formats: {known}
D037 CkValueError no tensor {got!r} is known
    = tensors: {known}; `cklang debug file.py:op M=64 ...` names those of an op
D038 CkValueError the lanes of {got!r} are not known: {problem}
    = stop at a matrix instruction (break @v_mfma*), or name its pc: dist *0x40
D039 CkValueError {command} cannot be done: {problem}
    = `help {command}` describes it
D006 CkValueError the arrays are on {place}, but the call is to run on {device}
    = move the arrays there, or leave the device to the arrays
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
E010 CkUnsupportedError {what} cannot be pretended: torch has no GPU here
    = docs/pretend.md lists what torch can be made to believe
E011 CkValueError torch cannot be made to believe in the GPU {got!r}: {problem}
    = legal: one GPU, cuda:0, in a build of torch that finds none
E012 CkUnsupportedError torch is not installed, whose programs these are
    = pip install 'cklang[torch]'
"""
)
