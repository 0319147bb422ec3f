# SPDX-License-Identifier: MIT
"""Instructions beside their lines: the line table of a code object, the text and the page."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang import emulator
from cklang.cli.inspection import inspection_page
from cklang.emulator.hipcc import driver, fat_binary
from cklang.emulator.profiler.inlining import inlined_calls
from cklang.emulator.profiler.listing import CodeLine, KernelListing, ListedInstruction, lines_of
from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.source import Place

M, N, K = ck.dims("M N K")


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    y = x @ w.T
    return ck.relu(y) * 0.5


def test_line_table_is_that_of_a_recorded_launch(
    transpose: Profile, transpose_program: Path
) -> None:
    images = dict(fat_binary.all_entries(transpose_program.read_bytes()))
    (image,) = (image for arch, image in images.items() if "gfx942" in arch)
    (launch,) = transpose.recorded
    rows = [
        (4 * int(begin), 4 * int(end), launch.files[file], int(line))
        for begin, end, file, line in launch.sources
    ]
    assert rows == [
        (row.begin, row.end, row.file, row.line) for row in emulator.line_table("gfx942", image)
    ]
    assert any(row[2].endswith("transpose.hip") for row in rows)


_MEETING = """\
#include <hip/hip_runtime.h>
__device__ void meet(int* s) { s[threadIdx.x] += 1; __syncthreads(); }
extern "C" __global__ void meeting(int* x)
{
    __shared__ int s[256];
    s[threadIdx.x] = x[threadIdx.x];
    meet(s);
    x[threadIdx.x] = s[255 - threadIdx.x];
}
"""


@pytest.mark.usefixtures("emulator")
def test_inlined_calls_name_the_line_that_calls(tmp_path: Path) -> None:
    source, output = tmp_path / "meeting.hip", tmp_path / "meeting.co"
    source.write_text(_MEETING)
    words = ["--offload-arch=gfx942", "--offload-device-only", "-c", str(source)]
    driver.build([*words, "-o", str(output)], print)
    image = output.read_bytes()
    rows = {row.begin: row for row in emulator.line_table("gfx942", image)}
    (barrier,) = (
        int(line.partition(":")[0], 16)
        for line in emulator.disassemble("gfx942", image).splitlines()
        if "s_barrier" in line
    )
    inside = [row for begin, row in rows.items() if begin <= barrier < row.end]
    assert [(row.file, row.line) for row in inside] == [(str(source), 2)]
    (call,) = [call for call in inlined_calls(image) if call.begin <= barrier < call.end]
    assert (call.file, call.line, call.function, call.depth) == (str(source), 7, "meet", 1)
    assert inlined_calls(b"\x7fELF" + bytes(60)) == []


def listing() -> KernelListing:
    function = scaled.ir(*scaled_arguments())
    span = function.body[-1].span
    assert span is not None
    user = Place(span.source.name, span.line)
    load = CodeLine("/wheel/include/ck_tile/load.hpp", 7, "return load<N>(p);")
    product = CodeLine("fill", 4, "const float v0 = acc * 0.5f;")
    rows = [(0, "s_load_dword s0", load, None), (8, "s_nop 0", load, None),
            (12, "v_mul_f32 v0, 0.5, v0", product, user), (16, "s_endpgm", None, None)]  # fmt: skip
    return KernelListing(
        label="gemm_one",
        rows=tuple(
            ListedInstruction(address=address, text=text, code=code, user=place)
            for address, text, code, place in rows
        ),
        fill=((product, user),),
    )


def scaled_arguments() -> tuple[object, object]:
    return np.empty((4, 8), np.float16), np.empty((6, 8), np.float16)


def test_a_place_is_named_at_its_first_instruction() -> None:
    label, head, *rows = lines_of(listing())
    assert (label, head.split()) == ("gemm_one:", ["instruction", "C++", "Python"])
    assert [row.split("  ")[0].strip() for row in rows][1] == ""
    assert "load.hpp:7: return load<N>(p);" in rows[0]
    assert rows[1] == "     8: s_nop 0"
    (place,) = {row.user for row in listing().rows if row.user is not None}
    assert rows[2].endswith(f"{place.short}: return ck.relu(y) * 0.5")
    assert "fill:4: const float v0 = acc * 0.5f;" in rows[2]
    assert rows[3] == "    10: s_endpgm"


class Rows(HTMLParser):
    """The rows of a page with their attributes; every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        if dict(attrs).get("class", "").startswith("row"):  # type: ignore[union-attr]
            self.rows.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_connects_python_ir_c_and_instructions() -> None:
    listed = listing()
    page = inspection_page(scaled.ir(*scaled_arguments()), [listed, listed])
    rows = Rows()
    rows.feed(page)
    assert rows.open == []
    assert page.count('role="tab"') == page.count('role="tabpanel"') == 2
    (user,) = {row.user for row in listed.rows if row.user is not None}
    own = [row for row in rows.rows if row.get("data-user") == str(user)]
    kinds = [("data-code" in row, row.get("class")) for row in own[: len(own) // 2]]
    # The line of Python, its operations, its C and its instruction, in each of two panels.
    assert kinds[0] == (False, "row")
    assert (False, "row ir") in kinds
    assert kinds[-2:] == [(True, "row"), (True, "row")]
    assert len({row["style"] for row in own}) == 1
    assert "return load&lt;N&gt;(p);" in page
