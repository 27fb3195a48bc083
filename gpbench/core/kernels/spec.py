"""Kernels as a configuration names them: their options, and the prior on lengthscales."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.kernels.anova import ANOVA
from gpbench.core.kernels.base import Family, Kernel, LengthscaleStart, words
from gpbench.core.kernels.composite import ActiveInputs, Product, Sum, select
from gpbench.core.kernels.linear import Constant, Linear
from gpbench.core.kernels.stationary import (
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)
from gpbench.errors import ConfigError, either, nearest
from gpbench.ranges import LENGTHSCALE_PRIOR


@dataclass(frozen=True)
class Option:
    """An option of a family: its default and its parser.  Parsed values are hashable."""

    default: Any
    parse: Callable[[Any], Any]


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def positive(value: Any) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
        raise ValueError("a positive number")
    return float(value)


def count(value: Any) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number from 1")
    return value


def columns(value: Any) -> tuple[int, ...]:
    """Numbers of columns from 0, sorted."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if not is_list or any(isinstance(i, bool) or not isinstance(i, int) or i < 0 for i in value):
        raise ValueError("a list of column numbers from 0")
    if len(set(value)) < len(value):
        raise ValueError("a list of different column numbers")
    return tuple(sorted(value))


class LengthscalePrior(NamedTuple):
    """log l ~ N(log(median √D), spread²) for every lengthscale l of a kernel of D inputs.

    The median grows with √D as the distances between rows do (Hvarfner, Hellsten and Nardi 2024).
    """

    median: float
    spread: float

    def log_prob(self, kernel: Kernel, inputs: int) -> Float[Array, ""]:
        """The log density of the logarithms of all lengthscales of `kernel`, whose parameters they are."""
        centre = math.log(self.median * math.sqrt(inputs))
        leaves = jax.tree_util.tree_leaves_with_path(kernel)
        lengthscales = [leaf for path, leaf in leaves if jax.tree_util.keystr(path[-1:]) == ".log_lengthscale2"]
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(kernel)))
        return sum((norm.logpdf(0.5 * leaf, centre, self.spread).sum() for leaf in lengthscales), zero)


def lengthscale_prior(value: Any) -> LengthscalePrior | None:
    """The prior that the configuration's value means: None, or {median: M, spread: S}.  Raises ConfigError."""
    if isinstance(value, LengthscalePrior):
        return value
    LENGTHSCALE_PRIOR.check("method.lengthscale_prior", value)
    return None if value is None else LengthscalePrior(float(value["median"]), float(value["spread"]))


@dataclass(frozen=True)
class Spec:
    """A kernel without its parameters: a family, a value for each of its options, and the inputs it is a function of.

    Hashable, and equal if and only if all of that is equal, however the configuration spells it.  `kernel_spec` parses
    it from the configuration; `str` gives short text such as "matern52" or "squared_exponential + linear".
    """

    family: str
    options: tuple[tuple[str, Any], ...] = ()
    inputs: tuple[int, ...] | None = None

    def initial(self, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float = 1.0) -> Kernel:
        """The kernel that training starts from.

        Args:
            X: rows of the inputs, in whose dtype the parameters are.
            start: how lengthscales are set from these rows.
            amplitude: the prior variance k(x, x), averaged over the rows where it differs between them (roughly for
                products of several linear kernels).  A sum divides it equally among its parts.

        Raises:
            ConfigError: for active inputs that the rows do not have, or an `anova` of higher order than inputs.
        """
        family, options = FAMILIES[self.family], dict(self.options)
        if self.inputs is None:
            return family.initial(X, options, start=start, amplitude=amplitude)
        if self.inputs[-1] >= X.shape[1]:
            raise ConfigError(f"kernel {self}: the data have only the inputs 0 to {X.shape[1] - 1}")
        active = select(X, self.inputs)
        return ActiveInputs(family.initial(active, options, start=start, amplitude=amplitude), self.inputs)

    def __str__(self) -> str:
        values, options = dict(self.options), OPTIONS[FAMILIES[self.family]]
        if self.family == Sum.family:
            return " + ".join(map(str, values["parts"]))
        if self.family == Product.family:
            return " * ".join(f"({part})" if part.family == Sum.family else str(part) for part in values["parts"])
        special = {name: value for name, value in values.items() if value != options[name].default}
        texts = [name if value is True else f"{name}={value}" for name, value in special.items()]
        if self.inputs is not None:
            texts.append(f"inputs={list(self.inputs)}")
        return f"{self.family}({', '.join(texts)})" if texts else self.family


