# SPDX-License-Identifier: MIT
"""The tuning database: what stays, what is refused, and that nothing is half-read."""

import json
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.errors import CkValueError
from cklang.families.gemm.key import GemmKey
from cklang.tune.database import Database, Measurement, QueryKey, Status
from tests.support.algorithms import WIDE
from tests.support.errors import expect_error
from tests.support.gemm_keys import OPEN

QUESTION = QueryKey(problem='{"m":7}', arch="gfx942", toolchain="abc", device="gfx942/304")


def measured(
    vector: int = 8, status: str = "right", cost: float | None = 1.0, at: int = 0, **more: Any
) -> Measurement:
    return Measurement(
        key=GemmKey(OPEN, replace(WIDE, vector_e=vector), "gfx942"),
        status=Status(status),
        cost=cost if status == "right" else None,
        unit="µs",
        measured_at=f"2026-01-01T00:00:{at:02}",
        **more,
    )


def test_the_least_cost_comes_first_and_what_is_not_right_last(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        database.record(QUESTION, measured(1, "wrong"))
        database.record(QUESTION, measured(2, cost=3.0))
        database.record(QUESTION, measured(4, cost=2.0, counters={"instructions": 9.0}))
        database.record(QUESTION, measured(8, cost=2.0, counters={"instructions": 7.0}))
        keys = [m.key for m in database.measurements(QUESTION)]
        assert [key.algorithm.vector_e for key in keys] == [8, 4, 2, 1]


@pytest.mark.parametrize("field", ["problem", "arch", "toolchain", "device"])
def test_questions_are_apart(tmp_path: Path, field: str) -> None:
    other = replace(QUESTION, **{field: '{"m":8}'})
    with Database(tmp_path / "t.sqlite") as database:
        database.record(QUESTION, measured())
        assert database.measurements(other) == ()
        assert list(database.questions()) == [QUESTION]


def test_the_later_one_stays_but_wrong_is_for_good(tmp_path: Path) -> None:
    with Database(tmp_path / "t.sqlite") as database:
        assert database.record(QUESTION, measured(cost=5.0, at=1))
        assert not database.record(QUESTION, measured(cost=1.0, at=0))
        assert database.record(QUESTION, measured(cost=4.0, at=2))
        assert database.measurements(QUESTION)[0].cost == 4.0
        assert database.record(QUESTION, measured(status="wrong", at=0))
        assert not database.record(QUESTION, measured(cost=1.0, at=9))
        assert database.measurements(QUESTION)[0].status is Status.WRONG


def test_it_outlives_the_process_that_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "t.sqlite"
    with Database(path) as database:
        database.record(QUESTION, measured(note="héllo", counters={"waves": 3.0}))
    with Database(path) as again:
        assert again.measurements(QUESTION) == (measured(note="héllo", counters={"waves": 3.0}),)


rows = st.lists(
    st.tuples(
        st.sampled_from((1, 2, 4, 8)),
        st.sampled_from(("right", "wrong", "crashed")),
        st.integers(0, 9),
        st.floats(0.1, 1e6),
    ),
    max_size=12,
)


def data_of(measurements: list[Measurement]) -> dict[str, Any]:
    pairs = [{"question": QUESTION.to_json(), "measurement": m.to_json()} for m in measurements]
    return {"version": 1, "measurements": pairs}


@settings(max_examples=20)
@given(rows, rows)
def test_export_import_and_merge_agree(
    tmp_path_factory: pytest.TempPathFactory, first: list[Any], second: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    with Database(folder / "a") as a, Database(folder / "b") as b, Database(folder / "c") as c:
        for database, some in ((a, first), (b, second)):
            database.load(data_of([measured(v, status, cost, at) for v, status, at, cost in some]))
        c.load(json.loads(json.dumps(a.export())))
        assert c.export() == a.export()
        a.merge(b)
        c.merge(b)
        assert a.export() == c.export()
        assert a.merge(b) == 0


def test_threads_write_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"

    def work(number: int) -> None:
        with Database(path) as mine:
            for extent in range(5):
                question = replace(QUESTION, problem=json.dumps({"m": extent}))
                mine.record(question, measured(2 ** (number % 4)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One question a problem, four kernels each.
    with Database(path) as database:
        assert len(database) == 20


def spoil_nothing(path: Path) -> None:
    path.write_bytes(b"this is no database, but a text that is long enough to be taken for one" * 9)


def spoil_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : 4096 + 2048] = b"\xff" * 2048
    path.write_bytes(bytes(data))


def spoil_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def spoil_owner(path: Path) -> None:
    with sqlite3.connect(path) as link:
        link.execute("PRAGMA application_id = 7")


@pytest.mark.parametrize("spoil", [spoil_nothing, spoil_middle, spoil_end, spoil_owner])
def test_a_damaged_file_is_refused_and_stays_as_it_is(tmp_path: Path, spoil: Any) -> None:
    path = tmp_path / "t.sqlite"
    with Database(path) as database:
        database.load(data_of([measured(vector) for vector in range(1, 30)]))
    spoil(path)
    before = path.read_bytes()
    with expect_error("N006", kind=CkValueError) as caught:
        Database(path)
    assert str(path) in caught.value.message
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "t.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as link:
        link.execute(f"PRAGMA user_version = {version}")
    with expect_error("K003", match="tuning database", kind=CkValueError):
        Database(path)


def exported() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(data_of([measured(), measured()])))
    return data


BAD = {
    "no object": ([], "K002"),
    "version": ({"version": 9, "measurements": []}, "K003"),
    "field": ({"version": 1, "measurements": [], "more": 1}, "K001"),
}


@pytest.mark.parametrize("name", BAD)
def test_other_data_is_not_imported(tmp_path: Path, name: str) -> None:
    data, code = BAD[name]
    with Database(tmp_path / "t.sqlite") as database, expect_error(code, kind=CkValueError):
        database.load(data)


@pytest.mark.parametrize(
    ("place", "value", "code"),
    [
        (("measurement", "status"), "perhaps", "K001"),
        (("measurement", "cost"), "cheap", "K034"),
        (("measurement", "key", "version"), 99, "K003"),
        (("question", "keys"), 99, "K003"),
        (("question", "more"), 1, "K001"),
    ],
)
def test_one_bad_row_keeps_all_out(
    tmp_path: Path, place: tuple[str, ...], value: object, code: str
) -> None:
    data = exported()
    spot: Any = data["measurements"][1]
    for name in place[:-1]:
        spot = spot[name]
    spot[place[-1]] = value
    with Database(tmp_path / "t.sqlite") as database:
        with expect_error(code, kind=CkValueError):
            database.load(data)
        assert len(database) == 0
