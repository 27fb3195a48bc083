"""Checks of a configuration that import the classes it names, and the method that it describes."""

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from gpbench import registry, targets
from gpbench.config import declared
from gpbench.errors import ConfigError, GpbenchError, as_word, either, located, require, require_known
from gpbench.methods.base import Method
from gpbench.methods.protocols import HasCovariance, HasRates, HasSearch
from gpbench.schema import MEANING, RANGE, check_declarations, settings

_HYDRA_KEYS = ("_target_", "_args_", "_convert_", "_partial_", "_recursive_")
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", types.NoneType: "null"}


def build_method(node: Mapping[str, Any]) -> Method:
    """The method with the class and the fields of a `method` section, which `check_class` has checked."""
    try:
        method = _constructed(node, "method")
    except GpbenchError:
        raise
    except (Exception, SystemExit) as error:  # whatever a constructor of the user's raises
        fault = f"method: cannot construct {node['_target_']}: {type(error).__name__}: {error}"
        raise ConfigError(fault) from error
    fault = "method has no name, by which records and tables know it: add `name: NAME` to its file"
    require(method.name, fault, ConfigError)
    return method


def check_recorded(node: Mapping[str, Any], folders: Sequence[Path]) -> None:
    """Checks that a record's `method` section calls only functions of gpbench, optax and these folders."""
    for name, value in node.items():
        if name != "_target_":
            for key, path in targets.entries(value, f"method.{name}"):
                if not _is_family(name, path):
                    targets.check_called(path, key, folders)


def _is_family(kind: str, path: str) -> bool:
    """True for the class of a kernel or a likelihood, which a method makes of its mapping itself."""
    return kind in registry.KINDS and callable(getattr(registry.load(kind, path, object), "initial", None))


def _constructed(value: Any, key: str) -> Any:
    """A value with each mapping that has a `_target_` replaced by what its target makes of the other entries."""
    if isinstance(value, list):
        return OmegaConf.create([_constructed(item, key) for item in value], flags={"allow_objects": True})
    if not isinstance(value, Mapping):
        return value
    entries = {name: _constructed(entry, f"{key}.{name}") for name, entry in value.items()}
    if "_target_" not in value or _is_family(key.removeprefix("method.").partition(".")[0], value["_target_"]):
        return OmegaConf.create(entries, flags={"allow_objects": True})
    fields = {name: entry for name, entry in entries.items() if name not in _HYDRA_KEYS}
    target, is_partial = targets.load(value["_target_"], key), bool(value.get("_partial_"))
    return _call_once(target, is_partial, *entries.get("_args_", ()), **fields)


@lru_cache(maxsize=64, typed=True)
def _call_once(target: Callable[..., Any], is_partial: bool, /, *args: Any, **fields: Any) -> Any:
    """The object that a target makes of these values, made once: optimisers of optax are never equal."""
    call = partial(target, *args, **fields)
    return call if is_partial else call()


def check_class(node: Mapping[str, Any], card: Mapping[str, Any] | None = None) -> None:
    """Checks what needs imports in a `method` section, such as a user's class; and that it is for the card's task."""
    tasks, families = None, registry.KINDS.keys() & node.keys()
    if str(node.get("_target_")) in declared.classes():
        for key, value in node.items():
            if key not in families and isinstance(value, Mapping) and "_target_" in value:
                _check_signature(value, f"method.{key}")
    else:
        cls = _check_signature(node, "method")
        check_declarations(cls)
        tasks, name = cls.tasks, cls.__name__
        is_tuple = isinstance(tasks, tuple | list | set | frozenset)
        require(is_tuple, f"{name}: tasks must be a tuple, such as tasks = ('regression',)", ConfigError)
        for task in sorted(tasks):
            require_known(task, registry.AUTO, f"{name}: no task {task!r}")
        declaration = declaration_of(cls)
        families = {f for f in families if declaration["settings"].get(f, {"range": f})["range"] == f}
        declared.check_declared(node, declaration, name)
    for kind in families:
        _check_family(kind, node[kind])
    if card is not None:
        declared.check_task(node, card, tasks)


def _check_family(kind: str, value: Any) -> None:
    """Checks the custom classes in the value of a kernel or a likelihood: what they declare, and their options."""
    from gpbench.core.kernels import kernel_spec
    from gpbench.core.likelihoods import likelihood_spec

    with located(f"method.{kind}"):
        if paths := registry.custom_paths(kind, value):
            (kernel_spec if kind == "kernel" else likelihood_spec)(value)
        for path in paths:
            check_declarations(registry.load(kind, path))


