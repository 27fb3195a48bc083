"""The tied Gaussian factors g(w)^N of a layer: of whitened or inducing outputs, or in natural parameters.  Every unit's
whitened inducing outputs w have q(w) = N(0, I) g(w)^N, and the cavity N(0, I) g(w)^(N-1): g stands for a row (paper
`aep_dgp`, section 4.2)."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.gaussians import Natural, Normal, whiten
from gpbench.core.linalg import inverse_cholesky, log_determinant
from gpbench.methods.parts.deep_layers import DeepLayer
from gpbench.methods.parts.sparse_layer import SparseLayer


class Factors(eqx.Module):
    """g^N of every unit of a layer as a shift and a matrix that gives the precision."""

    shift: Float[Array, "P M"]
    root: Float[Array, "P M M"]

    @staticmethod
    @abc.abstractmethod
    def natural(
        unit: SparseLayer, A: Float[Array, "M M"], shift: Float[Array, " M"], root: Float[Array, "M M"]
    ) -> Natural:
        """The factor on w that a unit has with these parameters.  `A` is the inverse Cholesky factor of its Kzz."""

    def towards(self, target: Natural, rate: float | Float[Array, ""]) -> "Factors":
        """A step of this rate from these factors to `target`, of stochastic EP: only `NaturalFactors` can make it."""
        raise NotImplementedError

    @classmethod
    @abc.abstractmethod
    def initial(cls, layer: DeepLayer, depth: int, *, key: PRNGKeyArray) -> "Factors":
        """The factors to start from, in the layer at this depth from 0."""

    def posterior(
        self, layer: DeepLayer, A: Float[Array, "P M M"], share: float | Float[Array, ""] = 1.0
    ) -> tuple[Normal, Float[Array, " P"]]:
        """N(0, I) g^(share N) of every unit: normalised, with a leading axis P, and its log normaliser φ.  φ is ½
        shiftᵀ mean - ½ log|precision|, but for a constant.  The share is 1 for q, and 1 - 1/N for the cavity."""

        def unit(Z: Any, A: Any, shift: Any, root: Any) -> Any:
            factor = jax.tree.map(lambda leaf: share * leaf, self.natural(layer.unit(Z), A, shift, root))
            q = factor.posterior()
            return q, 0.5 * factor.shift @ q.mean - 0.5 * log_determinant(q.root)

        return jax.vmap(unit)(layer.Z, A, self.shift, self.root)


class _WhitenedFactors(Factors):
    """Factors on w: precision R Rᵀ with R = tril(root)."""

    @staticmethod
    def natural(unit: Any, A: Any, shift: Any, root: Any) -> Any:
        R = jnp.tril(root)
        return Natural(R @ R.T, shift)

    @classmethod
    def initial(cls, layer: DeepLayer, depth: int, *, key: PRNGKeyArray) -> "Factors":
        """A hidden layer's q is a random function of the prior, and the last one's nearly the prior."""
        is_hidden = layer.log_noise is not None
        precision, spread = (100.0, 1.0) if is_hidden else (1.0, 0.1)
        units, m, _ = layer.Z.shape
        draw = spread * jax.random.normal(key, (units, m), layer.Z.dtype)
        eye = jnp.eye(m, dtype=layer.Z.dtype)
        return cls((1.0 + precision) * draw, jnp.broadcast_to(jnp.sqrt(precision) * eye, (units, m, m)))


class _OutputFactors(Factors):
    """Factors on the inducing outputs u: precision R Rᵀ with R the lower triangle of `root` and exp of its diagonal."""

    @staticmethod
    def natural(unit: Any, A: Any, shift: Any, root: Any) -> Any:
        R = jnp.tril(root, -1) + jnp.diag(jnp.exp(jnp.diag(root)))
        return whiten(Natural(R @ R.T, shift), A, unit.gram())

    @classmethod
    def initial(cls, layer: DeepLayer, depth: int, *, key: PRNGKeyArray) -> "Factors":
        """Normal numbers, of standard deviation 1 in the first layer and .1 in the others (the authors' program)."""
        spread = 1.0 if depth == 0 else 0.1
        units, m, _ = layer.Z.shape
        shift_key, root_key = jax.random.split(key)
        shift = spread * jax.random.normal(shift_key, (units, m), layer.Z.dtype)
        return cls(shift, jnp.tril(spread * jax.random.normal(root_key, (units, m, m), layer.Z.dtype)))


class NaturalFactors(Factors):
    """Factors on w whose precision is `root` itself: those of stochastic EP, which need not be positive definite."""

    @staticmethod
    def natural(unit: Any, A: Any, shift: Any, root: Any) -> Any:
        return Natural(root, shift)

    @classmethod
    def initial(cls, layer: DeepLayer, depth: int, *, key: PRNGKeyArray) -> "Factors":
        """The initial factors of `_WhitenedFactors`, in natural parameters."""
        start = _WhitenedFactors.initial(layer, depth, key=key)
        return cls(start.shift, start.root @ start.root.mT)

    def towards(self, target: Natural, rate: float | Float[Array, ""]) -> "NaturalFactors":
        """A step of this rate from these factors to `target`; shorter where q's precision would shrink to a tenth."""

        def unit(shift: Any, root: Any, target: Any) -> Any:
            # q(w) has the precision B = I + root; a step r adds r Δ, and B + r Δ ≥ B / 10 up to the least eigenvalue
            A = inverse_cholesky(jnp.eye(len(shift), dtype=root.dtype) + root)
            least = jnp.linalg.eigvalsh(A @ (target.precision - root) @ A.T)[0]
            r = jnp.minimum(rate, 0.9 / jnp.maximum(-least, 1e-12))
            return shift + r * (target.shift - shift), root + r * (target.precision - root)

        return NaturalFactors(*jax.vmap(unit)(self.shift, self.root, target))


FACTORS: dict[str, type[Factors]] = {"whitened": _WhitenedFactors, "outputs": _OutputFactors}
"""Classes of factors by their names in a configuration."""
