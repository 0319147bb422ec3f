# SPDX-License-Identifier: MIT
"""How objects without a picture show themselves in IPython and in notebooks."""

from typing import Any


class ShownAsText:
    """A report that IPython shows as its ``str()``; it would list the fields of the record."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))
