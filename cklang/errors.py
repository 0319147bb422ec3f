# SPDX-License-Identifier: MIT
"""Every error a user can meet: one row each, with its code, its sentence and what to do about it.

Raise with ``raise error("F003", at=span, name="x", got="int")``. The row's templates are filled
from the named values; a missing value is an internal error, so tests meet it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cklang.source import Span

__all__ = [
    "RULES",
    "CkBuildError",
    "CkDeviceError",
    "CkError",
    "CkInternalError",
    "CkMismatchError",
    "CkSyntaxError",
    "CkTypeError",
    "CkUnsupportedError",
    "CkValueError",
    "Rule",
    "error",
]


class CkError(Exception):
    """Base of all cklang errors: a stable code, a message, a place and notes."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        at: Span | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(code, message, hint, at, tuple(notes))
        self.code = code
        self.message = message
        self.hint = hint
        self.at = at
        self.notes = tuple(notes)

    def __str__(self) -> str:
        place = [self.at.render()] if self.at is not None else []
        hint = [f"   = {line}" for line in self.hint.splitlines()]
        notes = [f"   = {line}" for note in self.notes for line in note.splitlines()]
        return "\n".join([f"CK-{self.code} {self.message}", *place, *notes, *hint])

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders when kernels are built in workers.
        return type(self), (self.code, self.message, self.hint, self.at, self.notes)

    def to_json(self) -> dict[str, Any]:
        """Return the error as plain data for editors and logs."""
        return {
            "code": f"CK-{self.code}",
            "message": self.message,
            "hint": self.hint,
            "at": str(self.at) if self.at is not None else None,
            "notes": list(self.notes),
        }


