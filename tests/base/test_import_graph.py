# SPDX-License-Identifier: MIT
"""No file of the package imports itself through others, wherever in a file the imports stand."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import networkx as nx
import pytest

from tests.support.processes import run_python

ROOT = Path(__file__).parents[2]

Table: TypeAlias = Mapping[str, tuple[str, ...]]
"""For each module those that it imports in functions."""

START_UP: Table = {
    "cklang.build.builder": (
        "cklang.build.code_object",
        "cklang.build.steps",
        "cklang.toolchain.compilers",
    ),
    "cklang.build.bundle": ("cklang.toolchain.compilers", "zipfile"),
    "cklang.build.store": ("filelock",),
    "cklang.cli.bench": ("cklang.cli.plot",),
    "cklang.cli.disasm": ("cklang.emulator",),
    "cklang.cli.doctor": (
        "cklang.arch",
        "cklang.cli.specs",
        "cklang.device.device",
        "cklang.toolchain.compilers",
    ),
    "cklang.cli.judge": ("cklang.judge",),
    "cklang.cli.run": ("cklang.pretend",),
    "cklang.cli.specs": ("cklang.build.steps",),
    "cklang.cli.warm": ("cklang.prebuilding",),
    "cklang.codec": ("difflib", "hashlib"),
    "cklang.device.device": ("cklang.emulator", "cklang.emulator.engine.library"),
    "cklang.emulator.engine.build": ("cklang.emulator.engine.isa.tables",),
    "cklang.emulator.engine.operation_fidelity": ("cklang.emulator.engine.isa.schema",),
    "cklang.errors": ("cklang.errors.table",),
    "cklang.families": (
        "cklang.fusion.partition",
        "cklang.fusion.passes",
    ),
    "cklang.families.gemm.family": (
        "cklang.families.gemm.launch_operands",
        "cklang.families.gemm.sampled_rows",
        "cklang.families.gemm.spelling",
    ),
    "cklang.families.records": ("cklang.reference.bounds", "cklang.reference.distance"),
    "cklang.families.rowwise.outline": ("networkx",),
    "cklang.frontend.ops.attention": ("cklang.frontend.eager_attention",),
    "cklang.frontend.ops.mask_values": ("cklang.frontend.eager_attention",),
    "cklang.frontend.other_names": ("difflib",),
    "cklang.fusion.flow": ("networkx",),
    "cklang.fusion.functions": ("cklang.ir.parser",),
    "cklang.fusion.graph": ("networkx",),
    "cklang.fusion.kernel": ("networkx",),
    "cklang.fusion.partition": ("networkx",),
    "cklang.fusion.roots": ("networkx",),
    "cklang.ir": ("cklang.ir.parser",),
    "cklang.ir.infer": ("difflib",),
    "cklang.ir.round_trip": ("cklang.ir.parser",),
    "cklang.lowering.render": ("jinja2",),
    "cklang.ops.append_kv": ("cklang.build.builder", "cklang.device.device"),
    "cklang.ops.attention_backward": ("cklang.build.builder", "cklang.device.device"),
    "cklang.ops.dropout_bytes": ("cklang.build.builder", "cklang.device.device"),
    "cklang.ops.prepare": ("cklang.device.device",),
    "cklang.runtime.bind": ("cklang.device.device_array", "difflib"),
    "cklang.runtime.call_key": ("cklang.runtime.array_reader",),
    "cklang.runtime.check": ("cklang.runtime.plan_store",),
    "cklang.runtime.ir_text": ("cklang.ir.parser", "cklang.ir.verifier"),
    "cklang.runtime.op": (
        "cklang.build.builder",
        "cklang.device.device",
        "cklang.runtime.captured_call",
        "cklang.runtime.check",
        "cklang.runtime.plan_store",
        "cklang.runtime.planner",
        "cklang.runtime.record",
        "cklang.runtime.requests",
        "cklang.runtime.result_orders",
        "cklang.runtime.timed_call",
    ),
    "cklang.runtime.planned_op": (
        "cklang.device.device",
        "cklang.runtime.explain",
        "cklang.runtime.planner",
        "cklang.runtime.sharing",
        "cklang.runtime.summary",
    ),
    "cklang.runtime.planner": ("cklang.build.parallel",),
    "cklang.runtime.ready": ("cklang.device.device_array", "cklang.device.pinned_buffers"),
    "cklang.selection.background": ("cklang.build.builder",),
    "cklang.selection.compiled_first": ("cklang.build.builder",),
    "cklang.selection.context": (
        "cklang.arch",
        "cklang.device.device",
        "cklang.families.presets",
        "cklang.toolchain.compilers",
    ),
    "cklang.selection.registry": (
        "cklang.arch",
        "cklang.build.parallel",
        "cklang.selection.rules",
        "cklang.selection.space",
    ),
    "cklang.selection.select": ("cklang.device.device",),
    "cklang.selection.tiered": ("cklang.build.builder",),
    "cklang.testing.pytest_plugin": (
        "cklang.emulator",
        "cklang.emulator.profiler.session",
        "cklang.emulator.profiler.text",
    ),
    "cklang.toolchain.built_library": ("cklang.toolchain.compilers", "filelock", "tempfile"),
    "cklang.toolchain.compilers": ("subprocess",),
    "cklang.toolchain.folders": ("shutil",),
    "cklang.tune.by_clock": ("cklang.emulator.clock.kernel",),
    "cklang.tune.called": ("cklang.reference.bounds", "cklang.reference.distance"),
    "cklang.tune.gradient": ("cklang.reference.attention_grad", "cklang.reference.distance"),
    "cklang.tune.measure": ("cklang.build.builder", "cklang.emulator"),
    "cklang.tune.on_device": ("cklang.build.builder",),
    "cklang.tune.session": (
        "cklang.build.builder",
        "cklang.build.dask_executor",
        "cklang.build.parallel",
        "cklang.build.steps",
        "cklang.device.device",
        "cklang.lowering.headers",
        "cklang.tune.database",
        "cklang.tune.measure",
        "cklang.tune.worker",
    ),
    "cklang.tune.strategies": ("cklang.tune.database",),
    "cklang.tune.task": ("cklang.ir.parser",),
    "cklang.types": ("ml_dtypes",),
}
"""Imports in functions that save start-up time: ``import cklang`` does not load these modules."""

OPTIONAL: Table = {
    "cklang.build.dask_executor": ("distributed",),
    "cklang.cli.plot": ("matplotlib",),
    "cklang.testing.trial": ("torch",),
    "cklang.emulator.triton.driver": ("torch", "triton"),
}
"""Imports in functions of packages that are optional."""

NEEDLESS: Table = {"cklang.tune.measure": ("dataclasses",), "cklang.types": ("numpy",)}
"""Imports in functions that save nothing, since ``import cklang`` loads the module anyway.

