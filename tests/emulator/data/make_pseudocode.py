# SPDX-License-Identifier: MIT
"""Evaluate the manual's pseudocode, as the `tinygrad` wheel carries it, over many operands.

    python -m venv venv && venv/bin/pip install tinygrad==0.14.0 numpy
    venv/bin/python tests/emulator/data/make_pseudocode.py

writes ``pseudocode_cdna4.json`` and the same of rdna3 and rdna4: for each operation its results
(see ``pseudocode.py`` for the operands), and why the others were not evaluated. The pseudocode is
read by a small interpreter of its own: integers of any width, IEEE numbers as bits, `fma` in
rational arithmetic.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.support.pseudocode import CARRIES, GPUS, LANES, Operation, operands, operations  # noqa: E402

FORMATS = {16: ("<e", "<H", 10, -14), 32: ("<f", "<I", 23, -126), 64: ("<d", "<Q", 52, -1022)}


class UnsupportedError(Exception):
    """The interpreter does not know a construct; says which."""


@dataclass(frozen=True, slots=True)
class Value:
    """Bits of a type: u and b are unsigned, i is signed, f is IEEE."""

    kind: str
    width: int
    bits: int

    @property
    def number(self) -> int:
        """The integer that the bits mean."""
        if self.kind == "i" and self.bits >> (self.width - 1):
            return self.bits - (1 << self.width)
        return self.bits

    @property
    def real(self) -> float:
        """The floating-point number that the bits mean, or the integer as one."""
        if self.kind != "f":
            return float(self.number)
        form, raw, _, _ = FORMATS[self.width]
        return float(struct.unpack(form, struct.pack(raw, self.bits))[0])

    def seen_as(self, kind: str, width: int) -> Value:
        """The same bits, cut to a width."""
        return Value(kind, width, self.bits & ((1 << width) - 1))


def integer(kind: str, width: int, number: int) -> Value:
    return Value(kind, width, number & ((1 << width) - 1))


def rounded(number: Fraction, width: int) -> Value:
    """A rational number as the nearest float, ties to even."""
    _, _, mantissa, lowest = FORMATS[width]
    if number == 0:
        return Value("f", width, 0)
    magnitude = abs(number)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    exponent = max(exponent, lowest)
    code = round(magnitude / Fraction(2) ** (exponent - mantissa))
    code += (exponent - lowest) << mantissa
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    return Value("f", width, min(code, infinity) | (number < 0) << (width - 1))


def floating(width: int, real: float) -> Value:
    """A Python float as a float of a width, rounded once."""
    _, _, mantissa, _ = FORMATS[width]
    sign = (math.copysign(1, real) < 0) << (width - 1)
    top = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    if math.isnan(real):
        return Value("f", width, top | 1 << (mantissa - 1))
    if math.isinf(real):
        return Value("f", width, top | sign)
    return Value("f", width, rounded(Fraction(real), width).bits | sign)


def converted(value: Value, width: int) -> Value:
    """A float in another width; a NaN keeps being quiet or signalling."""
    if value.kind == "f" and math.isnan(value.real):
        old, new = FORMATS[value.width][2], FORMATS[width][2]
        quiet = value.bits >> (old - 1) & 1
        top = ((1 << (width - 1 - new)) - 1) << new
        return Value("f", width, top | (1 << (new - 1) if quiet else 1))
    if value.kind != "f":
        return rounded(Fraction(value.number), width)
    return floating(width, value.real)


def is_nan(value: Value, quiet: bool | None = None) -> bool:
    if value.kind != "f" or not math.isnan(value.real):
        return False
    return quiet is None or bool(value.bits >> (FORMATS[value.width][2] - 1) & 1) == quiet


def exponent_of(value: Value) -> int:
    mantissa = FORMATS[value.width][2]
    return value.bits >> mantissa & ((1 << (value.width - 1 - mantissa)) - 1)


def fused(a: Value, b: Value, c: Value) -> Value:
    x, y, z = a.real, b.real, c.real
    if not all(map(math.isfinite, (x, y, z))):
        product = x * y if math.isfinite(x) and math.isfinite(y) else _ieee("*", x, y)
        return floating(a.width, z if math.isfinite(x) and math.isfinite(y) else product + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return floating(a.width, x * y + z)
    return rounded(exact, a.width)


def to_integer(kind: str, width: int) -> Callable[[Value], Value]:
    """Toward zero, saturating, NaN as 0."""
    low, high = (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind == "i" else (0, (1 << width) - 1)
    )

    def convert(value: Value) -> Value:
        real = value.real
        if math.isnan(real):
            return integer(kind, width, 0)
        if math.isinf(real):
            return integer(kind, width, high if real > 0 else low)
        return integer(kind, width, min(max(math.trunc(real), low), high))

    return convert


def _ieee(operator: str, x: float, y: float) -> float:
    if operator == "/":
        if y == 0:
            same = math.copysign(1, x) * math.copysign(1, y)
            return math.nan if x == 0 or math.isnan(x) else same * math.inf
        return x / y
    return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y}[operator]()


def _whole(function: Callable[[float], int]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        real = value.real
        if not math.isfinite(real):
            return floating(value.width, real)
        return floating(value.width, math.copysign(float(function(real)), real))

    return apply


def _truth(flag: bool) -> Value:
    return Value("u", 1, int(flag))


def _float_to_float(width: int) -> Callable[[Value], Value]:
    return lambda value: converted(value, width)


def _widen(kind: str) -> Callable[[Value], Value]:
    return lambda value: integer(kind, 32, value.number)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isNAN": lambda v: _truth(is_nan(v)),
    "isQuietNAN": lambda v: _truth(is_nan(v, True)),
    "isSignalNAN": lambda v: _truth(is_nan(v, False)),
    "cvtToQuietNAN": lambda v: Value("f", v.width, v.bits | 1 << (FORMATS[v.width][2] - 1)),
    "exponent": lambda v: integer("i", 32, exponent_of(v)),
    "sign": lambda v: _truth(bool(v.bits >> (v.width - 1))),
    "abs": lambda v: (
        v.seen_as("f", v.width - 1).seen_as("f", v.width)
        if v.kind == "f"
        else integer(v.kind, v.width, abs(v.number))
    ),
    "fma": fused,
    "trunc": _whole(math.trunc),
    "floor": _whole(math.floor),
    "fract": lambda v: floating(v.width, v.real % 1 if math.isfinite(v.real) else math.nan),
    "sqrt": lambda v: floating(v.width, math.sqrt(v.real) if v.real >= 0 else math.nan),
    "mantissa": lambda v: floating(v.width, math.frexp(v.real)[0]),
    "isEven": lambda v: _truth(v.real % 2 == 0),
    "signext": lambda v: integer("i", 64, Value("i", v.width, v.bits).number),
    "signext_from_bit": lambda v, n: integer(
        "i", v.width, 0 if n.number == 0 else Value("i", n.number, v.bits % (1 << n.number)).number
    ),
    "bitCount": lambda v: integer("u", 32, v.bits.bit_count()),
    **{
        f"{a}_to_{kind}{width}": to_integer(kind, width)
        for a in ("f16", "f32", "f64")
        for kind in "iu"
        for width in (16, 32)
    },
    **{
        f"{a}{n}_to_f{width}": _float_to_float(width)
        for a in "iuf"
        for n in (16, 32, 64)
        for width in (16, 32, 64)
    },
    **{f"{kind}{n}_to_{kind}32": _widen(kind) for kind in "iu" for n in (4, 8, 16)},
}

_TOKEN = re.compile(
    r"\s*(?:(?P<cast>\d+'[A-Z]+(?=\())|(?P<half>\d+'\d+\.\d+)|(?P<sized>\d+'(?:0x[0-9a-fA-F]+|\d+)[UI]?)"
    r"|(?P<real>\d+\.\d+F?)|(?P<int>0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+(?:ULL|LL|U)?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||[-+*/%&|^~!<>?:()\[\].,{}=]))"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">="),
           ("<<", ">>"), ("+", "-"), ("*", "/", "%"), ("**",))  # fmt: skip


def tokens_of(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnsupportedError(f"text {text[at : at + 12]!r}")
        tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return tokens


def _type(name: str) -> tuple[str, int] | None:
    match = re.fullmatch(r"([uibf])(\d+)", name)
    return (match[1], int(match[2])) if match else None


@dataclass
class Machine:
    """One execution: variables by name, and bits that belong to the lane."""

    code: dict[str, str]
    variables: dict[str, Value]
    mask_in: int = 0
    mask_out: int | None = None
    lambdas: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    tokens: list[tuple[str, str]] = field(default_factory=list)
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise UnsupportedError("an unfinished expression")
        token = self.tokens[self.at]
        if wanted is not None and token[1] != wanted:
            raise UnsupportedError(f"{token[1]!r} where {wanted!r} is expected")
        self.at += 1
        return token

    def evaluate(self, text: str) -> Value:
        self.tokens, self.at = tokens_of(text), 0
        value = self.ternary()
        if self.at != len(self.tokens):
            raise UnsupportedError(f"{self.peek()!r} behind an expression")
        return value

    def ternary(self) -> Value:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take("?")
        yes = self.ternary()
        self.take(":")
        no = self.ternary()
        return yes if condition.bits else no

    def binary(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level]:
            operator = self.take()[1]
            left = combine(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Value:
        operator = self.peek()
        if operator not in ("!", "~", "-", "+"):
            return self.postfix(self.primary())
        self.take()
        value = self.unary()
        if operator == "!":
            return _truth(value.bits == 0)
        if operator == "~":
            return integer(value.kind, value.width, ~value.bits)
        if operator == "-":
            if value.kind == "f":
                return Value("f", value.width, value.bits ^ 1 << (value.width - 1))
            return integer(value.kind, value.width, -value.number)
        return value

    def primary(self) -> Value:
        kind, text = self.take()
        if text == "(":
            value = self.ternary()
            self.take(")")
            return value
        if kind == "cast":
            return self.cast(text)
        if text == "{":
            return self.joined()
        if kind == "half":
            width, _, digits = text.partition("'")
            return floating(int(width), float(digits))
        if kind == "sized":
            width, _, digits = text.partition("'")
            letter = "i" if digits.endswith("I") else "u"
            return integer(letter, int(width), int(digits.rstrip("UI"), 0))
        if kind == "real":
            return floating(32 if text.endswith("F") else 64, float(text.rstrip("F")))
        if kind == "int":
            digits = text.rstrip("UL")
            letter = "u" if "U" in text else "i"
            return integer(letter, 64 if "LL" in text else 32, int(digits, 0))
        if self.peek() == "(":
            return self.call(text)
        return self.variable(text)

    def joined(self) -> Value:
        """{ high, ..., low }"""
        parts = [self.ternary()]
        while self.peek() == ",":
            self.take()
            parts.append(self.ternary())
        self.take("}")
        bits, width = 0, 0
        for part in parts:
            bits, width = bits << part.width | part.bits, width + part.width
        return Value("b", width, bits)

    def cast(self, text: str) -> Value:
        width, letter = int(text.split("'")[0]), text.split("'")[1]
        self.take("(")
        value = self.ternary()
        self.take(")")
        if letter == "F":
            return converted(value, width)
        if letter == "B":
            return value.seen_as("b", width)
        if letter not in "UI":
            raise UnsupportedError(f"the type {text}")
        if value.kind == "f":
            raise UnsupportedError("a float cast to an integer")
        return integer(letter.lower(), width, value.number)

    def call(self, name: str) -> Value:
        self.take("(")
        arguments = [self.ternary()]
        while self.peek() == ",":
            self.take()
            arguments.append(self.ternary())
        self.take(")")
        if name in FUNCTIONS:
            return FUNCTIONS[name](*arguments)
        if name in self.lambdas:
            names, body = self.lambdas[name]
            inner = Machine(self.code, dict(zip(names, arguments, strict=True)))
            return inner.evaluate(body)
        if name in self.code:  # another operation
            sources = {f"S{n}": value for n, value in enumerate(arguments)}
            result = run(self.code, self.code[name], sources, 0)
            return result.variables["D0"].seen_as(arguments[0].kind, arguments[0].width)
        raise UnsupportedError(f"the function {name}")

    def variable(self, name: str) -> Value:
        if name == "NAN":
            return floating(64, math.nan)
        if name == "INF":
            return floating(64, math.inf)
        if name == "WAVE_MODE":
            self.take(".")
            self.take("IEEE")
            return _truth(True)
        if name == "VCC":
            for wanted in (".", "u64", "[", "laneId", "]"):
                self.take(wanted)
            return Value("u", 1, self.mask_in)
        if name not in self.variables:
            raise UnsupportedError(f"the variable {name}")
        return self.variables[name]

    def postfix(self, value: Value) -> Value:
        while self.peek() in (".", "["):
            if self.take()[1] == ".":
                scalar = _type(self.take()[1])
                if scalar is None:
                    raise UnsupportedError(f"the type {self.tokens[self.at - 1][1]}")
                if value.kind == "f" and scalar[0] == "f" and value.width != scalar[1]:
                    value = converted(value, scalar[1])
                elif value.kind == "i" and scalar[1] > value.width:
                    value = integer(scalar[0], scalar[1], value.number)
                else:
                    value = value.seen_as(*scalar)
                continue
            high = self.ternary().number
            low = high
            if self.peek() == ":":
                self.take()
                low = self.ternary().number
            self.take("]")
            if low > high:
                picked = f"{value.bits:0{low + 1}b}"[::-1][high : low + 1]
                value = Value("b", low - high + 1, int(picked, 2))
            else:
                value = Value(
                    "u", high - low + 1, value.bits >> low & ((1 << (high - low + 1)) - 1)
                )
        return value


def combine(operator: str, x: Value, y: Value) -> Value:
    """A binary operation; integers narrower than 32 bits widen, as in C."""
    if operator in ("&&", "||"):
        bits = bool(x.bits), bool(y.bits)
        return _truth(all(bits) if operator == "&&" else any(bits))
    if operator in ("<<", ">>"):
        if y.number < 0:
            raise UnsupportedError("a shift by a negative number")
        moved = x.number << y.number if operator == "<<" else x.number >> y.number
        return integer(x.kind, max(x.width, 32), moved)
    if operator in ("==", "!=", "<>", "<", ">", "<=", ">="):
        return compared(operator, x, y)
    if operator == "**":
        if x.real != 2 or abs(y.number) > 1000:
            raise UnsupportedError("a power")
        return floating(64, math.ldexp(1.0, y.number))
    if "f" in (x.kind, y.kind):
        width = max(v.width for v in (x, y) if v.kind == "f")
        if operator not in "+-*/":
            raise UnsupportedError(f"{operator} of floats")
        return floating(width, _ieee(operator, x.real, y.real))
    return arithmetic(operator, x, y)


def compared(operator: str, x: Value, y: Value) -> Value:
    """<> is less or greater, which NaN is not."""
    real = "f" in (x.kind, y.kind)
    a, b = (x.real, y.real) if real else (x.number, y.number)
    if real and operator == "==" and a == b == 0 and _signed_zeros.strict:
        return _truth(math.copysign(1, a) == math.copysign(1, b))
    table = {
        "==": a == b,
        "!=": a != b,
        "<>": a < b or a > b,
        "<": a < b,
        ">": a > b,
        "<=": a <= b,
        ">=": a >= b,
    }
    return _truth(table[operator])


def arithmetic(operator: str, x: Value, y: Value) -> Value:
    width = max(x.width, y.width)
    kind = x.kind if x.width >= y.width else y.kind
    results = {
        "+": lambda: x.number + y.number,
        "-": lambda: x.number - y.number,
        "*": lambda: x.number * y.number,
        "&": lambda: x.bits & y.bits,
        "|": lambda: x.bits | y.bits,
        "^": lambda: x.bits ^ y.bits,
    }
    if operator not in results:
        raise UnsupportedError(f"{operator} of integers")
    return integer(kind, max(width, 32) if operator in "+-*" else width, results[operator]())


class _SignedZeros:
    """Whether a comparison tells +0.0 from -0.0: only the lines that write the sign do."""

    strict = False


_signed_zeros = _SignedZeros()
_TARGET = re.compile(r"(\w+)(?:\[\s*(\d+)\s*:\s*(\d+)\s*\])?(?:\.(\w+))?(\[laneId\])?$")


def assign(machine: Machine, target: str, value: Value) -> None:
    """Write a variable, some of its bits, or the lane's bit of a mask."""
    match = _TARGET.match(target.strip())
    if match is None:
        assign_bits(machine, target.strip(), value)
        return
    name, high, low, kind, lane = match.groups()
    if lane and name in ("VCC", "D0"):
        machine.mask_out = value.bits & 1
        return
    if lane and name == "EXEC":
        machine.mask_out = machine.mask_out if machine.mask_out is not None else value.bits & 1
        return
    if lane or name in ("EXEC", "VCC", "PC", "ROUND_MODE", "VGPR", "M0"):
        raise UnsupportedError(f"the target {target}")
    value = fitted(value, kind) if kind else value
    old = machine.variables.get(name, Value("b", 64, 0))
    if high is not None:
        shift, width = int(low), int(high) - int(low) + 1
        mask = ((1 << width) - 1) << shift
        value = Value("b", max(old.width, 64), old.bits & ~mask | (value.bits << shift & mask))
    machine.variables[name] = value


