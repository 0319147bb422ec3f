# SPDX-License-Identifier: MIT
"""Polynomials as a list of operations, which the launchers in C++ and Python evaluate.

A register is a variable or the result of an operation, by its number: variables first. Launchers
compute all registers of a variant in order; conditions and arguments name registers.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from cklang.exporting.traced import Polynomial
from cklang.exporting.variants import LaunchTemplate, Variant


class Operation(IntEnum):
    """What an operation computes of its two numbers, which are registers but of a constant."""

    CONSTANT = 0
    SUM = 1
    PRODUCT = 2
    QUOTIENT = 3
    """Rounded down."""
    REST = 4


_OF_ATOMS = {"//": Operation.QUOTIENT, "%": Operation.REST}


class _Registers:
    """The registers of one variant; each operation is there once."""

    def __init__(self, variant: Variant) -> None:
        self._atoms = variant.trace.atoms
        self._variables = {name: number for number, name in enumerate(variant.variables)}
        self._known: dict[tuple[int, int, int], int] = {}
        self.operations: list[list[int]] = []

    def of(self, polynomial: Polynomial) -> int:
        """Return the register of a polynomial's value."""
        terms = [self._term(atoms, factor) for atoms, factor in polynomial]
        if not terms:
            return self._add(Operation.CONSTANT, 0, 0)
        total, *rest = terms
        for term in rest:
            total = self._add(Operation.SUM, total, term)
        return total

    def _term(self, atoms: tuple[int, ...], factor: int) -> int:
        values = [self._atom(number) for number in atoms]
        if factor != 1 or not values:
            values.append(self._add(Operation.CONSTANT, factor, 0))
        total, *rest = values
        for term in rest:
            total = self._add(Operation.PRODUCT, total, term)
        return total

    def _atom(self, number: int) -> int:
        atom = self._atoms[number]
        if not atom.of:
            return self._variables[atom.name]
        first, second = map(self.of, atom.of)
        return self._add(_OF_ATOMS[atom.name], first, second)

    def _add(self, operation: Operation, first: int, second: int) -> int:
        row = (int(operation), first, second)
        if row not in self._known:
            self._known[row] = len(self._variables) + len(self.operations)
            self.operations.append(list(row))
        return self._known[row]


def variant_data(
    variant: Variant, kernels: Mapping[int, int], reasons: dict[str, int]
) -> dict[str, Any]:
    """Return a variant as plain data.

    Args:
        variant: The plan and its conditions.
        kernels: The place in the manifest of each launch's kernel, by the launch's.
        reasons: The texts that say who asked for conditions, by text; new ones are added.
    """
    registers = _Registers(variant)
    temporaries = (name for name, _ in variant.sizes)
    slots = {name: slot for slot, name in enumerate((*variant.names, *temporaries))}
    tensors = [
        {
            "shape": [registers.of(extent) for extent in tensor.shape],
            "strides": [registers.of(stride) for stride in tensor.strides],
        }
        for tensor in variant.tensors
    ]
    names = [tensor.name for tensor in variant.tensors]
    conditions = [
        [
            int(condition.relation),
            registers.of(condition.of),
            reasons.setdefault(condition.why, len(reasons)),
        ]
        for condition in variant.conditions
    ]
    launches = [
        _launch(launch, registers, slots, kernels[place])
        for place, launch in enumerate(variant.launches)
    ]
    return {
        "operations": registers.operations,
        "strides": [list(strides) for strides in _places(variant, names)],
        "tensors": tensors,
        "conditions": conditions,
        "temporaries": [
            [registers.of(size), *_lifetime(variant, name)] for name, size in variant.sizes
        ],
        "launches": launches,
    }


def _places(variant: Variant, names: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the tensor and the axis of each stride that is free."""
    for name in variant.variables:
        tensor, dot, axis = name.partition(".")
        if dot:
            yield names.index(tensor), int(axis)


def _lifetime(variant: Variant, name: str) -> tuple[int, int]:
    """Return the first and the last launch that use a value."""
    users = [place for place, launch in enumerate(variant.launches) if name in launch.values]
    return users[0], users[-1]


def _launch(
    launch: LaunchTemplate, registers: _Registers, slots: Mapping[str, int], kernel: int
) -> dict[str, Any]:
    size = len(launch.request)
    words = [
        [place, word]
        for place in range(size // 8)
        if (word := int.from_bytes(launch.request[8 * place : 8 * place + 8], "little"))
    ]
    constants = {
        name: [registers.of(first), count] for name, (first, count) in launch.constants.items()
    }
    used = [name for name in launch.values if name in constants]
    return {
        "kernel": kernel,
        "words": size // 8,
        "filled": words,
        "puts": [[offset // 8, registers.of(value)] for offset, value in launch.puts],
        "addresses": [[offset // 8, place] for offset, place in launch.addresses],
        "slots": [
            -1 - used.index(name) if name in constants else slots[name] for name in launch.values
        ],
        "moves": [registers.of(offset) for offset in launch.offsets],
        "constants": [constants[name] for name in used],
        "clears": [[slots[name], registers.of(size)] for name, size in launch.zeroed],
    }