They are to move to the heads of their files; none is to be added."""

UPWARD: Table = {
    "cklang.runtime.planned_op": ("cklang.ops.attention_backward",),
    "cklang.runtime.op": ("cklang.ops.grouped", "cklang.ops.predict", "cklang.torch.dispatch"),
    "cklang.ops.append_kv": ("cklang.torch.append_kv",),
}
"""Imports in functions of a layer above.

Methods of an op that are written beside it, and what torch traces, which imports torch."""

TABLES = (START_UP, OPTIONAL, NEEDLESS, UPWARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import: of a module of the package, or of another package."""

    source: str
    target: str
    in_function: bool


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of the package by the names of their modules."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / "cklang").rglob("*.py"))
    }


@cache
def imports() -> tuple[Import, ...]:
    """Return every import of the package: those in functions and for type checkers too."""
    return tuple(
        Import(source=module, target=target, in_function=in_function)
        for module, path in modules().items()
        for target, in_function in read_imports(ast.parse(path.read_text()))
    )


def read_imports(node: ast.AST, in_function: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield what ``node`` imports, each with whether the import is in a function."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((target_of(alias.name), in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, "imports are absolute"
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from ((target_of(name), in_function) for name in names)
        else:
            yield from read_imports(child, in_function or isinstance(child, functions))


def target_of(name: str) -> str:
    """Return the module of ``cklang`` that has ``name``, or the package outside that has it."""
    package = name.partition(".")[0]
    while package == "cklang" and name not in modules():
        name = name.rpartition(".")[0]
    return name if package == "cklang" else package


@cache
def graph() -> nx.DiGraph:
    """Return the modules of ``cklang``, with an edge to each that a module imports."""
    modules_only = nx.DiGraph()
    modules_only.add_nodes_from(modules())
    modules_only.add_edges_from(
        (each.source, each.target)
        for each in imports()
        if each.target in modules() and each.target != each.source
    )
    return modules_only


@cache
def circles() -> frozenset[frozenset[str]]:
    """Return the modules that import each other, in sets of two or more."""
    components = map(frozenset, nx.strongly_connected_components(graph()))
    return frozenset(component for component in components if len(component) > 1)


@cache
def loaded() -> frozenset[str]:
    """Return the modules of ``cklang``, and the packages, that ``import cklang`` loads."""
    names = run_python("-c", "import sys, cklang; print(*sys.modules)").stdout.split()
    return frozenset(map(target_of, names))


def pairs(table: Table) -> set[tuple[str, str]]:
    """Return a table as pairs of the importing module and what it imports."""
    return {(source, target) for source, targets in table.items() for target in targets}


def in_functions() -> set[tuple[str, str]]:
    """Return the importing module of each import in a function, and what it imports."""
    return {(each.source, each.target) for each in imports() if each.in_function}


@pytest.mark.parametrize(
    ("text", "target", "in_function"),
    [
        ("from cklang.ir import nodes", "cklang.ir.nodes", False),
        ("from cklang.ir.nodes import Value", "cklang.ir.nodes", False),
        ("from cklang import __version__", "cklang", False),
        ("def f():\n    import networkx.algorithms", "networkx", True),
        ("class C:\n    def f(self):\n        import cklang.arch", "cklang.arch", True),
        ("if TYPE_CHECKING:\n    from cklang.runtime.op import Op", "cklang.runtime.op", False),
    ],
)
def test_imports_are_read(text: str, target: str, in_function: bool) -> None:
    assert list(read_imports(ast.parse(text))) == [(target, in_function)]


def test_no_module_imports_itself_through_others() -> None:
    assert not circles(), f"these modules import each other: {sorted(map(sorted, circles()))}"


def test_few_folders_of_families_import_each_other() -> None:
    names = {
        module: module.split(".")[2]
        for module in graph()
        if re.match(r"cklang\.families\.\w+\.", module)
    }
    folders = nx.DiGraph(
        (names[source], names[target])
        for source, target in graph().edges
        if names.keys() >= {source, target} and names[source] != names[target]
    )
    knots = [knot for knot in nx.strongly_connected_components(folders) if len(knot) > 1]
    assert knots == [{"attention", "attention_backward"}]


def test_imports_in_functions_have_a_reason() -> None:
    listed = set().union(*map(pairs, TABLES))
    unlisted, gone = in_functions() - listed, listed - in_functions()
    assert not unlisted, f"move these imports to the heads of their files: {sorted(unlisted)}"
    assert not gone, f"these imports are in no function any longer: {sorted(gone)}"


def test_an_import_in_a_function_is_listed_once() -> None:
    assert sum(len(pairs(table)) for table in TABLES) == len(set().union(*map(pairs, TABLES)))


def test_what_is_imported_late_is_not_loaded_at_start_up() -> None:
    assert {target for _, target in pairs(START_UP)} & loaded() == set()


def test_optional_packages_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        text.partition(">=")[0]
        for each in project["optional-dependencies"].values()
        for text in each
    }
    assert {target for _, target in pairs(OPTIONAL)} <= extras


def test_a_needless_import_is_of_what_is_loaded_at_start_up() -> None:
    assert {target for _, target in pairs(NEEDLESS)} <= loaded()
