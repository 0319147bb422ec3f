# SPDX-License-Identifier: MIT
"""The plug-in for pytest, in runs of pytest of its own."""

import tomllib
from pathlib import Path

import pytest

from cklang.toolchain.paths import cache_root

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
_PLUGIN = "cklang.testing.pytest_plugin"
_CACHE = cache_root()
"""Of this process: ``pytester`` changes the home folder."""


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest in a process, with no other plug-in that is installed here."""
    return pytester.runpytest_subprocess("-p", _PLUGIN, "-p", "no:cacheprovider", *options)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("CKLANG_CACHE_DIR", str(_CACHE))
    for name in ("CKLANG_DEVICE", "CKLANG_SANITIZE", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"cklang": _PLUGIN}


def test_knobs_of_a_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import os, subprocess, sys
        from cklang import knobs

        def test_here():
            assert knobs.DEVICE.get() == "emu:gfx1100"
            assert knobs.SANITIZE.get() == {"races", "waits"}

        def test_in_a_process():
            program = "import os; print(os.environ['CKLANG_DEVICE'], os.environ['CKLANG_SANITIZE'])"
            text = subprocess.check_output([sys.executable, "-c", program], text=True)
            assert text == "emu:gfx1100 waits,races\\n"

        def test_fixture(ck_device):
            assert ck_device == "emu:gfx1100"
    """)
    run(pytester, "--ck-emulate", "gfx1100", "--ck-sanitize", "waits,races").assert_outcomes(
        passed=3
    )


def test_without_the_options(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        from cklang import knobs

        def test_knobs():
            assert knobs.DEVICE.get() is None and not knobs.SANITIZE.get()

        @pytest.mark.parametrize("ck_device", ["gfx90a", "gfx950"], indirect=True)
        def test_fixture(ck_device):
            assert knobs.DEVICE.get() == ck_device
    """)
    run(pytester).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("option", "word", "problem"),
    [
        ("--ck-emulate", "gfx803", "must be one of gfx"),
        ("--ck-sanitize", "rases", "comma-separated list of waits, races"),
    ],
)
def test_unknown_words(pytester: pytest.Pytester, option: str, word: str, problem: str) -> None:
    result = run(pytester, option, word)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert problem in result.stderr.str()


_KERNELS = """
import numpy as np
import pytest
from tests.support.assembly import assembled

START = "s_load_dwordx4 s[4:7], s[0:1], 0x0\\n v_lshlrev_b32 v1, 2, v0\\n s_waitcnt lgkmcnt(0)\\n"
LOAD, WAIT = "global_load_dword v2, v1, s[4:5]\\n", "s_waitcnt vmcnt(0)\\n"
STORE = "global_store_dword v1, v2, s[6:7]\\n"

@pytest.fixture(scope="module")
def module():
    bodies = {"early": START + LOAD + STORE, "right": START + LOAD + WAIT + STORE}
    return assembled(bodies)

def launch(module, name):
    data = np.arange(64, dtype=np.uint32)
    return module.launch(name, data, np.zeros_like(data))

def test_a_early(module):
    launch(module, "early")  # looks at nothing

def test_b_right(module):
    assert launch(module, "right") == "hipSuccess"
"""


@pytest.mark.usefixtures("emulator")
def test_a_mistake_fails_the_test_that_made_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_KERNELS)
    run(pytester).assert_outcomes(passed=2)
    checked = run(pytester, "--ck-sanitize", "waits")
    checked.assert_outcomes(passed=1, failed=1)
    checked.stdout.fnmatch_lines(["*a kernel has failed:", "*missing wait: global_store_dword*"])


@pytest.mark.usefixtures("emulator")
def test_each_test_is_profiled(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_KERNELS + "\ndef test_c_nothing():\n    pass\n")
    result = run(pytester, "--ck-profile", "profiles")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["kernel * GPU * launches * longest in", "early * gfx* 1 *test_a_early"]
    )
    reports = sorted(path.name for path in (pytester.path / "profiles").iterdir())
    assert [name.partition("py_")[2] for name in reports] == [
        "test_a_early.html",
        "test_b_right.html",
    ]
    assert "<h2>early</h2>" in (pytester.path / "profiles" / reports[0]).read_text()
