"""One declaration for each setting: its default, the values that it can have, and what it means.  Needs no JAX.

`setting` declares a field of a method, a protocol or an optimiser where the class has it:

    damping: float = setting(0.5, "fraction", "Share of a site's change that an update makes.")

The declaration is the only one: the check of a command line, the page of settings in the documentation and the
docstrings of estimators are made from it.  A method's class declares four more things (`gpbench.methods.base.Method`):

    tasks = frozenset({"binary"})             # kinds of data
    kernels = ("squared_exponential",)        # families that the setting `kernel` can have, of all inputs; None: any
    likelihoods = ("probit", "logistic")      # likelihoods that fit, beside those that the task rules out; None: any
    searchable = ("damping",)                 # settings that `search` can choose on validation rows
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpbench.errors import ConfigError, either
from gpbench.ranges import NAMES, Range, Words

RANGE, MEANING = "range", "meaning"
"""Keys of a field's metadata."""


def setting(
    default: Any = dataclasses.MISSING,
    range: Words | Range = "any",
    meaning: str = "",
    *,
    converter: Callable[[Any], Any] | None = None,
) -> Any:
    """A keyword-only field that is part of a configuration: static, compared and hashed, never traced.

    Args:
        default: Value where the configuration has none; without one the field must be set.
        range: Values that the field can have, in words (`gpbench.ranges`) or as a `Range`.
        meaning: Meaning of the field, with its unit, as the documentation prints it.
        converter: Function applied to the value before it is kept, as in `equinox.field`.

    Returns:
        A dataclass field, which `equinox.Module` takes as a static one.
    """
    metadata: dict[str, Any] = {"static": True, RANGE: range, MEANING: meaning}
    if converter is not None:
        metadata["converter"] = converter
    if isinstance(default, Mapping | list):
        return dataclasses.field(default_factory=lambda: default, kw_only=True, metadata=metadata)
    return dataclasses.field(default=default, kw_only=True, metadata=metadata)


def settings(cls: type) -> Mapping[str, dataclasses.Field]:
    """The fields of a class that `setting` declares, by name, in the order of their declarations."""
    return {field.name: field for field in dataclasses.fields(cls) if RANGE in field.metadata}


def choices(range: Words | Range) -> Sequence[Any] | None:
    """The admissible values of a range that is a list of choices; None for any other."""
    return None if isinstance(range, str | Range) else tuple(range)


def check_family(kind: str, value: Any, accepted: Sequence[str] | None, subject: str) -> None:
    """Check the family of a kernel or a likelihood against those that a method declares.

    A family that is not one of gpbench's passes: the method itself decides when training begins.

    Args:
        kind: "kernel" or "likelihood".
        value: A name, {name: options}, or a specification with a `family`.
        accepted: Names of families; None accepts all.
        subject: Name of the method, for the message.

    Raises:
        ConfigError: for another family of gpbench's, and for a kernel of some inputs where families are restricted.
    """
    if accepted is None:
        return
    options: Any = None
    if isinstance(value, Mapping) and len(value) == 1:
        ((value, options),) = value.items()
    family = getattr(value, "family", getattr(value, "name", value))
    inputs = options.get("inputs") if isinstance(options, Mapping) else getattr(value, "inputs", None)
    if family in ("auto", *accepted) and inputs is None:
        return
    if family in NAMES[kind]:
        needed = either(name.replace("_", " ") for name in accepted)
        given = f"{family} of the inputs {list(inputs)}" if inputs is not None else family
        raise ConfigError(f"{subject} needs a {needed} {kind}, not {given}: choose method.{kind}={either(accepted)}")
