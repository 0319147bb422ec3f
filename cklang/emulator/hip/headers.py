# SPDX-License-Identifier: MIT
"""Where HIP's headers are.

Those in ``kernels`` have what CK Tile's kernels call, and are part of the identity of each compiled
one. Those in ``programs`` include them and add the rest of HIP, so that a new function there is no
reason to compile kernels again.
"""

import hashlib
import re
from pathlib import Path

_HERE = Path(__file__).parent
KERNELS = _HERE / "kernels"
"""The include folder of kernels: ``hip/``, and the mathematical functions in ``cklang/``."""

PROGRAMS = _HERE / "programs"
"""The include folder that stands before :data:`KERNELS` where whole programs are compiled."""

HOST_SUPPORT = _HERE / "host_support.c"
"""What the host's objects may call and the machine's libraries lack."""


def hip_version() -> str:
    """Return the version of HIP that these headers describe.

    Example:
        >>> hip_version()
        '7.1.0'
    """
    text = (KERNELS / "hip" / "hip_version.h").read_text("utf-8")
    return ".".join(re.findall(r"#define HIP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def identity() -> str:
    """Return a hex digest of the headers of kernels, for cache keys."""
    digest = hashlib.sha256()
    for path in sorted(path for path in KERNELS.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(KERNELS)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
