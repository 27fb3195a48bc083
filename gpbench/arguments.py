"""Arguments of the Python interface: calls are checked against annotations, and errors name keywords, not flags."""

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, ParamSpec, TypeVar, Union, Unpack, get_args, get_origin

from gpbench.errors import ConfigError, GpbenchError, either, exit_error, printable, require_known, shows_traceback
from gpbench.schema import is_number, is_whole

P = ParamSpec("P")
R = TypeVar("R")
_NAMES = {str: "a text", int: "a whole number", bool: "True or False", types.NoneType: "None", PathLike: "a path"}
_NUMBERS = {int: is_whole, float: is_number}
_COLLECTIONS = (Iterable, Sequence)
_FLAG = re.compile(
    r"gpbench [a-z][^;:,`]*|add -m\b|(?<!\S)--(?P<flag>[a-z][a-z-]*)|\brun\.(?P<key>\w+)=(?P<value>true|false)\b"
)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function that users call: arguments that do not fit its annotations raise ConfigError."""
    signature, parameters = inspect.signature(function), parameters_of(function)
    hints = {p.name: p.annotation for p in parameters if p.kind is not p.VAR_KEYWORD}
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for key in kwargs if not is_open else ():
            known = [name for name in hints if name != "self"]
            require_known(key, known, f"{function.__name__}: no argument {key!r}")
        try:
            values = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ConfigError(f"{function.__name__}: {error}; see help(gpbench.{function.__name__})") from None
        checked_kwargs = {name: _fitted(name, value, hints.get(name, Any)) for name, value in kwargs.items()}
        positional = zip(values, args, strict=False)
        subject = f"{function.__name__}: "  # who leaves out the keyword need not know it
        checked_args = [_fitted(name, value, hints.get(name, Any), subject) for name, value in positional]
        try:
            return function(*checked_args, **checked_kwargs)  # type: ignore[arg-type]
        except (GpbenchError, SystemExit) as raised:  # the latter of a module of the user's
            fault = exit_error(raised) if isinstance(raised, SystemExit) else raised
            fault.printed = fault.printed or str(fault)
            fault.args = (printable(in_python(str(fault))),)
            if shows_traceback():
                raise fault from fault.__cause__ if fault is raised else raised
            raise fault.with_traceback(None) from None  # our own frames, and Hydra's, say nothing to the user

    return call


def _fitted(name: str, value: Any, hint: Any, subject: str = "") -> Any:
    """The value, an array or iterator of several values as a list.  Raises ConfigError where it does not fit."""
    if any(get_origin(kind) in _COLLECTIONS for kind in kinds(hint)) and _is_collection(value):
        value = list(value)
    fault = "" if _fits(value, hint) else f"must be {_description(hint)}"
    entries = value if _is_collection(value) else [value]
    if any("\0" in str(entry) for entry in entries if isinstance(entry, str | PathLike)):
        fault = "has a null character, as no name or path does"
    if fault:
        text = " ".join(repr(value).split())
        raise ConfigError(f"{subject}{name}={text[:60]}{'...' * (len(text) > 60)}: {fault}")
    return value


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function; of `**values: Unpack[TYPE]` the keys of the type, with None for those left out."""
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        is_open = get_origin(parameter.annotation) is Unpack
        hints = inspect.get_annotations(get_args(parameter.annotation)[0]) if is_open else {}
        keys = [inspect.Parameter(n, parameter.KEYWORD_ONLY, default=None, annotation=h) for n, h in hints.items()]
        parameters += keys or [parameter]
    return parameters


def kinds(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _is_collection(value: Any) -> bool:
    is_scalar = getattr(value, "ndim", 1) == 0  # an array of no axes has __iter__ too
    return isinstance(value, Iterable) and not is_scalar and not isinstance(value, str | bytes | Mapping | PathLike)


def _fits(value: Any, hint: Any) -> bool:
    if hint in (Any, inspect.Parameter.empty) or isinstance(hint, str):
        return True
    if len(members := kinds(hint)) > 1:
        return any(_fits(value, kind) for kind in members)
    if (origin := get_origin(hint)) in _COLLECTIONS:
        return _is_collection(value) and all(_fits(entry, get_args(hint)[0]) for entry in value)
    if origin is Literal:
        return value in get_args(hint)
    return _NUMBERS[hint](value) if hint in _NUMBERS else isinstance(value, origin or hint)


def _description(hint: Any) -> str:
    """An annotation in words."""
    texts = []
    for kind in kinds(hint):
        origin = get_origin(kind) or kind
        if origin in _COLLECTIONS:
            texts.append(f"a list, each entry {_description(get_args(kind)[0])}")
        elif origin is Literal:
            texts += map(repr, get_args(kind))
        else:
            texts.append(_NAMES.get(origin) or f"a {origin.__name__}")
    return either(texts)


def in_python(line: str) -> str:
    """Words a message for Python: flags and words such as run.save=true become keywords, and quoted commands stay."""
    return _FLAG.sub(_keyword, line)


def _keyword(match: re.Match[str]) -> str:
    if match["flag"]:
        return match["flag"].replace("-", "_")
    if match["key"]:
        return f"run__{match['key']}={match['value'].capitalize()}"
    return "call gpbench.multirun" if match[0] == "add -m" else match[0]
