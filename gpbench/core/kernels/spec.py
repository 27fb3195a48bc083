"""Kernels as a configuration names them, and the prior on lengthscales."""

import inspect
import math
from dataclasses import MISSING, Field, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench import registry
from gpbench.core.kernels.base import Family, Kernel, LengthscaleStart, words
from gpbench.core.kernels.composite import ActiveInputs, select
from gpbench.core.kernels.deep import Deep
from gpbench.core.kernels.stationary import Periodic
from gpbench.core.networks import log_standard_normal
from gpbench.errors import ConfigError, either
from gpbench.schema import LENGTHSCALE_PRIOR, RANGE, is_real, is_whole, settings


@dataclass(frozen=True)
class Spec:
    """A kernel without its parameters: a family, a value for each of its options, and the inputs it is a function of.
    Hashable, and equal if and only if all of that is equal, however the configuration spells it.  `kernel_spec` parses
    it from the configuration; `str` gives short text such as "matern52" or "squared_exponential + linear"."""

    family: str
    """Name of a family of gpbench, or dotted path of a custom class."""
    options: tuple[tuple[str, Any], ...] = ()
    inputs: tuple[int, ...] | None = None

    def initial(
        self,
        X: Float[Array, "N D"],
        *,
        start: LengthscaleStart,
        amplitude: float = 1.0,
        unit: Float[Array | np.ndarray, " D"] | None = None,
    ) -> Kernel:
        """The kernel that training starts from.

        Args:
            X: Rows of the inputs, in whose dtype the parameters are.
            start: Rule by which lengthscales are set from these rows.
            amplitude: Prior variance k(x, x), averaged over the rows where it differs between them (roughly for
                products of several linear kernels).  A sum divides it equally among its terms.
            unit: Size of one unit of each column in units of the file, in which a period is; None for 1.
        """
        family, options = _family(self.family), dict(self.options)
        if self.inputs is not None and self.inputs[-1] >= X.shape[1]:
            raise ConfigError(f"kernel {self}: the data have only the inputs 0 to {X.shape[1] - 1}")
        unit = np.ones(X.shape[1]) if unit is None else np.asarray(unit, np.float64)
        if self.inputs is not None:
            X, unit = select(X, self.inputs), unit[list(self.inputs)]
        if "unit" in inspect.signature(family.initial).parameters:
            options["unit"] = unit
        kernel = family.initial(X, start=start, amplitude=amplitude, **options)
        return kernel if self.inputs is None else ActiveInputs(kernel, self.inputs)

    def __str__(self) -> str:
        values = dict(self.options)
        if self.family == "sum":
            return " + ".join(map(str, values["parts"]))
        if self.family == "product":
            return " * ".join(f"({factor})" if factor.family == "sum" else str(factor) for factor in values["parts"])
        defaults = {name: _default(field) for name, field in settings(_family(self.family)).items()}
        special = {name: value for name, value in values.items() if value != defaults[name]}
        texts = [name if value is True else f"{name}={value}" for name, value in special.items()]
        if self.inputs is not None:
            texts.append(f"inputs={list(self.inputs)}")
        name = self.family.rpartition(".")[2]
        return f"{name}({', '.join(texts)})" if texts else name


def kernel_spec(value: Any) -> Spec:
    """The kernel that a configuration's `value` means.  The value is the name of a family, such as "matern52"; a
    mapping from it to its options, such as {"matern52": {"inputs": [0, 2]}}; {"sum": [...]} or {"product": [...]} of
    such values; a mapping with the `_target_` of a custom class and its options; or a `Spec`.  Any other raises a
    ConfigError."""
    if isinstance(value, Spec):
        return value
    choice = registry.read("kernel", value)
    if choice.name in registry.COMPOSITES:
        return Spec(choice.name, (("parts", tuple(map(kernel_spec, choice.options["parts"]))),))
    family, options = _family(choice.name), dict(choice.options)
    if choice.is_own:
        registry.check_options("kernel", choice.name, options, registry.options_of(family))
    inputs = options.pop("inputs", None)  # null is all inputs
    values = {
        name: _converted(field, options[name]) if name in options else _default(field)
        for name, field in settings(family).items()
    }
    if absent := [name for name, option in values.items() if option is MISSING]:
        raise ConfigError(f"kernel {choice.name} needs a value for its option {absent[0]}")
    return Spec(choice.name, tuple(values.items()), None if inputs is None else tuple(sorted(inputs)))


