"""Mixtures of predictive distributions: samplers, dropout, sampled deep models."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.gaussians import normal_cdf
from gpbench.core.predictive.base import Predictive
from gpbench.core.predictive.continuous import GaussianPredictive
from gpbench.core.predictive.numerical import quantiles

_PAIRS = 200  # largest number of Gaussians that are paired; above it quadrature takes fewer operations


class MixturePredictive(Predictive):
    """Σ_s w_s p_s(y), with the same weights in every row.  `components` is one predictive distribution whose arrays all
    have a leading axis of S samples, as `jax.vmap` returns it; `log_weights` (S,) need not be normalised.  The mixture
    has `mean`, `var`, `cdf` and intervals, or `log_probs`, as its components have them."""

    components: Predictive
    log_weights: Float[Array, " S"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log Σ w p(y)."""
        return self.pointwise(y)["log_prob"]

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Σ w P(target ≤ y), of continuous components."""
        return self.pointwise(y)["cdf"]

    @property
    def mean(self) -> Float[Array, " N"]:
        return self.summary()["mean"]

    @property
    def var(self) -> Float[Array, " N"]:
        return self.summary()["var"]

    @property
    def log_probs(self) -> Float[Array, "N C"]:
        return self.summary()["log_probs"]

    def summary(self) -> dict[str, Array]:
        return self._mixed(jax.vmap(lambda component: component.summary())(self.components))

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return self._mixed(jax.vmap(lambda component: component.pointwise(y))(self.components))

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        arrays = self.pointwise(y)
        # a score and quantiles are not the means of the components': they are made from the mixture's cdf
        if "cdf" not in arrays:
            return arrays
        if isinstance(self.components, GaussianPredictive) and len(self.log_weights) <= _PAIRS:
            return arrays | self._gaussian_intervals(arrays["mean"], arrays["var"], y)
        return arrays | self.intervals_of(self.cdf, arrays["mean"], arrays["var"], y)

    def _gaussian_intervals(self, mean: Array, var: Array, y: Float[Array, " N"]) -> dict[str, Array]:
        """Score and interval of a mixture of Gaussians: Σ w E|x - y| - ½ Σ Σ w w' E|x - x'| (Grimit et al. 2006).  The
        components are paired with those k places further, for k up to half their number."""
        parts: Any = self.components
        w, count = jax.nn.softmax(self.log_weights), len(self.log_weights)

        def add(total: Array, shift: tuple[Array, Array]) -> tuple[Array, None]:
            k, times = shift
            others = jax.tree.map(lambda a: jnp.roll(a, k, axis=0), (parts.mean, parts.var, w))
            distance = _mean_absolute(parts.mean - others[0], parts.var + others[1])
            return total + times * ((w * others[2]) @ distance), None

        half = jnp.arange(count // 2 + 1)
        times = 1.0 - 0.5 * ((half == 0) | (2 * half == count)).astype(y.dtype)  # pairs seen once, and twice
        among = jax.lax.scan(add, jnp.zeros_like(y), (half, times))[0]
        return {"crps": w @ _mean_absolute(y - parts.mean, parts.var) - among, **quantiles(self.cdf, mean, var)}

    @property
    def intervals_of(self) -> Callable[..., dict[str, Array]]:
        """The function of that name of the components."""
        return self.components.intervals_of  # type: ignore[attr-defined]

    def _mixed(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """The mixture's arrays from those of its components, which have a leading axis."""
        log_weights = jax.nn.log_softmax(self.log_weights)
        average: Callable[[Array], Array] = lambda values: jnp.tensordot(jnp.exp(log_weights), values, axes=1)

        def log_average(values: Array) -> Array:
            return logsumexp(values + log_weights.reshape(-1, *(1,) * (values.ndim - 1)), axis=0)

        mixed = {name: (log_average if name.startswith("log_") else average)(array) for name, array in arrays.items()}
        if "var" in arrays:  # the mean of the variances and the variance of the means
            mixed["var"] = mixed["var"] + average((arrays["mean"] - mixed["mean"]) ** 2)
        return mixed


def _mean_absolute(mean: Float[Array, "S N"], var: Float[Array, "S N"]) -> Float[Array, "S N"]:
    """E|x| of x ~ N(mean, var)."""
    scale = jnp.sqrt(var)
    z = mean / scale
    return 2.0 * scale * norm.pdf(z) + mean * (2.0 * normal_cdf(z) - 1.0)
