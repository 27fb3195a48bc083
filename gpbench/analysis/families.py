"""Families of methods, by which wide tables are divided."""

import functools
import re

from gpbench import paths

_NAMES = {"deep": "deep GPs", "bnn": "networks", "additive": "additive models", "baselines": "baselines"}
"""Families by the folder of `gpbench.methods`; the methods of the other folders are GPs."""
_FOLDER = re.compile(r"^_target_: gpbench\.methods\.(\w+)\.", re.MULTILINE)


@functools.cache
def family(method: str) -> str:
    """The family of a method of ours by its name, such as "networks"; "other methods" for a user's own."""
    file = paths.yaml_files("method", ()).get(method)
    folder = _FOLDER.search(file.read_text(encoding="utf-8")) if file else None
    return _NAMES.get(folder[1], "GPs") if folder else "other methods"
