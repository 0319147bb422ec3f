# SPDX-License-Identifier: MIT
"""The C of a kernel's functions, which fill a stencil of rows.

A function computes a *vector*: as many neighbouring elements of a row as the algorithm says. It
reads memory itself, so that neither the number nor the types nor the strides of what it reads are
part of the stencil; only how, which stands in the names of its parameters:

======  ===============================================  =====================================
name    what is read                                     how
======  ===============================================  =====================================
``c0``  rows that are contiguous                         one vector
``s0``  rows with another stride                         an element at a time
``m0``  rows along several axes                          an element at a time, its place divided
``b0``  the same for a whole row                         once
``x0``  no memory: the element's place is its value      computed
``y0``  the same along several axes                      computed, its place divided
``g0``  a tensor at a computed index of one of its axes   an element at a time
``h0``  the same with rows along several axes            an element at a time, its place divided
======  ===============================================  =====================================
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, starmap

from cklang.families.rowwise.host import MAX_AXES
from cklang.families.rowwise.key import parts_of
from cklang.fusion.functions import Functions
from cklang.ir.nodes import Function, Operation, Value
from cklang.lowering.pointwise import c_statement, c_type, c_value, includes_of
from cklang.types import DType, Kind, bf8, f32, i64

_STEPS = {
    "s": f"(j + e) * args->reads[{{number}}].stride[{MAX_AXES - 1}]",
    "m": "ck_row_divided(args, {number}, j + e)",
}
"""How far an element is from the first one of its row, by the letter of the read."""

_TABLES = {"g": "s", "h": "m"}
"""The letters of tensors that are read at indices, with those whose rows run the same way."""

_INDICES = {"x": "s", "y": "m"}
"""The letters of indices, with those of tensors whose rows run the same way."""

_TABLE_HELPERS = """
CK_MATH long
ck_row_index(const CK_CONSTANT ck_row_args *args, int axis, long index)
{
    const long last = (long)args->reads[axis].data - 1;
    const long limited = index < 0 ? 0 : index > last ? last : index;
    return limited * args->reads[axis].row_stride[CK_ROWWISE_MAX_AXES - 1];
}
"""
"""How far an index leads along an axis; a place of a read has its stride and extent."""

_STORED = ("store", "finish")
"""The functions whose results the stencil rounds to the dtypes that are stored."""

_OF_ROW = "rnb"
"""The letters of what is reduced of a row, of its length, and of reads that are the same for it."""

_HOLE_HEADER = '#include "cklang/rowwise_hole.h"'


def symbol(hole: str) -> str:
    """Return what the function of a hole is called in C."""
    return f"ck_row_{hole}"


def is_of_row(parameter: str) -> bool:
    """Tell by its name whether a parameter is the same for a whole row: ``r0``, ``b0``."""
    return parameter[0] in _OF_ROW


def named_by_layout(functions: Functions, accesses: Sequence[str]) -> Functions:
    """Return functions whose reads ``d0``... are named by how they are read.

    Example:
        >>> from cklang.ir.parser import parse_function
        >>> store = parse_function("func @store(%d0: f32[]) -> f32[] { return %d0 }")
        >>> print(named_by_layout(Functions(store=store), "c")["store"])
        func @store(%c0: f32[]) -> f32[] {
          return %c0
        }
    """
    names = {f"d{place}": f"{letter}{place}" for place, letter in enumerate(accesses)}
    tables = [place for place, letter in enumerate(accesses) if letter in _TABLES]
    # Stride and extent of their axes follow what is read.
    names |= {
        f"d{place}": f"{accesses[place]}{place}_{slot}"
        for slot, place in enumerate(tables, start=len(accesses))
    }
    return Functions(**{hole: _renamed(function, names) for hole, function in functions.items()})


def _renamed(function: Function, names: dict[str, str]) -> Function:
    params = {
        param.name: replace(param, name=names.get(param.name, param.name))
        for param in function.params
    }

    def new(value: Value) -> Value:
        return params.get(value.name, value)

    def body(operation: Operation) -> Operation:
        return replace(operation, operands=tuple(map(new, operation.operands)))

    return replace(
        function,
        params=tuple(params.values()),
        body=tuple(map(body, function.body)),
        results=tuple(map(new, function.results)),
    )


def rowwise_fill(functions: Functions, vector: int, row_axes: int) -> str:
    """Return the C text that defines the functions of a kernel.

    Args:
        functions: Regions as :mod:`.stages` describes them, reads named by their layout.
        vector: Elements that one call computes.
        row_axes: How many axes count rows.
    """
    writers = (_Writer(hole, function, vector, row_axes) for hole, function in functions.items())
    includes = [*includes_of(functions.values()), _HOLE_HEADER, *_helpers_of(functions), ""]
    return "\n".join([*includes, *("\n".join(writer.lines()) for writer in writers)])


def _helpers_of(functions: Functions) -> Iterator[str]:
    """Yield the C that functions need beside that of the header."""
    params = [param for function in functions.values() for param in function.params]
    if any(param.name[0] in _TABLES for param in params):
        yield _TABLE_HELPERS


class _Writer:
    """Writes one function."""

    def __init__(self, hole: str, function: Function, vector: int, row_axes: int) -> None:
        self.hole = hole
        self.function = function
        self.unrounded = dict(_unrounded(function)) if hole in _STORED else {}
        self.width = 1 if hole == "finish" else vector
        self.row_axes = row_axes

    def lines(self) -> Iterator[str]:
        """Yield the lines of the function."""
        # A kernel calls it once for each vector that it keeps: always the same place in registers.
        yield "__attribute__((always_inline))"
        yield f"CK_FUNCTION void {symbol(self.hole)}(float *out, CK_ROW_PARAMS)"
        yield "{"
        for param in self.function.params:
            yield from self._once(param)
        yield "#pragma unroll"
        yield f"    for (int e = 0; e < {self.width}; ++e)"
        yield "    {"
        for param in self.function.params:
            yield from self._element(param)
        for operation in self.function.body:
            if operation.result in self.unrounded:
                continue
            if operation.op == "element":
                yield self._gathered(operation)
                continue
            for line in c_statement(operation, self.function):
                yield line if line.startswith("#") else f"    {line}"
        results = ((result.type.dtype, self._result(result)) for result in self.function.results)
        words = chain.from_iterable(starmap(_words, results))
        for place, word in enumerate(words):
            yield f"        out[{place * self.width} + e] = {word};"
        yield from ("    }", "}", "")

    def _result(self, result: Value) -> str:
        """Return a result as the stencil takes it, which rounds it to 8 bits if need be."""
        source = self.unrounded.get(result)
        if source is None:
            return c_value(result, self.function)
        number = c_value(source, self.function)
        # The conversion may make the largest number of an infinity.
        return number if result.type.dtype == bf8 else f"ck_no_inf({number})"

    def _gathered(self, operation: Operation) -> str:
        """Return the statement that reads an element of a tensor at a computed index."""
        table, index = operation.operands
        number, slot = table.name[1:].split("_")
        at = f"ck_row_index(args, {slot}, {c_value(index, self.function)})"
        step = _STEPS[_TABLES[table.name[0]]].format(number=number)
        element = _widened(table.type.dtype, f"*({self._address(table, f'{step} + {at}')})")
        result = operation.result
        declaration = f"const {c_type(result.type.dtype)} {c_value(result, self.function)}"
        return f"        {declaration} = {element};"

    def _place(self, param: Value, step: str) -> str:
        """Return how many elements from the first one of a tensor an element is."""
        number = _number(param)
        tensor = f"args->reads[{number}]"
        terms = [
            f"(long)i{axis} * {tensor}.row_stride[{MAX_AXES - self.row_axes + axis}]"
            for axis in range(self.row_axes)
        ]
        return " + ".join([*terms, *([step] if step else [])]) or "0"

    def _address(self, param: Value, step: str) -> str:
        memory = (
            f"(const CK_GLOBAL {_memory(param.type.dtype)} *)args->reads[{_number(param)}].data"
        )
        return f"{memory} + {self._place(param, step)}"

    def _once(self, param: Value) -> Iterator[str]:
        """Yield what is computed once for a vector."""
        dtype = param.type.dtype
        if param.name == "n":
            # Fewer than 2^31: converting 64 bits takes a dozen instructions more.
            yield "    const float n = (float)(int)args->length;"
        elif param.name[0] == "b":
            loaded = _widened(dtype, f"*({self._address(param, '')})")
            yield f"    const {c_type(dtype)} {param.name} = {loaded};"
        elif param.name[0] == "r":
            joined = _unpacked(dtype, [f"reduced[{param.name[1:]}]"])
            yield f"    const {c_type(dtype)} {param.name} = {joined};"
        elif param.name[0] == "c":
            vector, width = f"{param.name}_vector", self.width
            # GPUs load vectors at any address.
            kind = f"ext_vector_type({width}), aligned({dtype.bytes})"
            yield f"    typedef {_memory(dtype)} {vector} __attribute__(({kind}));"
            address = f"(const CK_GLOBAL {vector} *)({self._address(param, 'j')})"
            yield f"    const {vector} {param.name}_e = *{address};"

    def _element(self, param: Value) -> Iterator[str]:
        """Yield what is computed for each element ``e`` of a vector."""
        letter, number = param.name[0], _number(param)
        dtype = param.type.dtype
        if letter == "k":
            places = range(int(number), int(number) + len(parts_of(dtype)))
            value = _unpacked(dtype, [f"kept[{place * self.width} + e]" for place in places])
        elif letter == "c":
            value = _widened(dtype, f"{param.name}_e[e]")
        elif letter in _STEPS:
            step = _STEPS[letter].format(number=number)
            value = _widened(dtype, f"*({self._address(param, step)})")
        elif letter in _INDICES:
            value = f"(int)({self._place(param, _STEPS[_INDICES[letter]].format(number=number))})"
        else:
            return
        yield f"        const {c_type(dtype)} {param.name} = {value};"


def _unrounded(function: Function) -> Iterator[tuple[Value, Value]]:
    """Yield results that are numbers of f32 rounded to 8 bits, with these numbers.

    Rounding to 8 bits in f32 takes some fifteen instructions, and the stencil converts what is
    stored in one. Others round once in either place.
    """
    read = {value for operation in function.body for value in operation.operands}
    for operation in function.body:
        result = operation.result
        if operation.op == "cast" and result in function.results and result not in read:
            (source,) = operation.operands
            if result.type.dtype.encoding and source.type.dtype == f32:
                yield result, source


def _number(param: Value) -> str:
    """Return the number of a parameter, without the place of its axis."""
    return param.name[1:].partition("_")[0]


def _memory(dtype: DType) -> str:
    """Return the C type of an element in memory."""
    return "unsigned char" if dtype.encoding or dtype.kind is Kind.BOOL else dtype.c


def _widened(dtype: DType, element: str) -> str:
    """Return an element in memory as a value."""
    if dtype.encoding:
        return f"ck_from_{dtype.name}({element})"
    return f"{element} != 0" if dtype.kind is Kind.BOOL else f"({c_type(dtype)}){element}"


def _unpacked(dtype: DType, words: Sequence[str]) -> str:
    """Return a value that was handed over as floats."""
    if dtype.kind is Kind.FLOAT:
        return words[0]
    low, *high = (f"ck_row_int({word})" for word in words)
    if high:
        return f"(long)((unsigned long){high[0]} << 32 | (unsigned){low})"
    return low + (" != 0" if dtype.kind is Kind.BOOL else "")


def _words(dtype: DType, value: str) -> tuple[str, ...]:
    """Return a value as the floats that hand it over: integers keep their bits."""
    if dtype.kind is Kind.FLOAT:
        return (value,)
    if dtype == i64:
        return f"ck_row_word((int){value})", f"ck_row_word((int)({value} >> 32))"
    return (f"ck_row_word({value})",)
