# SPDX-License-Identifier: MIT
"""Why a node of a torch graph has no kernel."""


class Unsupported(Exception):  # noqa: N818 - it never leaves the backend: it is a reason
    """A node that runs in eager torch; the text is the reason, without the node's name."""
