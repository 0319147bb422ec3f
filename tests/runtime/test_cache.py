# SPDX-License-Identifier: MIT
"""The disk cache: addresses, whole or absent, two writers, killed writers, damage, failures."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cklang.build.store import Entry, Store, digest_of
from cklang.errors import CkError, error
from cklang.toolchain.built_library import intact
from tests.support.errors import expect_error

WRITER = """
import sys, time
from pathlib import Path
from cklang.build.store import Store
root, log, nap = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
def build(folder):
    (folder / "half").write_text("x")
    with log.open("a") as file:
        file.write("built\\n")
    time.sleep(nap)
    (folder / "code").write_bytes(b"code" * 1000)
    return {"answer": 42}
entry, cached = Store(root).get_or_build("thing", {"a": 1}, build)
print(entry.file("code").read_bytes() == b"code" * 1000, cached)
"""


def build_code(folder: Path) -> dict[str, object]:
    (folder / "code").write_bytes(b"0123456789")
    return {"answer": 42}


def start(root: Path, log: Path, nap: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root), str(log), str(nap)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def temporaries(store: Store) -> list[Path]:
    folder = store.base / "tmp"
    return list(folder.iterdir()) if folder.is_dir() else []


def test_a_second_request_is_served_without_building(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry, cached = store.get_or_build("thing", {"a": 1}, build_code)
    assert not cached
    again, cached = Store(tmp_path).get_or_build("thing", {"a": 1}, lambda folder: 1 / 0)  # type: ignore[arg-type,return-value]
    assert cached
    assert again.facts == {"answer": 42}
    assert again.folder == entry.folder
    assert again.file("code").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    "other",
    [{"a": 2}, {"a": 1, "flags": ["-O3"]}, {"a": 1, "flags": ["-O2"]}, {"a": "1"}, {"a": 1.5}],
)
def test_changed_inputs_are_another_entry(tmp_path: Path, other: dict[str, object]) -> None:
    store = Store(tmp_path)
    store.get_or_build("thing", {"a": 1}, build_code)
    assert digest_of("thing", other) != digest_of("thing", {"a": 1})
    assert not store.get_or_build("thing", other, build_code)[1]
    assert not store.get_or_build("other", {"a": 1}, build_code)[1]


def test_the_record_tells_where_it_came_from(tmp_path: Path) -> None:
    entry, _ = Store(tmp_path).get_or_build("thing", {"a": 1}, build_code)
    record = json.loads((entry.folder / "record.json").read_text())
    assert record["inputs"] == {"a": 1}
    assert record["files"]["code"]["bytes"] == 10
    assert len(record["files"]["code"]["sha256"]) == 64


@pytest.mark.usefixtures("compiler")
def test_two_processes_building_the_same_key_agree(tmp_path: Path) -> None:
    log = tmp_path / "log"
    writers = [start(tmp_path / "cache", log, 0.3) for _ in range(2)]
    answers = [writer.communicate(timeout=60)[0].split()[0] for writer in writers]
    assert answers == ["True", "True"]
    assert log.read_text() == "built\n", "the lock should have saved the second build"
    assert Store(tmp_path / "cache").verify() == (1, [])


def test_without_locks_both_build_and_one_entry_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "_acquire", lambda self, kind, digest: None)
    meet = threading.Barrier(2)
    results: list[bytes] = []

    def build(folder: Path) -> dict[str, object]:
        meet.wait(20)
        return build_code(folder)

    def work() -> None:
        entry, _ = Store(tmp_path).get_or_build("thing", {"a": 1}, build)
        results.append(entry.file("code").read_bytes())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [b"0123456789"] * 2
    assert Store(tmp_path).verify() == (1, [])
    assert temporaries(Store(tmp_path)) == []


def test_a_killed_build_leaves_nothing_half_written(tmp_path: Path) -> None:
    log, root = tmp_path / "log", tmp_path / "cache"
    writer = start(root, log, 60)
    deadline = time.monotonic() + 30
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(30)
    store = Store(root)
    assert len(temporaries(store)) == 1
    assert store.find("thing", digest_of("thing", {"a": 1})) is None
    assert list(store.entries()) == []
    entry, cached = store.get_or_build("thing", {"a": 1}, build_code)
    assert not cached
    assert entry.file("code").read_bytes() == b"0123456789"
    assert temporaries(store) == [], "the dead writer's folder should have been swept"


def test_a_living_writer_is_not_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def build(folder: Path) -> dict[str, object]:
        assert Store(tmp_path).sweep() == []
        assert folder.is_dir()
        return build_code(folder)

    store.get_or_build("thing", {"a": 1}, build)


@pytest.mark.parametrize("damage", ["truncate", "alter", "remove", "record", "cut record"])
def test_damage_is_found_and_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    store = Store(tmp_path)
    entry, _ = store.get_or_build("thing", {"a": 1}, build_code)
    code, record = entry.file("code"), entry.folder / "record.json"
    if damage == "truncate":
        code.write_bytes(b"01234")
    elif damage == "alter":
        code.write_bytes(b"012345678X")
    elif damage == "remove":
        code.unlink()
    elif damage == "record":
        record.write_text(record.read_text().replace("42", "43"))
    else:
        record.write_text(record.read_text()[:100])
    whole, damaged = store.verify()
    assert whole == 0
    assert [d.folder for d in damaged] == [entry.folder]
    again, cached = store.get_or_build("thing", {"a": 1}, build_code)
    assert not cached
    assert caplog.text.count("built again") == 1
    assert again.file("code").read_bytes() == b"0123456789"
    assert again.facts == {"answer": 42}
    assert store.verify() == (1, [])


def test_damage_is_reported_once_by_all_stores_until_it_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def damage(entry: Entry) -> None:
        entry.file("code").write_bytes(b"01234")
        for _ in range(5):
            assert Store(tmp_path).find("thing", entry.digest) is None

    entry, _ = Store(tmp_path).get_or_build("thing", {"a": 1}, build_code)
    damage(entry)
    assert caplog.text.count("built again") == 1
    Store(tmp_path).get_or_build("thing", {"a": 1}, build_code)
    damage(entry)
    assert caplog.text.count("built again") == 2


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "C001"), (errno.EROFS, "C001"), (errno.EBADF, "")]
)
def test_a_full_folder_is_named_with_the_remedy(tmp_path: Path, number: int, code: str) -> None:
    def build(folder: Path) -> dict[str, object]:
        raise OSError(number, os.strerror(number))

    with pytest.raises((CkError, OSError)) as caught:
        Store(tmp_path).get_or_build("thing", {"a": 1}, build)
    assert getattr(caught.value, "code", "") == code
    if code:
        folder, problem = str(tmp_path), os.strerror(number)
        assert str(caught.value).startswith(
            f"CK-C001 the kernel cache cannot write {folder}: {problem}\n"
            "   = set CKLANG_CACHE_DIR to a folder that you may write to, with 500 MB of room"
        )


def test_a_library_in_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKLANG_CACHE_DIR", "/dev/null/cache")
    with pytest.raises(CkError, match="C001 the kernel cache cannot write /dev/null/cache: Not a"):
        intact(Path("/dev/null/cache/emulator/x"), lambda _: None)


def test_a_failure_is_never_a_success_and_keeps_its_log(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def build(folder: Path) -> dict[str, object]:
        (folder / "compiler.log").write_text("the whole log")
        raise error("C001", folder=folder / "compiler.log", problem="it is a test")

    for _ in range(2):
        with pytest.raises(CkError) as caught:
            store.get_or_build("thing", {"a": 1}, build)
        log = Path(caught.value.message.split("write ")[1].split(":")[0])
        assert log.read_text() == "the whole log"
    assert list(store.entries()) == []
    assert not store.get_or_build("thing", {"a": 1}, build_code)[1]


def test_an_interrupted_build_leaves_no_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def build(folder: Path) -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get_or_build("thing", {"a": 1}, build)
    assert temporaries(store) == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with expect_error("C001"):
        Store(tmp_path / "file").get_or_build("thing", {"a": 1}, build_code)


def test_clear_removes_everything_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.get_or_build("thing", {"a": 1}, build_code)
    (tmp_path / "mine.txt").write_text("keep")
    store.clear()
    assert list(store.entries()) == []
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_trimming_removes_what_was_used_least_recently(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in "abc":
        store.get_or_build("thing", {"name": name}, build_code)
    folders = {e.record["inputs"]["name"]: e.folder for e in store.entries()}
    for age, name in enumerate("cab"):
        os.utime(folders[name] / "record.json", (0, time.time() - 7200 * (4 - age)))
    store.find("thing", digest_of("thing", {"name": "c"}))  # the oldest is used again
    assert store.trim(20) == (1, 10)
    assert sorted(e.record["inputs"]["name"] for e in store.entries()) == ["b", "c"]
    assert store.trim(20) == (0, 0)
    assert store.trim(0) == (2, 20)
    assert not list(store.entries())
