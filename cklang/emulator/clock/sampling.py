# SPDX-License-Identifier: MIT
"""How many workgroups of a launch are recorded, and which of them stand for the others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from cklang.emulator.clock.records import WaveHeads, heads_of, some_of
from cklang.emulator.engine.recording import RecordedLaunch

SAMPLES = 11
"""Workgroups that are recorded of launches whose workgroups differ, as those of causal attention: a
prime number, since one that divides an extent of the grid meets the same places of an axis again
and again."""
_PROBES = (3, 5, 7)
"""Workgroups that show whether they differ: the first of these that does not divide the grid."""
_MUCH_MORE = 1.2
"""Instructions of the longest recorded workgroup over those of the shortest."""


def waves_of_groups(launch: RecordedLaunch) -> list[list[int]]:
    """Return the numbers of the waves of each recorded workgroup, both in order."""
    heads = heads_of(launch.waves)
    return [heads.number[group].tolist() for group in heads.groups]


def executed_of(heads: WaveHeads) -> list[int]:
    """Return how many instructions the waves of each workgroup executed."""
    total = np.cumsum(heads.executed)[heads.ends - 1]
    executed: list[int] = np.diff(total, prepend=0).tolist()
    return executed


def differ(executed: Sequence[int]) -> bool:
    """Return whether some workgroups execute many more instructions than others.

    Example:
        >>> differ([100, 110, 105]), differ([100, 400])
        (False, True)
    """
    return bool(executed) and max(executed) > _MUCH_MORE * min(executed)


def _differs(launch: RecordedLaunch) -> bool:
    return differ(executed_of(heads_of(launch.waves)))


def representative(launch: RecordedLaunch) -> RecordedLaunch:
    """Return a launch with the first of its recorded workgroups alone, unless they differ."""
    heads = heads_of(launch.waves)
    if len(heads.ends) < 2 or differ(executed_of(heads)):
        return launch
    return replace(launch, waves=some_of(launch.waves, heads, slice(heads.ends[0])))


def recorded_with(record: Callable[[int], Sequence[RecordedLaunch]]) -> tuple[RecordedLaunch, ...]:
    """Return some launches with as many workgroups as it takes to time them.

    Args:
        record: Executes so many workgroups of each launch, evenly spaced over its grid.
    """
    for count in _PROBES:
        launches = record(count)
        if any(map(_differs, launches)):
            launches = record(SAMPLES)
            break
        totals = [prod(launch.groups) for launch in launches]
        if all(total <= count or total % count for total in totals):
            break
    return tuple(map(representative, launches))
