# SPDX-License-Identifier: MIT
"""A program that speaks to the emulated kernel driver as a runtime does, without one.

It is run with the driver's library preloaded, and a file with a code object of a kernel `double`
that doubles 64 words; the symbol of its descriptor is at the offset that the second word says.
"""

import ctypes
import fcntl
import mmap
import os
import struct
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 2, *[ctypes.c_int] * 2, ctypes.c_long]
READ_WRITE, NOT_SHARED = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
VRAM, AQL, SIGNAL = 1, 2, 0
DISPATCH, INVALID, DIMS = 2, 1, 1
LOAD = 1


def call(number: int, layout: str, *values: int) -> tuple[int, ...]:
    """Call the driver; return its structure as it is then."""
    data = bytearray(struct.pack(layout, *values))
    request = 3 << 30 | len(data) << 16 | ord("K") << 8 | number
    fcntl.ioctl(KFD, request, data)
    return struct.unpack(layout, data)


def reserve(size: int) -> int:
    """Return the address of memory of the process."""
    return int(LIBC.mmap(None, size, READ_WRITE, NOT_SHARED, -1, 0))


def allocate(size: int) -> int:
    """Return the address of memory of the GPU."""
    address = reserve(size)
    handle = call(0x16, "4Q2I", address, size, 0, 0, GPU, VRAM)[2]
    gpus = (ctypes.c_uint32 * 1)(GPU)
    assert call(0x18, "2Q2I", handle, ctypes.addressof(gpus), 1, 0)[3] == 1
    return address


def put(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))


def load(code: bytes) -> int:
    """Put the segments of a code object into memory of the GPU; return where it begins."""
    base = allocate(1 << 20)
    start, size, count = (*struct.unpack_from("<Q", code, 32), *struct.unpack_from("<2H", code, 54))
    for entry in range(start, start + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<2I4Q", code, entry)
        if kind == LOAD:
            put(base + address, code[offset : offset + length])
    return base


def run(kernel: int, arguments: bytes) -> None:
    """Dispatch 64 work-items on a queue of packets and wait for the event of their signal."""
    ring, indices, words, kernarg = (reserve(4096) for _ in range(4))
    put(ring, struct.pack("<H", INVALID) * 2048)
    put(kernarg, arguments)
    queue = call(
        0x02, "4Q6I3Q4I",
        ring, indices, indices + 8, 0, 4096, GPU, AQL, 100, 7, 0, 0, 0, 0, 0, 0, 0, 0,
    )  # fmt: skip
    _, trigger, *_, event, _ = call(0x08, "Q6I", 0, 0, SIGNAL, 1, 0, 0, 0)
    signal = words
    put(signal, struct.pack("<2qQ2I4Q", 1, 1, words + 2048, trigger, 0, 0, 0, 0, 0))
    body = struct.pack("<5H3I2I4Q", DIMS, 64, 1, 1, 0, 64, 1, 1, 0, 0, kernel, kernarg, 0, signal)
    put(ring + 2, body)
    put(ring, struct.pack("<H", DISPATCH))
    page, slot = queue[3] & ~8191, queue[3] & 8191
    with mmap.mmap(KFD, 8192, offset=page) as doorbells:
        doorbells[slot : slot + 8] = struct.pack("<Q", 0)
        waited = (ctypes.c_uint64 * 6)(0, 0, 0, 0, 0, event)
        result = call(0x0C, "Q4I", ctypes.addressof(waited), 1, 1, 60000, 9)[4]
    assert result == 0, "the kernel has not ended"
    assert struct.unpack("<q", ctypes.string_at(signal + 8, 8)) == (0,)
    assert struct.unpack("<Q", ctypes.string_at(words + 2048, 8)) == (trigger,)
    begun, ended = struct.unpack("<2Q", ctypes.string_at(signal + 32, 16))
    assert 0 < begun <= ended <= call(0x05, "4Q2I", 0, 0, 0, 0, GPU, 0)[0]
    call(0x03, "2I", queue[9], 0)
    assert struct.unpack("<Q", ctypes.string_at(indices + 8, 8)) == (1,)


if __name__ == "__main__":
    KFD = os.open("/dev/kfd", os.O_RDWR)
    version = call(0x01, "2I", 0, 0)
    apertures = (ctypes.c_uint64 * 14)()
    count = call(0x14, "Q2I", ctypes.addressof(apertures), 2, 0)[1]
    GPU = apertures[6] & 0xFFFFFFFF
    try:
        call(0x22, "Q", 0)
    except OSError as problem:
        sys.stdout.write(f"{version[0]} {count} {GPU} {problem.strerror}\n")
    memory = allocate(4096)
    put(memory, struct.pack("<64I", *range(64)))
    base = load(Path(sys.argv[1]).read_bytes())
    run(base + int(sys.argv[2]), struct.pack("<2Q", memory, memory + 1024))
    doubled = struct.unpack("<64I", ctypes.string_at(memory + 1024, 256))
    sys.stdout.write(f"{doubled == tuple(range(0, 128, 2))}\n")