def assign_bits(machine: Machine, target: str, value: Value) -> None:
    """Write a bit, or bits, whose place is computed."""
    match = re.fullmatch(r"(\w+)(?:\.[uib]\d+)?\[(.*)\]", target)
    if match is None or match[1] not in machine.variables or "laneId" in target:
        raise UnsupportedError(f"the target {target!r}")
    old = machine.variables[match[1]]
    high, colon, low = match[2].rpartition(" : ") if "[" not in match[2] else ("", "", match[2])
    shift = machine.evaluate(low).number
    width = machine.evaluate(high).number - shift + 1 if colon else 1
    mask = ((1 << width) - 1) << shift
    bits = old.bits & ~mask | value.bits << shift & mask
    machine.variables[match[1]] = Value(old.kind, max(old.width, shift + width), bits)


def fitted(value: Value, name: str) -> Value:
    """A value as an assignment to a typed place takes it."""
    scalar = _type(name)
    if scalar is None:
        raise UnsupportedError(f"the type {name}")
    if "f" not in (scalar[0], value.kind):
        return integer(*scalar, value.number)
    if scalar[0] == value.kind:
        return value if value.width == scalar[1] else converted(value, scalar[1])
    if "b" not in (scalar[0], value.kind):
        raise UnsupportedError("an integer assigned to a float, or a float to an integer")
    return value.seen_as(*scalar)


