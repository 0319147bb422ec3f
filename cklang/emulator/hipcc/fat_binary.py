# SPDX-License-Identifier: MIT
"""Fat binaries: the code objects of one source for several GPUs, in one block of bytes.

The format is the offload bundle that clang documents (ClangOffloadBundler): a magic word, the
number of entries, a descriptor of each entry (offset, size, length of its name, name), then the
entries. A HIP runtime picks the entry whose name fits its GPU. The entry of the host is empty.
"""

import struct
from collections.abc import Mapping
from contextlib import suppress

ALIGNMENT = 4096
"""Offsets of code objects are multiples of this, in bytes, so that they can be mapped."""

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_HOST = "host-x86_64-unknown-linux-gnu-"
_DEVICE = "hipv4-amdgcn-amd-amdhsa--"
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")


def bundle(images: Mapping[str, bytes]) -> bytes:
    """Return the fat binary of ``images``: code objects by GPU, such as ``gfx942``.

    A GPU's name may carry features: ``gfx942:sramecc+:xnack-``.
    """
    names = [_HOST.encode(), *(f"{_DEVICE}{arch}".encode() for arch in images)]
    contents = [b"", *images.values()]
    start = len(_MAGIC) + _COUNT.size + sum(_ENTRY.size + len(name) for name in names)
    header, body, offset = bytearray(_MAGIC + _COUNT.pack(len(names))), bytearray(), _up(start)
    for name, content in zip(names, contents, strict=True):
        header += _ENTRY.pack(offset, len(content), len(name)) + name
        body += content.ljust(_up(len(content)), b"\0")
        offset += _up(len(content))
    return bytes(header.ljust(_up(start), b"\0") + body)


def entries(data: bytes) -> dict[str, bytes]:
    """Return the code objects of a fat binary by GPU; the inverse of :func:`bundle`."""
    if not data.startswith(_MAGIC):
        raise ValueError(f"it does not begin with {_MAGIC.decode()}")
    code_objects: dict[str, bytes] = {}
    try:
        (count,) = _COUNT.unpack_from(data, len(_MAGIC))
        at = len(_MAGIC) + _COUNT.size
        for _ in range(count):
            offset, size, length = _ENTRY.unpack_from(data, at)
            name = data[at + _ENTRY.size : at + _ENTRY.size + length].decode()
            at += _ENTRY.size + length
            if offset + size > len(data):
                raise ValueError(f"entry {name!r} ends at {offset + size} of {len(data)} bytes")
            if name.startswith(_DEVICE):
                code_objects[name.removeprefix(_DEVICE)] = data[offset : offset + size]
    except struct.error as problem:
        raise ValueError("its table of entries is cut off") from problem
    return code_objects


def all_entries(data: bytes) -> list[tuple[str, bytes]]:
    """Return the code objects, by GPU, of all fat binaries in a file, such as an executable.

    What looks like a fat binary and is none is passed over: the name of the format alone may be in
    a program's text.
    """
    images: list[tuple[str, bytes]] = []
    at = data.find(_MAGIC)
    while at >= 0:
        with suppress(ValueError):
            images += ((arch, image) for arch, image in entries(data[at:]).items() if image)
        at = data.find(_MAGIC, at + 1)
    return images


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
