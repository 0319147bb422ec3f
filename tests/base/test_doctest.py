# SPDX-License-Identifier: MIT
"""Every public object has an example in its docstring, and every example runs, without kernels.

Examples know ``ck`` and ``np``, and the names that the examples of the enclosing class or module
define: those of ``Op.using`` go on from those of ``Op``. Examples of objects that are not public
know the names of their module too. Calls of ops are evaluated by the NumPy reference.
"""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cklang as ck
import cklang.testing
from cklang import types
from tests.support.by_reference import bind_calls, replace_kernels
from tests.support.optional import COMMANDS, needed
from tests.support.public_names import CLASSES, INTERNAL, METHODS, OBJECTS, VALUES, members

ROOT = Path(ck.__file__).parents[1]

NEED_KERNELS: Mapping[str, str] = {
    "DeviceArray": "has memory of a device",
    "empty": "allocates memory of a device",
    "synchronize": "waits for a device",
    "to_device": "allocates memory of a device",
    "to_host": "copies memory of a device",
    "Op.build": "compiles kernels",
    "Op.captured": "records the launches of kernels",
    "Op.last": "the record of a kernel that ran",
    "append_kv": "has no program of which there is a reference",
    "autotune": "builds and measures kernels",
    "dropout_bytes": "the kernel draws the bytes",
    "export": "compiles kernels",
    "bench": "runs workgroups of kernels",
    "predict": "runs workgroups of kernels",
    "profile": "runs kernels",
    "testing.self_test": "runs a kernel",
}
"""Objects with lines that are skipped in tier *pure*, and why."""

NEVER_RUN: Mapping[str, str] = {
    "dispatch.Registry.build": "compiles all kernels of a profile",
    "debug": "reads commands from the keyboard",
    "workers_of": "needs a Dask cluster",
}
"""Objects with lines that are only checked against the signatures of what they call, and why."""


def text_of(value: Any) -> str:
    """Return the examples of a docstring."""
    examples = doctest.DocTestParser().get_examples(value.__doc__ or "")
    return "".join(each.source for each in examples)


def has_example(name: str) -> bool:
    """Tell whether an object has an example; a property may be used in one of its class."""
    if name in OBJECTS:
        return bool(text_of(OBJECTS[name]))
    owner, _, member = name.rpartition(".")
    if isinstance(METHODS[name], property):
        texts = [CLASSES[owner], *(each for _, each in members(CLASSES[owner]))]
        return any(re.search(rf"\.{member}\b", text_of(each)) for each in texts)
    return bool(text_of(METHODS[name]))


def module_names() -> list[str]:
    """Return the modules of the package whose text has examples."""
    paths = sorted(path for path in (ROOT / "cklang").rglob("*.py") if ">>>" in path.read_text())
    parts = (path.relative_to(ROOT).with_suffix("").parts for path in paths)
    return [".".join(part[:-1] if part[-1] == "__init__" else part) for part in parts]


PUBLIC = {
    f"{value.__module__}.{value.__qualname__}"
    for value in map(inspect.unwrap, OBJECTS.values())
    if inspect.isclass(value) or inspect.isfunction(value)
}


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """Return the examples of a module, those of a class before those of its methods."""
    found = doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__)
    return [test for test in found if test.examples]


def failures(tests: list[doctest.DocTest], module: ModuleType) -> list[str]:
    """Run examples and return the reports of those that fail."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    reports: list[str] = []
    namespaces: dict[str, dict[str, Any]] = {}
    for test in tests:
        owner = test.name.rpartition(".")[0]
        inner = {} if {test.name, owner} & PUBLIC else vars(module)
        test.globs = {"ck": ck, "np": np, **inner, **namespaces.get(owner, {})}
        runner.run(test, out=reports.append, clear_globs=False)
        namespaces[test.name] = test.globs
        for example in test.examples:
            if example.options.get(doctest.SKIP):
                bind_calls(ast.parse(example.source), dict(test.globs))
    return reports


@pytest.mark.parametrize("name", module_names())
def test_the_examples_of_a_module_run(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = name.split(".")[1]
    part = {"judge": "torch", "pretend": "torch"}.get(part, part)
    if part in COMMANDS:  # cklang.torch is for torch, and so on
        needed(part)
    module = importlib.import_module(name)
    tests = examples(module)
    assert tests
    replace_kernels(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CKLANG_PRESET")
    assert not failures(tests, module)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", NEED_KERNELS)
def test_examples_that_need_kernels_run(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value: Any = (OBJECTS | METHODS)[name]
    function: Any = value.fget if isinstance(value, property) else value
    module = importlib.import_module(function.__module__)
    full_name = f"{function.__module__}.{function.__qualname__}"
    tests = [test for test in examples(module) if f"{full_name}.".startswith(f"{test.name}.")]
    for example in (example for test in tests for example in test.examples):
        example.options.pop(doctest.SKIP, None)
    monkeypatch.chdir(tmp_path)
    assert tests[-1].name == full_name
    assert not failures(tests, module)


@pytest.mark.parametrize("name", [*OBJECTS, *METHODS])
def test_a_public_object_has_an_example(name: str) -> None:
    assert has_example(name), f"the docstring of {name} has no example"


def test_values_are_used_in_the_examples_of_their_module() -> None:
    text = text_of(types)
    assert [name for name in sorted(VALUES) if not re.search(rf"\bck\.{name}\b", text)] == []


def test_what_is_not_run_is_in_the_table() -> None:
    docstrings = {name: value.__doc__ or "" for name, value in (OBJECTS | METHODS).items()}
    skipping = {name for name, text in docstrings.items() if "+SKIP" in text}
    assert skipping == NEED_KERNELS.keys() | NEVER_RUN.keys()


def test_wrong_examples_are_reported() -> None:
    """>>> ck.relu(np.array([-1.0]))
    array([-1.])
    >>> ck.dispatch.problem(1, 2, 3, 4)  # doctest: +SKIP
    """
    test = doctest.DocTestFinder().find(test_wrong_examples_are_reported)[0]
    (skipped,) = test.examples[1:]
    test.examples.remove(skipped)
    (report,) = failures([test], cklang.testing)
    assert "array([0.])" in report
    test.examples = [skipped]
    with pytest.raises(TypeError, match="positional"):
        failures([test], cklang.testing)


def test_methods_that_are_internal_exist() -> None:
    names = {f"{owner}.{name}" for owner, of in CLASSES.items() for name, _ in members(of)}
    assert set(INTERNAL) <= names