class _BreakError(Exception):
    """The innermost loop ends."""


def execute(machine: Machine, lines: list[str]) -> None:
    """Statements line by line; conditions and loops nest."""
    active: list[bool] = []
    taken: list[bool] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        running = all(active)
        if line.startswith("if ") and line.endswith(" then"):
            condition = running and _condition(machine, line[3:-5])
            active.append(condition)
            taken.append(condition)
        elif line.startswith("elsif ") and line.endswith(" then"):
            outer = all(active[:-1])
            condition = outer and not taken[-1] and _condition(machine, line[6:-5])
            active[-1], taken[-1] = condition, taken[-1] or condition
        elif line == "else":
            active[-1], taken[-1] = not taken[-1], True
        elif line == "endif":
            active.pop()
            taken.pop()
        elif line.startswith("for "):
            end = _loop_end(lines, at)
            if running:
                _loop(machine, line, lines[at:end])
            at = end + 1
        elif line.startswith("declare "):
            continue
        elif running:
            statement(machine, line)


def _loop_end(lines: list[str], at: int) -> int:
    depth = 1
    while depth:
        if at == len(lines):
            raise UnsupportedError("a loop without an end")
        depth += lines[at].startswith("for ") - (lines[at] == "endfor")
        at += 1
    return at - 1


