# SPDX-License-Identifier: MIT
"""A call as one HTML page: Python and IR, C++ and instructions, side by side.

The page needs no network. Its script lights up what belongs together.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from cklang.emulator.profiler.listing import CodeLine, KernelListing, ListedInstruction
from cklang.emulator.profiler.source import Place
from cklang.emulator.profiler.style import COLOURS
from cklang.ir.nodes import Function, print_operation
from cklang.source import Source

_STYLE = (
    COLOURS
    + """
*{box-sizing:border-box}
body{font:14px/1.45 system-ui,sans-serif;margin:0;color:var(--text);background:var(--page);
 height:100vh;display:flex;flex-direction:column}
header{padding:8px 16px;border-bottom:1px solid var(--line)}
h1{font-size:16px;margin:0 0 4px}h2{font-size:13px;margin:0;padding:6px 12px;color:var(--note)}
[role=tab]{font:12px ui-monospace,monospace;padding:4px 10px;margin:0 6px 0 0;cursor:pointer;
 color:var(--text);background:none;border:1px solid var(--line);border-radius:4px}
[role=tab][aria-selected=true]{background:var(--chosen)}
main{flex:1;min-height:0}[role=tabpanel]{height:100%}
.panes{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr) minmax(0,1fr);height:100%}
.pane{min-width:0;display:flex;flex-direction:column;min-height:0;
 border-right:1px solid var(--line)}
.rows{overflow:auto;flex:1;font:12px/1.5 ui-monospace,monospace;padding-bottom:40vh}
.row{white-space:pre;padding:0 8px;cursor:default}
.row[data-user],.row[data-code]{cursor:pointer}
.row[style]{background:hsl(var(--h) var(--tint))}
.row .n{display:inline-block;min-width:44px;padding-right:10px;text-align:right;
 color:var(--note);user-select:none}
.ir{color:var(--note)}.file{position:sticky;top:0;background:var(--page);color:var(--note);
 padding:2px 8px;border-bottom:1px solid var(--line)}
.lit{outline:1px solid var(--mark);outline-offset:-1px}
.pinned{box-shadow:inset 3px 0 var(--mark)}
"""
)

_SCRIPT = """
const same = row => [...document.querySelectorAll('.row')].filter(other =>
  (row.dataset.user && other.dataset.user === row.dataset.user) ||
  (row.dataset.code && other.dataset.code === row.dataset.code));
const only = (name, rows) => {
  document.querySelectorAll('.' + name).forEach(row => row.classList.remove(name));
  rows.forEach(row => row.classList.add(name));
};
const show = tab => {
  for (const other of document.querySelectorAll('[role=tab]')) {
    const chosen = other === tab;
    other.setAttribute('aria-selected', chosen);
    document.getElementById(other.getAttribute('aria-controls')).hidden = !chosen;
  }
};
document.addEventListener('mouseover', event => {
  const row = event.target.closest('.row');
  only('lit', row ? same(row) : []);
});
document.addEventListener('click', event => {
  const tab = event.target.closest('[role=tab]'), row = event.target.closest('.row');
  if (tab) show(tab);
  if (!row) return;
  const rows = same(row), own = row.closest('.rows');
  only('pinned', rows);
  for (const rest of document.querySelectorAll('.rows')) {
    const first = rows.find(other => rest.contains(other));
    if (rest !== own && first) rest.scrollTop += first.getBoundingClientRect().top
      - rest.getBoundingClientRect().top - rest.clientHeight / 3;
  }
});
"""


def inspection_page(function: Function, listings: Sequence[KernelListing]) -> str:
    """Return the page of a call."""
    places = dict.fromkeys(_key(place) for place in _places(function, listings))
    hues = {key: round(number * 360 / len(places)) for number, key in enumerate(places)}
    tabs = "".join(
        f'<button role="tab" aria-controls="kernel{number}" '
        f'aria-selected="{"true" if number == 0 else "false"}">{escape(listing.label)}</button>'
        for number, listing in enumerate(listings)
    )
    source = _pane("Python and IR", _source_rows(function, hues))
    panels = "".join(
        f'<div role="tabpanel" id="kernel{number}"{"" if number == 0 else " hidden"}>'
        f'<div class="panes">{source}{_pane("C++", _code_rows(listing, hues))}'
        f"{_pane('Instructions', _instruction_rows(listing, hues))}</div></div>"
        for number, listing in enumerate(listings)
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(function.name)}</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>{escape(function.name)}</h1><div role="tablist">{tabs}</div></header>'
        f"<main>{panels}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _places(function: Function, listings: Sequence[KernelListing]) -> Iterator[Place]:
    """Yield the user's places that have operations, C or instructions."""
    for operation in function.body:
        if operation.span is not None:
            yield Place(operation.span.source.name, operation.span.line)
    for listing in listings:
        yield from (user for _, user in listing.fill if user is not None)


