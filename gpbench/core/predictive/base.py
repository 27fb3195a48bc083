"""The interface of a predictive distribution, and distributions over classes."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.predictive import numerical


class Predictive(eqx.Module):
    """Predictive distribution p(y) at N inputs, one a row."""

    @abstractmethod
    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Log density (regression) or log probability (classification) of each row's target, in nats."""

    @abstractmethod
    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """The arrays that mixtures average: `log_prob` (N,), `summary`, and for regression also `cdf` (N,)."""

    @abstractmethod
    def summary(self) -> dict[str, Array]:
        """Arrays that describe the distribution: `mean` and `var`, each (N,), or `log_probs` (N, C)."""

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """The arrays that metrics need: `pointwise`, and for regression `crps` and the `ENDS` of intervals."""
        return self.pointwise(y)


class ContinuousPredictive(Predictive):
    """A density on the real line, noise included, in the scaled units of the targets."""

    if TYPE_CHECKING:
        # Fields of some families and properties of others; a property here would become the default of such a field.
        @property
        def mean(self) -> Float[Array, " N"]: ...

        @property
        def var(self) -> Float[Array, " N"]: ...

    @abstractmethod
    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """P(target ≤ y) for each row."""

    def intervals(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """Score and central interval of each row; from the cdf, unless a family has a closed form.  `crps` at y, in the
        units of y, and the ends of central intervals by their names in `ENDS`, each (N,)."""
        return self.intervals_of(self.cdf, self.mean, self.var, y)

    intervals_of = staticmethod(numerical.intervals)
    """`intervals` of a distribution of this kind with this cdf and these moments, such as a mixture."""

    def summary(self) -> dict[str, Array]:
        return {"mean": self.mean, "var": self.var}

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return {"log_prob": self.log_prob(y), "cdf": self.cdf(y)} | self.summary()

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return self.pointwise(y) | self.intervals(y)


class DiscretePredictive(Predictive):
    """Probabilities of C classes.  Two classes are coded -1 and +1, more are coded 0 .. C-1, as floats."""

    @property
    @abstractmethod
    def log_probs(self) -> Float[Array, "N C"]:
        """The log probability of every class."""

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), the column of `log_probs` for the class y."""
        column = y > 0 if self.log_probs.shape[-1] == 2 else y
        return jnp.take_along_axis(self.log_probs, column.astype(int)[:, None], axis=-1)[:, 0]

    def summary(self) -> dict[str, Array]:
        return {"log_probs": self.log_probs}

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return {"log_prob": self.log_prob(y)} | self.summary()


class BernoulliPredictive(DiscretePredictive):
    """Two classes, -1 and +1, by their log probabilities."""

    log_negative: Float[Array, " N"]
    log_positive: Float[Array, " N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), y in {-1, +1}."""
        return jnp.where(y > 0, self.log_positive, self.log_negative)

    @property
    def log_probs(self) -> Float[Array, "N 2"]:
        return jnp.stack([self.log_negative, self.log_positive], axis=-1)


class CategoricalPredictive(DiscretePredictive):
    """Classes 0 .. C-1 (or, of two, -1 and +1) by their log probabilities up to a constant in each row."""

    logits: Float[Array, "N C"]

    @property
    def log_probs(self) -> Float[Array, "N C"]:
        return jax.nn.log_softmax(self.logits, axis=-1)
