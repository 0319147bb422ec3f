# SPDX-License-Identifier: MIT
"""The loggers of cklang: ``CKLANG_LOG`` sets their level; some things are said only once."""

import logging
from functools import cache

from cklang import knobs


@cache
def _root() -> logging.Logger:
    root = logging.getLogger("cklang")
    if root.level == logging.NOTSET:
        root.setLevel(knobs.LOG.get().upper())
    # An application that configured logging keeps its own handlers and format.
    if not root.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("cklang: %(message)s"))
        root.addHandler(handler)
    return root


def logger(name: str) -> logging.Logger:
    """Return the logger ``cklang.<name>``."""
    return _root().getChild(name)


@cache
def say_once(name: str, level: int, message: str) -> None:
    """Log ``message`` to ``cklang.<name>`` the first time this process asks for it."""
    logger(name).log(level, message)
