# SPDX-License-Identifier: MIT
"""Published tables are read from a folder outside the repository, and made from AITER's."""

import csv
import gzip
import hashlib
from collections import Counter
from dataclasses import fields
from pathlib import Path

import make_gemm_table as maker
import pytest
from data import published

from cklang import knobs
from tests.support.shared_data import required

ROOT = Path(__file__).parents[2]
HEAD = "cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n"
SCALED = "a8w8_blockscale_1x128x128_256x16x64x256_16x16_16x16_16x16x1_1x16x1x16_4_1x1_intrawave_v1"
PLAIN = "a8w8_rowwise_128x32x64x512_16x16_1x1_32x8x1_1x16x1x16_4x4x1_1x1_interwave_v3"


def test_the_folder_is_a_knob(tmp_path: Path) -> None:
    with knobs.scope(CKLANG_DATA_DIR=str(tmp_path)):
        problem = published.missing("table.csv")
        assert problem is not None
        assert all(word in problem for word in ("table.csv", str(tmp_path), "CKLANG_DATA_DIR"))
        with pytest.raises(pytest.skip.Exception, match=r"table\.csv is not in .*CKLANG_DATA_DIR"):
            required("table.csv")
        with pytest.raises(FileNotFoundError, match="make_gemm_table"):
            published.gpus()
        (tmp_path / "table.csv").touch()
        assert published.missing("table.csv") is None
        assert required("table.csv") == tmp_path / "table.csv"


def test_no_published_file_is_in_the_repository() -> None:
    folder = required(published.TABLE).parent
    theirs = {digest for path in folder.rglob("*") for digest in digests(path)}
    parts = ("cklang", "arch_specs", "benchmarks", "docs", "examples", "tests")
    ours = [path for part in parts for path in (ROOT / part).rglob("*")]
    assert not [str(path) for path in ours if digests(path) & theirs]


def digests(path: Path) -> set[str]:
    """Hashes of a file, as it is and unpacked; none of a folder and of what is empty."""
    if not path.is_file() or path.stat().st_size == 0:
        return set()
    data = path.read_bytes()
    forms = [data, gzip.decompress(data)] if path.suffix == ".gz" else [data]
    return {hashlib.sha256(form).hexdigest() for form in forms}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "aiter" / "configs"
    folder.mkdir(parents=True)
    (folder / "a8w8_blockscale_tuned_gemm.csv").write_text(
        f"{HEAD}256,16,1536,7168,8,0,19.5,{SCALED},1,1,0\n"
        f"304,16,1536,7168,8,2,18.25,{SCALED},1,1,0\n"
        f"256,16,1536,7168,8,3,9.75,{SCALED},1,1,0\n"
        f"256,32,1536,7168,8,3,9.75,_ZN5aiterSomethingE,1,1,0\n"
    )
    (folder / "a8w8_tuned_gemm.csv").write_text(f"{HEAD}80,1,64,512,8,0,3.5,{PLAIN},1,1,0\n")
    (folder / "bf16_tuned_gemm.csv").write_text("cu_num\n80\n")
    return tmp_path


def test_a_table_is_made_from_a_checkout(checkout: Path) -> None:
    left_out: Counter[str] = Counter()
    table = maker.best_of(maker.rows(checkout, left_out))
    assert left_out == {"a8w8_blockscale": 1}
    maker.write(checkout / "a.csv.gz", table)
    maker.write(checkout / "b.csv.gz", table)
    assert (checkout / "a.csv.gz").read_bytes() == (checkout / "b.csv.gz").read_bytes()
    with gzip.open(checkout / "a.csv.gz", "rt", newline="") as file:
        rows = [",".join(row.values()) for row in csv.DictReader(file)]
    fp8 = "256,16,64,256,intrawave,v1,ck"
    assert rows == [
        "gfx942,80,a8w8_rowwise,int8,1,64,512,0,128,32,64,512,interwave,v3,ck,3.5",
        f"gfx942,304,a8w8_blockscale,float8_e4m3fnuz,16,1536,7168,2,{fp8},18.25",
        f"gfx950,256,a8w8_blockscale,float8_e4m3fn,16,1536,7168,3,{fp8},9.75",
    ]


def test_the_published_table_has_the_columns_that_are_made(checkout: Path) -> None:
    with gzip.open(required(published.TABLE), "rt", newline="") as file:
        columns = next(csv.reader(file))
    assert columns == [field.name for field in fields(maker.Row)]
