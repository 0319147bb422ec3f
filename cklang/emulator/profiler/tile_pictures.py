# SPDX-License-Identifier: MIT
"""Steps of :mod:`~cklang.emulator.profiler.tiles` as SVG: lanes, registers and bytes of memory."""

from collections.abc import Iterator, Sequence
from html import escape

from cklang.emulator.engine.fragments import Fragment
from cklang.emulator.profiler.tiles import Held, TileStep, rows_of, text_of

_LANES = 64
_CELL, _ROW = 12, 12
_LEFT, _TOP = 96, 22
_MOST_ROWS = 48
_BANK_WORD = 4
_CONFLICT, _UNUSED = "#d1221f", "#80808040"
_HUES = (210, 30, 130, 280, 0, 60, 170, 320)


def _colour(wave: int, lane: int) -> str:
    return f"hsl({_HUES[wave % len(_HUES)]} 65% {40 + 35 * lane / _LANES:.0f}%)"


def _rect(x: float, y: float, width: float, colour: str, tip: str, *, edge: str = "") -> str:
    stroke = f' stroke="{edge}" stroke-width="1.5"' if edge else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{max(width - 0.6, 0.8):.1f}" height="{_ROW - 1}" '
        f'fill="{colour}"{stroke}><title>{escape(tip)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def picture(step: TileStep) -> str:
    """Return a step as SVG."""
    if step.matrix is not None:
        parts, width, height = _operands(list(step.matrix.operands.values()))
    else:
        parts, width, height = _accesses(step)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="system-ui,sans-serif" '
        f'font-size="11" fill="currentColor"><title>{escape(text_of(step))}</title>'
        f"{''.join(parts)}</svg>"
    )


