"""The additive components of a model: the inputs, the kernel and the number of inducing points of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpbench.core.kernels import ANOVA, Constant, Linear, Spec, kernel_spec
from gpbench.errors import ConfigError
from gpbench.schema import is_whole


@dataclass(frozen=True)
class Component:
    """A function of some inputs, with a mean of 0 over each of them.

    Where `kernel` or `inducing` is None, those of the method apply.
    """

    inputs: tuple[int, ...]
    kernel: Spec | None = None
    inducing: int | None = None

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.inputs))}]"


def components_spec(value: Any) -> tuple[Component, ...] | None:
    """The components that the configuration's `value` means; None is one for each input that varies.

    The value is "univariate", or a list with the inputs of each component, [[0], [1], [0, 1]], an entry of which may be
    a mapping with more about it, {inputs: [0], kernel: matern32, inducing: 10}.
    """
    if value is None or value == "univariate":
        return None
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise ConfigError(
            f"method.components={value}: must be univariate, or a list of lists of inputs such as [[0], [1], [0, 1]]"
        )
    return _distinct([_component(entry, "method.components") for entry in value])


def pairs_spec(value: Any) -> tuple[Component, ...] | Literal["all"]:
    """The components of `method.pairs`, beside those of `method.components`; "all" stands for all pairs that vary.

    Raises ConfigError as `components_spec` does.
    """
    if value is None or (isinstance(value, Sequence) and not value):
        return ()
    if value == "all":
        return "all"
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"method.pairs={value}: must be all, or a list of pairs of inputs such as [[0, 1], [2, 3]]")
    components = _distinct([_component(entry, "method.pairs") for entry in value])
    for component in components:
        if len(component.inputs) != 2:
            raise ConfigError(f"method.pairs: {component} is no pair: write more inputs in method.components")
    return components


def check_distinct(components: Sequence[Component]) -> None:
    """Raises ConfigError for two components of the same inputs."""
    input_sets: set[frozenset[int]] = set()
    for component in components:
        if frozenset(component.inputs) in input_sets:
            raise ConfigError(
                f"there are two components of the inputs {component} in method.components and"
                " method.pairs: only their sum is identified; leave one out"
            )
        input_sets.add(frozenset(component.inputs))


def _distinct(components: Sequence[Component]) -> tuple[Component, ...]:
    check_distinct(components)
    return tuple(components)


def _component(entry: Any, key: str) -> Component:
    if isinstance(entry, Component):
        return entry
    options = dict(entry) if isinstance(entry, Mapping) else {"inputs": entry}
    if unknown := sorted(map(str, set(options) - {"inputs", "kernel", "inducing"})):
        raise ConfigError(f"{key}: a component has no option '{unknown[0]}': known are inputs, kernel and inducing")
    inputs = options.get("inputs")
    if not isinstance(inputs, Sequence) or isinstance(inputs, str):
        raise ConfigError(
            f"{key}: {entry} is no list of inputs such as [0, 1], nor a mapping such as {{inputs: [0],"
            " kernel: matern32, inducing: 10}"
        )
    if not inputs or not all(is_whole(i) and i >= 0 for i in inputs):
        raise ConfigError(f"{key}: {list(inputs)} must be whole numbers from 0, at least one")
    kernel = zero_mean_base(options["kernel"]) if options.get("kernel") else None
    component = Component(tuple(map(int, inputs)), kernel, options.get("inducing"))
    for i in component.inputs:
        if component.inputs.count(i) > 1:
            raise ConfigError(f"{key}: {component} names the input {i} twice")
    if component.inducing is not None:
        check_inducing(component.inducing, f"inducing of component {component}")
    return component


def check_inducing(value: Any, key: str = "method.inducing") -> None:
    """Raises ConfigError for fewer than 2 inducing points of a component, or a fraction of the rows."""
    if not is_whole(value) or value < 2:
        raise ConfigError(f"{key}={value}: a component has a whole number of inducing points from 2")


def zero_mean_base(value: Any) -> Spec:
    """A kernel of one input whose mean can be taken out (`gpbench.core.kernels.Effect`).

    Raises ConfigError for constant and linear, of which nothing would be left, for an ANOVA kernel, and for a kernel
    of selected inputs.
    """
    spec = kernel_spec(value)
    nothing = "nothing is left of it without its mean"
    refused = {Constant.family: nothing, Linear.family: nothing, ANOVA.family: "it has effects of its own"}
    if spec.inputs is not None or spec.family in refused:
        reason = refused.get(spec.family, "the component names its inputs")
        raise ConfigError(
            f"kernel {spec} has no zero-mean form for a component: {reason}; choose squared_exponential,"
            " matern32 or another kernel of one input"
        )
    return spec