def _loop(machine: Machine, head: str, body: list[str]) -> None:
    match = re.fullmatch(r"for (\w+) in (.*?) : (.*) do", head)
    if match is None:
        raise UnsupportedError(f"the line {head!r}")
    first, last = (machine.evaluate(match[n]) for n in (2, 3))
    try:
        for number in range(first.number, last.number + 1):
            machine.variables[match[1]] = integer(first.kind, max(first.width, 32), number)
            execute(machine, body)
    except _BreakError:
        pass


def _condition(machine: Machine, text: str) -> bool:
    _signed_zeros.strict = "-0.0" in text
    try:
        return bool(machine.evaluate(text).bits)
    finally:
        _signed_zeros.strict = False


def statement(machine: Machine, line: str) -> None:
    if line == "break":
        raise _BreakError
    if line.startswith("TRAPSTS."):  # an exception, which nobody has asked for
        return
    function = re.fullmatch(r"(\w+) = lambda\((.*?)\) \((.*)\)", line)
    if function is not None:
        machine.lambdas[function[1]] = (function[2].split(", "), function[3])
        return
    match = re.match(r"^([\w.\[\]: ]+?)\s*([-+*]?)=(?!=)\s*(.*)$", line)
    if match is None:
        raise UnsupportedError(f"the line {line!r}")
    target, operator, text = match.groups()
    targets = [target]
    while (more := re.match(r"^([\w.\[\]: ]+?)\s*=(?!=)\s*(.*)$", text)) is not None:
        targets.append(more[1])
        text = more[2]
    value = machine.evaluate(text)
    if operator:
        value = combine(operator, machine.evaluate(target), value)
    for name in targets:
        assign(machine, name, value)


