# SPDX-License-Identifier: MIT
"""A profile as text."""

from collections.abc import Iterator, Sequence

from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.model import LaunchProfile, UnderLoad, grid_text, kernel_rows

_LINES = 10
_TEXT_WIDTH = 56


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows in columns, the first to the left and the others to the right.

    Example:
        >>> table(["kernel", "us"], [["add", "3.1"], ["reduce", "12"]])
        ['kernel   us', 'add     3.1', 'reduce   12']
    """
    every = [list(head), *map(list, rows)]
    widths = [max(len(row[at]) for row in every) for at in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in every
    ]


def kernel_table(launches: Sequence[LaunchProfile]) -> str:
    """Return the kernels, those that take longest first."""
    rows = [
        [row.kernel, row.gpu, str(row.launches), f"{row.us:.2f}", f"{row.mean_us:.2f}",
         f"{row.share:.1%}"]
        for row in kernel_rows(launches)
    ]  # fmt: skip
    return "\n".join(table(["kernel", "GPU", "launches", "µs", "mean µs", "share"], rows))


def launch_text(launch: LaunchProfile) -> str:
    """Return what there is to say of a launch."""
    return "\n".join(_sections(launch))


def _sections(launch: LaunchProfile) -> Iterator[str]:
    roofline = launch.roofline
    yield (
        f"{launch.kernel} on {launch.gpu}: {launch.us:.2f} µs by the clock "
        f"({launch.cycles:.0f} cycles), {grid_text(launch.groups)} workgroups of "
        f"{grid_text(launch.block)} threads"
    )
    yield f"error of the clock: {error_text(launch)}"
    if launch.unknown:
        yield f"no cost known: {unknown_text(launch)}"
    load = launch.under_load
    if load is not None and load.clock_hz < launch.detail.spec.clock_hz:
        yield f"under load: {load_text(load)}"
    yield f"occupancy: {launch.occupancy}"
    yield (
        f"roofline: {roofline.flops_per_second / 1e12:.3g} TFLOP/s, "
        f"{roofline.bytes_per_second / 1e9:.4g} GB/s, {roofline.intensity:.3g} FLOP/byte: "
        f"{roofline.share:.1%} of the {roofline.bound} roof"
        + (" (the caches behind the L1 serve what memory could not)" if roofline.share > 1 else "")
    )
    units = ", ".join(f"{limit.name} {limit.share:.1%}" for limit in launch.limits)
    yield f"busy: {units}"
    yield f"bound by: {launch.bound}"
    reasons = ", ".join(f"{name} {share:.1%}" for name, share in launch.lost.items())
    yield f"waves wait for: {reasons or 'nothing'}"
    yield from ("", *_stage_table(launch), "", *_source_table(launch), "", *_advice(launch))


def error_text(launch: LaunchProfile) -> str:
    """Return how far the clock is off on kernels of a launch's class, in words."""
    if launch.error is None:
        return f"not known, no measurement of {launch.gpu} was compared"
    return f"median {launch.error:.0%} on kernels of this class that were held out"


def load_text(load: UnderLoad) -> str:
    """Return the time at the clock that power leaves, in words."""
    return (
        f"{load.us:.2f} µs at {load.clock_hz / 1e6:.0f} MHz, if many such launches keep an "
        f"{load.board} at its limit of power (median error {load.error:.0%}, on few kernels)"
    )


def unknown_text(launch: LaunchProfile) -> str:
    """Return the operations that the clock has no cost for, with their shares."""
    return ", ".join(
        f"{row.op} ({row.instructions:.1%} of the instructions, {row.cycles:.1%} of the cycles)"
        for row in launch.unknown
    )


def _stage_table(launch: LaunchProfile) -> list[str]:
    rows = [
        [row.stage, f"{row.share:.1%}", str(row.hits), str(row.stall), next(iter(row.lost), "")]
        for row in launch.stages
    ]
    return table(["stage", "cycles", "hits", "stall", "mostly for"], rows)


def _source_table(launch: LaunchProfile) -> list[str]:
    rows = [
        [
            row.place.short,
            row.stage,
            f"{row.share:.1%}",
            str(row.hits),
            str(row.stall),
            next(iter(row.lost), ""),
            f"{row.bytes:.0f}",
            f"{row.conflicts:.0f}",
        ]
        for row in launch.sources[:_LINES]
    ]
    head = ["source line", "stage", "cycles", "hits", "stall", "mostly for", "bytes",
            "LDS conflicts"]  # fmt: skip
    return table(head, rows) if rows else ["the code object has no line table"]


def _advice(launch: LaunchProfile) -> list[str]:
    rows = advice_of(launch)
    return [f"- {row}" for row in rows] or ["- Nothing stands out."]


def listing_text(launch: LaunchProfile) -> str:
    """Return the instructions of a launch with their numbers."""
    rows = [
        [
            f"{row.address:06x} {row.text[:_TEXT_WIDTH]}",
            row.stage,
            str(row.hits),
            str(row.cycles),
            str(row.stall),
            next(iter(row.lost), ""),
            f"{row.lanes:.0f}",
            f"{row.bytes:.0f}" if row.bytes else "",
            f"{row.conflicts:.1f}" if row.conflicts else "",
            "" if row.place is None else row.place.short,
        ]
        for row in launch.instructions
    ]
    head = ["instruction", "stage", "hits", "cycles", "stall", "mostly for", "lanes", "bytes",
            "conflicts", "source"]  # fmt: skip
    return "\n".join(table(head, rows))


def profile_text(launches: Sequence[LaunchProfile]) -> str:
    """Return the kernels, and the longest launch of each in detail."""
    longest: dict[tuple[str, str], LaunchProfile] = {}
    for launch in launches:
        known = longest.get((launch.kernel, launch.gpu))
        if known is None or launch.us > known.us:
            longest[launch.kernel, launch.gpu] = launch
    ordered = sorted(longest.values(), key=lambda launch: -launch.us)
    return "\n\n".join([kernel_table(launches), *map(launch_text, ordered)]) + "\n"
