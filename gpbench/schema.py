"""One declaration for each setting: its default, the values that it can have, and what it means.  Needs no JAX.

`setting` declares a field of a method, a protocol or an optimiser where the class has it:

    damping: float = setting(0.5, "fraction", "Share of a site's change that an update makes.")

A range is written in words: a name of `WORDS`, "list of" such a name, several of these joined by "or" ("count or
null"), or a list of choices (["rows", "kmeans"]).

The declaration is the only one: the check of a command line, the page of settings in the documentation and the
docstrings of estimators are made from it.  A method's class declares four more things (`gpbench.methods.base.Method`):

    tasks = frozenset({"binary"})             # kinds of data
    kernels = ("squared_exponential",)        # families that the setting `kernel` can have, of all inputs; None: any
    likelihoods = ("probit", "logistic")      # likelihoods that fit, beside those that the task rules out; None: any
    searchable = ("damping",)                 # settings that `search` can choose on validation rows
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from gpbench.errors import ConfigError, as_word, either, nearest

Words = str | Sequence[Any]
"""A range in words."""


@dataclass(frozen=True)
class Range:
    """A set of values; `text` ends the message "KEY=VALUE: must be ..."."""

    contains: Callable[[Any], bool]
    text: str

    def check(self, key: str, value: Any, hint: str = "") -> None:
        """Raise ConfigError, with `hint` at the end of its message, for a value that is not in the range."""
        if not self.contains(value):
            raise ConfigError(f"{key}={as_word(value)}: must be {self.text}{hint}")


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of Python or NumPy; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is a finite number, whole or not."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _are_choices(value: Any) -> bool:
    """Whether it is a mapping, or pairs as methods keep them, from names to numbers to choose among or null."""
    try:
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        chosen = [(name, values) for name, values in pairs if values is not None]
        return all(isinstance(name, str) and len(values) > 0 and all(map(is_number, values)) for name, values in chosen)
    except (AttributeError, TypeError, ValueError):
        return False


def _is_prior(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return value is None or hasattr(value, "spread")
    return value.keys() == {"median", "spread"} and all(is_number(v) and v > 0 for v in value.values())


def _is_optimiser(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return hasattr(value, "update") or (isinstance(value, list) and bool(value))
    rate = value.get("learning_rate", 1.0)
    return bool(value) and not (is_number(rate) and rate <= 0)


def _is_named(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value)
    return value is not None and not isinstance(value, Real | list | tuple)


def _are_components(value: Any) -> bool:
    return value in ("univariate", "all", None) or isinstance(value, list | tuple)


LENGTHSCALE_PRIOR = Range(_is_prior, "null, or {median: 1.0, spread: 1.0} with positive numbers")

WORDS: Mapping[str, Range] = {
    "count": Range(lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "several": Range(lambda value: is_whole(value) and value >= 2, "a whole number from 2"),
    "whole": Range(lambda value: is_whole(value) and value >= 0, "a whole number from 0"),
    "integer": Range(is_whole, "a whole number"),
    "number": Range(is_number, "a finite number"),
    "positive": Range(lambda value: is_number(value) and value > 0, "a number above 0"),
    "above_one": Range(lambda value: is_number(value) and value > 1, "a number above 1"),
    "nonnegative": Range(lambda value: is_number(value) and value >= 0, "a number from 0"),
    "fraction": Range(lambda value: is_number(value) and 0 < value <= 1, "a number above 0 and up to 1"),
    "share": Range(lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "below_one": Range(lambda value: is_number(value) and 0 <= value < 1, "a number from 0 and below 1"),
    "flag": Range(lambda value: isinstance(value, bool), "true or false"),
    "text": Range(lambda value: isinstance(value, str), "a text"),
    "null": Range(lambda value: value is None, "null"),
    "auto": Range(lambda value: value == "auto", "auto"),
    "choices": Range(_are_choices, "a mapping from names of settings to lists of numbers, as {dropout: [0.05, 0.1]}"),
    "any": Range(lambda value: True, "any value"),
    # values that become objects of their own, as words of a configuration or as these objects
    "kernel": Range(_is_named, "the name of a kernel, or a mapping from it to its options"),
    "likelihood": Range(_is_named, "the name of a likelihood, or a mapping from it to its options"),
    "lengthscale_prior": LENGTHSCALE_PRIOR,
    "optimiser": Range(
        _is_optimiser,
        "a mapping with the optimiser's _target_ and a rate above 0, as in {_target_: optax.adam, learning_rate: 0.01}",
    ),
    "components": Range(_are_components, "univariate, or a list of lists of inputs such as [[0], [1], [0, 1]]"),
    "pairs": Range(_are_components, "all, or a list of pairs of inputs such as [[0, 1], [2, 3]]"),
}


OPTIMISER = Range(
    lambda value: value is None or WORDS["optimiser"].contains(value), "null, or " + WORDS["optimiser"].text
)

_OBJECTS = {"lengthscale_prior": LENGTHSCALE_PRIOR, "optimiser": OPTIMISER}

METHOD: Mapping[str, Words] = {
    "name": "text",
    "steps": "count",
    "batch_size": "count or null",
    "rates": "list of positive",
    "trial_steps": "count",
    "search": "choices or null",
    "rows": "count or null",
    "inducing": "count or fraction",  # 1 is one point, 1.0 all rows
    "features": ["values", "generalised", "rff", "inducing"],
    "start": ["rows", "kmeans"],
    "lengthscale_start": ["median", "root_median", "median_each"],
    "noise": "positive",
    "noise_on_inducing": "flag",
    "target_noise": "positive",
    "noise_floor": "nonnegative",
    "natural_step": "fraction or auto or null",
    "alpha": "share",
    "conditional": ["prior", "scaled"],
    "subset_rows": "several or null",  # one row has no lengthscale
    "fixed": "flag",
    "frequencies": "count",
    "learn": ["lengthscales", "all"],
    "basis": "count or null",
    "basis_batch": "count",
    "block": "count",
    "replacement": "flag",
    "store": "flag",
    "dense_columns": "whole",
    "control_rows": "count or auto or null",
    "bound": ["corrected", "printed"],
    "augmentation": "flag",
    "relevance": "flag",
    "plug_in": "flag",
    "rate": "positive",
    "decay": "fraction",
    "freeze": "share",
    "posterior": ["mean_field", "coupled_covariance", "coupled_precision"],
    "rank": "count or null",
    "hidden": "list of count",
    "scaled": "flag",
    "initial_std": "positive",
    "draws": "count",
    "prior": ["fitted", "standard"],
    "dropout": "below_one",
    "noise_precision": "positive",
    "prior_lengthscale": "nonnegative",
    "hidden_start": ["fill", "line"],
    "factors": ["whitened", "outputs"],
    "energy": ["aep", "sep"],
    "hidden_covariance": ["diagonal", "full"],
    "predictive": ["moments", "sample"],
    "samples": "count",
    "step_size": "positive",
    "noise_step_size": "nonnegative",
    "momentum": "below_one",
    "cooling": "share",
    "cooling_start": "positive",
    "burn_in": "share",
    "thinning": "count or null",
    "chains": "count",
    "warmup": "count",
    "max_doublings": "count",
    "prior_shape": "positive",
    "damping": "fraction",  # with 0 no site moves, and beyond 1 an update overshoots its target
    "tolerance": "nonnegative",
    "sweeps": "count",
    "update": ["inner", "outer"],
    "gradient": ["approximate", "exact", "scalars"],
    "memory": ["factors", "scalars"],
    "mean_basis": "count",
    "covariance_basis": "count",
    "growth": "count",
    "columns": "count",
    "parametrisation": ["direct", "jacobi", "hybrid", "orthogonal"],
    "ridge": "nonnegative",
    "gamma_shape": "above_one",  # up to 1 the precision's inverse has no mean
    "gamma_rate": "positive",
    "members": "count",
    "pooling": ["moments", "mixture"],
    "adversarial": "nonnegative",
    "stop_after": "count or null",
    "minibatch": "count",
    "inner_steps": "count",
    "evidence_start": "below_one",
}
"""The ranges of the fields of our methods, by name."""

_REAL = {"number", "positive", "above_one", "nonnegative", "fraction", "share", "below_one"}


def canonical(key: str, value: Any) -> Any:
    """The value of a field of ours in the form that is recorded: a whole number in a field of real numbers is a float.

    So 1 and 1.0 are one setting, except of fields that distinguish them, such as `inducing`.
    """
    if key == "lengthscale_prior" and isinstance(value, Mapping):
        return {name: float(v) if is_whole(v) else v for name, v in value.items()}
    words = METHOD.get(key, "")
    is_real = isinstance(words, str) and words and set(words.split(" or ")) <= _REAL | {"null", "auto"}
    return float(value) if is_real and is_whole(value) else value


PROTOCOL: Mapping[str, Words] = {
    **METHOD,  # most of a protocol's values are methods' fields
    "inputs": ["standardise", "unit_interval", "centre_all", "none"],
    "targets": ["standardise", "unit_interval", "centre_all", "none"],
    "precision": ["float64", "float32"],
    "split_indices": ["correct", "int8"],
    "minibatch_damping": "fraction",
    "lbfgs": "any",  # sections, whose values are checked in the method that refers to them
    "variational": "any",
    "deep": "any",
    "networks": "any",
}
"""The ranges of the keys of protocols, by name."""

OPTIMISERS: Mapping[str, Mapping[str, Words]] = {
    "gpbench.core.optimisers.adaptive_rates": {
        "start": "positive",
        "up": "positive",
        "down": "positive",
        "shared": "text",
        "reach": "positive",
    },
    "gpbench.core.optimisers.adam_of_scales": {"learning_rate": "positive"},
    "gpbench.core.optimisers.adadelta": {"rho": "fraction", "eps": "positive"},
    "gpbench.core.optimisers.decaying_adam": {"rate": "positive", "decay": "nonnegative"},
}
"""The ranges of the arguments of our optimisers, by `_target_`."""

LIKELIHOODS: Mapping[str, Sequence[str]] = {
    "regression": ("gaussian", "laplace", "student_t"),
    "binary": ("probit", "logistic"),
    "multiclass": ("softmax", "robust_max"),
}
"""The likelihoods of each task."""

NAMES: Mapping[str, Sequence[str]] = {
    "kernel": (
        "squared_exponential",
        "matern12",
        "matern32",
        "matern52",
        "rational_quadratic",
        "periodic",
        "linear",
        "constant",
        "sum",
        "product",
        "anova",
    ),
    "likelihood": ("auto", *(name for names in LIKELIHOODS.values() for name in names)),
}
"""The names that a kernel and a likelihood can have.  Their options are parsed with JAX, by core/kernels and
core/likelihoods."""


def parse(words: Any) -> Range:
    """The range that `words` mean, which are a `Words` or a range; raises ConfigError for anything else."""
    if isinstance(words, Range):
        return words
    if not words or not isinstance(words, str | list | tuple):
        raise ConfigError(f"a range is a name such as positive, or a list of choices, not {as_word(words)}")
    if not isinstance(words, str):
        choices = tuple(words)
        is_choice = lambda value: any(type(value) is type(choice) and value == choice for choice in choices)
        return Range(is_choice, either(map(as_word, choices)))
    parts = [_list(part) if part.startswith("list of ") else _word(part) for part in words.split(" or ")]
    if len(parts) == 1:
        return parts[0]
    return Range(lambda value: any(part.contains(value) for part in parts), ", or ".join(part.text for part in parts))


def check_node(
    where: str,
    node: Mapping[str, Any],
    table: Mapping[str, Words],
    own: Mapping[str, Any] | None = None,
    task: Any = None,
) -> None:
    """Check the values of a section of the configuration: those whose keys `table` or `own` has against their ranges,
    names of kernels and likelihoods, arguments of our optimisers, and that every number is finite.

    `own` are the ranges that a method's file declares; they go before those of `table`.  `task` is that of the data, of
    whose likelihoods alone the message about an unknown one speaks.  Raises ConfigError for the
    first value that does not fit.
    """
    own = own or {}
    ours = str(node.get("_target_", "gpbench.")).startswith("gpbench.")
    for key, value in node.items():
        name = f"{where}.{key}"
        hint = "" if ours or key in own else f"; or declare another range in the file, as in ranges: {{{key}: any}}"
        if key in own or key in table:
            parse(own[key] if key in own else table[key]).check(name, value, hint)
        elif key in _OBJECTS:
            _OBJECTS[key].check(name, value, hint)
        target = str(value.get("_target_")) if isinstance(value, Mapping) else ""
        if isinstance(value, Mapping) and target.startswith("gpbench.core.optimisers."):
            if target not in OPTIMISERS:
                raise ConfigError(f"{name}: no optimiser {target!r}; {nearest(target, OPTIMISERS)}")
            if unknown := [str(key) for key in value if not str(key).startswith("_") and key not in OPTIMISERS[target]]:
                hint = nearest(unknown[0], OPTIMISERS[target])
                raise ConfigError(f"{name}: {target} has no argument {unknown[0]!r}; {hint}")
            check_node(name, value, OPTIMISERS[target])
        _check_finite(name, value)


def _word(word: str) -> Range:
    if word not in WORDS:
        raise ConfigError(f"no range {word!r}; {nearest(word, WORDS)}, or a list of choices")
    return WORDS[word]


def _list(words: str) -> Range:
    entry = _word(words.removeprefix("list of "))
    contains = lambda value: isinstance(value, list | tuple) and all(map(entry.contains, value))
    return Range(contains, f"a list, each entry {entry.text}")


def _check_finite(name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _check_finite(f"{name}.{key}", entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_finite(name, entry)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name}={as_word(value)}: must be finite")


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
        range: Values that the field can have, in words or as a `Range`.
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