def declaration_of(cls: type[Method]) -> dict[str, Any]:
    """The declarations of a method's class, as `settings.json` has them but for defaults that are objects."""
    return {
        "tasks": sorted(cls.tasks),
        "kernels": cls.kernels and list(cls.kernels),
        "likelihoods": cls.likelihoods and list(cls.likelihoods),
        "searchable": list(cls.searchable),
        "rates": issubclass(cls, HasRates),
        "search": issubclass(cls, HasSearch),
        "sample_weights": cls.sample_weights,
        "covariance": issubclass(cls, HasCovariance),
        "settings": {name: _declared(field) for name, field in settings(cls).items()},
    }


def _declared(field: dataclasses.Field) -> dict[str, Any]:
    words = field.metadata[RANGE]
    entry = {"range": list(words) if isinstance(words, tuple) else words, "meaning": field.metadata[MEANING]}
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return entry if default is dataclasses.MISSING else {**entry, "default": default}


def _check_signature(node: Mapping[str, Any], key: str) -> Any:
    """The `_target_` of a node, after a check of its fields that `setting` does not declare, and of nodes below."""
    if not isinstance(target := node.get("_target_"), str):
        raise ConfigError(f"{key} has no _target_: add `_target_: MODULE.NAME` to its file")
    constructor, name = targets.load(target, key, Method), target.rpartition(".")[2]
    is_class = isinstance(constructor, type)
    is_other = key == "method" and not (is_class and issubclass(constructor, Method))
    no_method = f"method: {target} is no gpbench.Method: derive its class from gpbench.Method"
    require(is_class or not is_other, no_method, ConfigError)
    try:
        fields = inspect.signature(constructor).parameters
    except (TypeError, ValueError):
        raise ConfigError(f"{key}: _target_ {target} is no class or function of Python's") from None
    abstract = ", ".join(sorted(getattr(constructor, "__abstractmethods__", ())))
    require(not abstract, f"{key}: {target} lacks {abstract}; see docs/how-to/own_method.md", ConfigError)
    parameters = {name: f for name, f in fields.items() if f.kind in (f.KEYWORD_ONLY, f.POSITIONAL_OR_KEYWORD)}
    is_open = any(field.kind is field.VAR_KEYWORD for field in fields.values())
    values = {name: value for name, value in node.items() if name not in _HYDRA_KEYS}
    is_nameless = not is_open and "name" in values.keys() - parameters.keys()  # every method has the field
    require(not (is_other and is_nameless), no_method, ConfigError)
    has_ranges = settings(constructor) if is_class and hasattr(constructor, "__dataclass_fields__") else {}
    for field, value in values.items():
        if not is_open:
            require_known(field, parameters, f"{key}.{field}: {name} has no such field")
        if field in parameters and field not in has_ranges:
            _check_annotation(f"{key}.{field}", value, parameters[field].annotation)
        if isinstance(value, dict) and "_target_" in value and not _is_family(field, value["_target_"]):
            _check_signature(value, f"{key}.{field}")
    require(not is_other, no_method, ConfigError)
    for field in (name for name, p in parameters.items() if p.default is p.empty and name not in values):
        raise ConfigError(f"{key}.{field}: {name} needs a value for it")
    return constructor


def _check_annotation(key: str, value: Any, annotation: Any) -> None:
    """Checks the value of an annotated field: a Literal, a plain type, or an object that a `_target_` makes."""
    kinds = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        names, is_fit = list(map(as_word, kinds)), value in kinds
    else:
        is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
        kinds = kinds if is_union else (types.NoneType if annotation is None else annotation,)
        # classes that no value of a configuration is an instance of
        objects = [
            k for k in kinds if isinstance(k, type) and k.__module__.split(".")[0] not in sys.stdlib_module_names
        ]
        if not set(kinds) - set(objects) <= _KINDS.keys():
            return
        is_node = isinstance(value, list) or (isinstance(value, Mapping) and "_target_" in value)
        is_fit = type(value) in kinds or (float in kinds and type(value) is int) or (bool(objects) and is_node)
        names = [f"a mapping whose _target_ returns a {kind.__name__}" for kind in objects]
        names += [_KINDS[kind] for kind in kinds if kind not in objects and (kind is not int or float not in kinds)]
    require(is_fit, f"{key}={as_word(value)}: must be {either(names)}", ConfigError)
