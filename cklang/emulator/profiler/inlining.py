# SPDX-License-Identifier: MIT
"""Which calls an instruction was inlined through, from a code object's DWARF 5 debug information.

``-gline-tables-only`` keeps a tree of inlined calls: for each its addresses, and the file and line
that made it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from cklang.elf import sections_of

_COMPILE_UNIT, _INLINED = 0x11, 0x1D
_STMT_LIST, _LOW, _HIGH, _RANGES = 0x10, 0x11, 0x12, 0x55
_CALL_FILE, _CALL_LINE, _ADDR_BASE, _LISTS_BASE = 0x58, 0x59, 0x73, 0x74
_NAME, _ORIGIN, _STRINGS_BASE = 0x03, 0x31, 0x72
_SUBPROGRAM = 0x2E
_PATH, _FOLDER = 1, 2
_IMPLICIT, _ADDRESS = 0x21, 0x01
_INDEXED_ADDRESS = (0x1B, 0x29, 0x2A, 0x2B, 0x2C)
_INDEXED_STRING = (0x1A, 0x25, 0x26, 0x27, 0x28)
_STRING, _STRING_AT = 0x08, 0x0E
_PLACE = 0x10
"""The form of places in the whole section; others count from the unit's start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedCall:
    """The code of one inlined call from one address up to another, and the line that calls."""

    begin: int
    """In the text section, in bytes."""
    end: int
    file: str
    line: int
    depth: int
    """How many calls it is inside of, itself too."""
    function: str
    """The function that is called, with template arguments; '' where the name is not known."""


@dataclass(slots=True)
class _Reader:
    data: bytes
    at: int = 0

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def string(self) -> str:
        end = self.data.index(b"\0", self.at)
        text = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return text

    def block(self, size: int) -> int:
        self.at += size
        return 0


def _fixed(size: int) -> Callable[[_Reader], int]:
    return lambda reader: reader.number(size)


_FORMS: Mapping[int, Callable[[_Reader], int | str]] = {
    **{form: _fixed(1) for form in (0x0B, 0x0C, 0x11, 0x25, 0x29)},
    **{form: _fixed(2) for form in (0x05, 0x12, 0x26, 0x2A)},
    **{form: _fixed(3) for form in (0x27, 0x2B)},
    **{form: _fixed(4) for form in (0x06, 0x0E, 0x10, 0x13, 0x17, 0x1C, 0x1D, 0x1F, 0x28, 0x2C)},
    **{form: _fixed(8) for form in (_ADDRESS, 0x07, 0x14, 0x20)},
    **dict.fromkeys((13, 15, 21, 26, 27, 34, 35), _Reader.uleb),
    **{form: lambda reader: reader.block(reader.uleb()) for form in (0x09, 0x18)},
    0x0A: lambda reader: reader.block(reader.number(1)),
    0x03: lambda reader: reader.block(reader.number(2)),
    0x04: lambda reader: reader.block(reader.number(4)),
    0x1E: _fixed(16),
    0x08: _Reader.string,
    0x19: lambda _: 1,
}
"""How a value of each form is read."""


@dataclass(frozen=True, slots=True)
class _Abbreviation:
    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int], ...]
    """Attribute, form, and the value of an implicit constant."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a compile unit's entries are relative to."""

    sections: Mapping[str, bytes]
    low: int
    addresses: int
    lists: int
    files: list[str] = field(default_factory=list)
    strings: int = 0
    start: int = 0

    def place(self, value: tuple[int, int | str]) -> int:
        """Return where an entry is that another one names, by the name's form and value."""
        form, at = value
        return int(at) + (0 if form == _PLACE else self.start)

    def text(self, value: tuple[int, int | str]) -> str:
        """Return a string of the unit, by its form and value."""
        form, at = value
        if form == _STRING:
            return str(at)
        if form in _INDEXED_STRING:
            offsets = self.sections.get(".debug_str_offsets", b"")
            at = _Reader(offsets, self.strings + 4 * int(at)).number(4)
        elif form != _STRING_AT:
            return ""
        return _Reader(self.sections.get(".debug_str", b""), int(at)).string()

    def address(self, index: int) -> int:
        return _Reader(self.sections[".debug_addr"], self.addresses + 8 * index).number(8)

    def ranges(self, index: int) -> Iterator[tuple[int, int]]:
        data = self.sections[".debug_rnglists"]
        reader = _Reader(data, self.lists + _Reader(data, self.lists + 4 * index).number(4))
        base, uleb = self.low, reader.uleb
        while kind := reader.number(1):
            match kind:
                case 1:
                    base = self.address(uleb())
                case 2:
                    yield self.address(uleb()), self.address(uleb())
                case 3:
                    begin = self.address(uleb())
                    yield begin, begin + uleb()
                case 4:
                    yield base + uleb(), base + uleb()
                case 5:
                    base = reader.number(8)
                case 6:
                    yield reader.number(8), reader.number(8)
                case _:
                    begin = reader.number(8)
                    yield begin, begin + uleb()


def inlined_calls(image: bytes) -> list[InlinedCall]:
    """Return the inlined calls of a code object; none if it has no DWARF 5 debug information."""
    sections = {section.name: section for section in sections_of(image)}
    text = sections[".text"].address if ".text" in sections else 0
    return calls_of_sections({name: section.content for name, section in sections.items()}, text)


