"""The additive kernel over subsets of the inputs (functional ANOVA)."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import Family, Kernel, words
from gpbench.core.kernels.product import UnitAmplitude, fix_amplitude
from gpbench.errors import ConfigError


class ANOVA(Family):
    """k(x, x') = Σ_{r=1}^R v_r Σ_{|S|=r} Π_{d in S} k_d(x_d, x'_d): additive Gaussian processes (Duvenaud et al. 2011).

    S runs through all sets of r inputs, k_d is a one-dimensional kernel of amplitude 1 for input d, and v_r is the
    variance of all interactions of order r.  The inner sums are the elementary symmetric polynomials e_r of
    z_d = k_d(x_d, x'_d).  One input after another adds to them, e_r <- e_r + z_d e_{r-1}: O(D R) operations per pair of
    rows, and no cancellation for positive z_d, unlike the Newton-Girard formulae of the paper.
    """

    log_variance: Float[Array, " R"]
    bases: Kernel  # every leaf has a leading axis of length D
    family: ClassVar[str] = "anova"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows.  Memory: O(N P R) forward, O(D N P R) for its gradient."""

        def one(base: Kernel, x, y):
            return base.cross(x[:, None], y[:, None])

        return self._sum_orders(one, X.T, Y.T, shape=(len(X), len(Y)))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""
        return self._sum_orders(lambda base, x: base.diag(x[:, None]), X.T, shape=(len(X),))

    def _sum_orders(self, one: Callable[..., Array], *columns: Float[Array, "D _"], shape: tuple[int, ...]) -> Array:
        """Σ_r v_r e_r of z_d = one(k_d, columns of input d), of the given shape."""

        @jax.checkpoint
        def add(sums, column):
            z = one(*column)
            lower = jnp.concatenate([jnp.ones_like(z)[None], sums[:-1]])  # e_0 .. e_{R-1}
            return sums + z * lower, None

        zero = jnp.zeros((len(self.log_variance), *shape), columns[0].dtype)
        sums, _ = jax.lax.scan(add, zero, (self.bases, *columns))
        return jnp.tensordot(jnp.exp(self.log_variance), sums, axes=1)

    def describe(self) -> str:
        """The family with its base and the variance of every order."""
        variances = ", ".join(f"{variance:.3g}" for variance in jnp.exp(self.log_variance))
        base = self.bases.kernel if isinstance(self.bases, UnitAmplitude) else self.bases
        return f"anova kernel of one-dimensional {words(base.family)} kernels (variances by order {variances})"

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """Options: `order`, the largest R, and `base`, the specification of the one-dimensional kernels.

        Every order has the same share of the amplitude.  Raises ConfigError if there are fewer inputs than `order`.
        """
        order, count = options["order"], X.shape[1]
        if order > count:
            raise ConfigError(f"kernel anova has order {order}, but only {count} inputs: choose an order up to {count}")
        bases = [fix_amplitude(options["base"].initial(X[:, [d]], start=start)) for d in range(count)]
        # e_r of D ones is the binomial coefficient (D over r)
        log_variance = [math.log(amplitude / order / math.comb(count, r)) for r in range(1, order + 1)]
        return cls(jnp.asarray(log_variance, X.dtype), jax.tree.map(lambda *leaves: jnp.stack(leaves), *bases))
