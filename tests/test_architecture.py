"""The architecture that CONTRIBUTING.md promises: imports go one way, heavy imports are lazy."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from unround import tables

SOURCE = Path(__file__).parents[1] / "src" / "unround"

ORDER = [
    "_version",
    "errors",
    "shown",
    "options",
    "small_files",
    "machine",
    "mechanisms",
    "jit",
    "output",
    "figures",
    "release",
    "system",
    "equations",
    "expectation",
    "regions",
    "structure",
    "tables",
    "proofs",
    "sums",
    "evidence",
    "bounds",
    "engines",
    "additive",
    "solution",
    "prior",
    "checks",
    "audits",
    "score",
    "job",
    "inspection",
    "boundaries",
    "explanation",
    "differences",
    "simulation",
    "protection",
    "comparison",
    "reviews",
    "reconciliation",
    "reconstruction",
    "show",
    "web",
    "results",
    "api",
    "cli",
    "__main__",
]
"""A module imports only from those before it, and from its own package."""

MODULES = sorted(SOURCE.rglob("*.py"))


def unit(module: str) -> str:
    """Return the entry of ORDER that a dotted name under unround belongs to."""
    return module.split(".")[1]


@cache
def imports(path: Path) -> set[str]:
    modules = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path == SOURCE / "options.py":  # it declares what others take, and names their types
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules.add(node.module)
            if node.module == "unround":
                modules |= {f"unround.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


def place(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_imports_go_one_way() -> None:
    wrong = []
    for path in MODULES:
        here = path.relative_to(SOURCE).with_suffix("").parts[0]
        if here == "__init__":
            continue
        allowed = set(ORDER[: ORDER.index(here) + 1])
        wrong += [
            f"{place(path)} imports {module}"
            for module in sorted(imports(path))
            if module.startswith("unround.") and unit(module) not in allowed
        ]
    assert not wrong, "\n".join(wrong)


def test_the_package_does_without_the_scripts_of_the_repository() -> None:
    scripts = ("research", "bench", "docs", "fuzz", "tests")
    assert not [place(path) for path in MODULES if any(module.split(".")[0] in scripts for module in imports(path))]


MOST_MODULES, MOST_LINES, MOST_PARAMETERS = 280, 80, 8
"""What a newcomer can hold in mind: modules of the package; lines and parameters of a function."""

TWICE = {"AuditFolder"}  # `results` adds to that of `job` what can be asked of an audit


def test_nothing_outgrows_what_a_newcomer_can_hold_in_mind() -> None:
    classes, large, lines = Counter[str](), list[str](), 0
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                parameters = len(given) - (bool(given) and given[0].arg in ("self", "cls"))
                long = (node.end_lineno or 0) - node.lineno + 1
                if long > MOST_LINES or parameters > MOST_PARAMETERS:
                    large.append(f"{place(path)}: {node.name} has {long} lines and {parameters} parameters")
    print(f"{lines:,} lines in {len(MODULES)} modules")
    assert len(MODULES) <= MOST_MODULES
    assert not large, "\n".join(large)
    assert {name for name, times in classes.items() if times > 1} <= TWICE


def test_every_module_has_its_place() -> None:
    there = {path.relative_to(SOURCE).with_suffix("").parts[0] for path in MODULES} - {"__init__"}
    assert there == set(ORDER)


CONTRIBUTING = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_map_names_every_package_in_order() -> None:
    """The map in CONTRIBUTING.md is true: no entry is missing, invented or out of place, and folders end in a slash."""
    listed = CONTRIBUTING.split("    src/unround/\n")[1].split("\n    tests/")[0].splitlines()
    names = [line.split()[0] for line in listed]
    assert names == [f"{name}/" if (SOURCE / name).is_dir() else name for name in ORDER]
    assert all(len(line.split()) > 1 for line in listed)


def test_the_walks_on_the_map_lead_through_modules_that_are_there() -> None:
    walks = re.findall(r"`([a-z_.]+)`", CONTRIBUTING.split("Two walks to begin with.")[1].split("## Rules")[0])
    assert len(walks) > 15
    for walk in walks:
        parts = walk.split(".")
        there = SOURCE.joinpath(*parts)
        if not (there.is_dir() or there.with_suffix(".py").exists()):
            assert hasattr(importlib.import_module(".".join(["unround", *parts[:-1]])), parts[-1]), walk


def test_packages_list_modules_that_are_there() -> None:
    """A package's docstring is the map of its modules: what its list names is a module, or a name of the package."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        package = importlib.import_module(".".join(path.parent.relative_to(SOURCE.parent).parts))
        for entry in re.findall(r"^- (`.*?):", package.__doc__ or "", re.MULTILINE):
            for name in re.findall(r"`(\w+)`", entry):
                there = path.with_name(f"{name}.py").exists() or hasattr(package, name) or name in tables.FORMATS
                assert there, f"{place(path)}: {name}"


