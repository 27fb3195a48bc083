"""Public names: each exists and is documented with its arguments, and none is used in its own file only."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import gpbench

PACKAGE = Path(gpbench.__file__).parent
ROOT = PACKAGE.parent
TIDY = ["analysis", "api", "claims", "cli", "data", "experiments", "papers", "records", "report", "sweep", "train"]
"""Rooms whose top-level names are private where no other file uses them."""

DOCUMENTED = {"gpbench", "gpbench.core", "gpbench.estimators", "gpbench.methods"}
"""What users import: public functions of these name each of their arguments in the docstring."""


def modules() -> list[str]:
    files = sorted(path for path in PACKAGE.rglob("__init__.py") if "__all__ =" in path.read_text(encoding="utf-8"))
    return [".".join(path.parent.relative_to(ROOT).parts) for path in files]


def public() -> list[tuple[str, str]]:
    return [(path, name) for path in modules() for name in importlib.import_module(path).__all__ if name[0] != "_"]


def undocumented(function: object) -> list[str]:
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    text = inspect.getdoc(function) or ""
    return [name for name in parameters if not re.search(rf"\b{name.lstrip('_')}\b", text)]


def test_packages_that_users_import_have_few_public_names_and_no_module_hides_one():
    assert set(modules()) >= DOCUMENTED  # the names of inner rooms are those of their modules
    # The import of a module sets the attribute of its name in its package.
    for module in modules():
        package = importlib.import_module(module)
        functions = {name for name in package.__all__ if not inspect.ismodule(getattr(package, name))}
        assert not functions & {path.stem for path in PACKAGE.parent.joinpath(*module.split(".")).iterdir()}, module
    names = {(one.__module__, one.__qualname__) for one in map(_value, public()) if hasattr(one, "__qualname__")}
    assert 50 < len(names) < 300


def test_the_lists_of_names_for_type_checkers_are_those_of_the_interface():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == set(gpbench.__all__) - {"__version__"} and set(dir(gpbench)) == set(gpbench.__all__)


def test_a_room_is_imported_without_numpy_and_jax():
    rooms = ["gpbench", *sorted(f"gpbench.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py"))]
    code = f"""
import importlib, sys
for room in {rooms}:
    importlib.import_module(room)
    heavy = {{"numpy", "jax", "pandas", "jaxtyping", "pyarrow", *(["hydra", "scipy", "yaml"] * (room == "gpbench"))}}
    heavy &= {{*sys.modules}}
    assert not heavy, (room, heavy)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_public_name_is_there_and_is_documented():
    faults = []
    for module, name in public():
        value = getattr(importlib.import_module(module), name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue  # the docstring of a constant is below it
        if not (inspect.getdoc(value) or "").strip():
            faults.append(f"{module}.{name} has no docstring")
        if inspect.isfunction(value) and module in DOCUMENTED and undocumented(value):
            faults.append(f"{module}.{name} does not describe {', '.join(undocumented(value))}")
    assert not faults, "; ".join(faults)


def definitions(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_a_public_name_is_used_in_another_file():
    folders = [PACKAGE, ROOT / "tests", ROOT / "scripts", ROOT / "conf", ROOT / "docs"]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".yaml")]
    words = {path: set(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in files}
    unused = [
        f"{path.relative_to(ROOT)}: {name}"
        for room in TIDY
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in sorted(definitions(path))
        if not any(name in used for other, used in words.items() if other != path)
    ]
    assert not unused, "begin these names with an underscore: " + "; ".join(unused)


def _value(entry: tuple[str, str]) -> object:
    return getattr(importlib.import_module(entry[0]), entry[1])
