"""Methods that are a loss and an optimiser: the step is written once, for L-BFGS and for optax's optimisers."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core import lbfgs
from gpbench.core.optimisers import with_rate
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.parts.settings import AllRowsMethod
from gpbench.schema import setting

Parameters = Any
"""Any pytree of arrays; all of its leaves are unconstrained."""


P = TypeVar("P")


class GradientState(eqx.Module, Generic[P]):
    """Parameters, the optimiser's state, and variables that have updates of their own (`GradientMethod.update`).
    L-BFGS keeps by-products of the loss at the parameters, such as a posterior in closed form, in `optimiser.extra`.
    `clock` says when training stops (`gpbench.methods.parts.stopping`); None: after all steps."""

    parameters: P
    optimiser: lbfgs.State | optax.OptState
    variables: Any = None
    clock: Any = None


class GradientMethod(Method):
    """A method whose steps follow the gradient of a loss, by L-BFGS or by an optimiser of optax.

    A subclass has `init_parameters`, `loss` and `predict`.  The other functions have defaults: `init_variables`,
    `update` and `refine` are for variables that gradients do not move; `trainable` selects the parameters that they do.
    """

    optimiser: optax.GradientTransformation | None = setting(
        None, "optimiser or null", "Optimiser of the loss; null: L-BFGS, which needs all rows in every step."
    )

    @abc.abstractmethod
    def init_parameters(self, data: Batch, *, key: PRNGKeyArray) -> Parameters:
        """Make the initial parameters from all rows, concrete arrays: a pytree whose leaves are unconstrained."""

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], Any]:
        """Evaluate the loss, or an unbiased estimate of it from a minibatch, and by-products for predictions, or None.
        It is optional where `evaluate` has the gradient in closed form.  `key` is for losses that are sampled."""
        raise NotImplementedError

    def init_variables(self, parameters: Parameters, data: Batch) -> Any:
        """Make the variables that have updates of their own: any pytree, or None."""
        return None

    def init_extra(self, parameters: Parameters, data: Batch) -> Any:
        """By-products of the loss before the first step: the structure that `loss` returns."""
        return None

    def update(self, parameters: Parameters, variables: Any, batch: Batch) -> tuple[Parameters, Any]:
        """Update variables before a gradient step, such as a natural-gradient step of q; by default nothing."""
        return parameters, variables

    def refine(self, parameters: Parameters, variables: Any, batch: Batch) -> tuple[Parameters, Any]:
        """Update variables after a gradient step, such as a natural-gradient step of q; by default nothing."""
        return parameters, variables

    def trainable(self, parameters: Parameters) -> Any:
        """Select the parameters that the optimiser moves; by default all."""
        return parameters

    def evaluate(
        self, parameters: Parameters, extra: Any, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Parameters, Any]:
        """Evaluate the loss, its gradient in the structure of the parameters, and by-products, from the last ones."""
        (value, extra), gradient = jax.value_and_grad(self.loss, has_aux=True)(parameters, batch, key=key)
        return value, gradient, extra

    def update_and_evaluate(
        self, parameters: Parameters, variables: Any, batch: Batch, *, key: PRNGKeyArray
    ) -> tuple[Parameters, Any, Float[Array, ""], Parameters]:
        """Do `update`, then `evaluate`; a method overrides it where the two share work.  Parameters, variables, the
        loss there, and its gradient in what `trainable` selects."""
        parameters, variables = self.update(parameters, variables, batch)
        value, gradient, _ = self.evaluate(parameters, None, batch, key=key)
        return parameters, variables, value, gradient

    def init(self, data: Batch, *, key: PRNGKeyArray) -> GradientState[Any]:
        whole = self.batch_size is None or self.batch_size >= data.total
        mend = "leave method.batch_size=null, or set method.optimiser where the method has minibatches"
        fits = whole or self.optimiser is not None
        require(fits, f"{self.name}: L-BFGS needs all rows in each step: {mend}", ConfigError)
        parameters = self.init_parameters(data, key=key)
        return GradientState(parameters, self._init_optimiser(parameters, data), self.init_variables(parameters, data))

    @eqx.filter_jit
    def _init_optimiser(self, parameters: Parameters, data: Batch) -> lbfgs.State | optax.OptState:
        """The optimiser's state, by one program."""
        if self.optimiser is None:
            return lbfgs.start(parameters, self.init_extra(parameters, data))
        return self.optimiser.init(self.trainable(parameters))

    def step(self, state: GradientState[Any], batch: Batch, *, key: PRNGKeyArray) -> tuple[GradientState[Any], Info]:
        """One iteration.  The first of L-BFGS only evaluates, and it reports the objective where it ends."""
        if self.optimiser is None:
            evaluate: Callable[..., Any] = lambda p, extra: self.evaluate(p, extra, batch, key=key)
            parameters, optimiser = lbfgs.step(evaluate, state.parameters, state.optimiser)
            return GradientState(parameters, optimiser, state.variables), Info(-optimiser.value)
        parameters, variables, value, gradient = self.update_and_evaluate(
            state.parameters, state.variables, batch, key=key
        )
        moving = self.trainable(parameters)
        updates, optimiser = self.optimiser.update(self.trainable(gradient), state.optimiser, moving)
        parameters = eqx.tree_at(self.trainable, parameters, optax.apply_updates(moving, updates))
        parameters, variables = self.refine(parameters, variables, batch)
        return GradientState(parameters, optimiser, variables), Info(-value)

    def restart(
        self, parameters: Parameters, extra: Any, data: Batch, *, key: PRNGKeyArray
    ) -> tuple[Parameters, lbfgs.State]:
        """L-BFGS at these parameters without a memory, its value and by-products evaluated from `extra`."""
        evaluate: Callable[..., Any] = lambda p, e: self.evaluate(p, e, data, key=key)
        return lbfgs.step(evaluate, parameters, lbfgs.start(parameters, extra))

    def converged(self, state: GradientState[Any]) -> Bool[Array, ""] | None:
        """L-BFGS's criterion (`lbfgs.step`); other optimisers have none."""
        return state.optimiser.converged if isinstance(state.optimiser, lbfgs.State) else None

    def with_rate(self, state: GradientState[Any], rate: float) -> GradientState[Any]:
        return eqx.tree_at(lambda s: s.optimiser, state, with_rate(state.optimiser, rate))


