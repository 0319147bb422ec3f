# SPDX-License-Identifier: MIT
"""Where a thing was written: source texts, spans in them, and the caret picture of a span."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text that spans point into.

    ``first_line`` is the 1-based line of the file at which ``text`` starts, so that a function
    taken out of a module keeps the module's line numbers.
    """

    name: str
    text: str
    first_line: int = 1

    def line(self, number: int) -> str | None:
        """Return line ``number`` (counted as in the file) or None if it is not in the text."""
        lines = self.text.splitlines()
        index = number - self.first_line
        return lines[index] if 0 <= index < len(lines) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of a source: 1-based lines, 0-based columns, the end exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column + 1}"

    def render(self) -> str:
        """Draw the first line of the span, carets under it; only the place if it has no text."""
        text = self.source.line(self.line)
        if text is None:
            return f"  --> {self}"
        # Carets are counted in characters of a line whose tabs count as one column, as editors' do.
        end = self.end_column if self.end_line == self.line else len(text)
        width = max(1, end - self.column)
        number = str(self.line)
        margin = " " * len(number)
        carets = " " * self.column + "^" * width
        return "\n".join(
            [
                f"  --> {self}",
                f"{margin} |",
                f"{number} | {text.replace(chr(9), ' ')}",
                f"{margin} | {carets}",
            ]
        )