def calls_of_sections(sections: Mapping[str, bytes], text: int) -> list[InlinedCall]:
    """Return the inlined calls that debug information names.

    Example:
        >>> calls_of_sections({}, 0)
        []
    """
    names: dict[int, str] = {}
    calls: list[tuple[InlinedCall, int]] = []
    reader = _Reader(sections.get(".debug_info", b""))
    while reader.at < len(reader.data):
        begin = reader.at
        end = reader.number(4) + reader.at
        version, kind, _ = (reader.number(size) for size in (2, 1, 1))
        if version != 5 or kind != 1:
            break
        abbreviations = _abbreviations(sections[".debug_abbrev"], reader.number(4))
        unit = _Unit(sections, 0, 0, 0, start=begin)
        calls += _calls_of_unit(reader, end, abbreviations, unit, text, names)
        reader.at = end
    return [replace(call, function=names.get(origin, "")) for call, origin in calls]


def _calls_of_unit(
    reader: _Reader,
    end: int,
    abbreviations: Mapping[int, _Abbreviation],
    unit: _Unit,
    text: int,
    names: dict[int, str],
) -> Iterator[tuple[InlinedCall, int]]:
    """Yield the calls of a unit with the places of what they call; add its names by place."""
    inlined: list[bool] = []
    while reader.at < end:
        place = reader.at
        code = reader.uleb()
        if code == 0:
            if inlined:
                inlined.pop()
            continue
        entry = abbreviations[code]
        values = dict(_values(reader, entry))
        if entry.tag == _COMPILE_UNIT:
            unit = _unit(values, unit)
        elif entry.tag == _SUBPROGRAM and _NAME in values:
            names[place] = unit.text(values[_NAME])
        elif entry.tag == _INLINED:
            origin = unit.place(values.get(_ORIGIN, (0, 0)))
            for row in _inlined_call(values, unit, 1 + sum(inlined), text):
                yield row, origin
        if entry.children:
            inlined.append(entry.tag == _INLINED)


def _inlined_call(
    values: Mapping[int, tuple[int, int | str]], unit: _Unit, depth: int, text: int
) -> Iterator[InlinedCall]:
    file, line = _plain(values, _CALL_FILE), _plain(values, _CALL_LINE)
    name = unit.files[file] if file < len(unit.files) else ""
    for begin, stop in _code(values, unit):
        yield InlinedCall(
            begin=begin - text, end=stop - text, file=name, line=line, depth=depth, function=""
        )


def _values(reader: _Reader, entry: _Abbreviation) -> Iterator[tuple[int, tuple[int, int | str]]]:
    """Yield the form and the value of each attribute of an entry."""
    for attribute, form, constant in entry.attributes:
        value = constant if form == _IMPLICIT else _FORMS[form](reader)
        yield attribute, (form, value)


def _plain(values: Mapping[int, tuple[int, int | str]], attribute: int) -> int:
    _, value = values.get(attribute, (0, 0))
    return int(value)


def _unit(values: Mapping[int, tuple[int, int | str]], unit: _Unit) -> _Unit:
    """Return a unit with what its first entry says."""
    number = partial(_plain, values)
    known = replace(
        unit,
        addresses=number(_ADDR_BASE),
        lists=number(_LISTS_BASE),
        files=_files(unit.sections, number(_STMT_LIST)) if _STMT_LIST in values else [],
        strings=number(_STRINGS_BASE),
    )
    return replace(known, low=_address(values[_LOW], known) if _LOW in values else 0)


def _address(value: tuple[int, int | str], unit: _Unit) -> int:
    form, number = value
    return unit.address(int(number)) if form in _INDEXED_ADDRESS else int(number)


def _code(values: Mapping[int, tuple[int, int | str]], unit: _Unit) -> Iterator[tuple[int, int]]:
    """Yield the addresses of an entry: one range, or a list of them."""
    if _RANGES in values:
        yield from unit.ranges(_plain(values, _RANGES))
    elif _LOW in values:
        begin, (form, _) = _address(values[_LOW], unit), values[_HIGH]
        far = form == _ADDRESS or form in _INDEXED_ADDRESS
        yield begin, _address(values[_HIGH], unit) if far else begin + _plain(values, _HIGH)


def _abbreviations(section: bytes, offset: int) -> dict[int, _Abbreviation]:
    reader, known = _Reader(section, offset), dict[int, _Abbreviation]()
    while code := reader.uleb():
        tag, children = reader.uleb(), reader.number(1) == 1
        attributes = []
        while any(pair := (reader.uleb(), reader.uleb())):
            attributes.append((*pair, reader.uleb() if pair[1] == _IMPLICIT else 0))
        known[code] = _Abbreviation(tag, children, tuple(attributes))
    return known


def _files(sections: Mapping[str, bytes], offset: int) -> list[str]:
    """Return the files of a line table by number."""
    reader = _Reader(sections[".debug_line"], offset)
    reader.at += 4
    if reader.number(2) != 5:
        return []
    reader.at += 1 + 1 + 4 + 5  # sizes, the header's length, how operations are counted
    opcodes = reader.number(1)
    reader.at += opcodes - 1  # how many operands each standard one has
    strings = sections.get(".debug_line_str", b"")
    folders = [str(row[_PATH]) for row in _table(reader, strings)]
    return [
        _joined(str(row[_PATH]), folders[int(row.get(_FOLDER, 0))], folders[0])
        for row in _table(reader, strings)
    ]


def _table(reader: _Reader, strings: bytes) -> list[dict[int, int | str]]:
    columns = [(reader.uleb(), reader.uleb()) for _ in range(reader.number(1))]
    return [
        {content: _content(reader, form, strings) for content, form in columns}
        for _ in range(reader.uleb())
    ]


def _content(reader: _Reader, form: int, strings: bytes) -> int | str:
    value = _FORMS[form](reader)
    return _Reader(strings, int(value)).string() if form == 0x1F else value


def _joined(name: str, folder: str, root: str) -> str:
    """Return a path as the emulator's line table has it."""
    for base in (folder, root):
        if not name.startswith("/") and base:
            name = f"{base}/{name}"
    return name
