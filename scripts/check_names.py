"""Names that are function words or bare participles: each is printed with its place, and any makes the exit code 1.

A name is a noun for a value, a verb for a function, and the field's term where there is one (CONTRIBUTING.md).
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS = frozenset(
    """
    of one what why at place part found told made kept asked taken given wanted wants has shown said left done gone
    chosen named seen used got put let called where when who how here there already such
    """.split()  # noqa: SIM905
)

RECORDED = frozenset({"kept"})
"""Names that are keys of files written since the first version, and so cannot change."""


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of each binding: assignments, loops, arguments, definitions, and imports with `as`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs) and node.name:
            yield node.lineno, node.name


def main(folders: list[str]) -> int:
    """Checks the Python files below these folders."""
    total, lines = 0, []
    for path in sorted(path for folder in folders for path in Path(folder).rglob("*.py")):
        for line, name in bindings(ast.parse(path.read_text(encoding="utf-8"))):
            total += 1
            if name.strip("_") in WORDS and not (path.name == "record.py" and name in RECORDED):
                lines.append(f"{path}:{line}: {name}")
    print(*lines, sep="\n", end="\n" * bool(lines))
    print(f"{len(lines)} of {total:,} bindings have a function word or a participle for a name")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["gpbench"]))
