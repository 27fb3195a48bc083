"""Likelihoods as a configuration names them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpbench import registry
from gpbench.core.likelihoods.base import Likelihood
from gpbench.errors import ConfigError, either
from gpbench.schema import is_whole, settings


@dataclass(frozen=True)
class Spec:
    """A choice of likelihood: hashable, so that it can be a static field.  `likelihood_spec` parses it."""

    name: str = "auto"
    """Name of a likelihood of gpbench, dotted path of a custom class, or "auto"."""
    options: tuple[tuple[str, Any], ...] = ()
    """Options that the configuration sets, in the order of their names."""

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        name = self.name.rpartition(".")[2]
        return f"{name}({options})" if options else name

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that the likelihood is for; all of them for "auto"."""
        return frozenset(registry.AUTO) if self.name == "auto" else _class(self.name).tasks

    def initial(self, task: str, classes: int, *, noise: float, floor: float = 0.0, dtype: Any) -> Likelihood:
        """The likelihood that training starts from; a ConfigError where it does not fit the task, or options the data.

        Args:
            task: Task of the data: regression, count, binary or multiclass, for which "auto" is gaussian, poisson,
                probit or softmax.
            classes: Number of classes, 0 for regression, 1 for counts.
            noise: Initial variance of y about f, in the scaled units of the targets (regression).
            floor: Least variance that training may reach, for likelihoods with an unset option of that name.
            dtype: Precision of the parameters.
        """
        name = registry.AUTO[task] if self.name == "auto" else self.name
        cls = _class(name)
        if task not in cls.tasks:
            able = [other for other, entry in registry.LIKELIHOODS.items() if task in entry.tasks]
            raise ConfigError(f"likelihood {name} does not fit {task} data; choose {either(able)}")
        declared = settings(cls)
        options = {**({"floor": floor} if "floor" in declared else {}), **dict(self.options)}
        real = {key for key, field in declared.items() if isinstance(field.default, float)}
        values = {key: float(value) if key in real and is_whole(value) else value for key, value in options.items()}
        return cls.initial(noise, classes, dtype, **values)


def likelihood_spec(value: "str | Mapping[str, Any] | Spec") -> Spec:
    """The likelihood that a configuration's `value` means.  The value is "auto"; a name; {name: {option: value}}; or a
    mapping with the `_target_` of a custom class.  Any other raises a ConfigError."""
    if isinstance(value, Spec):
        return value
    choice = registry.read("likelihood", value)
    if choice.is_own:
        registry.check_options("likelihood", choice.name, choice.options, registry.options_of(_class(choice.name)))
    return Spec(choice.name, tuple(sorted(choice.options.items())))


def _class(name: str) -> type[Likelihood]:
    return registry.load_class("likelihood", name, Likelihood)
