# SPDX-License-Identifier: MIT
"""Compressed offload bundles: what zlib and zstd pack at every level, and what is damaged."""

import pickle
import random
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zstandard

from cklang import emulator
from tests.emulator.test_hip import _COPY
from tests.emulator.test_hip_program import bundle
from tests.support.assembly import Module, assemble, hip, ok, status
from tests.support.processes import run_python

pytestmark = pytest.mark.usefixtures("emulator")

ZLIB, ZSTD = 0, 1
_NOT_ENDING = zstandard.ZstdCompressionParameters(compression_level=3, write_checksum=1)


def compressed(data: bytes, method: int, packed: bytes, version: int = 3) -> bytes:
    """The file as clang's offload bundler writes it (``CompressedOffloadBundle`` in LLVM)."""
    layout = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
    sizes = (struct.calcsize(layout) + len(packed), len(data))[version == 1 :]
    return struct.pack(layout, b"CCOB", version, method, *sizes, 0) + packed


PACKERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    **{f"zlib {n}": (ZLIB, partial(zlib.compress, level=n)) for n in (0, 1, 6, 9)},
    **{f"zstd {n}": (ZSTD, partial(zstandard.compress, level=n)) for n in (-5, 1, 3, 9, 19, 22)},
    "zstd with a checksum": (
        ZSTD,
        lambda data: zstandard.ZstdCompressor(compression_params=_NOT_ENDING).compress(data),
    ),
    "zstd of unknown size": (
        ZSTD,
        lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
    ),
}


@pytest.fixture(scope="module")
def image() -> bytes:
    return assemble({"copy": _COPY})


@pytest.fixture(scope="module")
def members(image: bytes) -> bytes:
    """A bundle with much beside the code: text, noise, runs, and what repeats at a distance."""
    draw = random.Random(1)
    noise, words = draw.randbytes(150_000), Path(__file__).read_bytes()
    few = bytes(draw.choices(b"abcdefg", [64, 32, 16, 8, 4, 2, 1], k=200_000))
    rest = words * 3 + noise + bytes(300_000) + few + noise[:70_000] + words
    return bundle({"gfx950": rest, "gfx942": image})


def run(file: bytes) -> None:
    """Loads the module and runs its kernel."""
    source, output = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    assert Module(file).launch("copy", source, output) == "hipSuccess"
    np.testing.assert_array_equal(output, source)


@pytest.mark.parametrize("packer", PACKERS)
def test_every_packing_runs(members: bytes, packer: str) -> None:
    method, pack = PACKERS[packer]
    run(compressed(members, method, pack(members)))


@pytest.mark.parametrize("method", [ZLIB, ZSTD])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_runs(members: bytes, method: int, version: int) -> None:
    packed = zlib.compress(members) if method == ZLIB else zstandard.compress(members)
    run(compressed(members, method, packed, version))


def test_files_are_compressed_too(members: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kernel.hipfb"
    path.write_bytes(compressed(members, ZSTD, zstandard.compress(members)))
    ok(hip().hipSetDevice(0))
    ok(hip().hipModuleUnload(ok(hip().hipModuleLoad(bytes(path)))))


def test_what_is_not_known_is_named(members: bytes) -> None:
    packed = zlib.compress(members)
    for file, said in (
        (compressed(members, 2, packed), "method 2"),
        (compressed(members, ZLIB, packed).replace(b"CCOB\3", b"CCOB\4", 1), "version 4"),
        (compressed(members, ZSTD, packed), "its zstd data"),
        (compressed(members + b"?", ZLIB, packed), "its zlib data"),
        (compressed(members[:-1], ZLIB, packed), "its zlib data"),
    ):
        assert status(hip().hipModuleLoadData(file)) == "hipErrorInvalidImage"
        assert said in emulator.last_error()
    other = compressed(members, ZLIB, zlib.compress(bundle({"gfx950": b""})))
    assert status(hip().hipModuleLoadData(other)) == "hipErrorInvalidImage"


_FUZZ = """
import ctypes, pickle, sys
library, seen = ctypes.CDLL(sys.argv[1]), set()
for bad in pickle.load(open(sys.argv[2], "rb")):
    module = ctypes.c_void_p()
    seen.add(library.hipModuleLoadData(ctypes.byref(module), ctypes.create_string_buffer(bad)))
print(sorted(seen))
"""


def test_damaged_data_are_refused(image: bytes, tmp_path: Path) -> None:
    """Truncated anywhere, and with flipped bits: an error or another file, and no crash."""
    draw, small, cases = random.Random(3), bundle({"gfx942": image}), []
    for packer in PACKERS:
        method, pack = PACKERS[packer]
        packed = pack(small)
        for _ in range(100):
            bad = bytearray(packed)
            for _ in range(draw.randint(1, 3)):
                bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
            cases.append(compressed(small, method, bytes(bad), draw.choice((1, 2, 3))))
            cases.append(compressed(small, method, packed[: draw.randrange(len(packed))]))
    (tmp_path / "cases").write_bytes(pickle.dumps(cases))
    done = run_python("-c", _FUZZ, emulator.library_path(), tmp_path / "cases")
    assert 200 in map(int, done.stdout.strip("[]\n").split(","))  # hipErrorInvalidImage
