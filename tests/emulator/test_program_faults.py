# SPDX-License-Identifier: MIT
"""What users of compiled HIP programs see when a kernel fails, and what the environment chooses."""

import signal
import struct
from pathlib import Path

import pytest

from cklang import emulator
from cklang.elf import sections_of, text_at
from tests.support.hip_programs import PROGRAMS, built, run

_DYNAMIC = 6  # SHT_DYNAMIC


@pytest.fixture(scope="module")
def program() -> Path:
    """A program with code for gfx950 alone."""
    return built("faults", "gfx950")


def line_of(text: str) -> int:
    return 1 + next(
        n
        for n, line in enumerate((PROGRAMS / "faults.hip").read_text().splitlines())
        if text in line
    )


def needed_libraries(library: Path) -> set[str]:
    """The names in the DT_NEEDED entries of a shared library."""
    sections = sections_of(library.read_bytes())
    (dynamic,) = (section for section in sections if section.kind == _DYNAMIC)
    strings = sections[dynamic.link].content
    entries = struct.iter_unpack("<QQ", dynamic.content)
    return {text_at(strings, value) for tag, value in entries if tag == 1}


@pytest.mark.usefixtures("emulator")
def test_the_library_names_the_libraries_that_it_calls() -> None:
    """A program that was linked without the math library can run kernels that need it."""
    assert {"libm.so.6", "libc.so.6", "libpthread.so.0"} <= needed_libraries(
        emulator.library_path()
    )


@pytest.mark.usefixtures("compiler")
def test_a_fault_is_reported_and_ends_the_program(program: Path) -> None:
    done = run(program, "page")
    assert done.returncode == -signal.SIGABRT
    first, *rest = done.stderr.splitlines()
    assert first.startswith("Memory access fault by GPU node-1 (gfx950, emulated) on address 0x")
    assert first.endswith("Reason: Page not present or supervisor privilege.")
    text = "\n".join(rest)
    assert "kernel touch(int*, int), workgroup (0, 0, 0), wave 0, lane 3" in text
    assert f"faults.hip:{line_of('the faulty line')}" in text
    assert "the nearest allocation is 1000 bytes of device memory at 0x" in text
    assert "the address is 3104 bytes behind its end" in text
    assert "hipErrorIllegalAddress" in text
    freed = run(program, "freed")
    assert "the address is at byte 4 of memory that was freed" in freed.stderr
    assert freed.returncode == -signal.SIGABRT


@pytest.mark.usefixtures("compiler")
def test_a_program_can_go_on_after_a_fault(program: Path) -> None:
    done = run(program, "page", CKLANG_FAULT="continue")
    assert (done.returncode, done.stdout) == (0, "hipErrorIllegalAddress 0\n")
    assert done.stderr.startswith("Memory access fault by GPU node-1")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("what", ["host", "struct"])
def test_memory_of_malloc_is_out_of_reach_without_xnack(program: Path, what: str) -> None:
    done = run(program, what)
    assert done.returncode == -signal.SIGABRT
    assert "memory of the host that HIP has neither allocated nor registered" in done.stderr
    value = {"host": 7, "struct": 5}[what]
    done = run(program, what, HSA_XNACK="1")
    assert (done.stdout, done.stderr) == (f"hipSuccess {value}\n", "")


@pytest.mark.usefixtures("compiler")
def test_registered_memory_is_in_reach(program: Path) -> None:
    done = run(program, "registered")
    assert (done.stdout, done.stderr) == ("hipSuccess 7\n", "")


@pytest.mark.usefixtures("compiler")
def test_checks_are_chosen_by_the_environment(program: Path) -> None:
    """Four bytes behind an allocation of 1000 lie on its last page, which only a check finds."""
    assert run(program, "beyond").stdout == "hipSuccess 0\n"
    done = run(program, "beyond", CKLANG_SANITIZE="waits, memory")
    assert done.returncode == -signal.SIGABRT
    assert "out of bounds: " in done.stderr
    assert "the address is 0 bytes behind its end" in done.stderr
    done = run(program, "inside", CKLANG_SANITIZE="memory")
    assert done.stdout == "hipSuccess 0\n"
    first, second = done.stderr.splitlines()
    assert first == "memory that is not freed: 1000 bytes in 1 allocations"
    assert "1000 bytes of device memory on device 0, number 1 of the program's" in second
    assert not run(program, "registered", CKLANG_SANITIZE="waits").stderr


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("CKLANG_SANITIZE", "memory,rases", '"rases" is none of waits, races'),
        ("CKLANG_NUMERICS", "exakt", '"exakt" is none of fma, exact, cdna3'),
        ("CKLANG_TIMEOUT", "soon", "must be a number of seconds"),
        ("CKLANG_GPUS", "gfx9999", "no such GPU is emulated"),
    ],
)
def test_unknown_words_are_refused(program: Path, name: str, text: str, problem: str) -> None:
    done = run(program, "inside", **{name: text})
    assert done.returncode == 2
    assert f"{name}={text}: " in done.stderr
    assert problem in done.stderr


@pytest.mark.usefixtures("compiler")
def test_a_program_sees_the_devices_that_it_has_code_for(program: Path) -> None:
    assert run(program, "devices").stdout == "1, the last is gfx950\n"
    assert run(program, "devices", CKLANG_GPUS="gfx950*3").stdout == "3, the last is gfx950\n"
    listed = run(program, "devices", CKLANG_GPUS="gfx950,gfx90a", HIP_VISIBLE_DEVICES="1")
    assert listed.stdout == "1, the last is gfx90a\n"
    done = run(program, "inside", CKLANG_GPUS="gfx942")
    assert done.stdout == "hipSuccess 0\n", "the launch failed, and the program does not ask"
    assert "kernel touch(int*, int) is not launched: device 0 is a gfx942" in done.stderr
    assert "the program has code for gfx950" in done.stderr


@pytest.mark.usefixtures("compiler")
def test_a_launch_that_takes_too_long_ends(program: Path) -> None:
    done = run(program, "forever", CKLANG_TIMEOUT="1")
    assert done.returncode == -signal.SIGABRT
    assert "kernel forever(int volatile*) has not ended in 1 seconds" in done.stderr
    assert "workgroup (0, 0, 0), wave 0 runs, pc 0x" in done.stderr
    loop = range(line_of("while(state != 0)"), line_of("x[0] = 1;"))
    assert any(f"(faults.hip:{line})" in done.stderr.replace(f"{PROGRAMS}/", "") for line in loop)