def kernel_spec(value: Any) -> Spec:
    """The kernel that the configuration's `value` means.

    Args:
        value: the name of a family, such as "matern52"; a mapping from it to its options, such as
            {"matern52": {"inputs": [0, 2]}}; {"sum": [...]} or {"product": [...]} of such values; or a `Spec`.

    Raises:
        ConfigError: for an unknown family or option, and for a value that an option cannot have.
    """
    if isinstance(value, Spec):
        return value
    family, settings = _split(value)
    options = OPTIONS[FAMILIES[family]]
    for name in settings:
        if name not in (*options, "inputs"):
            raise ConfigError(f"kernel {family} has no option '{name}': {nearest(name, [*options, 'inputs'])}")
    values = {name: option.default for name, option in options.items()}
    values |= {name: _parse(family, name, options[name], settings[name]) for name in options if name in settings}
    inputs = settings.get("inputs")  # null is all inputs
    active = None if inputs is None else _parse(family, "inputs", _INPUTS, inputs)
    return Spec(family, tuple(values.items()), active)


def require(kernel: Kernel | Spec, family: type[Kernel] | tuple[type[Kernel], ...], what: str) -> None:
    """Raises ConfigError unless the kernel is of the class `family`, or of one of several.

    Args:
        kernel: a kernel or its specification.
        family: a family, or an abstract class such as `Stationary` for all families of that kind.
        what: what needs it, the subject of the error message: "svdgp".
    """
    if isinstance(kernel, Spec):
        cls: type[Kernel] = FAMILIES[kernel.family] if kernel.inputs is None else ActiveInputs
        name = str(kernel)
    else:
        cls, name = type(kernel), kernel.family
    if not issubclass(cls, family):
        names = [name for name, choice in FAMILIES.items() if issubclass(choice, family)]
        choices = either(f"method.kernel={name}" for name in names)
        raise ConfigError(f"{what} needs a {either(map(words, names))} kernel, not {name}: choose {choices}")


def _split(value: Any) -> tuple[str, dict[str, Any]]:
    """Family and options of a value: "family", {"family": options} or, for sums and products, {"family": parts}."""
    family, settings = value, None
    if isinstance(value, Mapping) and len(value) == 1:
        ((family, settings),) = value.items()
    if not isinstance(family, str):
        families = ", ".join(FAMILIES)
        raise ConfigError(f"a kernel is a name or a name with its options, not {value!r}: known are {families}")
    if family not in FAMILIES:
        raise ConfigError(f"unknown kernel '{family}': {nearest(family, FAMILIES)}")
    if family in (Sum.family, Product.family):
        return family, {"parts": settings}
    if settings is None:
        return family, {}
    if not isinstance(settings, Mapping):
        example = f"{{{family}: {{inputs: [0]}}}}"
        raise ConfigError(f"the options of kernel {family} must be a mapping such as {example}, not {settings!r}")
    return family, {str(name): setting for name, setting in settings.items()}


def _parse(family: str, name: str, option: Option, value: Any) -> Any:
    try:
        return option.parse(value)
    except ValueError as error:
        subject = f"kernel {family}" if name == "parts" else f"{name} of kernel {family}"
        raise ConfigError(f"{subject} must be {error}, not {value!r}") from None


def _parts(value: Any) -> tuple[Spec, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) < 2:
        raise ValueError("a list of two or more kernels")
    return tuple(map(kernel_spec, value))


def _base(value: Any) -> Spec:
    spec = kernel_spec(value)
    if spec.inputs is not None:
        raise ValueError("a kernel without inputs, since it is a function of one input at a time")
    return spec


_INPUTS = Option(None, columns)
_STATIONARY = {"isotropic": Option(False, flag)}
_SQUARED_EXPONENTIAL = Spec(SquaredExponential.family, (("isotropic", False),))

OPTIONS: dict[type[Family], dict[str, Option]] = {
    SquaredExponential: _STATIONARY,
    Matern12: _STATIONARY,
    Matern32: _STATIONARY,
    Matern52: _STATIONARY,
    RationalQuadratic: _STATIONARY | {"alpha": Option(1.0, positive)},
    Periodic: _STATIONARY | {"period": Option(1.0, positive)},
    Linear: {},
    Constant: {},
    Sum: {"parts": Option(None, _parts)},
    Product: {"parts": Option(None, _parts)},
    ANOVA: {"order": Option(2, count), "base": Option(_SQUARED_EXPONENTIAL, _base)},
}
"""The options of every family beside `inputs`, which all have but sums and products.  A new family is an entry here."""

FAMILIES: dict[str, type[Family]] = {family.family: family for family in OPTIONS}