class FullBatchMethod(AllRowsMethod, GradientMethod):
    """A gradient method whose objective is no sum over rows: every step is L-BFGS on all rows."""

    optimiser: optax.GradientTransformation | None = setting(
        None, "null", "No other optimiser than L-BFGS: the objective is no sum over rows."
    )


class MarginalMethod(GradientMethod):
    """A gradient method with a normal posterior of every f(x); its parameters have a `likelihood`."""

    @abc.abstractmethod
    def marginals(
        self, state: GradientState[Any], X: Float[Array, "N D"]
    ) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        """The posterior mean and variance of f at X, each (N,), or (N, P) of P latent functions."""

    def predict(self, state: GradientState[Any], X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        return state.parameters.likelihood.predictive(*self.marginals(state, X))

    def expected_log_prob(
        self, state: GradientState[Any], X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"] | None:
        return state.parameters.likelihood.expected_log_prob(*self.marginals(state, X), y)


class EvidenceMethod(FullBatchMethod, MarginalMethod):
    """A method of regression whose evidence, or bound on it, is in closed form, and with it the posterior."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    @abc.abstractmethod
    def evidence(self, parameters: Parameters, data: Batch) -> tuple[Float[Array, ""], Any]:
        """Evaluate the log evidence of the training rows, or a bound on it, in nats, and the posterior.  With a prior
        on the lengthscales its log density is added.  Predictions are made of the posterior
        (`GradientState.optimiser.extra`)."""

    def loss(self, parameters: Parameters, batch: Batch, *, key: PRNGKeyArray) -> tuple[Float[Array, ""], Any]:
        value, posterior = self.evidence(parameters, batch)
        return -value, posterior

    def objective(self, state: GradientState[Any], data: Batch) -> Float[Array, ""]:
        return self.evidence(state.parameters, data)[0]


class SampledMethod(GradientMethod):
    """A gradient method whose loss is a random estimate, which L-BFGS cannot minimise."""

    optimiser: optax.GradientTransformation = setting(range="optimiser", meaning="Optimiser of the sampled loss.")
