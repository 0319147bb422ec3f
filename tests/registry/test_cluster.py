# SPDX-License-Identifier: MIT
"""Building on other machines: a local Dask cluster, a killed worker, caches that are not shared."""

import io
import os
import signal
import tarfile
import threading
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cklang import knobs
from cklang.build import parallel, remote_cache
from cklang.build.dask_executor import workers_of
from cklang.build.store import Store
from cklang.cli.main import main
from cklang.errors import CkBuildError, CkDeviceError, CkUnsupportedError
from cklang.selection.registry import Registry
from cklang.toolchain.paths import cache_root
from tests.support.errors import expect_error
from tests.support.gemm_keys import RELU, key

SMALL: dict[str, Any] = {"tile": (32, 32, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
WIDTHS = ((2, 2, 2), (2, 2, 4), (2, 4, 2))
"""Each triple of vector widths is a stencil of its own that compiles fast."""


def some(count: int) -> Registry:
    registry = Registry("cluster")
    for a, b, e in WIDTHS[:count]:
        registry.add(key(**SMALL, vector_a=a, vector_b=b, vector_e=e), RELU)
    return registry


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel cache of this test's own, with the precompiled headers that others have made."""
    headers = cache_root() / "v1" / "headers"
    root = tmp_path / "cache"
    if headers.is_dir():
        (root / "v1").mkdir(parents=True)
        (root / "v1" / "headers").symlink_to(headers)
    monkeypatch.setenv(knobs.CACHE_DIR.name, str(root))
    return root


def records(root: Path) -> dict[Path, int]:
    """When each kernel and stencil of a cache was made."""
    paths = [p for kind in ("stencil", "kernel") for p in (root / "v1" / kind).rglob("record.json")]
    return {path: path.stat().st_mtime_ns for path in paths}


@pytest.mark.usefixtures("compiler")
def test_a_cluster_loses_a_worker_and_nothing_else(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        finished: dict[Path, int] = {}
        killed: list[int] = []

        def kill_one() -> None:
            """Wait for the first kernel, then kill a worker in the middle of the second."""
            while not list((own_cache / "v1" / "kernel").rglob("record.json")):
                time.sleep(0.05)
            finished.update(records(own_cache))
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                busy = {w: tasks for w, tasks in client.processing().items() if tasks}
                pids = client.run(os.getpid, workers=list(busy)[:1])
            killed.extend(pids.values())
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        with workers_of(cluster.scheduler_address) as executor:
            summary = some(3).build(executor=executor)
        killer.join()
        assert killed
        assert not summary.failures
        assert len(summary.artifacts) == 3
        after = records(own_cache)
        assert len(after) == 6
        assert {path: after[path] for path in finished} == finished
        again = some(3).build(max_workers=1)
        assert all(artifact.cached for artifact in again.artifacts)
        assert records(own_cache) == after
        program = own_cache.parent / "program_for_cluster.py"
        program.write_text(
            "import cklang as ck\n"
            'M, N, K = ck.dims("M N K")\n\n\n'
            "@ck.op\n"
            "def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:\n"
            "    return x @ w.T\n"
        )
        monkeypatch.setenv(knobs.CACHE_DIR.name, str(cache_root().parent / "other"))
        words = ["M=0", "N=40", "K=33", "--device", "emu:gfx942"]
        address = cluster.scheduler_address
        assert main(["build", f"{program}:linear", *words, "--scheduler", address]) == 0


class Elsewhere(Executor):
    """A machine that shares no folder: its cache is another one, and all is pickled."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def submit(self, call: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        import pickle

        plain, knob_values, _mark = pickle.loads(pickle.dumps(arguments))
        done: Future[Any] = Future()
        with knobs.scope(**{knobs.CACHE_DIR.name: str(self.root)}):
            done.set_result(pickle.loads(pickle.dumps(call(plain, knob_values, "/no/such/mark"))))
        return done


@pytest.mark.usefixtures("compiler")
def test_what_another_machine_built_comes_back(own_cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    if (own_cache / "v1").exists():
        (other / "v1").mkdir(parents=True)
        (other / "v1" / "headers").symlink_to(own_cache / "v1" / "headers")
    (artifact,) = some(1).build(executor=Elsewhere(other)).artifacts
    assert artifact.folder.is_relative_to(own_cache)
    assert artifact.code_object.read_bytes()[:4] == b"\x7fELF"
    written = records(own_cache)
    assert len(written) == 2
    (mine,) = some(1).build(max_workers=1).artifacts
    assert mine.cached
    assert mine.folder == artifact.folder
    assert records(own_cache) == written
    assert Store(own_cache).verify()[1] == []


class TestDelivery:
    """Entries on their way are whole or are refused."""

    @pytest.fixture
    def parcel(self, tmp_path: Path) -> remote_cache.CacheArchive:
        def build(folder: Path) -> dict[str, object]:
            (folder / "file").write_text("content")
            return {"fact": 1}

        entry, _ = Store(tmp_path / "there").get_or_build("kernel", {"arch": "gfx942"}, build)
        return remote_cache.send(entry)

    def test_it_arrives(self, tmp_path: Path, parcel: remote_cache.CacheArchive) -> None:
        here = Store(tmp_path / "here")
        entry = remote_cache.receive(here, parcel)
        assert entry.file("file").read_text() == "content"
        assert entry.facts == {"fact": 1}
        assert remote_cache.receive(here, parcel).folder == entry.folder
        assert here.verify() == (1, [])

    def test_a_damaged_one_does_not(
        self, tmp_path: Path, parcel: remote_cache.CacheArchive
    ) -> None:
        here = Store(tmp_path / "here")
        spoilt = parcel.archive.replace(b"content", b"c0ntent")
        bad = remote_cache.CacheArchive(kind=parcel.kind, digest=parcel.digest, archive=spoilt)
        with expect_error("C003", match="other contents", kind=CkBuildError):
            remote_cache.receive(here, bad)
        assert here.find(parcel.kind, parcel.digest) is None

    def test_one_that_says_it_is_another_does_not(
        self, tmp_path: Path, parcel: remote_cache.CacheArchive
    ) -> None:
        bad = remote_cache.CacheArchive(kind="stencil", digest="0" * 64, archive=parcel.archive)
        with pytest.raises(CkBuildError, match="other inputs"):
            remote_cache.receive(Store(tmp_path / "here"), bad)

    def test_one_that_leaves_its_folder_does_not(
        self, tmp_path: Path, parcel: remote_cache.CacheArchive
    ) -> None:
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("../file"))
        bad = replace(parcel, archive=text.getvalue())
        with pytest.raises(CkBuildError, match="no file of its folder"):
            remote_cache.receive(Store(tmp_path / "here"), bad)
        assert not (tmp_path / "here" / "file").exists()

    def test_marks(self, tmp_path: Path) -> None:
        with remote_cache.shared_cache_probe(Store(tmp_path)) as mark:
            assert remote_cache.sees_probe(mark)
        assert not remote_cache.sees_probe(mark)


def test_nobody_at_the_address() -> None:
    with expect_error("C005", kind=CkDeviceError), workers_of("not an address"):
        pass


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    with expect_error("C004", kind=CkUnsupportedError), workers_of("tcp://127.0.0.1:1"):
        pass


@pytest.mark.usefixtures("compiler")
def test_the_first_failure_is_raised_with_the_others() -> None:
    registry = Registry("mine")
    registry.add(key(num_wave_groups=2), RELU)
    registry.add(key(num_wave_groups=2, tile=(64, 64, 32)), RELU)
    with pytest.raises(CkUnsupportedError, match="L003") as caught:
        parallel.built([(kernel.key, kernel.functions) for kernel in registry])
    assert "2 of 2 kernels failed" in caught.value.notes
