# SPDX-License-Identifier: MIT
"""``ck.profile``: record launches on emulated GPUs, and show or write where their time goes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cklang.emulator.clock.sequence import launch_details
from cklang.emulator.engine.recording import RecordedLaunch, timing
from cklang.emulator.profiler import att, html, perfetto, speedscope, tables, text, tile_pictures
from cklang.emulator.profiler.advice import Advice, advice_of
from cklang.emulator.profiler.model import KernelRow, LaunchProfile, kernel_rows, launch_profile
from cklang.emulator.profiler.tiles import TileStep, tile_steps
from cklang.errors import error
from cklang.forks import cached_property


class Profile:
    """Launches on emulated GPUs, with the time of each by the clock; filled when the ``with`` ends.

    Example:
        >>> Profile([]).launches
        ()
    """

    def __init__(self, recorded: Sequence[RecordedLaunch], caches: str | None = None) -> None:
        self.recorded = tuple(recorded)
        self.caches = caches

    def fill(self, recorded: Sequence[RecordedLaunch]) -> None:
        """Take over what was recorded."""
        self.recorded = tuple(recorded)
        self.__dict__.pop("launches", None)

    @cached_property
    def launches(self) -> tuple[LaunchProfile, ...]:
        """Every launch, in order.

        Raises:
            CkUnsupportedError: K050, the clock has no constants for a GPU.
            CkValueError: A133, ``caches`` is no state of caches.
        """
        details = launch_details(self.recorded, caches=self.caches)
        return tuple(launch_profile(at, detail) for at, detail in enumerate(details))

    @property
    def kernels(self) -> tuple[KernelRow, ...]:
        """The launches by kernel, those that take longest first."""
        return kernel_rows(self.launches)

    @property
    def us(self) -> float:
        """The time of all launches, one after the other."""
        return sum(launch.us for launch in self.launches)

    def advice(self) -> dict[str, tuple[Advice, ...]]:
        """Return what the numbers advise for the longest launch of each kernel."""
        return {launch.kernel: advice_of(launch) for launch in self.longest()}

    def longest(self) -> tuple[LaunchProfile, ...]:
        """Return the longest launch of each kernel, in the order of :attr:`kernels`."""
        chosen = []
        for row in self.kernels:
            same = [e for e in self.launches if (e.kernel, e.gpu) == (row.kernel, row.gpu)]
            chosen.append(max(same, key=lambda launch: launch.us))
        return tuple(chosen)

    def tiles(self, number: int = 0) -> tuple[TileStep, ...]:
        """Return who holds what in a launch: its accesses and matrix instructions, step by step."""
        return tile_steps(self.launches[number])

    def listing(self, number: int = 0) -> str:
        """Return the instructions of a launch with their numbers, as text."""
        return text.listing_text(self.launches[number])

    def save(self, path: str | Path) -> Path:
        """Write the profile; the end of the name says how.

        =====================  ========================================================
        ``.html``              a report with plots, in one file
        ``.json``              everything
        ``.csv``               the instructions
        ``.perfetto.json``     a timeline for ui.perfetto.dev and chrome://tracing
        ``.speedscope.json``   cycles by source line for speedscope.app
        ``.svg``               who holds what: lanes, registers and bytes, step by step
        ``.txt``               the text of ``print``
        a name without an end  a folder for the viewers of rocprofv3's thread traces
        =====================  ========================================================

        Raises:
            CkValueError: D020, the name ends otherwise; D021, nothing was launched.
        """
        target = Path(path)
        ending = ending_of(target)
        if not self.recorded:
            raise error("D021")
        if not ending:
            att.write(target, self.launches)
            return target
        target.write_text(FORMATS[ending](self.launches), encoding="utf-8")
        return target

    def __str__(self) -> str:
        if not self.recorded:
            return "nothing was launched on an emulated GPU"
        return text.profile_text(self.launches)

    def _repr_html_(self) -> str:
        return html.embedded(self.launches)

    def __len__(self) -> int:
        return len(self.recorded)

    def __iter__(self) -> Iterator[LaunchProfile]:
        return iter(self.launches)


def ending_of(path: Path) -> str:
    """Return the ending that says how a profile is written; empty: as a folder.

    Example:
        >>> ending_of(Path("t.perfetto.json")), ending_of(Path("folder"))
        ('.perfetto.json', '')
    """
    ending = next((end for end in FORMATS if path.name.endswith(end)), "")
    if not ending and path.suffix:
        raise error("D020", path=str(path), known=", ".join(FORMATS))
    return ending


def _pictures(launches: Sequence[LaunchProfile]) -> str:
    """Return the tiles of the longest launch."""
    return tile_pictures.sheet(tile_steps(max(launches, key=lambda launch: launch.us)))


FORMATS = {
    ".perfetto.json": perfetto.trace,
    ".speedscope.json": speedscope.document,
    ".json": tables.as_json,
    ".csv": tables.as_csv,
    ".html": html.report,
    ".svg": _pictures,
    ".txt": text.profile_text,
}
"""What writes each kind of file; the folder of rocprofv3 has no ending."""


@contextmanager
def profile(workgroups: int = 8, caches: str | None = None) -> Iterator[Profile]:
    """Profile the launches of a ``with`` statement on emulated GPUs.

    Calls run as ever, and their results are complete. Some workgroups of each launch are recorded
    instruction by instruction, and the clock times those (``docs/clock.md``) when a number needs
    it. Counts of instructions are those of all workgroups.

    Args:
        workgroups: How many of each launch are recorded, evenly spaced over its grid.
        caches: What launches find in the caches, as in :func:`cklang.predict`: ``"warm"``,
            ``"cold"`` or ``"as in the call"``.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
        >>> with ck.profile() as p:  # doctest: +SKIP
        ...     y = linear(x, w)
        >>> [(row.launches, row.share) for row in p.kernels]  # doctest: +SKIP
        [(1, 1.0)]

    Raises:
        CkValueError: A130, ``workgroups`` is below 1; A131, launches are being recorded already.
    """
    if workgroups < 1:
        raise error("A130", got=workgroups)
    filled = Profile([], caches)
    with timing(workgroups) as recording:
        yield filled
    filled.fill(recording.launches)
