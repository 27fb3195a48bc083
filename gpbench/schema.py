"""One declaration for each setting: its default, the values that it can have, and what it means.  Needs no JAX.

`setting` declares a field of a method, a protocol or an optimiser where the class has it:

    damping: float = setting(0.5, "fraction", "Share of a site's change that an update makes.")

The declaration is the only one: the check of a command line, the page of settings in the documentation and the
docstrings of estimators are made from it.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpbench.ranges import Range, Words

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
