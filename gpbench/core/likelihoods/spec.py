"""Likelihoods as a configuration names them."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpbench.core.likelihoods.base import Likelihood
from gpbench.core.likelihoods.gaussian import Gaussian
from gpbench.core.likelihoods.laplace import Laplace
from gpbench.core.likelihoods.logistic import Logistic
from gpbench.core.likelihoods.probit import Probit
from gpbench.core.likelihoods.robust_max import RobustMax
from gpbench.core.likelihoods.softmax import Softmax
from gpbench.core.likelihoods.student_t import StudentT
from gpbench.errors import ConfigError, either, nearest

FAMILIES: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "student_t": StudentT,
    "probit": Probit,
    "logistic": Logistic,
    "softmax": Softmax,
    "robust_max": RobustMax,
}

_AUTO = {"regression": "gaussian", "binary": "probit", "multiclass": "softmax"}


@dataclass(frozen=True)
class Spec:
    """A choice of likelihood: hashable, so that it can be a static field.  Made by `likelihood_spec`."""

    name: str = "auto"
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.name}({options})" if options else self.name

    def initial(self, task: str, classes: int, *, noise: float, floor: float = 0.0, dtype) -> Likelihood:
        """The likelihood to start from, for data of `task` (regression, binary or multiclass) with `classes` classes.

        `noise` is the initial variance of y about f (regression), and `floor` the least that training may make of it,
        for likelihoods with an unset option of that name.  "auto" is gaussian, probit or softmax by the task.
        Raises ConfigError where the likelihood does not fit the task.
        """
        name = _AUTO[task] if self.name == "auto" else self.name
        if task not in FAMILIES[name].tasks:
            able = [other for other, family in FAMILIES.items() if task in family.tasks]
            raise ConfigError(f"likelihood {name} does not fit {task} data; choose {either(able)}")
        floors = {"floor": floor} if "floor" in _options(name) else {}
        return FAMILIES[name].initial(noise, classes, dtype, **{**floors, **dict(self.options)})


def likelihood_spec(value: "str | Mapping[str, Any] | Spec") -> Spec:
    """The choice that a configuration makes: "auto", a name, or {name: {option: value}}.

    Raises ConfigError for an unknown name or option and for a value of the wrong type or out of its range.
    """
    if isinstance(value, Spec):
        return value
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise ConfigError(f"likelihood: {dict(value)} must have one name, as in {{student_t: {{df: 4}}}}")
        ((name, options),) = value.items()
        options = {} if options is None else options
    else:
        name, options = value, {}
    if name != "auto" and name not in FAMILIES:
        raise ConfigError(f"unknown likelihood {name!r}: {nearest(str(name), ['auto', *FAMILIES])}")
    if not isinstance(options, Mapping):
        raise ConfigError(f"likelihood {name}: options are written as in {{student_t: {{df: 4}}}}, not {options!r}")
    known = {} if name == "auto" else _options(name)
    for key, option in options.items():
        if key not in known:
            hint = nearest(str(key), known)
            raise ConfigError(f"likelihood {name}: no option {key!r}; {hint}")
        if not _fits(option, known[key]):
            raise ConfigError(f"likelihood {name}: {key}={option!r} must be of type {type(known[key]).__name__}")
    if options:  # out of range is better said now than when the data are there
        FAMILIES[name].initial(1.0, 2, "float32", **options)
    return Spec(name, tuple(sorted(options.items())))


def _options(name: str) -> dict[str, Any]:
    """The options of a likelihood and their defaults: the keyword-only arguments of its `initial`."""
    parameters = inspect.signature(FAMILIES[name].initial).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _fits(option: Any, default: Any) -> bool:
    """Whether an option is of the type of its default; a whole number can stand for any."""
    if isinstance(default, bool) or isinstance(option, bool):
        return isinstance(option, bool) and isinstance(default, bool)
    return isinstance(option, (int, float) if isinstance(default, float) else int)
