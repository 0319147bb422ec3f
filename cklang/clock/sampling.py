# SPDX-License-Identifier: MIT
"""How many workgroups of a launch are recorded, and which of them stand for the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from cklang.emulator.recording import RecordedLaunch, RecordedWave

__all__ = ["SAMPLES", "differ", "executed_of", "recorded_with", "representative", "waves_of_groups"]

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
    order = sorted(
        range(len(launch.waves)), key=lambda at: (launch.waves[at].workgroup, launch.waves[at].wave)
    )
    groups: dict[int, list[int]] = {}
    for at in order:
        groups.setdefault(launch.waves[at].workgroup, []).append(at)
    return list(groups.values())


def executed_of(groups: Sequence[Sequence[int]], waves: Sequence[RecordedWave]) -> list[int]:
    """Return how many instructions the waves of each workgroup executed."""
    return [sum(waves[at].executed for at in group) for group in groups]


def differ(executed: Sequence[int]) -> bool:
    """Return whether some workgroups execute many more instructions than others.

    Example:
        >>> differ([100, 110, 105]), differ([100, 400])
        (False, True)
    """
    return bool(executed) and max(executed) > _MUCH_MORE * min(executed)


def _differs(launch: RecordedLaunch) -> bool:
    return differ(executed_of(waves_of_groups(launch), launch.waves))


def representative(launch: RecordedLaunch) -> RecordedLaunch:
    """Return a launch with the first of its recorded workgroups alone, unless they differ."""
    groups = waves_of_groups(launch)
    if len(groups) < 2 or differ(executed_of(groups, launch.waves)):
        return launch
    return replace(launch, waves=tuple(launch.waves[at] for at in groups[0]))


def recorded_with(
    record: Callable[[int], Sequence[RecordedLaunch]],
) -> tuple[RecordedLaunch, ...]:
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
