"""The rooms of the house stand on floors and within budgets: a file imports from its own room and lower floors."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import gpbench

PACKAGE = Path(gpbench.__file__).parent
FLOORS = [
    {"errors", "lazy", "limits", "paths"},
    {"log"},
    {"plugins", "version"},
    {"npz", "outputs", "pages", "schema", "scored", "targets", "yamls"},
    {"arguments", "metrics", "papers"},
    {"registry"},
    {"core", "data_registry", "own_metrics"},
    {"methods", "runtime"},
    {"config"},
    {"data"},
    {"records"},
    {"train"},
    {"experiments"},
    {"analysis"},
    {"claims"},
    {"report", "sweep", "imports", "contract", "estimators"},
    {"api"},
    {"cli"},
]
"""The rooms, from the ground up; two rooms of one floor do not import each other."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
BUDGETS = {
    ("base",): 2_701,
    ("core",): 6_300,
    ("methods",): 6_893,
    ("data",): 5_102,
    ("config",): 1_373,
    ("records", "experiments"): 3_075,
    ("train",): 2_671,
    ("sweep",): 1_301,
    ("analysis",): 4_489,
    ("claims",): 1_881,
    ("report",): 2_837,
    ("cli", "api"): 3_957,
    ("contract", "estimators", "imports", "papers"): 2_562,
}
"""Most lines of Python in these rooms together; the base is what no other entry names.  A change that needs more takes
them from something else; one that raises a budget says why."""


def room_of(path: Path) -> str:
    """The room of a file of the package: its folder, or its own name where it stands in the package itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    """The dotted names that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_files(path: Path, known: Collection[str]) -> set[str]:
    """The files of these that a file imports, or imports names of."""
    names = ((name, name.rpartition(".")[0]) for name in imports_of(path))
    return {next(name for name in pair if name in known) for pair in names if known & set(pair)}


def imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("gpbench.")} & FLOOR.keys()


def test_no_files_import_each_other_in_a_circle_not_even_for_types():
    files = {".".join(("gpbench", *p.relative_to(PACKAGE).with_suffix("").parts)): p for p in PACKAGE.rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    arrows = {name: imported_files(path, files.keys()) - {name} for name, path in files.items()}
    list(TopologicalSorter(arrows).static_order())  # raises CycleError, which names the circle
    with pytest.raises(CycleError):
        TopologicalSorter(arrows | {"gpbench.errors": {"gpbench.cli"}}).prepare()


def test_every_room_has_a_floor_and_a_file_imports_from_its_own_room_and_lower_floors():
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms == {room for room in FLOOR if (PACKAGE / room).exists() or (PACKAGE / f"{room}.py").exists()}
    files = (path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or room_of(path) in FLOOR)
    upwards = [
        f"{path.relative_to(PACKAGE)} imports from {other}"
        for path in files
        for other in imported_rooms(path) - {room_of(path)}
        if FLOOR[other] >= FLOOR[room_of(path)]
    ]
    assert not upwards, "; ".join(sorted(upwards))


def test_a_method_imports_core_and_shared_parts_and_never_another_methods_file():
    files = {".".join((*p.relative_to(PACKAGE.parent).with_suffix("").parts,)): p for p in PACKAGE.rglob("*.py")}
    methods = {name: path for name, path in files.items() if name.startswith("gpbench.methods.")}
    shared = re.compile(
        r"gpbench\.(core|(errors|registry|runtime|schema|methods\.base|methods\.protocols|"
        r"methods\.parts)\b|methods\.\w+\.base$)"
    )
    for name, path in methods.items():
        others = imported_files(path, files.keys()) - {name}
        assert path.name == "__init__.py" or not {other for other in others if not shared.match(other)}, name
    assert len(methods) > 10


def room_lines() -> Counter[str]:
    lines: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        lines[room_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    return lines


def test_rooms_are_within_their_budgets():
    lines = room_lines()
    named = {room for others in BUDGETS for room in others}
    used = {rooms: sum(lines[r] for r in (rooms if rooms != ("base",) else set(lines) - named)) for rooms in BUDGETS}
    assert not {rooms: (used[rooms], most) for rooms, most in BUDGETS.items() if used[rooms] > most}
