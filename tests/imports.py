"""The import graph of the Python packages, read from their source without running it."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PYTHON = Path(__file__).parents[1] / "python"
PACKAGES = ("tacit", "tacit_lab")
COMPILED = "tacit._core"
"""The module that is not Python; it imports none of the others."""


@cache
def modules() -> dict[str, Path]:
    """The file of every module, by the module's name."""
    files = (file for package in PACKAGES for file in (PYTHON / package).rglob("*.py"))
    return {name_of(file): file for file in sorted(files)}


def name_of(file: Path) -> str:
    """The name under which a file is imported."""
    parts = file.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported; those for type checkers alone do not."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from statements(statement.orelse)
            continue
        yield statement
        for inner in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, inner, []))
        for handler in getattr(statement, "handlers", []):
            yield from statements(handler.body)


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The full names that import statements name: modules, and what is taken out of them."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports within the packages are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def target(name: str) -> str | None:
    """The module of ours that an imported name lies in, if it is ours."""
    if f"{name}.".startswith(f"{COMPILED}."):
        return None
    while name not in modules():
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return name


@cache
def at_import(name: str) -> frozenset[str]:
    """The modules of ours that a module imports as soon as it is imported."""
    tree = ast.parse(modules()[name].read_text(encoding="utf-8"))
    found = {target(other) for other in imported(statements(tree.body))}
    return frozenset(other for other in found if other not in (None, name))


def anywhere(name: str) -> set[str]:
    """All full names that a module imports, also within functions and for type checkers."""
    return set(imported(ast.walk(ast.parse(modules()[name].read_text(encoding="utf-8")))))


@cache
def reached(name: str) -> frozenset[str]:
    """All modules that are loaded with a module, as far as import statements name them."""
    found: set[str] = set()
    left = [name]
    while left:
        for other in at_import(left.pop()) - found:
            found.add(other)
            left.append(other)
    return frozenset(found)


def cycles() -> list[list[str]]:
    """The groups of modules that import one another, around a cycle."""
    groups = {
        frozenset(other for other in reached(name) if name in reached(other))
        for name in modules()
        if name in reached(name)
    }
    return sorted(sorted(group) for group in groups)
