"""Names of packages that are imported at their first use (PEP 562), so that commands start without NumPy and JAX."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, exports: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The lazy names of a package, assigned as `__getattr__, __dir__, __all__ = attach(__name__, {...})`."""
    modules = {name: module for module, names in exports.items() for name in names}
    public = sorted([*modules, *submodules])

    def __getattr__(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        if name in modules:
            return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__, lambda: public, public