def lines_of(text: str) -> list[str]:
    """Statements; one whose brackets are open goes on in the next line."""
    statements: list[str] = []
    for line in text.split("\n"):
        plain = re.sub(r"//.*", "", line).strip()
        if statements and sum(statements[-1].count(c) for c in "({") > sum(
            statements[-1].count(c) for c in ")}"
        ):
            statements[-1] += f" {plain}"
        elif plain:
            statements.append(plain)
    return [line.rstrip(";").strip() for line in statements]


def run(code: dict[str, str], text: str, variables: dict[str, Value], mask: int) -> Machine:
    """Execute one operation's pseudocode."""
    machine = Machine(code, dict(variables), mask)
    execute(machine, lines_of(text))
    return machine


def results_of(code: dict[str, str], op: Operation) -> list[list[int]]:
    """[lane][dword]: the destination, and the mask bit or scc as a last dword."""
    rows = []
    table = operands(op)
    for lane in range(LANES):
        raw = [int(v) for v in table[lane]]
        variables = {f"S{n}": Value("b", 64, raw[n]) for n in range(3)}
        variables["D0"] = Value("b", 64, raw[3])
        variables["SCC"] = Value("u", 1, lane & 1)
        machine = run(code, code[op.name], variables, CARRIES >> lane & 1)
        result = machine.variables["D0"].bits
        flag = machine.mask_out if op.vector else machine.variables["SCC"].bits
        rows.append([result & 0xFFFFFFFF, result >> 32 & 0xFFFFFFFF, -1 if flag is None else flag])
    return rows