def require_family(kernel: Kernel | Spec, family: type[Kernel] | tuple[type[Kernel], ...], subject: str) -> None:
    """Raises ConfigError, with this subject, unless a kernel or its `Spec` is of the class or one of the classes."""
    if isinstance(kernel, Spec):
        cls: type[Kernel] = _family(kernel.family) if kernel.inputs is None else ActiveInputs
        name = str(kernel)
    else:
        cls, name = type(kernel), kernel.family
    if not issubclass(cls, family):
        names = [name for name in registry.KERNELS if issubclass(_family(name), family)]
        choices = either(f"method.kernel={name}" for name in names)
        raise ConfigError(f"{subject} needs a {either(map(words, names))} kernel, not {name}: choose {choices}")


class LengthscalePrior(NamedTuple):
    """log l ~ N(log(median √D), spread²) for every lengthscale l of a kernel of D inputs.  The median grows with √D as
    the distances between rows do (Hvarfner, Hellsten and Nardi 2024)."""

    median: float
    spread: float

    def log_prob(self, kernel: Kernel, inputs: int, log_unit: Float[Array, "..."] | float = 0.0) -> Float[Array, ""]:
        """The log density of the logarithms of all lengthscales (`log_lengthscale2`) of a kernel of D inputs, whose
        units are exp(`log_unit`); those of a periodic kernel are lengths on a circle, without a unit.  The inputs of a
        deep kernel's base are its outputs, and its network has the prior N(0, I)."""
        centre, values = math.log(self.median * math.sqrt(inputs)), []
        total = jnp.zeros((), jnp.result_type(*jax.tree.leaves(kernel)))
        is_whole = lambda node: isinstance(node, Periodic | Deep)
        for path, node in jax.tree_util.tree_leaves_with_path(kernel, is_leaf=is_whole):
            if isinstance(node, Periodic):
                values.append(0.5 * node.log_lengthscale2)
            elif isinstance(node, Deep):
                total += self.log_prob(node.base, node.outputs) + log_standard_normal(node.network)
            elif jax.tree_util.keystr(path[-1:]) == ".log_lengthscale2":
                values.append(0.5 * node + log_unit)
        return sum((norm.logpdf(value, centre, self.spread).sum() for value in values), total)


def lengthscale_prior(value: Any) -> LengthscalePrior | None:
    """The prior that the configuration's value means: None, {median: M, spread: S}, or a prior."""
    if isinstance(value, LengthscalePrior):
        return value
    LENGTHSCALE_PRIOR.check("method.lengthscale_prior", value)
    return None if value is None else LengthscalePrior(float(value["median"]), float(value["spread"]))


def _family(name: str) -> type[Family]:
    """The class of a family.  Raises ConfigError for one that cannot be imported, is no `Family` or is abstract."""
    return registry.load_class("kernel", name, Family)


def _default(field: "Field[Any]") -> Any:
    return MISSING if field.default is MISSING else _converted(field, field.default)


def _converted(field: "Field[Any]", value: Any) -> Any:
    """The value of an option as a `Spec` keeps it: hashable, a whole number in a real option as a float."""
    if converter := field.metadata.get("converter"):
        return converter(value)
    if is_whole(value) and (isinstance(field.default, float) or is_real(field.metadata[RANGE])):
        return float(value)
    return tuple(value) if registry.is_list(value) else value
