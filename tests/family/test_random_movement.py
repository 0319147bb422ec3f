# SPDX-License-Identifier: MIT
"""Random programs that move elements between products, reductions and pointwise functions."""

import math
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from tests.support.checks import check
from tests.support.written_ops import written_op

Shape = tuple[int, ...]
ARGUMENTS: dict[str, Shape] = {"x": (4, 16), "y": (4, 16), "w": (16, 16)}


@dataclass
class Program:
    """Statements, and the values that they have so far with their shapes."""

    draw: Random
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, Shape]] = field(default_factory=lambda: list(ARGUMENTS.items()))

    def grow(self) -> None:
        """Add a statement on a late value, or none where the drawn one has no sense."""
        value, shape = self.draw.choice(self.values[-3:])
        steps = (self.slice, self.turn, self.reshape, self.join, self.split, self.compute)
        step = self.draw.choice([*steps, self.slice, self.join, self.compute])
        drawn = step(value, shape)
        if drawn is not None:
            name = f"v{len(self.lines)}"
            self.lines.append(f"{name} = {drawn[0]}")
            self.values.append((name, drawn[1]))

    def like(self, shape: Shape) -> str:
        """Return a value of a shape."""
        return self.draw.choice([name for name, own in self.values if own == shape])

    def slice(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        axis = self.draw.randrange(len(shape))
        low = self.draw.randrange(shape[axis])
        high, step = self.draw.randint(low + 1, shape[axis]), self.draw.choice([1, 1, 2])
        index = ", ".join([":"] * axis + [f"{low}:{high}:{step}"])
        return f"{value}[{index}]", _with(shape, axis, len(range(low, high, step)))

    def turn(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        perm = self.draw.sample(range(len(shape)), len(shape))
        return f"{value}.permute({tuple(perm)})", tuple(shape[axis] for axis in perm)

    def reshape(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        count = math.prod(shape)
        rows = self.draw.choice([n for n in range(1, count + 1) if count % n == 0])
        return f"{value}.reshape({rows}, -1)", (rows, count // rows)

    def join(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        axis, other = self.draw.randrange(len(shape)), self.like(shape)
        if len(shape) < 4 and self.draw.random() < 0.5:
            return f"ck.stack([{value}, {other}], {axis})", (*shape[:axis], 2, *shape[axis:])
        return f"ck.concat([{value}, {other}], {axis})", _with(shape, axis, 2 * shape[axis])

    def split(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        axis = self.draw.randrange(len(shape))
        if shape[axis] % 2:
            return None
        return f"{value}.split(2, {axis})[1]", _with(shape, axis, shape[axis] // 2)

    def compute(self, value: str, shape: Shape) -> tuple[str, Shape] | None:
        inner = [name for name, own in self.values if len(own) == 2 and own[0] == shape[-1]]
        if len(shape) > 1 and inner and self.draw.random() < 0.3:
            right = self.draw.choice(inner)
            columns = dict(self.values)[right][1]
            product = f"({value}.to(ck.f16) @ {right}.to(ck.f16)) * 0.25"
            return product, (*shape[:-1], columns)
        other = self.like(shape)
        words = [f"{value} * 0.5 + {other}", f"ck.softmax({value})", f"{value}.to(ck.f16)"]
        return self.draw.choice(words), shape

    def text(self) -> str:
        """Return the op that returns its last value."""
        name, shape = self.values[-1]
        params = ", ".join(f"{each}: ck.f16[{own[0]}, {own[1]}]" for each, own in ARGUMENTS.items())
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {name}"])
        return f"@ck.op\ndef f({params}) -> ck.f32{list(shape)}:\n{body}"


def _with(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("is_strided", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_that_move_elements(seed: int, is_strided: bool) -> None:
    program = Program(Random(seed))
    for _ in range(6):
        program.grow()
    numbers = np.random.default_rng(seed)
    args = [
        numbers.standard_normal((2 * rows, columns + 1)).astype(np.float16)[::2, 1:]
        if is_strided
        else numbers.standard_normal((rows, columns)).astype(np.float16)
        for rows, columns in ARGUMENTS.values()
    ]
    check(written_op(program.text(), "M"), args)