def evaluate(family: str) -> None:
    """Write one family's file."""
    folder = family.rstrip("4") if family == "cdna4" else family
    module = f"tinygrad.runtime.autogen.amd.{folder}.str_pcode"
    code: dict[str, str] = {}
    for key, text in importlib.import_module(module).PCODE.items():
        code.setdefault(re.sub(r"_e(32|64)$", "", key.name.lower()), text)
    results, skipped = {}, {}
    for op in operations(family):
        if op.name not in code:
            skipped[op.name] = "the manual has none"
            continue
        try:
            rows = results_of(code, op)
        except UnsupportedError as problem:
            skipped[op.name] = str(problem)
            continue
        words = op.result_dwords
        flags = rows[0][2] != -1
        hexed = "".join(
            "".join(f"{row[n]:08x}" for n in range(words if op.result_dwords else 0))
            for row in rows
        )
        bits = sum(max(row[2], 0) << lane for lane, row in enumerate(rows))
        results[op.name] = [hexed, f"{bits:016x}" if flags else ""]
    version = f"tinygrad {metadata.version('tinygrad')}, {module.replace('.', '/')}.py"
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in results.items())
    missing = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in skipped.items())
    (HERE / f"pseudocode_{family}.json").write_text(
        f'{{"source": {json.dumps(version)},\n"results": {{\n{lines}\n}},\n'
        f'"not_evaluated": {{\n{missing}\n}}}}\n',
        "utf-8",
    )
    print(family, len(results), "evaluated,", len(skipped), "not")


def main() -> None:
    for family in GPUS:
        evaluate(family)


if __name__ == "__main__":
    main()
