"""Dotted paths in configurations, and the objects that they name: the one place where a name becomes code, of folders
that the user gave to this process (`add_folders`) alone."""

import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Container, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.machinery import ModuleSpec
from os import PathLike
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

from gpbench import paths, plugins
from gpbench.errors import ConfigError, as_word, either, nearest, require

_GROUPS = tuple(f"gpbench.{kind}" for kind in ("methods", "kernels", "likelihoods", "readers", "metrics"))
_OURS = ("gpbench.core.", "gpbench.methods.", "optax.")
_CALLERS = ("method", "protocol", "experiment")
_folders: list[Path] = []


def add_folders(folders: "Iterable[str | PathLike[str]]") -> list[Path]:
    """The absolute paths of these folders of the user's, whose modules become importable and allowed as targets."""
    absolute = [paths.expanded(folder).resolve() for folder in folders]
    for folder in absolute:
        require(folder.is_dir(), f"--config-dir {folder}: no such folder", ConfigError)
    sys.path[:0] = [str(path) for path in absolute if str(path) not in sys.path]
    _folders.extend(path for path in absolute if path not in _folders)
    return absolute


def is_given(folder: "str | PathLike[str]") -> bool:
    """True if the user gave this folder to this process, so that what its files name may be imported."""
    return Path(folder).resolve() in _folders


def check_path(path: Any, subject: str) -> None:
    """Raises ConfigError, which begins with `subject`, for anything but the dotted path MODULE.NAME."""
    is_dotted = isinstance(path, str) and "." in path and all(map(str.isidentifier, path.split(".")))
    require(is_dotted, f"{subject}: _target_={as_word(path)}: write MODULE.NAME", ConfigError)


def resolve(path: str) -> Any:
    """The object of a dotted path in a table of gpbench's own."""
    return pkgutil.resolve_name(":".join(path.rsplit(".", 1)))  # with a colon an import that fails is not hidden


def load(path: Any, subject: str, base: type | None = None) -> Any:
    """The object that a `_target_` names, not called; the caller checks what it is before it is called."""
    check_path(path, subject)
    is_allowed = _is_allowed(path) or _is_named(path)
    top = path.partition(".")[0]
    if not is_allowed and _spec(top) is None:
        close = get_close_matches(top, [entry.name for entry in pkgutil.iter_modules()], cutoff=0.75)
        hint = f"did you mean {either(close)}?" if close else "name the folder that has it with --config-dir"
        raise ConfigError(f"{subject}: cannot import {path!r}: no module {top!r}; {hint}")
    mend = "add --config-dir DIR with the module's folder"
    require(is_allowed, f"{subject}: {path} may not be used: {_RULE}; {mend}", ConfigError)
    module, _, name = path.rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a user's module can raise anything
        raise ConfigError(f"{subject}: cannot import {path!r}: {_reason(error, module, name)}") from error
    if base and isinstance(target, type) and issubclass(target, base):
        return target
    if isinstance(target, type | FunctionType | BuiltinFunctionType):
        is_allowed = _is_allowed(f"{target.__module__}.") or _is_named(path)
        only = f"{path} is of the module {target.__module__}, and only imported there: {_RULE}"
        require(is_allowed, f"{subject}: {only}", ConfigError)
    return target


def entries(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every `_target_` in a section of a configuration, after the key of the mapping that has it."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from [(key, value)] if name == "_target_" else entries(value, f"{key}.{name}")
    elif isinstance(node, list | tuple):
        for value in node:
            yield from entries(value, key)


def is_ours(path: Any) -> bool:
    """True if a path leads into gpbench or optax, whose faults are not the user's."""
    return str(path).startswith(_OURS)


def check_called(path: Any, subject: str, folders: Iterable[Path]) -> None:
    """Refuses a function of the user's that only a record says is called, and that no base class checks."""
    check_path(path, subject)
    mend = "name it in a file of method/ or protocol/ in a folder of --config-dir"
    is_named = is_ours(path) or _is_named(path, folders, _CALLERS)
    require(is_named, f"{subject}: a record may not call {path}: {mend}", ConfigError)


_RULE = "a target is of gpbench, of a package with an entry point, or of a module in a folder of --config-dir"


def _is_allowed(path: str) -> bool:
    top = path.partition(".")[0]
    return is_ours(path) or _is_in_folders(top) or top in _packages()


def _is_named(path: str, folders: Iterable[Path] | None = None, groups: Container[str] | None = None) -> bool:
    """True if a file of the user's folders names this target.  Cards do not count: people share them as data."""
    line = re.compile(rf"\b_target_['\"]?\s*:\s*['\"]?{re.escape(path)}(?![\w.])")
    files = (file for folder in (_folders if folders is None else folders) for file in folder.glob("*/*.yaml"))
    files = (f for f in files if (f.parent.name in groups if groups else f.parent.name != "dataset"))
    return any(line.search(file.read_text(encoding="utf-8", errors="replace")) for file in files)


def _is_in_folders(top: str) -> bool:
    """True if the module or package of this name lies directly in one of the user's folders, and not elsewhere too."""
    spec = _spec(top)
    if spec is None or not _folders:
        return False
    places = list(spec.submodule_search_locations or ()) or [str(spec.origin)] * spec.has_location
    return bool(places) and all(Path(path).parent.resolve() in _folders for path in places)


def _spec(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):  # the latter of `__main__`
        return None


@cache
def _packages() -> frozenset[str]:
    """The packages that entry points of gpbench's groups lead into."""
    return frozenset(re.split("[:.]", point.value)[0] for group in _GROUPS for point in plugins.points(group))


def _reason(error: BaseException, module: str, name: str) -> str:
    """Cause of a failed import, with the line of the module whose code raised it."""
    if isinstance(error, SyntaxError):  # which names file and line
        return str(error)
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        return f"no module {error.name!r}"
    if isinstance(error, AttributeError) and error.name == name:
        return f"{module} has no {name!r}; {nearest(name, [key for key in vars(error.obj) if not key.startswith('_')])}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in line {frame.lineno} of {frame.filename}: {' '.join(str(error).split())}"
