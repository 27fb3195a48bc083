"""Objects that a configuration names by dotted path, as in `_target_: MODULE.NAME`."""

import importlib
import pkgutil
import traceback
from difflib import get_close_matches
from typing import Any

from gpbench.errors import ConfigError, as_word, either, nearest


def check_path(path: Any, subject: str) -> None:
    """Checks that a `_target_` is a dotted path.

    Args:
        path: The value.
        subject: Place that names it, for messages.

    Raises:
        ConfigError: It is anything else.
    """
    if not (isinstance(path, str) and "." in path and all(word.isidentifier() for word in path.split("."))):
        raise ConfigError(f"{subject}: _target_={as_word(path)}: write MODULE.NAME")


def load(path: Any, subject: str) -> Any:
    """Imports the object of a dotted path.

    Args:
        path: Path as MODULE.NAME.
        subject: Place that names it, for messages.

    Raises:
        ConfigError: There is no such module or name, or the module raises an error.
    """
    check_path(path, subject)
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # an import inside the module
            reason = _cause(error)
        elif close := get_close_matches(str(error.name), [entry.name for entry in pkgutil.iter_modules()], cutoff=0.75):
            reason = f"no module {error.name!r}; did you mean {either(close)}?"
        else:
            reason = f"no module {error.name!r}; name the folder that has it with --config-dir"
        raise ConfigError(f"{subject}: cannot import {path!r}: {reason}") from error
    except AttributeError as error:
        if error.name != name:
            raise ConfigError(f"{subject}: cannot import {path!r}: {_cause(error)}") from error
        public = [name for name in vars(error.obj) if not name.startswith("_")]
        reason = f"{module} has no {name!r}; {nearest(name, public)}"
        raise ConfigError(f"{subject}: cannot import {path!r}: {reason}") from error
    except Exception as error:  # a user's module can raise anything
        raise ConfigError(f"{subject}: cannot import {path!r}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    """Type and text of an error, with the line that raised it."""
    if isinstance(error, SyntaxError):  # which names file and line
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in line {frame.lineno} of {frame.filename}: {' '.join(str(error).split())}"
