"""Whether the fields of a node with a `_target_`, such as `method`, fit the signature of that target."""

import importlib
import inspect
import sys
import traceback
import types
import typing
from collections.abc import Mapping
from typing import Any

from gpbench import registry
from gpbench.errors import ConfigError, as_word, either, nearest

_HYDRA_KEYS = ("_target_", "_args_", "_convert_", "_partial_", "_recursive_")
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", types.NoneType: "null"}


def check_fields(node: Mapping[str, Any], where: str = "method") -> None:
    """Compare a node, and those below it, with the signature of its `_target_`: unknown, missing and ill-typed fields.

    Imports the target, and JAX with it.  Raises ConfigError.
    """
    constructor = imported(node, where)
    name = str(node["_target_"]).rpartition(".")[2]
    try:
        fields = inspect.signature(constructor).parameters
    except (TypeError, ValueError):
        raise ConfigError(f"{where}: _target_ {node['_target_']} is no class or function of Python's") from None
    if missing := sorted(getattr(constructor, "__abstractmethods__", ())):
        raise ConfigError(f"{where}: {node['_target_']} lacks {', '.join(missing)}; see docs/add_a_method.md")
    named = {key: f for key, f in fields.items() if f.kind in (f.KEYWORD_ONLY, f.POSITIONAL_OR_KEYWORD)}
    open_ended = any(field.kind is field.VAR_KEYWORD for field in fields.values())
    values = {key: registry.named(key, value) for key, value in node.items() if key not in _HYDRA_KEYS}
    for key, value in values.items():
        if key in named:
            _check_field(f"{where}.{key}", value, named[key].annotation)
        elif not open_ended:
            raise ConfigError(f"{where}.{key}: {name} has no such field; {nearest(key, named)}")
        if isinstance(value, dict) and "_target_" in value:
            check_fields(value, f"{where}.{key}")
    if missing := [key for key, field in named.items() if field.default is field.empty and key not in values]:
        raise ConfigError(f"{where}.{missing[0]}: {name} needs a value for it")


def imported(node: Mapping[str, Any], where: str) -> Any:
    """What the `_target_` of a node names.  Raises ConfigError where it cannot be imported, for whatever reason."""
    if not isinstance(target := node.get("_target_"), str):
        raise ConfigError(f"{where} has no _target_: add `_target_: MODULE.NAME` to its file")
    module, _, name = target.rpartition(".")
    if not all(part.isidentifier() for part in target.split(".")) or not module:
        raise ConfigError(f"{where}: _target_ {target!r}: write MODULE.NAME")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConfigError(f"{where}: cannot import {target!r}: {error}") from error
    except Exception as error:  # of the user's module, which is imported here for the first time
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigError(
            f"{where}: cannot import {target!r}: {type(error).__name__} in line {at.lineno} of {at.filename}: {error}"
        ) from error


def _check_field(key: str, value: Any, annotation: Any) -> None:
    """Raise ConfigError where a field annotated as a Literal, int, float, bool, str, None or a union has another value.

    A whole number is a float too.  A field annotated as a class of a library, such as an optimiser, takes a mapping
    with a `_target_`.  Other annotations say nothing here.
    """
    if typing.get_origin(annotation) is typing.Literal:
        if value not in (known := typing.get_args(annotation)):
            raise ConfigError(f"{key}={as_word(value)}: must be {either(map(as_word, known))}")
        return
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    kinds = typing.get_args(annotation) if is_union else (types.NoneType if annotation is None else annotation,)
    objects = [kind for kind in kinds if _needs_target(kind)]
    if not set(kinds) - set(objects) <= _KINDS.keys():
        return
    if type(value) in kinds or (float in kinds and type(value) is int):
        return
    if objects and (isinstance(value, list) or (isinstance(value, Mapping) and "_target_" in value)):
        return
    names = [f"a mapping whose _target_ returns a {kind.__name__}" for kind in objects]
    names += [_KINDS[kind] for kind in kinds if kind not in objects and (kind is not int or float not in kinds)]
    raise ConfigError(f"{key}={as_word(value)}: must be {either(names)}")


def _needs_target(kind: Any) -> bool:
    """Whether an annotation is a class that no value of a configuration is an instance of."""
    return isinstance(kind, type) and kind.__module__.partition(".")[0] not in sys.stdlib_module_names
