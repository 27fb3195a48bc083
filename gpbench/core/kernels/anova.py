"""Additive kernels: over all subsets of the inputs, and the zero-mean kernel of one functional ANOVA effect.

The second is paper `gam`, equation 8.  Durrande, Ginsbourger, Roustant and Carraro (2013): a Gaussian process with the
one-dimensional kernel g, conditioned on ∫₀¹ f(x) dx = 0, has the kernel s(x, y) = g(x, y) - I(x) I(y) / II with
I(x) = ∫ g(x, t) dt and II = ∫ I(x) dx.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from gpbench import registry
from gpbench.core.kernels.base import Family, Kernel, LengthscaleStart, Units, words
from gpbench.core.kernels.composite import Sum, UnitAmplitude, fix_amplitude
from gpbench.core.kernels.spec import Spec, kernel_spec
from gpbench.core.kernels.stationary import Periodic, SquaredExponential
from gpbench.errors import ConfigError
from gpbench.schema import setting


class ANOVA(Family):
    """k(x, x') = Σ_{r=1}^R v_r Σ_{|S|=r} Π_{d in S} k_d(x_d, x'_d): additive Gaussian processes (Duvenaud et al. 2011).
    S runs through all sets of r inputs, k_d is a one-dimensional kernel of amplitude 1 for input d, and v_r is the
    variance of all interactions of order r.  The inner sums are the elementary symmetric polynomials e_r of z_d =
    k_d(x_d, x'_d).  One input after another adds to them, e_r <- e_r + z_d e_{r-1}: O(D R) operations per pair of rows,
    and no cancellation for positive z_d, unlike the Newton-Girard formulae of the paper."""

    log_variance: Float[Array, " R"]
    bases: Kernel  # every leaf has a leading axis of length D
    order: int = setting(2, "count", "Largest number of inputs that interact.")
    base: Spec = setting(
        "squared_exponential",
        registry.ONE_INPUT_KERNEL,
        "One-dimensional kernel of every input.",
        converter=kernel_spec,
    )
    family: ClassVar[str] = "anova"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows.  Memory: O(N P R) forward, O(D N P R) for its gradient."""
        function = lambda base, x, y: base.cross(x[:, None], y[:, None])
        return self._sum_orders(function, X.T, Y.T, shape=(len(X), len(Y)))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self._sum_orders(lambda base, x: base.diag(x[:, None]), X.T, shape=(len(X),))

    def _sum_orders(
        self, function: Callable[..., Array], *columns: Float[Array, "D _"], shape: tuple[int, ...]
    ) -> Array:
        """Σ_r v_r e_r of z_d = function(k_d, columns of input d), of the given shape."""

        @jax.checkpoint
        def add(sums: Array, column: tuple[Any, ...]) -> tuple[Array, None]:
            z = function(*column)
            lower = jnp.concatenate([jnp.ones_like(z)[None], sums[:-1]])  # e_0 .. e_{R-1}
            return sums + z * lower, None

        zero = jnp.zeros((len(self.log_variance), *shape), columns[0].dtype)
        sums, _ = jax.lax.scan(add, zero, (self.bases, *columns))
        return jnp.tensordot(jnp.exp(self.log_variance), sums, axes=1)

    def describe(self) -> str:
        variances = ", ".join(f"{variance:.3g}" for variance in jnp.exp(self.log_variance))
        base = self.bases.kernel if isinstance(self.bases, UnitAmplitude) else self.bases
        return f"anova kernel of one-dimensional {words(base.family)} kernels (variances by order {variances})"

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, unit: Units, **options: Any
    ) -> Kernel:
        """Options: `order`, the largest R, and `base`, the specification of the one-dimensional kernels.  Every order
        has the same share of the amplitude.  Raises ConfigError if there are fewer inputs than `order`."""
        order, count = options["order"], X.shape[1]
        if order > count:
            raise ConfigError(f"kernel anova has order {order}, but only {count} inputs: choose an order up to {count}")
        base = options["base"]
        bases = [fix_amplitude(base.initial(X[:, [d]], start=start, unit=unit[[d]])) for d in range(count)]
        # e_r of D ones is the binomial coefficient (D over r)
        log_variance = [math.log(amplitude / order / math.comb(count, r)) for r in range(1, order + 1)]
        return cls(
            jnp.asarray(log_variance, X.dtype), jax.tree.map(lambda *leaves: jnp.stack(leaves), *bases), **options
        )


_NODES = 32  # number of nodes of a Gauss-Legendre rule on each side of x, where a kernel can have a kink


