"""Iterative solutions W of (K + σ²I) W = B for a kernel matrix K of many rows, which is never in memory as a whole.  A
solver is its state: it has `weights`, and a `step` that returns the next state.  One step of each costs O(N) time for
each row that it sees: of all rows for `ConjugateGradients`, of a minibatch for `Blocks` and `Descent`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpbench.core.bases.kernel import PRODUCT_COLUMNS, gram_product, in_blocks, product
from gpbench.core.kernels import Kernel
from gpbench.core.linalg import inverse_cholesky


class Rows(eqx.Module):
    """Rows of a step: their inputs, their numbers, and 1 for those that count, else 0."""

    X: Float[Array, "B D"]
    index: Int[Array, " B"]
    counted: Float[Array, "B 1"]


class KernelSystem(eqx.Module):
    """The system H W = B with H = K + σ²I, for C right-hand sides side by side."""

    kernel: Kernel
    noise: Float[Array, ""]
    X: Float[Array, "N D"]
    targets: Float[Array, "N C"]

    def times(self, weights: Float[Array, "N C"]) -> Float[Array, "N C"]:
        """H `weights`, in O(N² (D + C)) time."""
        return gram_product(self.kernel, self.X, weights) + self.noise * weights

    def residual(self, weights: Float[Array, "N C"], rows: Rows) -> Float[Array, "B C"]:
        """B - H `weights` of some rows; 0 for those that do not count."""
        Kw = product(self.kernel, rows.X, self.X, weights)
        return rows.counted * self.targets[rows.index] - rows.counted * (Kw + self.noise * weights[rows.index])

    def last_residual(self, weights: Float[Array, "N C"], count: int) -> Float[Array, "P C"]:
        """B - H `weights` of the last `count` rows: the first ones may be those of the preconditioner."""
        X = self.X[-count:]
        Kw: Float[Array, "P C"] = in_blocks(lambda x: product(self.kernel, x, self.X, weights), X)
        return self.targets[-count:] - Kw - self.noise * weights[-count:]


class Nystroem(eqx.Module):
    """The approximation Kxz Kzz⁻¹ Kzx of K by p of its rows Z, as the preconditioner P = Kxz Kzz⁻¹ Kzx + σ²I.  `factor`
    is T with TᵀT = (σ² Kzz + Kzx Kxz)⁻¹, so that P⁻¹ = (I - Kxz TᵀT Kzx) / σ².  It is in float64 and so are its
    products, whatever the precision of the system: in float32 more than a few hundred rows make P⁻¹ indefinite."""

    Z: Float[Array, "p D"]
    factor: Float[Array, "p p"]

    @classmethod
    def of_first(cls, system: KernelSystem, count: int) -> "Nystroem":
        """The approximation by the first `count` rows, in O(N p²) time and with `PRODUCT_COLUMNS` x p numbers."""
        with jax.named_scope("needs_float64"):
            high = exact(system)
            Z = high.X[:count]
            return cls(Z, _factor(high, Z))

    def regress(self, system: KernelSystem, values: Float[Array, "N C"]) -> Float[Array, "p C"]:
        """The weights TᵀT Kzx `values` of the subset of regressors: k(x, Z) times them is its posterior mean."""
        with jax.named_scope("needs_float64"):
            high = exact(system)
            weights = self.factor.T @ (self.factor @ product(high.kernel, self.Z, high.X, exact(values)))
            return weights.astype(values.dtype)

    def solve(self, system: KernelSystem, values: Float[Array, "N C"]) -> Float[Array, "N C"]:
        """P⁻¹ `values`."""
        with jax.named_scope("needs_float64"):
            high, right = exact(system), exact(values)
            remainder = right - product(high.kernel, high.X, self.Z, self.regress(system, right))
            return (remainder / high.noise).astype(values.dtype)


def exact(tree: Any) -> Any:
    """A pytree of arrays in float64."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), tree)


