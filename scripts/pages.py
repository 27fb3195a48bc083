"""The pages of the documentation site for MkDocs: those of the repository where they lie in it, and the interfaces.

Links between the files of the repository then lead to the same places on the site as in a checkout.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_LINK = re.compile(r"\]\(([^)#:\s]+)[^):]*\)")


def on_files(files: Files, config: Any) -> Files:
    """README.md and its like, docs/, results/, what they link to, and a page for each package of the navigation."""
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
    return Files([*theme, *ours, *_interfaces(config)])


def _interfaces(config: Any) -> list[File]:
    names = re.findall(r"api/(\w+)\.md", Path(config.config_file_path).read_text(encoding="utf-8"))
    return [
        File.generated(config, f"api/{name}.md", content=f"# gpbench.{name}\n\n::: gpbench.{name}\n") for name in names
    ]
