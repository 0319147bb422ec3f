# SPDX-License-Identifier: MIT
"""A profile as one HTML file: text, tables and plots, without the network."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from cklang.emulator.profiler import plots
from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.counters import absent
from cklang.emulator.profiler.model import InstructionProfile, LaunchProfile, grid_text, kernel_rows
from cklang.emulator.profiler.style import COLOURS
from cklang.emulator.profiler.text import error_text, load_text, unknown_text
from cklang.emulator.profiler.tile_pictures import legend, picture
from cklang.emulator.profiler.tiles import text_of, tile_steps

_STYLE = (
    COLOURS
    + """
body{font:14px/1.45 system-ui,sans-serif;margin:24px;color:var(--text);background:var(--page)}
h1{font-size:22px}h2{font-size:18px;margin-top:32px;border-top:1px solid var(--line);
 padding-top:16px}
h3{font-size:15px;margin:20px 0 6px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:2px 10px;text-align:right;border-bottom:1px solid var(--faint);white-space:nowrap}
td:first-child,th:first-child,td.text{text-align:left}th{font-weight:600}
code,td.text{font-family:ui-monospace,monospace;font-size:12px}
svg{max-width:100%;height:auto;font:11px system-ui,sans-serif;fill:currentColor}
.roof{stroke:var(--roof);stroke-width:2}.axis{stroke:var(--note)}.point{fill:var(--mark)}
.key span{display:inline-block;width:10px;height:10px;margin:0 4px 0 12px}
.note{color:var(--note)}details{margin:8px 0}figure{margin:8px 0}figcaption{margin-bottom:6px}
.tiles input{width:420px;max-width:100%}
"""
)
_SCRIPT = """
document.querySelectorAll('.tiles').forEach(box => {
  const slider = box.querySelector('input'), steps = box.querySelectorAll('figure');
  slider.oninput = () => steps.forEach((step, at) => { step.hidden = at !== +slider.value; });
});
"""
"""Shows the step of the slider; without scripts the first one stands there."""
_MOST_LINES = 40


def report(launches: Sequence[LaunchProfile]) -> str:
    """Return the report: the kernels, then the longest launch of each in detail."""
    rows = kernel_rows(launches)
    body = ["<h1>Kernels</h1>"]
    if not launches:
        body.append("<p>Nothing was launched on an emulated GPU.</p>")
    else:
        body += [
            '<p class="note">Times are those of the clock, a model of the GPU; no GPU ran.</p>',
            _table(
                ("kernel", "GPU", "launches", "µs", "mean µs", "share"),
                [
                    (
                        r.kernel,
                        r.gpu,
                        r.launches,
                        f"{r.us:.2f}",
                        f"{r.mean_us:.2f}",
                        f"{r.share:.1%}",
                    )
                    for r in rows
                ],
            ),
            *_launches(launches),
        ]
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Profile</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(body)}<script>{_SCRIPT}</script></body></html>\n"
    )


def embedded(launches: Sequence[LaunchProfile]) -> str:
    """Return the report in a frame, so that its style does not reach the page around it."""
    page = escape(report(launches), quote=True)
    return f'<iframe srcdoc="{page}" style="width:100%;height:720px;border:0"></iframe>'


def _launches(launches: Sequence[LaunchProfile]) -> Iterator[str]:
    longest: dict[tuple[str, str], LaunchProfile] = {}
    for launch in sorted(launches, key=lambda launch: -launch.us):
        longest.setdefault((launch.kernel, launch.gpu), launch)
    for launch in longest.values():
        yield "".join(_launch(launch))


def _launch(launch: LaunchProfile) -> Iterator[str]:
    yield f"<h2>{escape(launch.kernel)}</h2>"
    yield (
        f"<p>{launch.us:.2f} µs on {launch.gpu} ({launch.cycles:.0f} cycles), "
        f"{grid_text(launch.groups)} workgroups of {grid_text(launch.block)} threads</p>"
    )
    yield f'<p class="note">Error of the clock: {escape(error_text(launch))}.</p>'
    if launch.unknown:
        yield f"<p>No cost known: {escape(unknown_text(launch))}.</p>"
    if launch.under_load is not None:
        yield f"<p>Under load: {escape(load_text(launch.under_load))}.</p>"
    yield "<h3>Advice</h3><ul>"
    yield "".join(f"<li>{escape(str(row))}</li>" for row in advice_of(launch)) or "<li>None.</li>"
    yield "</ul><h3>Roofline</h3>"
    yield plots.roofline([launch])
    yield "<h3>Busy share of each unit</h3>"
    yield plots.bars([(e.name, e.share, "#30638e") for e in launch.limits], "Busy units")
    yield "<h3>Memory chart</h3>"
    yield plots.memory_chart(launch)
    yield "<h3>Why waves do not issue</h3>"
    rows = [(name, share, plots.COLOURS[name]) for name, share in launch.lost.items()]
    yield plots.bars(rows, "Cycles without issue")
    yield f"<h3>Occupancy</h3><p>{escape(str(launch.occupancy))}</p>"
    yield plots.occupancy(launch)
    yield "<h3>Timeline of a compute unit</h3>"
    yield _key(launch)
    yield plots.timeline(launch)
    yield from _tiles(launch)
    yield from _tables(launch)


def _tiles(launch: LaunchProfile) -> Iterator[str]:
    steps = tile_steps(launch)
    yield "<h3>Who holds what</h3>"
    if not steps:
        yield "<p>No lane accesses memory.</p>"
        return
    yield legend(steps)
    yield '<div class="tiles"><label>Step <input type="range" min="0" value="0" '
    yield f'max="{len(steps) - 1}"></label>'
    for at, step in enumerate(steps):
        yield f"<figure{' hidden' if at else ''}><figcaption><code>{escape(text_of(step))}</code>"
        yield f"</figcaption>{picture(step)}</figure>"
    yield "</div>"


def _key(launch: LaunchProfile) -> str:
    names = {"": "issue"} | {name: name for name in launch.lost}
    items = (
        f'<span style="background:{plots.COLOURS[name]}"></span>{escape(label)}'
        for name, label in names.items()
    )
    return f'<p class="key">{"".join(items)}</p>'


def _tables(launch: LaunchProfile) -> Iterator[str]:
    yield "<h3>Stages of the pipeline</h3>"
    yield plots.bars([(row.stage, row.share, "#30638e") for row in launch.stages], "Stages")
    yield _table(
        ("stage", "cycles", "hits", "stall", "mostly for"),
        [
            (row.stage, f"{row.share:.1%}", row.hits, row.stall, next(iter(row.lost), ""))
            for row in launch.stages
        ],
    )
    yield "<h3>Source lines</h3>"
    yield _table(
        ("source", "stage", "cycles", "hits", "stall", "mostly for", "bytes", "LDS conflicts"),
        [
            (
                f"{row.place.short}  {row.place.text}", row.stage, f"{row.share:.1%}", row.hits,
                row.stall,
                next(iter(row.lost), ""), f"{row.bytes:.0f}", f"{row.conflicts:.0f}",
            )
            for row in launch.sources[:_MOST_LINES]
        ],
    )  # fmt: skip
    yield "<h3>Listing</h3>"
    yield _listing(launch.instructions)
    yield "<details><summary>Counters</summary>"
    counters = [(c.name, f"{c.value:.0f}", c.origin) for c in launch.counters]
    lacking = [(name, "absent", why) for name, why in absent(launch.counted).items()]
    yield _table(("counter", "value", "origin"), [*counters, *lacking])
    yield "</details>"


def _listing(rows: Sequence[InstructionProfile]) -> str:
    most = max((row.cycles for row in rows), default=0) or 1
    head = ("instruction", "stage", "hits", "cycles", "stall", "mostly for", "lanes", "bytes",
            "conflicts", "source")  # fmt: skip
    lines = []
    for row in rows:
        heat = f"background:rgba(209,73,91,{0.5 * row.cycles / most:.3f})"
        cells = (
            row.stage, row.hits, row.cycles, row.stall, next(iter(row.lost), ""),
            f"{row.lanes:.0f}",
            f"{row.bytes:.0f}" if row.bytes else "",
            f"{row.conflicts:.1f}" if row.conflicts else "",
            "" if row.place is None else row.place.short,
        )  # fmt: skip
        first = f'<td class="text" style="{heat}">{row.address:06x} {escape(row.text)}</td>'
        lines.append(f"<tr>{first}{_cells(cells)}</tr>")
    return f"<table><tr>{_heads(head)}</tr>{''.join(lines)}</table>"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table><tr>{_heads(head)}</tr>{lines}</table>"


def _heads(names: Sequence[str]) -> str:
    return "".join(f"<th>{escape(name)}</th>" for name in names)


def _cells(values: Sequence[object]) -> str:
    return "".join(f"<td>{escape(str(value))}</td>" for value in values)