def _factor(system: KernelSystem, Z: Float[Array, "p D"]) -> Float[Array, "p p"]:
    """T."""
    size, A = min(PRODUCT_COLUMNS, len(system.X)), inverse_cholesky(system.kernel.cross(Z, Z))

    def add(block: Any, total: Any) -> Any:
        index = block * size + jnp.arange(size)
        rows = system.X[jnp.minimum(index, len(system.X) - 1)]
        columns = A @ system.kernel.cross(Z, rows) * (index < len(system.X))  # A first: K is nearly singular
        return total + columns @ columns.T

    gram = jax.lax.fori_loop(0, -(-len(system.X) // size), add, jnp.zeros((len(Z), len(Z)), Z.dtype))
    return inverse_cholesky(gram + system.noise * jnp.eye(len(Z))) @ A


class ConjugateGradients(eqx.Module):
    """Conjugate gradients, preconditioned by a Nyström approximation (Frangella, Tropp and Udell 2023)."""

    weights: Float[Array, "N C"]
    residual: Float[Array, "N C"]
    direction: Float[Array, "N C"]
    square: Float[Array, " C"]
    """rᵀP⁻¹r of each residual r."""
    preconditioner: Nystroem | None

    @classmethod
    def start(cls, system: KernelSystem, preconditioner: Nystroem | None) -> "ConjugateGradients":
        """Weights of 0."""
        zeros, b = jnp.zeros_like(system.targets), system.targets
        return cls(zeros, b, zeros, jnp.ones_like(b[0]), preconditioner)

    def restart(self, system: KernelSystem) -> "ConjugateGradients":
        """The weights with the residual that they have: rounding lets that of the iterations drift from it."""
        residual = system.targets - system.times(self.weights)
        zeros, ones = jnp.zeros_like(residual), jnp.ones_like(self.square)
        return ConjugateGradients(self.weights, residual, zeros, ones, self.preconditioner)

    def step(self, system: KernelSystem) -> "ConjugateGradients":
        """One iteration."""
        P, r = self.preconditioner, self.residual
        z = r if P is None else P.solve(system, r)
        square = jnp.sum(r * z, axis=0)
        direction = z + square / self.square * self.direction
        Hd = system.times(direction)
        length = square / jnp.sum(direction * Hd, axis=0)
        return ConjugateGradients(self.weights + length * direction, r - length * Hd, direction, square, P)


class Blocks(eqx.Module):
    """Block coordinate descent: the equations of a minibatch's rows are solved exactly in their own weights."""

    weights: Float[Array, "N C"]

    def step(self, system: KernelSystem, rows: Rows) -> tuple["Blocks", Float[Array, "B C"]]:
        """One step, in O(B³ + N B) time; and the residual of its rows before it."""
        residual = system.residual(self.weights, rows)
        counted = rows.counted[:, 0]
        K = counted[:, None] * system.kernel.cross(rows.X, rows.X) * counted
        A = inverse_cholesky(K + jnp.diag(jnp.where(counted > 0.0, system.noise, jnp.ones_like(counted))))
        return Blocks(self.weights.at[rows.index].add(A.T @ (A @ residual))), residual


class Descent(eqx.Module):
    """Stochastic dual descent (Lin et al. 2024, algorithm 1): see `gpbench/methods/exact/sdd.py`."""

    weights: Float[Array, "N C"]
    velocity: Float[Array, "N C"]
    average: Float[Array, "N C"]

    @classmethod
    def start(cls, system_targets: Float[Array, "N C"]) -> "Descent":
        """Weights of 0."""
        return cls(*(jnp.zeros_like(system_targets) for _ in range(3)))

    def ahead(self, momentum: float) -> Float[Array, "N C"]:
        """The point α + ρv, of whose residual a step takes the direction."""
        return self.weights + momentum * self.velocity

    def step(
        self, residual: Float[Array, "B C"], rows: Rows, *, length: Float[Array, ""], momentum: float, averaged: float
    ) -> "Descent":
        """One step from the residual of its rows at `ahead`.  `length` is the step size β times the number of
        minibatches in an epoch, and `averaged` the weight r of the new weights in their geometric average."""
        velocity = (momentum * self.velocity).at[rows.index].add(length * residual)
        weights = self.weights + velocity
        return Descent(weights, velocity, averaged * weights + (1.0 - averaged) * self.average)


def step_limit(
    kernel: Kernel, noise: Float[Array, ""], X: Float[Array, "N D"], rows: int, batch: int, momentum: float
) -> Float[Array, ""]:
    """The largest stable step size β of `Descent`, nearly: 1 / (λ (1 + 2ρ) / (2 + 2ρ) + d (N / B) / (2 - 2ρ)).

    λ, the largest eigenvalue of H, is estimated from the first `rows` rows; d is H's diagonal.  With the first term
    alone it is the limit without sampling: along an eigenvector α + ρv has the factor h = βλ, and z² - (1 - h)(1 + ρ) z
    + (1 - h) ρ has its roots in the unit circle for h < (2 + 2ρ) / (1 + 2ρ).  With the second alone it is that of a row
    by itself: it is drawn once in N / B steps, and moves until the next time by β (N / B) / (1 - ρ) of its residual,
    which falls by d times that.
    """
    n, row_range = len(X), X[:rows]
    top = jnp.linalg.eigvalsh(kernel.cross(row_range, row_range))[-1] * (n / len(row_range)) + noise
    diagonal = jnp.mean(kernel.diag(row_range)) + noise
    share = diagonal * (-(-n // batch)) / (2 - 2 * momentum)
    return 1.0 / (top * (1 + 2 * momentum) / (2 + 2 * momentum) + share)


def relative(residual: Float[Array, "B C"], targets: Float[Array, "B C"]) -> Float[Array, ""]:
    """|residual| / |targets| over all entries."""
    return jnp.linalg.norm(residual) / jnp.linalg.norm(targets)
