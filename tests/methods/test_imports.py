"""A method imports core, small rooms without JAX and the methods' shared parts, never another method's file."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METHODS = ROOT / "gpbench" / "methods"
FILES = sorted(path for path in METHODS.rglob("*.py") if path.name != "__init__.py")


def is_module(name: str) -> bool:
    """Whether a dotted name is a module or package of this repository."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imported_modules(source: str, module: str) -> set[str]:
    """The modules of gpbench that `source`, the text of `module`, imports anywhere, as full names."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # one dot is the package of this file, each further one the package above
            package = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*package, *([node.module] if node.module else [])])
            members = {f"{origin}.{alias.name}" for alias in node.names}
            names |= {member if is_module(member) else origin for member in members}
    return {name for name in names if name.partition(".")[0] == "gpbench"}


def is_allowed(name: str) -> bool:
    """Whether a method may import the module of gpbench of this name: a part, or what a family shares."""
    if name.startswith("gpbench.methods."):
        return name.startswith("gpbench.methods.parts.") or name.endswith((".base", ".protocols"))
    known = ("gpbench.errors", "gpbench.registry", "gpbench.runtime", "gpbench.schema", "gpbench.core")
    return name in known or name.startswith("gpbench.core.")


def test_a_method_imports_core_and_shared_parts_alone():
    assert len(FILES) > 10
    for path in FILES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        others = {name for name in imported_modules(path.read_text(), module) if not is_allowed(name)}
        assert not others, f"{module} imports {', '.join(sorted(others))}"


CONSTANT = {"gpbench.methods.baselines.constant"}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("from gpbench.methods.baselines.constant import Constant", CONSTANT),
        ("from . import constant", CONSTANT),
        ("def f():\n    from ..baselines.constant import Constant", CONSTANT),
        ("import jax\nfrom gpbench.core.linalg import inverse_cholesky", {"gpbench.core.linalg"}),
    ],
)
def test_every_form_of_import_is_seen(line, names):
    assert imported_modules(line, "gpbench.methods.baselines.example") == names
