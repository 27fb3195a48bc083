"""The package as installed: its files, its public names, its imports, and the versions it allows and is tested with."""

import ast
import graphlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from gpbench.version import other_program

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gpbench"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
MAKEFILE = (ROOT / "Makefile").read_text()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def packages_around(name: str) -> set[str]:
    return {name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)}


def imports(path: Path) -> set[str]:
    """Our modules that a file imports when it is imported itself, with the packages around them."""
    named: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in nodes:  # which grows
        if isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{name.name}" for name in node.names}
            named |= whole & FILES.keys() or {node.module or ""}
        elif isinstance(node, ast.Import):
            named |= {name.name for name in node.names}
        elif not isinstance(node, ast.FunctionDef) and "TYPE_CHECKING" not in ast.dump(getattr(node, "test", node)):
            nodes += ast.iter_child_nodes(node)
    around = {package for name in named & FILES.keys() for package in packages_around(name)}
    own = module_name(path)
    return (named & FILES.keys()) | (around - packages_around(own) - {own})


FILES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def test_every_module_can_be_the_first_and_what_smoke_and_the_list_of_slow_tests_name_exists():
    graphlib.TopologicalSorter({name: imports(path) for name, path in FILES.items()}).prepare()
    for selected in [*smoke_selection(), *dict.fromkeys(name.partition("[")[0] for name in SLOW)]:
        path, _, name = selected.partition("::")
        assert (ROOT / path).exists(), selected
        assert not name or f"\ndef {name}(" in (ROOT / path).read_text(), selected


def test_the_wheel_holds_every_file_of_the_package_and_of_conf(tmp_path, monkeypatch):
    hatchling = pytest.importorskip("hatchling.build", reason="hatchling is not installed: the extra `dev`")
    monkeypatch.chdir(ROOT)
    wheel = zipfile.ZipFile(tmp_path / hatchling.build_wheel(str(tmp_path)))
    ours = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    conf = {f"gpbench/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*") if path.is_file()}
    shipped = {f"gpbench/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("results/*/records.parquet")}
    expected = {name for name in ours | conf | shipped if "__pycache__" not in name}
    assert "gpbench/py.typed" in expected
    assert {name for name in wheel.namelist() if name.startswith("gpbench/")} == expected


def test_the_other_program_of_our_name_is_noticed_where_its_files_are_among_ours(tmp_path):
    assert PROJECT["name"] == "scalable-gp-bench" and other_program(tmp_path) == ""
    (tmp_path / "scalable_gp_bench-0.1.0.dist-info").mkdir()
    assert other_program(tmp_path) == ""
    for name, line in (("gpbench-0.1.0", "Scalable Gaussian-process methods"), ("gpbench-1.2.2", "genomic prediction")):
        assert other_program(tmp_path) == ""  # ours under its old name, too
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "METADATA").write_text(f"Summary: {line}\n")
    assert other_program(tmp_path).startswith("gpbench-1.2.2, another program")


def test_the_pins_of_jax_and_the_pythons_of_the_workflow_are_the_oldest_and_newest_that_are_allowed():
    allowed = next(item for item in map(Requirement, PROJECT["dependencies"]) if item.name == "jax").specifier
    pins = re.findall(r"^jax==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    versions = sorted(map(Version, pins))
    assert all(version in allowed for version in versions)
    assert f">={versions[0]}" in map(str, allowed)
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["test"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    pythons = job["strategy"]["matrix"]["python"]
    assert pythons[0] == oldest
    assert {f"Programming Language :: Python :: {python}" for python in pythons} <= set(PROJECT["classifiers"])
    commands = [step["run"].split()[:2] for step in job["steps"] if "run" in step]
    assert commands == [["make", "run"], ["make", "test"], ["make", "docs"], ["make", "dist"]]


def smoke_selection() -> list[str]:
    """The files, folders and tests that `make smoke` runs, as pytest takes them."""
    selection = re.search(r"^SMOKE = ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert selection
    return [word for word in selection[1].split() if word != "\\"]


SLOW = (ROOT / "tests" / "slow.txt").read_text().splitlines()