class Effect(Kernel):
    """k(x, y) = amplitude · Π_d s_d(x_d, y_d), s_d the zero-mean kernel of the d-th of `bases`.  Its functions have the
    mean 0 over the unit interval in each input.  Only one amplitude is identifiable, so those of bases that have one
    are 1; linear kernels and sums keep a scale, which is redundant.  Outside [0, 1] the kernel is defined by the same
    formula."""

    log_amplitude: Float[Array, ""]
    bases: Kernel  # every leaf has a leading axis of length D
    family: ClassVar[str] = "effect"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        def function(base: Kernel, x: Array, y: Array) -> Array:
            # As a matrix product: XLA computes the error functions of a broadcast product anew for each pair of rows
            correction = (integral(base, x) / double_integral(base, x.dtype))[:, None] @ integral(base, y)[None, :]
            return base.cross(x[:, None], y[:, None]) - correction

        return jnp.exp(self.log_amplitude) * jnp.prod(jax.vmap(function)(self.bases, X.T, Y.T), axis=0)

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        def function(base: Kernel, x: Array) -> Array:
            return base.diag(x[:, None]) - integral(base, x) ** 2 / double_integral(base, x.dtype)

        return jnp.exp(self.log_amplitude) * jnp.prod(jax.vmap(function)(self.bases, X.T), axis=0)

    def describe(self) -> str:
        base = self.bases.kernel if isinstance(self.bases, UnitAmplitude) else self.bases
        return f"zero-mean {words(base.family)} kernel (amplitude {jnp.exp(self.log_amplitude):.3g})"


def integral(base: Kernel, x: Float[Array, " N"]) -> Float[Array, " N"]:
    """I(x) = ∫₀¹ g(x, t) dt of a one-dimensional kernel: in closed form for the squared exponential.  For other kernels
    by quadrature: over one period where there are periods, which [0, 1] may have many of, else on both sides of x, so
    that a kink at t = x costs no accuracy."""
    if (scale := _lengthscale(base)) is not None:
        root = math.sqrt(2) * scale
        return 0.5 * math.sqrt(math.pi) * root * (erf((1 - x) / root) + erf(x / root))
    if isinstance(base, Sum):
        return jnp.sum(jnp.stack([integral(term, x) for term in base.parts]), axis=0)
    if (period := _period(base)) is not None:
        return _periods(base, period, x)[0] + _periods(base, period, 1 - x)[0]
    nodes, weights = _gauss_legendre(x.dtype)
    split = jnp.clip(x, 0.0, 1.0)

    def function(x: Array, split: Array) -> Array:
        t = jnp.concatenate([split * nodes, split + (1 - split) * nodes])
        return base.cross(x[None, None], t[:, None])[0] @ jnp.concatenate([split * weights, (1 - split) * weights])

    return jax.vmap(function)(x, split)


def double_integral(base: Kernel, dtype: DTypeLike) -> Float[Array, ""]:
    """II = ∫₀¹ I(x) dx (Durrande et al. 2013)."""
    if (scale := _lengthscale(base)) is not None:
        root = math.sqrt(2) * scale
        return root**2 * jnp.expm1(-1 / root**2) + math.sqrt(math.pi) * root * erf(1 / root)
    if isinstance(base, Sum):
        return jnp.sum(jnp.stack([double_integral(term, dtype) for term in base.parts]))
    if (period := _period(base)) is not None:
        return 2 * _periods(base, period, jnp.ones(1, dtype))[1][0]
    nodes, weights = _gauss_legendre(dtype)
    return weights @ integral(base, nodes)


def _lengthscale(base: Kernel) -> Float[Array, ""] | None:
    """Lengthscale of a squared exponential kernel of amplitude 1, None for other kernels."""
    if isinstance(base, UnitAmplitude) and isinstance(base.kernel, SquaredExponential):
        return base.kernel.lengthscales[0]
    return None


def _period(base: Kernel) -> Float[Array, ""] | None:
    """Period of a periodic kernel, None for other kernels."""
    kernel = base.kernel if isinstance(base, UnitAmplitude) else base
    return kernel.periods[0] if isinstance(kernel, Periodic) else None


def _periods(base: Kernel, period: Float[Array, ""], x: Float[Array, " N"]) -> tuple[Array, Array]:
    """G(x) = ∫₀ˣ g(0, t) dt of a periodic kernel and ∫₀ˣ G(t) dt, from whole periods and a rest of one."""
    nodes, weights = _gauss_legendre(x.dtype)
    count = jnp.floor(x / period)
    rest = jnp.append(x - count * period, period)
    values = jax.vmap(lambda t: base.cross(jnp.zeros((1, 1), t.dtype), t[:, None])[0])(rest[:, None] * nodes)
    once, twice = rest * (values @ weights), rest**2 * (values @ (weights * (1 - nodes)))
    whole = period * once[-1] * count * (count - 1) / 2 + count * (twice[-1] + once[-1] * rest[:-1])
    return once[:-1] + count * once[-1], twice[:-1] + whole


def _gauss_legendre(dtype: DTypeLike) -> tuple[Float[Array, " Q"], Float[Array, " Q"]]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return jnp.asarray((nodes + 1) / 2, dtype), jnp.asarray(weights / 2, dtype)