class CkSyntaxError(CkError, SyntaxError):
    """The program text is outside the language."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        at: Span | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(code, message, hint, at, notes)
        # Python's traceback module shows nothing of a SyntaxError but its msg.
        self.msg = str(self)


class CkTypeError(CkError, TypeError):
    """A value has the wrong type, dtype or rank."""


class CkValueError(CkError, ValueError):
    """A value is of the right type but not legal."""


class CkUnsupportedError(CkError, NotImplementedError):
    """A legal request that no kernel of this installation can serve; the message says why."""


class CkBuildError(CkError, RuntimeError):
    """A compiler, a linker or the cache failed."""


class CkDeviceError(CkError, RuntimeError):
    """The device or the emulator refused or faulted."""


class CkMismatchError(CkError, AssertionError):
    """A result differs from its reference by more than its bound."""


class CkInternalError(CkError, RuntimeError):
    """cklang is wrong, not its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table: what is said when the rule ``code`` is broken."""

    code: str
    kind: type[CkError]
    message: str
    hint: str = ""


def _row(code: str, kind: type[CkError], message: str, hint: str = "") -> Rule:
    return Rule(code=code, kind=kind, message=message, hint=hint)


_TABLE: tuple[Rule, ...] = (
    # A: arrays and binding (runtime)
    _row(
        "A001",
        CkTypeError,
        "{name} must be an array, not {got}",
        "pass a NumPy array, a torch tensor, or anything with DLPack or the array interface;\n"
        "a plain number is legal only for a parameter of rank 0",
    ),
    _row(
        "A002",
        CkTypeError,
        "{name} has dtype {dtype}, which no kernel reads",
        "dtypes: {known}",
    ),
    _row(
        "A003",
        CkValueError,
        "{name} has dtype {dtype}, whose bytes are in the other order than this machine's",
        "pass {name}.astype({name}.dtype.newbyteorder('='))",
    ),
    _row(
        "A004",
        CkValueError,
        "the elements of {name} are not aligned to their size of {size} bytes "
        "(address {pointer}, byte strides {strides})",
        "pass a copy: {name}.copy()",
    ),
    _row(
        "A005",
        CkValueError,
        "{name} requires a gradient, and kernels record none",
        "pass {name}.detach(), or call the op under torch.no_grad()",
    ),
    _row(
        "A006",
        CkTypeError,
        "{name} is {what}, whose memory cannot be read in place",
        "pass a dense array on the CPU or on an AMD GPU",
    ),
    _row("A007", CkValueError, "{name}={value!r} does not fit {dtype}: {problem}"),
    _row("A010", CkTypeError, "{op}() misses {missing}", "its parameters: {names}"),
    _row("A011", CkTypeError, "{op}() takes no {what}", "its parameters: {names}"),
    _row("A012", CkTypeError, "{op}() got {name!r} twice, by position and by name"),
    _row(
        "A013",
        CkTypeError,
        "{op} has a parameter named {name!r}, which is an option of every call",
        "rename the parameter",
    ),
    _row(
        "A020",
        CkTypeError,
        "{name} has dtype {got}, but it is declared {type}",
        "pass {fix}",
    ),
    _row(
        "A021",
        CkTypeError,
        "{name} has rank {got} (shape {shape}), but it is declared {type}",
    ),
    _row(
        "A022",
        CkTypeError,
        "{name} has dtype {got}, but {var} is one of {known}",
    ),
    _row(
        "A023",
        CkTypeError,
        "{name} has dtype {got}, but {var} is {want}, from {origin}",
        "pass {fix}",
    ),
    _row(
        "A024",
        CkValueError,
        "axis {axis} of {name} has extent {got}, but it is declared {want} (shape {shape})",
    ),
    _row(
        "A025",
        CkValueError,
        "{dim} is {got} in axis {axis} of {name} (shape {shape}), but {want} in {origin}",
    ),
    _row(
        "A026",
        CkValueError,
        "the arrays of one call must lie in one place: {where}",
        "move them to one device, or all to the host",
    ),
    _row(
        "A027",
        CkTypeError,
        "{name} is a plain number of dtype {var}, which no earlier array decides",
        "pass a rank-0 array, numpy.array(x, dtype)",
    ),
    _row("A028", CkTypeError, "{name} is {value!r} ({got}), but it is declared {dtype}"),
    _row(
        "A030",
        CkValueError,
        "{name} has no contiguous axis (shape {shape}, strides {strides} in elements)",
        "a gemm operand needs stride 1 along its rows or its columns; "
        "pass numpy.ascontiguousarray({name})",
    ),
    _row(
        "A031",
        CkValueError,
        "{name} has a negative stride (strides {strides} in elements)",
        "pass numpy.ascontiguousarray({name})",
    ),
    _row(
        "A032",
        CkValueError,
        "{name} is not contiguous along its rows (shape {shape}, strides {strides} in elements)",
        "results are written row by row: the last axis of out must have stride 1",
    ),
    _row(
        "A033",
        CkValueError,
        "the rows of {name} overlap: they start {stride} elements apart and have {columns}",
    ),
    _row("A040", CkTypeError, "out has dtype {got}, but the result is {want}"),
    _row("A041", CkValueError, "out has shape {got}, but the result has {want}"),
    _row("A042", CkValueError, "out is read-only"),
    _row(
        "A043",
        CkValueError,
        "out shares memory with {name}, which the kernel reads while it writes out",
        "pass an out of its own, or a copy of {name}",
    ),
    _row("A044", CkValueError, "out lies on {got}, but the arguments lie on {want}"),
    _row(
        "A045",
        CkValueError,
        "elements of out share memory with each other (shape {shape}, strides {strides})",
    ),
    # B: build and toolchain
    _row(
        "B001",
        CkBuildError,
        "no compiler was found: neither ROCm's amdclang++, nor clang {oldest} or newer on PATH, "
        "nor the ziglang package",
        "{get}",
    ),
    _row(
        "B002",
        CkBuildError,
        "{got!r} cannot be used as the compiler: {problem}",
        "CKLANG_CLANG must name a clang of version {oldest} or newer, or zig",
    ),
    _row("B003", CkBuildError, "there is no ld.lld for {program}", "install lld, or: {get}"),
    _row(
        "B004",
        CkBuildError,
        "no CK Tile headers were found: neither ROCm's nor the amd-aiter package",
        "{get}",
    ),
    _row(
        "B005",
        CkBuildError,
        "CKLANG_CK_DIR={got} holds no ck_tile/core.hpp, nor does its include folder",
        "it must be a composable_kernel checkout or its include folder",
    ),
    _row(
        "B006",
        CkBuildError,
        "the ziglang compiler cannot build for {got}",
        "on Linux: {known}; elsewhere set CKLANG_CLANG to a clang with its own system headers",
    ),
    _row("B010", CkBuildError, "{tool} failed with status {status}", "the whole output: {log}"),
    _row(
        "B011",
        CkInternalError,
        "the filled kernel still calls {names}; the epilogue was not inlined",
        "please report it with {log}",
    ),
    _row("B012", CkBuildError, "{path} is not an AMD GPU code object: {problem}"),
    _row(
        "B013",
        CkBuildError,
        "the host face {path} has version {got!r}; this cklang reads version {want}",
        "clear the kernel cache: cklang cache clear",
    ),
    _row(
        "B020",
        CkBuildError,
        "kernel {label} is gone from the cache right after it was built",
        "another process cleared the cache; call again",
    ),
    # C: kernel cache
    _row(
        "C001",
        CkBuildError,
        "the kernel cache cannot write {folder}: {problem}",
        "set CKLANG_CACHE_DIR to a folder that you may write to",
    ),
    _row(
        "C002",
        CkInternalError,
        "the cache entry {folder} has no file {name!r}",
        "its files: {known}",
    ),
    # D: device
    _row("D001", CkValueError, "there is no device {got!r}", "devices: {known}"),
    _row("D003", CkDeviceError, "{call} on {device} failed: {status} ({words})"),
    _row(
        "D004",
        CkDeviceError,
        "a real GPU is asked for, but this machine has none that HIP can use",
        "leave CKLANG_DEVICE out, or set it to emu:gfx942, to run on an emulated one",
    ),
    _row(
        "D005",
        CkDeviceError,
        "this process has the HIP library for {loaded!r} devices; {wanted!r} needs the other",
        "choose one of the two before the first call, or use two processes",
    ),
    _row("D007", CkUnsupportedError, "{label} refuses {problem}: {verdict}"),
    _row("D008", CkInternalError, "the arguments of {label} hold no address of operand {index}"),
    _row("D006", CkValueError, "the arrays lie on {place}, but the call is to run on {device}"),
    # E: emulator
    _row(
        "E001",
        CkUnsupportedError,
        "the emulator needs a CPU with AVX2, FMA and F16C; this one lacks {missing}",
        "run on an x86-64 machine of 2015 or newer, or on a real GPU",
    ),
    _row("E002", CkDeviceError, "the emulator's library {path} does not load: {problem}"),
    _row("E003", CkDeviceError, "device {device} of the emulator has not launched a kernel"),
    _row("E004", CkDeviceError, "{function} is no kernel of a loaded module"),
    _row("E005", CkDeviceError, "the emulator has no instruction tables for {arch!r}"),
    # F: frontend (001-019 text and names, 020-039 parameters, 040-049 tensors, 050-069
    # expressions and calls, 070-079 statements, 080-089 specialisation and results)
    _row(
        "F001",
        CkTypeError,
        "@{decorator} decorates a Python function, not a {got}",
        "put it directly above `def`, below no other decorator",
    ),
    _row(
        "F002",
        CkSyntaxError,
        "the source text of {name} cannot be read from {file}",
        "define it in a file or a notebook cell: the plain REPL, exec and python -c keep no text, "
        "and a file changed since its import no longer fits",
    ),
    _row(
        "F003",
        CkSyntaxError,
        "@{decorator} cannot take {what}",
        "write a plain function: def name(x: ck.f16[M, K]) -> ck.f16[M, K]",
    ),
    _row("F004", CkSyntaxError, "{what} is not part of the language", "{instead}"),
    _row(
        "F005",
        CkSyntaxError,
        "chained comparisons are not part of the language",
        "for tensors write {tensors}\nfor constants write {constants}",
    ),
    _row(
        "F006",
        CkSyntaxError,
        "values cannot be changed in place: {words} = ...",
        "make a new value, as in {base} = ck.where(condition, a, b)",
    ),
    _row(
        "F007",
        CkSyntaxError,
        "the value of this line is not used",
        "assign it, y = {words}, or remove the line",
    ),
    _row(
        "F008",
        CkSyntaxError,
        "this line is never reached: line {line} ends with {word}",
        "remove it, or put the {word} under an `if` on a constant",
    ),
    _row(
        "F009",
        CkSyntaxError,
        "{name} returns nothing",
        "end it with `return` and the result",
    ),
    _row("F010", CkSyntaxError, "the name {name} is not defined", "{advice}"),
    _row("F011", CkSyntaxError, "the module {module} has no {name}", "{advice}"),
    _row(
        "F012",
        CkSyntaxError,
        "{name} calls itself",
        "kernels have no recursion: unroll it with `for i in range(n)` over a constant",
    ),
    _row("F013", CkTypeError, "{words} is a Python {got}, which means nothing here", "{advice}"),
    _row(
        "F014",
        CkTypeError,
        "{words} is {what}; a program calls only ck functions and helpers",
        "make it a helper: decorate it with @ck.fn",
    ),
    _row("F015", CkTypeError, "NumPy's {words} does not run in a kernel", "{advice}"),
    _row("F016", CkSyntaxError, "Python's {name} is not part of the language", "{advice}"),
    _row(
        "F020",
        CkSyntaxError,
        "the parameter {name} has no fixed number of arguments",
        "name each parameter and annotate it",
    ),
    _row(
        "F021",
        CkSyntaxError,
        "the parameter {name} has no annotation",
        "write {name}: ck.f16[M, K] (a tensor), {name}: ck.f32 (a run-time scalar) or "
        "{name}: ck.const[float] (a compile-time constant)",
    ),
    _row("F022", CkTypeError, "{words} is no annotation for {what}", "{advice}"),
    _row(
        "F023",
        CkTypeError,
        "the parameter {name}: {type} cannot have the default {default}",
        "only compile-time constants have defaults: {name}: ck.const[float] = ...",
    ),
    _row(
        "F024",
        CkTypeError,
        "the constant {name} must be of type {want}, not {value} of type {got}",
        "pass a value of type {want}, or annotate the parameter with another ck.const[...]",
    ),
    _row(
        "F025",
        CkSyntaxError,
        "{name} has no return annotation",
        "write -> ck.f16[M, N] with the dtype and the shape of the result",
    ),
    _row(
        "F026",
        CkTypeError,
        "the dim {dim} of the result is in no parameter",
        "dims of parameters: {known}",
    ),
    _row(
        "F027",
        CkTypeError,
        "the dtype variable {name} of the result is in no parameter",
        "annotate a parameter with it, as in x: {name}[M, K], or name a dtype",
    ),
    _row(
        "F028",
        CkValueError,
        "two dtype variables are called {name}",
        "use one variable, or give them different names",
    ),
    _row("F029", CkTypeError, "the annotation {words} cannot be read: {problem}", "{advice}"),
    _row(
        "F030",
        CkTypeError,
        "the dtype variable {name} is in no parameter of this op",
        "annotate a parameter with it, as in x: {name}[M, K], or name a dtype",
    ),
    _row(
        "F031",
        CkValueError,
        "the loop is too long to unroll: {length} iterations",
        "all loops of an op together may have {limit}",
    ),
    _row(
        "F032",
        CkTypeError,
        "kernels have no {dtype} for {what}",
        "they have {known}",
    ),
    _row(
        "F033",
        CkSyntaxError,
        "an expression in {name} is nested too deeply",
        "assign parts of it to names of their own",
    ),
    _row("F040", CkTypeError, "{what} cannot stand where a tensor or a number must", "{advice}"),
    _row("F041", CkTypeError, "{name} does not take {got}", "it takes {want}\n{advice}"),
    _row(
        "F042",
        CkValueError,
        "shapes {shapes} do not broadcast: {one} is not {other}",
        "{advice}",
    ),
    _row(
        "F043",
        CkValueError,
        "the constant {value} is out of the range of {dtype}",
        "{dtype} holds numbers from {low} to {high}",
    ),
    _row(
        "F044",
        CkTypeError,
        "the constant {value} does not go with {dtype}",
        "f32 goes with numbers, i32 with whole numbers, bool with True and False\n"
        "cast the tensor if that is meant: x.to(ck.f32)",
    ),
    _row(
        "F045",
        CkTypeError,
        "kernels do not convert {source} to {to}",
        "they convert f16, bf16, f32, i8, i32 and bool to f16, bf16, f32, i32 and bool",
    ),
    _row(
        "F046",
        CkTypeError,
        ".T takes a matrix; this is {type}, of rank {rank}",
        "x[:, None] makes a column of a vector",
    ),
    _row("F047", CkTypeError, "@ takes two matrices; one side is {got}", "{advice}"),
    _row("F048", CkTypeError, "@ does not take {a} and {b}", "it takes {want}\n{advice}"),
    _row("F049", CkValueError, "@ of {a} and {b}: {one} is not {other}", "{advice}"),
    _row(
        "F050",
        CkTypeError,
        "the condition {words} is {got}, known only when the kernel runs",
        "choose element by element: ck.where(condition, a, b)",
    ),
    _row(
        "F051",
        CkSyntaxError,
        "{name} has no value yet on the way to this line",
        "assign it before, outside of any `if` or loop that is not taken",
    ),
    _row("F052", CkTypeError, "{what} has no attribute {name}", "{advice}"),
    _row(
        "F053",
        CkSyntaxError,
        "[{words}] is no index of a tensor",
        "an index is made of `:` and None only, as in x[:, None]: a kernel takes whole tensors",
    ),
    _row(
        "F054",
        CkValueError,
        "{got} slices for {type}, which has {rank} axes",
        "write one `:` for each axis, None for a new one",
    ),
    _row(
        "F055",
        CkValueError,
        "{words} cannot be computed: {problem}",
        "it is made of constants, so Python computes it when the op is specialised",
    ),
    _row("F056", CkTypeError, "`{sign}` does not work on {got}", "{advice}"),
    _row("F057", CkTypeError, "{what} cannot be {got}", "write a dtype, as in x.to(ck.f16)"),
    _row("F060", CkTypeError, "{what} cannot be called", "{advice}"),
    _row("F061", CkTypeError, "the arguments do not fit {name}: {problem}", "it is {call}"),
    _row("F062", CkTypeError, "{name} of Python does not work on {got}", "{advice}"),
    _row(
        "F063",
        CkTypeError,
        "{name} of ck.{function} must be a constant number, not {got}",
        "write it out with ck.where or arithmetic if it must be known only at run time",
    ),
    _row(
        "F064",
        CkTypeError,
        "the argument {name} of {helper} is {got}; its annotation says {want}",
        "cast or reshape the argument, or remove the annotation of the helper",
    ),
    _row(
        "F065",
        CkTypeError,
        "{name} returns {got}; its annotation says {want}",
        "cast or reshape the result, or remove the annotation of the helper",
    ),
    _row(
        "F070",
        CkSyntaxError,
        "{name} ends without a return here",
        "with these constants no `return` is reached: add one at the end",
    ),
    _row("F071", CkSyntaxError, "{name} must return a value", "write `return` and the result"),
    _row(
        "F072",
        CkTypeError,
        "a for loop runs over a range or a tuple of constants; {words} is {got}",
        "write `for i in range(n)`; whole tensors are computed without loops",
    ),
    _row("F073", CkTypeError, "{want} names for {got}", "both sides must have the same length"),
    _row("F074", CkValueError, "assertion failed: {reason}"),
    _row("F080", CkValueError, "{program} has no {what} {name}", "{known}"),
    _row("F081", CkValueError, "the {what} {name} of {program} is not given"),
    _row(
        "F082",
        CkTypeError,
        "the dtype variable {name} of {program} cannot be {got}",
        "it can be {legal}",
    ),
    _row(
        "F083",
        CkTypeError,
        "{name} returns {got}; its annotation says {want}",
        "an op returns one tensor",
    ),
    _row(
        "F084",
        CkValueError,
        "the result is {got}; the annotation says {want}",
        "change the annotation, or bring the result into that shape",
    ),
    _row(
        "F085",
        CkTypeError,
        "the result is {got}; the annotation says {want}",
        "only floats are converted by themselves: write .to(ck.{want})",
    ),
    # I: mini-IR
    _row("I001", CkValueError, "{what} cannot be called {got!r}", "legal: {want}"),
    _row("I002", CkValueError, "attributes of {op} must be sorted, each once; they are: {names}"),
    _row("I003", CkSyntaxError, "{problem}", "{fix}"),
    _row("I004", CkSyntaxError, "{what} {got!r} is unknown", "known: {known}\nnearest: {nearest}"),
    _row("I005", CkSyntaxError, "%{name} is used before it is defined", "defined here: {known}"),
    _row("I010", CkValueError, "[ssa] %{name} is defined twice", "every value has its own name"),
    _row("I011", CkValueError, "[ssa] %{name} is used but not defined before", "defined: {known}"),
    _row("I012", CkTypeError, "[ssa] %{name} is used as {got} but defined as {want}"),
    _row("I013", CkValueError, "[op] op {got!r} is unknown", "nearest: {nearest}\nops: {known}"),
    _row("I014", CkValueError, "[operands] {op} takes {want} operands, not {got}", "{op}: {doc}"),
    _row("I015", CkValueError, "[attrs] {op} has no attribute {name!r}", "its attributes: {known}"),
    _row("I016", CkValueError, "[attrs] {op} lacks its attribute {name!r}", "{name} is {want}"),
    _row("I017", CkTypeError, "[attrs] {name} of {op} must be {want}, not {got}"),
    _row("I018", CkTypeError, "[dtype] {op} of {got} is not legal", "legal: {want}"),
    _row("I019", CkValueError, "[shape] {op} of {got} is not legal", "legal: {want}"),
    _row("I020", CkTypeError, "[type] %{name} is declared {got}, but {op} gives {want}"),
    _row("I021", CkValueError, "[unused] %{name} is never used", "remove it, or return it"),
    _row("I022", CkValueError, "[module] function @{name} is defined twice", "rename one"),
    _row("I023", CkValueError, "{count} rules of the mini-IR are broken in @{name}"),
    _row("I030", CkValueError, "the reference of @{name} needs {want} arrays, not {got}"),
    _row("I031", CkTypeError, "%{name} is {want}, but its array is {got}"),
    _row(
        "I032",
        CkValueError,
        "axis {axis} of %{name} is {extent} = {want}, but its array has {got} there",
        "{extent} = {want} since %{first}",
    ),
    # K: keys, rules, selection
    _row("K001", CkValueError, "{what} {got!r} is unknown", "known: {known}\nnearest: {nearest}"),
    _row("K002", CkValueError, "{what} must be {want}, not {got!r}"),
    _row(
        "K003",
        CkValueError,
        "the {what} record has schema version {got!r}; this cklang reads version {want}",
        "export it again with this version, or rebuild",
    ),
    _row(
        "K004",
        CkValueError,
        "GPU {got!r} has no entry in arch_specs",
        "known GPUs: {known}",
    ),
    _row("K005", CkValueError, "arch_specs/{name}.json: {problem}"),
    _row("K006", CkValueError, "no {name} has {got} compute units", "known: {known}"),
    _row(
        "K101",
        CkUnsupportedError,
        "no kernel serves {problem} on {arch}: the rules reject {what}",
        "pass arrays that the rules below allow, for instance contiguous copies",
    ),
    _row(
        "K102",
        CkUnsupportedError,
        "there is no algorithm for {signature} on {arch}",
    ),
    # L: lowering
    _row("L001", CkUnsupportedError, "{op} has no C, so no kernel can compute it"),
    _row(
        "L002",
        CkInternalError,
        "the epilogue takes ({got}), but the signature gives ({want}); D vectors: {vectors}",
    ),
    _row(
        "L003",
        CkUnsupportedError,
        "kernels with {name}={got} cannot be generated",
        "legal: {name}={want}",
    ),
    # N: tuning
    _row(
        "N001",
        CkUnsupportedError,
        "the cost model has no fitted constants for {gpu} with {units} compute units",
        "fitted: {known}; benchmarks/fit_cost_model.py fits them from measurements",
    ),
    _row(
        "N002",
        CkUnsupportedError,
        "arch_specs gives {gpu} no matrix rate for {dtype}",
        "rates are known for: {known}",
    ),
    _row("N003", CkValueError, "tuning constants {name}: {problem}"),
    _row(
        "N004",
        CkValueError,
        "the kernels to rank are for {got} and for {want}",
        "rank each GPU's by itself",
    ),
    _row("N005", CkValueError, "there is no kernel to rank"),
    # T: testing
    _row("T001", CkMismatchError, "{count} of {size} elements are outside their bound", "{worst}"),
    _row("T002", CkMismatchError, "got {what} {got}, but the reference has {want}"),
    _row("T003", CkValueError, "no tolerance is defined for {got}", "legal: {known}"),
    # X: fusion
    _row(
        "X001",
        CkUnsupportedError,
        "@{name} has {count} results; kernels are made for functions with one",
        "legal: one result; split @{name} into one function a result",
    ),
    _row(
        "X002",
        CkUnsupportedError,
        "no kernel computes {op}: it does not depend on an anchor",
        "legal: an anchor and what follows from its result; the anchors are: {anchors}\n"
        "fix: compute it with NumPy or torch, or next to a product such as x @ w",
    ),
    _row(
        "X003",
        CkUnsupportedError,
        "operand {operand} of gemm is made by {op}, which follows no anchor: no kernel makes it",
        "legal: a parameter, what follows the result of another gemm, or a transpose of these\n"
        "fix: compute it before the call and pass it as an argument",
    ),
    _row(
        "X004",
        CkUnsupportedError,
        "the epilogue of {anchor} reads {count} values; the limit of a kernel is {limit}",
        "they are: {reads}\nfix: combine some of them before the call",
    ),
    _row(
        "X005",
        CkUnsupportedError,
        "operand {operand} of gemm is a broadcast, which is no view of a stored matrix",
        "legal: a parameter or an intermediate of rank 2, or a transpose of it\n"
        "fix: pass a matrix with the broadcast axis as a size of its own",
    ),
    _row(
        "X006",
        CkUnsupportedError,
        "a kernel cannot store {dtype}: %{name} is {type}",
        "legal: f16, bf16, f32; cast the result to one of these",
    ),
    _row(
        "X007",
        CkUnsupportedError,
        "{op} has shape [{got}], but the gemm it depends on gives [{want}]",
        "legal: a result of the gemm's own shape, or its transpose",
    ),
    # Z: knobs and internal errors
    _row("Z001", CkValueError, "{name}={got!r}: {problem}", "{doc}"),
    _row("Z010", CkValueError, "{name!r} was not found: {problem}"),
    _row("Z002", CkInternalError, "internal error: {what}", "please report it with this text"),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _TABLE})
"""All rules by code."""


def error(
    code: str, *, at: Span | None = None, notes: Sequence[str] = (), **values: object
) -> CkError:
    """Make the error of rule ``code`` with its templates filled from ``values``."""
    rule = RULES[code]
    return rule.kind(
        code, rule.message.format(**values), rule.hint.format(**values), at, tuple(notes)
    )
