"""The additive components of a model: the inputs, the kernel and the number of inducing points of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from gpbench.core.kernels import ANOVA, Constant, Linear, Spec, kernel_spec
from gpbench.errors import ConfigError, require
from gpbench.schema import is_whole


@dataclass(frozen=True)
class Component:
    """A function of some inputs, with a mean of 0 over each of them.  Where `kernel` or `inducing` is None, those of
    the method apply."""

    inputs: tuple[int, ...]
    kernel: Spec | None = None
    inducing: int | None = None

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.inputs))}]"


def components_spec(value: Any) -> tuple[Component, ...] | None:
    """The components that the configuration's `value` means; None is one for each input that varies.  The value is
    "univariate", or a list with the inputs of each component, [[0], [1], [0, 1]], an entry of which may be a mapping
    with more about it, {inputs: [0], kernel: matern32, inducing: 10}."""
    if value is None or value == "univariate":
        return None
    return _components(value, "components", "univariate, or a list of lists of inputs such as [[0], [1], [0, 1]]")


def pairs_spec(value: Any) -> tuple[Component, ...] | Literal["all"]:
    """The components of `method.pairs`, beside those of `method.components`; "all" stands for all pairs that vary.
    Raises ConfigError as `components_spec` does."""
    if value is None or (isinstance(value, Sequence) and not value):
        return ()
    if value == "all":
        return "all"
    components = _components(value, "pairs", "all, or a list of pairs of inputs such as [[0, 1], [2, 3]]")
    for component in components:
        is_pair = len(component.inputs) == 2
        require(is_pair, f"method.pairs: {component} is no pair: write more inputs in method.components", ConfigError)
    return components


def check_distinct(components: Sequence[Component]) -> None:
    """Raises ConfigError for two components of the same inputs."""
    mend = "in method.components and method.pairs: only their sum is identified; leave one out"
    known: set[frozenset[int]] = set()
    for component in components:
        inputs = frozenset(component.inputs)
        require(inputs not in known, f"there are two components of the inputs {component} {mend}", ConfigError)
        known.add(inputs)


def _components(value: Any, key: str, forms: str) -> tuple[Component, ...]:
    """The different components in a list of one or more."""
    require(_is_list(value) and value, f"method.{key}={value}: must be {forms}", ConfigError)
    components = tuple(_component(entry, f"method.{key}") for entry in value)
    check_distinct(components)
    return components


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _component(entry: Any, key: str) -> Component:
    if isinstance(entry, Component):
        return entry
    options = dict(entry) if isinstance(entry, Mapping) else {"inputs": entry}
    if unknown := sorted(map(str, set(options) - {"inputs", "kernel", "inducing"})):
        raise ConfigError(f"{key}: a component has no option '{unknown[0]}': known are inputs, kernel and inducing")
    inputs = options.get("inputs")
    forms = "list of inputs such as [0, 1], nor a mapping such as {inputs: [0], kernel: matern32, inducing: 10}"
    if not _is_list(inputs):
        raise ConfigError(f"{key}: {entry} is no {forms}")
    are_numbers = inputs and all(is_whole(i) and i >= 0 for i in inputs)
    require(are_numbers, f"{key}: {list(inputs)} must be whole numbers from 0, at least one", ConfigError)
    kernel = zero_mean_base(options["kernel"]) if options.get("kernel") else None
    component = Component(tuple(map(int, inputs)), kernel, options.get("inducing"))
    for i in component.inputs:
        require(component.inputs.count(i) == 1, f"{key}: {component} names the input {i} twice", ConfigError)
    if component.inducing is not None:
        is_right = is_whole(component.inducing) and component.inducing >= 2
        subject = f"inducing of component {component}={component.inducing}"
        require(is_right, f"{subject}: a component has a whole number of inducing points from 2", ConfigError)
    return component


def zero_mean_base(value: Any) -> Spec:
    """A kernel of one input whose mean can be taken out (`gpbench.core.kernels.Effect`).  Raises ConfigError for
    constant and linear, of which nothing would be left, for an ANOVA kernel, and for a kernel of selected inputs."""
    spec = kernel_spec(value)
    nothing = "nothing is left of it without its mean"
    refused = {Constant.family: nothing, Linear.family: nothing, ANOVA.family: "it has effects of its own"}
    reason = refused.get(spec.family, "the component names its inputs")
    mend = "choose squared_exponential, matern32 or another kernel of one input"
    is_right = spec.inputs is None and spec.family not in refused
    require(is_right, f"kernel {spec} has no zero-mean form for a component: {reason}; {mend}", ConfigError)
    return spec
