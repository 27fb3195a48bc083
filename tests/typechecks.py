"""Annotations checked at each call of a function of gpbench: by beartype, and by jaxtyping where one has a shape.

jaxtyping decorates every function, those in functions at each call of the outer one too, and binds its arguments at
each call: with that, a command took two to four times as long.  Here a function is decorated when it is first called.
"""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable

import jaxtyping
from beartype import BeartypeConf, beartype

# The tower lets a whole number be a float, as the configuration does.
_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeError))
_jaxtyped = functools.partial(jaxtyping.jaxtyped, typechecker=_beartype)


def install() -> None:
    """Check the functions and dataclasses of the modules of gpbench that are imported from now on."""
    jaxtyping.jaxtyped = lambda typechecker: _checked  # which the decorators that the hook inserts call
    jaxtyping.install_import_hook("gpbench", None)


def _checked(what):
    """A function whose annotations are checked; of a class, `what` itself, whose `__init__` is one."""
    if not inspect.isclass(what):
        return _at_first_call(what)
    if dataclasses.is_dataclass(what):
        what.__init__ = _at_first_call(what.__init__)
    return what


def _at_first_call(function: Callable) -> Callable:
    annotations = getattr(function, "__annotations__", None)
    if not annotations:
        return function
    checked = None

    @functools.wraps(function)
    def call(*args, **kwargs):
        __tracebackhide__ = True
        nonlocal checked
        if checked is None:
            function.__annotations__ = {name: _resolved(hint, function) for name, hint in annotations.items()}
            has_shapes = "jaxtyping." in repr(function.__annotations__)
            checked = (_jaxtyped if has_shapes else _beartype)(function)
        return checked(*args, **kwargs)

    return call


def _resolved(hint, function: Callable):
    """A hint without names in quotes; `Any` where a name is one that only type checkers import."""
    try:
        names = types.SimpleNamespace(__annotations__={"hint": hint})
        return typing.get_type_hints(names, function.__globals__, include_extras=True)["hint"]
    except Exception:
        return typing.Any
