"""The pages of the documentation site for MkDocs: those of the repository where they lie in it, and the interfaces.

Links between the files of the repository then lead to the same places on the site as in a checkout.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"\]\(([^)#:\s]+)[^):]*\)")


def on_files(files: Files, config: Any) -> Files:
    """README.md and its like, docs/, results/, what they link to, pages of packages, search, the report."""
    root = Path(config.config_file_path).parent
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "results").rglob("*.md")]
    linked = {
        target
        for page in pages
        for link in _LINK.findall(page.read_text(encoding="utf-8"))
        if (target := (page.parent / link).resolve()).is_file() and target.is_relative_to(root)
    }
    paths = sorted({*pages, *linked})
    ours = [File.generated(config, path.relative_to(root).as_posix(), abs_src_path=str(path)) for path in paths]
    theme = [
        file for file in files if file.abs_src_path is None or root / "docs" not in Path(file.abs_src_path).parents
    ]
    script = File.generated(config, "assets/iframe-worker.js", abs_src_path=str(root / "scripts" / "iframe-worker.js"))
    report = File.generated(config, "report/index.html", content="`make pages` puts the site of the results here.")
    notebooks = [
        file
        for path in sorted((root / "examples").glob("*.ipynb"))
        for file in (
            File.generated(config, f"examples/{path.name}", abs_src_path=str(path)),
            File.generated(config, f"examples/{path.stem}.md", content=_notebook(path)),
        )
    ]
    return Files([*theme, *ours, *notebooks, *_interfaces(config), script, report])


def _notebook(path: Path) -> str:
    """A notebook as a page: its code, each cell with what it printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source, is_code = "".join(cell["source"]), cell["cell_type"] == "code"
        printed = "".join(line for output in cell.get("outputs", ()) for line in output["text"])
        parts += [f"```python\n{source}\n```\n" if is_code else f"{source}\n"]
        parts += [f"```text\n{printed.rstrip()}\n```\n"] if printed else []
    return "\n".join([*parts, f"[This page as a notebook]({path.name})\n"])


_BOOSTS = {"docs/tutorial": 4.0, "docs/how-to": 4.0, "docs/reference": 2.0, "docs/results": 1.0}
"""Weights of the pages of a folder in the search; those of other files, such as interfaces and tables, are small."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """What users do comes before what they look up, and both before constants of modules and rows of tables."""
    folder = page.file.src_uri.rpartition("/")[0]
    page.meta.setdefault("search", {"boost": _BOOSTS.get(folder, 0.2 if folder else 1.0)})


def _interfaces(config: Any) -> list[File]:
    """A page for each package or module of the navigation: its public names, or all its modules where it has none."""
    root = Path(config.config_file_path).parent
    names = re.findall(r"api/(\w+)\.md", Path(config.config_file_path).read_text(encoding="utf-8"))
    return [File.generated(config, f"api/{name}.md", content=_page(root, name)) for name in names]


def _page(root: Path, name: str) -> str:
    module = name if name == "gpbench" else f"gpbench.{name}"
    path = root.joinpath(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))
    head = f"# {module}\n\n::: {module}\n"
    modules = sorted(entry.stem for entry in path.iterdir() if entry.stem[0] not in "_.") if path.is_dir() else []
    if not (public := _public(tree, modules)):
        return head
    head += "    options: {members: false, show_submodules: false, show_root_heading: false}\n"
    options = "    options: {show_submodules: false, show_root_full_path: false}\n"
    return "\n".join([head, *(f"::: {module}.{each}\n{options}" for each in public)])


def _public(tree: ast.Module, modules: list[str]) -> list[str]:
    """The public names of a package by the modules that define them: the arguments of its `lazy.attach`, which names
    modules, or takes all of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy.attach":
            named = [word.value for word in node.keywords]
            submodules = [
                n for value in named for n in (modules if isinstance(value, ast.Name) else ast.literal_eval(value))
            ]
            exports = {name: module for module, names in ast.literal_eval(node.args[1]).items() for name in names}
            return submodules + [f"{exports[name]}.{name}" for name in sorted(exports) if exports[name] != "core"]
    return []
