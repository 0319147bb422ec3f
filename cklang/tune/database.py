# SPDX-License-Identifier: MIT
"""Measurements that outlive a process: one SQLite file, with export, import and merge.

A *question* is a problem on a GPU with a toolchain and a device; a *measurement* is what one kernel
did there. Nothing is averaged over questions: another compiler, another device or another stride is
another question.

Of two measurements of one kernel for one question the later one stays, but a wrong result is never
replaced: a kernel that was wrong once does not win because it was right the next time.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from cklang import forks
from cklang.codec import enum_of, expect_fields, expect_object
from cklang.errors import CkError, error
from cklang.families import key_from_json
from cklang.keys import SCHEMA_VERSION as KEY_VERSION
from cklang.keys import AnyKey

SCHEMA_VERSION = 1
"""Version of the tables and of the exported form."""

_APPLICATION = 0x434B544E
"""What SQLite's header says of our files: ``CKTN``."""

_TABLES = """
CREATE TABLE questions (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL
);
CREATE TABLE measurements (
    question INTEGER NOT NULL REFERENCES questions(id),
    kernel TEXT NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    measured_at TEXT NOT NULL,
    PRIMARY KEY (question, kernel)
);
"""


class Status(Enum):
    """What became of a kernel that was to be measured."""

    RIGHT = "right"
    """It ran, and its result is within its bound."""
    WRONG = "wrong"
    """It ran, and its result is not."""
    FAILED = "failed"
    """It was refused, did not build, or faulted with an error."""
    CRASHED = "crashed"
    """It took its process down."""
    SLOW = "slow"
    """It did not finish in the time it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryKey:
    """What measurements can be compared for: a problem, and all that its cost depends on."""

    problem: str
    """Canonical JSON of the signature, the extents, the strides and the alignments."""
    arch: str
    toolchain: str
    """Identity of the compiler and of CK Tile's headers."""
    device: str
    """``gfx942/304``, with ``emulated`` before it if that is what it is."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that tells questions apart."""
        return hashlib.sha256(_text(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        return {
            "problem": json.loads(self.problem),
            "arch": self.arch,
            "toolchain": self.toolchain,
            "device": self.device,
            "keys": KEY_VERSION,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> QueryKey:
        """Read it back."""
        return QueryKey(
            problem=_text(data["problem"]),
            arch=str(data["arch"]),
            toolchain=str(data["toolchain"]),
            device=str(data["device"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one kernel did for a question."""

    key: AnyKey
    status: Status
    cost: float | None
    """What kernels are compared by, the least first; None unless it is right."""
    unit: str
    """The unit of the cost: ``µs``, or what stands for it on an emulated device."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What else was counted, by name."""
    note: str = ""
    """Why it is not right."""
    measured_at: str
    """When, UTC, ISO 8601."""

    @property
    def rank(self) -> tuple[float, float] | None:
        """What kernels are put in order by: cost, then instructions; None unless it is right."""
        if self.cost is None:
            return None
        return self.cost, self.counters.get("instructions", 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the form that :meth:`from_json` reads."""
        return {
            "key": self.key.to_json(),
            "status": self.status.value,
            "cost": self.cost,
            "unit": self.unit,
            "counters": dict(self.counters),
            "note": self.note,
            "measured_at": self.measured_at,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Measurement:
        """Read it back.

        Raises:
            CkValueError: K001-K003, K034, a field or a value is unknown or of another version.
        """
        expect_fields("measurement", data, _FIELDS)
        cost = data["cost"]
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float)):
            raise error("K034", got=cost)
        return Measurement(
            key=key_from_json(data["key"]),
            status=enum_of(Status, data["status"]),
            cost=None if cost is None else float(cost),
            unit=str(data["unit"]),
            counters={str(name): float(value) for name, value in data["counters"].items()},
            note=str(data["note"]),
            measured_at=str(data["measured_at"]),
        )


_FIELDS = ("key", "status", "cost", "unit", "counters", "note", "measured_at")


class Database:
    """The measurements in one file; safe to use from several threads and processes.

    Args:
        path: The file; made if there is none.

    Example:
        >>> from cklang.tune.database import Database, Measurement, QueryKey, Status
        >>> query = QueryKey(problem="{}", arch="gfx942", toolchain="clang", device="gfx942/304")
        >>> key = ck.dispatch.select(ck.dispatch.problem(256, 512, 64), arch="gfx942").key
        >>> measurement = Measurement(
        ...     key=key, status=Status.RIGHT, cost=4.2, unit="µs", measured_at="2026-01-01T00:00Z"
        ... )
        >>> database = Database("tuning.sqlite")
        >>> database.record(query, measurement), len(database)
        (True, 1)

    Raises:
        CkValueError: N006, the file is damaged or is something else; K003, it is of another
            version. Nothing of it is read or changed then.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = forks.reentrant_lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _reporting_damage(self.path):
            self._link = sqlite3.connect(
                self.path, timeout=60.0, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare()
        except BaseException:
            self._link.close()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; it has every recorded measurement already.

        Example:
            >>> other = Database("other.sqlite")
            >>> other.close()
        """
        self._link.close()

    def _prepare(self) -> None:
        with self._writing():
            application = self._number("PRAGMA application_id")
            tables = self._number("SELECT count(*) FROM sqlite_schema")
            if application == 0 and tables == 0:
                self._create()
                return
            if application != _APPLICATION:
                raise self._damaged("it is the database of another program")
            version = self._number("PRAGMA user_version")
            if version != SCHEMA_VERSION:
                raise error("K003", what="tuning database", got=version, want=SCHEMA_VERSION)
            (verdict,) = self._link.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise self._damaged(str(verdict))

    def _create(self) -> None:
        for statement in _TABLES.split(";"):
            self._link.execute(statement)
        self._link.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._link.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _number(self, query: str) -> int:
        return int(self._link.execute(query).fetchone()[0])

    def _damaged(self, problem: str) -> CkError:
        return error("N006", path=self.path, problem=problem)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with _reporting_damage(self.path), self._lock:
            yield self._link

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and no two writers at once."""
        with self._reading() as link:
            link.execute("BEGIN IMMEDIATE")
            try:
                yield link
            except BaseException:
                link.execute("ROLLBACK")
                raise
            link.execute("COMMIT")

    def __len__(self) -> int:
        with self._reading():
            return self._number("SELECT count(*) FROM measurements")

    def record(self, question: QueryKey, measurement: Measurement) -> bool:
        """Store one measurement; return whether it stayed.

        Example:
            >>> database.record(query, measurement)  # nothing new
            False
        """
        with self._writing():
            return self._put(question, measurement)

    def _put(self, question: QueryKey, measurement: Measurement) -> bool:
        self._link.execute(
            "INSERT OR IGNORE INTO questions (digest, content) VALUES (?, ?)",
            (question.digest, _text(question.to_json())),
        )
        done = self._link.execute(
            "INSERT INTO measurements "
            "SELECT id, ?, ?, ?, ? FROM questions WHERE digest = ? "
            "ON CONFLICT (question, kernel) DO UPDATE SET content = excluded.content, "
            "status = excluded.status, measured_at = excluded.measured_at "
            "WHERE (excluded.status = 'wrong') > (measurements.status = 'wrong') OR "
            "(excluded.status = 'wrong') = (measurements.status = 'wrong') "
            "AND measurements.measured_at < excluded.measured_at",
            (
                measurement.key.digest,
                _text(measurement.to_json()),
                measurement.status.value,
                measurement.measured_at,
                question.digest,
            ),
        )
        return done.rowcount > 0

    def measurements(self, question: QueryKey) -> tuple[Measurement, ...]:
        """Return the measurements of a question: correct kernels first, the best of them first.

        Example:
            >>> [(each.cost, each.unit) for each in database.measurements(query)]
            [(4.2, 'µs')]
        """
        with self._reading():
            rows = self._link.execute(
                "SELECT m.content FROM measurements m JOIN questions q ON q.id = m.question "
                "WHERE q.digest = ? ORDER BY m.kernel",
                (question.digest,),
            ).fetchall()
            stored = [Measurement.from_json(json.loads(row[0])) for row in rows]
        return tuple(sorted(stored, key=lambda m: (m.rank is None, m.rank or ())))

    def questions(self) -> Iterator[QueryKey]:
        """Yield every question, in the order in which they were first asked.

        Example:
            >>> [each.arch for each in database.questions()]
            ['gfx942']
        """
        with self._reading():
            rows = self._link.execute("SELECT content FROM questions ORDER BY id").fetchall()
        yield from (QueryKey.from_json(json.loads(row[0])) for row in rows)

    def export(self) -> dict[str, Any]:
        """Return everything as JSON data.

        Example:
            >>> sorted(database.export())
            ['measurements', 'version']
        """
        with self._reading():
            rows = self._link.execute(
                "SELECT q.content, m.content FROM measurements m "
                "JOIN questions q ON q.id = m.question ORDER BY q.digest, m.kernel"
            ).fetchall()
        records = [{"question": json.loads(q), "measurement": json.loads(m)} for q, m in rows]
        return {"version": SCHEMA_VERSION, "measurements": records}

    def load(self, data: object) -> int:
        """Add what :meth:`export` gave; return how many measurements changed anything.

        All of it is checked first: what cannot be read changes nothing.

        Example:
            >>> with Database("loaded.sqlite") as other:
            ...     print(other.load(database.export()))
            1

        Raises:
            CkValueError: K001-K003, K034, N006, it is not such data.
        """
        record = expect_object("exported measurements", data)
        if record.get("version") != SCHEMA_VERSION:
            got = record.get("version")
            raise error("K003", what="exported measurements", got=got, want=SCHEMA_VERSION)
        expect_fields("exported measurements", record, ("version", "measurements"))
        return self._add([_pair(row) for row in record["measurements"]])

    def merge(self, other: Database) -> int:
        """Add what another database holds; return how many measurements changed anything.

        Example:
            >>> with Database("merged.sqlite") as other:
            ...     print(other.merge(database), other.merge(database))
            1 0
        """
        return self.load(other.export())

    def _add(self, pairs: Sequence[tuple[QueryKey, Measurement]]) -> int:
        with self._writing():
            return sum(self._put(question, measurement) for question, measurement in pairs)


def now() -> str:
    """Return the time as measurements record it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


def _pair(row: Any) -> tuple[QueryKey, Measurement]:
    expect_fields("exported measurement", row, ("question", "measurement"))
    expect_fields("question", row["question"], _QUESTION)
    if row["question"]["keys"] != KEY_VERSION:
        got = row["question"]["keys"]
        raise error("K003", what="kernel keys of exported measurements", got=got, want=KEY_VERSION)
    return QueryKey.from_json(row["question"]), Measurement.from_json(row["measurement"])


_QUESTION = ("problem", "arch", "toolchain", "device", "keys")


def _text(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@contextmanager
def _reporting_damage(path: Path) -> Iterator[None]:
    """Report a damaged database file, whatever SQLite raises, as N006."""
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError) as problem:
        raise error("N006", path=path, problem=str(problem)) from problem