def test_the_checker_shares_nothing_with_the_engines() -> None:
    assert not any(module.startswith(("unround.bounds", "unround.engines")) for module in imports(SOURCE / "proofs.py"))


def loaded_by(code: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(shown.stdout.split())


def test_heavy_imports_wait_until_they_are_used() -> None:
    heavy = {
        "ortools",
        "z3",
        "polars",
        "scipy",
        "rich.table",
        "pandas",
        "starlette",
        "uvicorn",
        "jinja2",
    }
    assert not loaded_by("import unround.cli") & (heavy | {"numpy"})
    solving = loaded_by("import unround; unround.solve(unround.parse('48! = 20 + 20 + 20'))")
    assert "numpy" in solving
    assert not solving & heavy


def test_kernels_do_without_scipy() -> None:
    modules = loaded_by("import numba, unround.jit; numba.njit(lambda x: x + 1)(1)")
    assert "numba" in modules
    assert "scipy.linalg" not in modules


def inlined_functions(source: str) -> dict[str, list[int]]:
    """Return the functions of a module that are put wherever they are called: which parameters are no numbers."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and is_inlined(node)]
    return {
        node.name: [k for k, given in enumerate(node.args.args) if ast.unparse(given.annotation or given) not in NUMBERS]
        for node in functions
    }


NUMBERS = {"int", "float", "bool", "np.uint64", "np.int64"}


def is_inlined(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(mark) == "inlined" for mark in node.decorator_list)


def handed_views(source: str, arrays: dict[str, list[int]]) -> list[str]:
    """Return the calls that hand an inlined function a part of an array, made there or in the function around the call."""
    wrong = []
    for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
        views = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                targets, values = (
                    part.elts if isinstance(part, ast.Tuple) else [part] for part in (node.targets[0], node.value)
                )
                views |= {ast.unparse(to) for to, of in zip(targets, values, strict=False) if isinstance(of, ast.Subscript)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in arrays:
                given = [node.args[k] for k in arrays[node.func.id]]
                if any(not isinstance(one, ast.Name | ast.Attribute) or ast.unparse(one) in views for one in given):
                    wrong.append(f"{function.name}: {ast.unparse(node)}")
    return wrong


def test_inlined_functions_are_handed_whole_arrays() -> None:
    """They do not count references: a view that is made for the call is freed while it is used, and memory is corrupted."""
    arrays = inlined_functions((SOURCE / "jit.py").read_text("utf-8"))
    assert arrays == {"random_bits": [0], "uniform": [0]}
    assert handed_views("def f(states):\n    return uniform(states[1])", arrays)
    assert handed_views("def f(states):\n    one, k = states[1], 2\n    return random_bits(one) + k", arrays)
    assert not handed_views("def f(draw):\n    return uniform(draw.random)", arrays)
    sources = {place(path): path.read_text("utf-8") for path in MODULES if "unround.jit" in imports(path)}
    assert len(sources) > 10
    assert not [
        f"{name}: {call}"
        for name, source in sources.items()
        for call in handed_views(source, arrays | inlined_functions(source))
    ]


def test_never_two_copies_of_the_same_solver_library() -> None:
    """highspy beside ortools kills the process; nothing here may import it."""
    assert not any("highspy" in module for path in MODULES for module in imports(path))


def test_the_public_names_are_there() -> None:
    import unround

    for name in unround.__all__:
        assert getattr(unround, name) is not None
    assert set(unround.__all__) <= set(dir(unround))
    with pytest.raises(AttributeError, match="nothing"):
        _ = unround.nothing
