"""The interface of a likelihood: what variational inference, EP, power EP and prediction need of p(y|f)."""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.predictive import Predictive


class Likelihood(eqx.Module):
    """p(y|f) of one row, with its own parameters as unconstrained array leaves, such as `log_noise`.

    The fields that a class declares by `gpbench.schema.setting` are its options in a configuration; a subclass outside
    gpbench is named by its `_target_` (docs/how-to/own_likelihood.md).

    A row has P latent values, of independent normal distributions where an expectation is taken; means and variances
    are (N,) for P = 1, and (N, P) otherwise.  Targets y (N,) are scaled (regression), counts in original units,
    -1 and +1 (two classes) or 0 .. C-1 (more), as floats.
    """

    tasks: ClassVar[frozenset[str]] = frozenset()
    """Kinds of data that it is for: regression, count, binary or multiclass."""
    conjugate: ClassVar[bool] = False
    """True if the posterior of f under it is Gaussian, so that one natural-gradient step of size 1 is the optimum."""
    log_concave: ClassVar[bool] = False
    """True if log p(y|f) is concave in f, so that no row makes a posterior wider than its prior."""

    @classmethod
    def initial(cls, noise: float, classes: int, dtype: Any, **options: Any) -> "Likelihood":
        """The likelihood that training starts from.

        Args:
            noise: Variance of y about f, in the scaled units of the targets (regression).
            classes: Number of classes, 0 for regression.
            dtype: Precision of the parameters.
            **options: Values of fields that the class declares by `gpbench.schema.setting`; those that do not fit the
                noise or the number of classes raise a ConfigError.
        """
        return cls(**options)

    def started(self, y: Float[Array, " N"]) -> "Likelihood":
        """Returns the likelihood with what its parameters take from the training targets at the start: nothing here."""
        return self

    def latents(self) -> int:
        """Returns P, the number of latent values of a row."""
        return 1

    @abstractmethod
    def log_prob(self, f: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, "..."]:
        """log p(y|f).  f and y broadcast; where P > 1, the last axis of f has the latent values, and y lacks it."""

    @abstractmethod
    def expected_log_prob(
        self, mean: Float[Array, "N ..."], variance: Float[Array, "N ..."], y: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        """E log p(y|f) for f ~ N(mean, variance), in nats: the expectation of variational inference."""

    @abstractmethod
    def log_normaliser(
        self, mean: Float[Array, "N ..."], variance: Float[Array, "N ..."], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> Float[Array, " N"]:
        """log Z = log E p(y|f)^alpha for f ~ N(mean, variance), in nats: of EP, and with alpha below 1 of power EP."""

    def normaliser_derivatives(
        self, mean: Float[Array, "N ..."], variance: Float[Array, "N ..."], y: Float[Array, " N"], *, alpha: float = 1.0
    ) -> tuple[Float[Array, " N"], Float[Array, "N ..."], Float[Array, "N ..."]]:
        """(log Z, d log Z / d mean, -d² log Z / d mean²); where P > 1, the last is the diagonal of the Hessian."""

        def total(mean: Array) -> tuple[Array, Array]:
            log_z = self.log_normaliser(mean, variance, y, alpha=alpha)
            return jnp.sum(log_z), log_z

        slope_of = jax.grad(total, has_aux=True)
        slope, log_z = slope_of(mean)
        if mean.ndim == 1:
            _, curve, _ = jax.jvp(slope_of, (mean,), (jnp.ones_like(mean),), has_aux=True)
            return log_z, slope, -curve

        def second(axis: Array) -> Array:  # the rows are independent: one direction serves them all
            _, curve, _ = jax.jvp(slope_of, (mean,), (jnp.broadcast_to(axis, mean.shape),), has_aux=True)
            return curve @ axis

        axes = jnp.eye(mean.shape[-1], dtype=mean.dtype)
        return log_z, slope, -jax.vmap(second, out_axes=-1)(axes)

    @abstractmethod
    def predictive(self, mean: Float[Array, "N ..."], variance: Float[Array, "N ..."]) -> Predictive:
        """p(y) = E p(y|f) for f ~ N(mean, variance)."""