def sheet(steps: Sequence[TileStep]) -> str:
    """Return steps below each other as one SVG document."""
    drawn, y, width = [], 0.0, 200.0
    for step in steps:
        if step.matrix is not None:
            parts, wide, high = _operands(list(step.matrix.operands.values()))
        else:
            parts, wide, high = _accesses(step)
        drawn.append(f'<g transform="translate(8 {y + 20:.0f})">{_text(0, -6, text_of(step))}')
        drawn += [*parts, "</g>"]
        y, width = y + high + 36, max(width, wide + 16, 7.0 * len(text_of(step)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" '
        f'width="{width:.0f}" height="{y:.0f}" font-family="system-ui,sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(drawn)}</svg>\n'
    )


def legend(steps: Sequence[TileStep]) -> str:
    """Return the colours of the waves, as HTML."""
    waves = sorted({access.wave for step in steps for access in step.held})
    spans = "".join(
        f'<span style="background:{_colour(wave, _LANES // 2)}"></span>wave {wave}'
        for wave in waves
    )
    return (
        f'<p class="key">{spans}<span style="background:{_UNUSED}"></span>moved, but not used'
        f'<span style="border:2px solid {_CONFLICT}"></span>waits for another word of its bank</p>'
    )


def _tip(piece: Held, step: TileStep) -> str:
    about = f"wave {piece.wave}, lane {piece.lane}, {piece.register}: {piece.bytes} bytes"
    if step.memory == "LDS":
        bank = piece.at // _BANK_WORD % (step.row // _BANK_WORD)
        about += f" at {piece.at:#x}, bank {bank}"
    return f"{about}, pass {piece.conflict + 1}" if piece.conflict else about


def _accesses(step: TileStep) -> tuple[list[str], float, float]:
    """Return the parts of a picture of registers and of memory, its width and its height."""
    parts, top = _registers(step)
    rows = rows_of(step.held, step.row)
    y_of = {row: top + _TOP + at * _ROW for at, row in enumerate(rows[:_MOST_ROWS])}
    scale = _LANES * _CELL / step.row
    unit = "bank" if step.memory == "LDS" else "byte"
    parts.append(_text(0, top + _TOP - 8, "LDS" if step.memory == "LDS" else "memory"))
    count = step.row // _BANK_WORD if step.memory == "LDS" else step.row
    parts += [
        _text(_LEFT + at * _LANES * _CELL / count, top + _TOP - 8, f"{unit} {at}")
        for at in range(0, count, count // 4)
    ]
    base, sign = (0, "") if step.memory == "LDS" else (min(rows, default=0), "+")
    parts += [
        _text(0, y + _ROW - 3, f"{sign}{(row - base) * step.row:#x}") for row, y in y_of.items()
    ]
    if step.memory == "global":
        half = step.row // 2
        touched = {
            at // half for access in step.held for at in range(access.at, access.at + access.bytes)
        }
        parts += [
            _rect(_LEFT + half_row % 2 * half * scale, y_of[half_row // 2], half * scale,
                  _UNUSED, "moved")
            for half_row in sorted(touched) if half_row // 2 in y_of
        ]  # fmt: skip
    for piece in step.held:
        parts += _in_memory(piece, step, y_of, scale)
    if len(rows) > _MOST_ROWS:
        height = top + _TOP + (_MOST_ROWS + 1) * _ROW
        parts.append(_text(0, height - 2, f"and {len(rows) - _MOST_ROWS} rows more"))
    else:
        height = top + _TOP + len(rows) * _ROW
    return parts, _LEFT + _LANES * _CELL + 8, height + 6


def _in_memory(piece: Held, step: TileStep, y_of: dict[int, float], scale: float) -> Iterator[str]:
    """Yield the bytes of a lane: a part in each row."""
    at, end = piece.at, piece.at + piece.bytes
    while at < end:
        row = at // step.row
        until = min(end, (row + 1) * step.row)
        if row in y_of:
            x = _LEFT + at % step.row * scale
            colour = _colour(piece.wave, piece.lane)
            edge = _CONFLICT if piece.conflict else ""
            yield _rect(x, y_of[row], (until - at) * scale, colour, _tip(piece, step), edge=edge)
        at = until


def _registers(step: TileStep) -> tuple[list[str], float]:
    """Return the lanes and registers of the first wave, and where they end."""
    first = min((access.wave for access in step.held), default=0)
    cells: dict[tuple[str, int], Held] = {}
    for piece in step.held:
        if piece.wave != first or not piece.register:
            continue
        number = int(piece.register[1:])
        for word in range(-(-piece.bytes // _BANK_WORD)):
            cells[f"{piece.register[0]}{number + word}", piece.lane] = piece
    names = sorted({name for name, _ in cells}, key=lambda name: (name[0], int(name[1:])))
    y_of = {name: _TOP + at * _ROW for at, name in enumerate(names)}
    parts = [_text(0, _TOP - 8, f"wave {first}")]
    parts += [
        _text(_LEFT + lane * _CELL, _TOP - 8, f"lane {lane}") for lane in range(0, _LANES, 16)
    ]
    parts += [_text(0, y + _ROW - 3, name) for name, y in y_of.items()]
    parts += [
        _rect(_LEFT + lane * _CELL, y_of[name], _CELL, _colour(cell.wave, lane), _tip(cell, step),
              edge=_CONFLICT if cell.conflict else "")
        for (name, lane), cell in cells.items()
    ]  # fmt: skip
    return parts, _TOP + len(names) * _ROW + 10


def _operands(operands: Sequence[Fragment]) -> tuple[list[str], float, float]:
    """Return which lane holds which element of each operand of a matrix instruction."""
    parts, x, height = [], 0.0, 0.0
    for operand in operands:
        blocks, rows, columns = operand.shape
        name = f"{operand.name}, {operand.type}, {rows} x {columns}, {operand.file}{operand.first}"
        parts.append(_text(x, _TOP - 8, name))
        for lane in range(operand.places.shape[0]):
            for element in range(operand.places.shape[1]):
                block, row, column = operand.places[lane, element].tolist()
                register = f"{operand.file}{operand.register(element)}"
                tip = f"{operand.name}[{row}, {column}]: lane {lane}, {register}"
                parts.append(
                    _rect(x + column * _CELL, _TOP + (block * (rows + 1) + row) * _ROW, _CELL,
                          f"hsl({lane * 360 / _LANES:.0f} 60% 55%)", tip)
                )  # fmt: skip
        height = max(height, _TOP + blocks * (rows + 1) * _ROW)
        x += max(columns * _CELL, 7 * len(name)) + 24
    return parts, x, height