def _key(place: Place) -> str:
    return str(place)


def _pane(title: str, rows: Iterator[str]) -> str:
    return (
        f'<section class="pane"><h2>{title}</h2><div class="rows">{"".join(rows)}</div></section>'
    )


def _row(
    number: object,
    text: str,
    *,
    hues: Mapping[str, int],
    user: Place | None = None,
    code: CodeLine | None = None,
    kind: str = "",
    tip: str = "",
) -> str:
    key = None if user is None else _key(user)
    attributes = [f'class="{f"row {kind}".strip()}"']
    attributes += [] if key is None else [f'data-user="{escape(key)}"']
    attributes += [] if code is None else [f'data-code="{escape(code.file)}:{code.line}"']
    attributes += [] if key is None or key not in hues else [f'style="--h:{hues[key]}"']
    attributes += [f'title="{escape(tip)}"'] if tip else []
    return f'<div {" ".join(attributes)}><span class="n">{number}</span>{escape(text)}</div>'


def _file(name: str) -> str:
    """Return a heading: a header as it is included, another file without its folder."""
    _, include, header = name.rpartition("/include/")
    short = header if include else name.rpartition("/")[2]
    return f'<div class="file" title="{escape(name)}">{escape(short)}</div>'


def _source_rows(function: Function, hues: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of the user's functions, each with its operations below."""
    operations: dict[tuple[str, int], list[str]] = {}
    sources: dict[str, Source] = {}
    for operation in function.body:
        if operation.span is None:
            continue
        source = operation.span.source
        sources.setdefault(source.name, source)
        operations.setdefault((source.name, operation.span.line), []).append(
            print_operation(operation).strip()
        )
    for name, source in sources.items():
        yield _file(name)
        for line, text in enumerate(source.text.splitlines(), start=source.first_line):
            own = operations.get((name, line), [])
            user = Place(name, line) if own else None
            yield _row(line, text, hues=hues, user=user)
            yield from (_row("", span, hues=hues, user=user, kind="ir") for span in own)


def _code_rows(listing: KernelListing, hues: Mapping[str, int]) -> Iterator[str]:
    """Yield the generated function, then the other lines that instructions come from, by file."""
    if listing.fill:
        yield _file("fill: the functions of the op")
        for code, user in listing.fill:
            yield _row(code.line, code.text, hues=hues, user=user, code=code)
    others = {row.code for row in listing.rows if row.code is not None and row.code.file != "fill"}
    ordered = sorted(others, key=lambda code: (code.file != "stencil", code))
    for file, lines in groupby(ordered, key=lambda code: code.file):
        yield _file(file)
        yield from (_row(code.line, code.text, hues=hues, code=code) for code in lines)


def _instruction_rows(listing: KernelListing, hues: Mapping[str, int]) -> Iterator[str]:
    for row in listing.rows:
        address, path = f"{row.address:x}", " in ".join(_places_of(row))
        yield _row(address, row.text, hues=hues, user=row.user, code=row.code, tip=path)


def _places_of(row: ListedInstruction) -> tuple[str, ...]:
    return (() if row.code is None else (row.code.short,)) + row.calls
