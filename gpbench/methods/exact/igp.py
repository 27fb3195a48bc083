"""`igp`: exact GP regression on many rows, with hyper-parameters learned by iterative solutions.

Gardner, Pleiss, Bindel, Weinberger and Wilson, NeurIPS 2018; pathwise probes and warm starts of Lin, Padhy,
Mlodozeniec, Antorán and Hernández-Lobato, NeurIPS 2024.  With H = K + σ²I of all N training rows, v = H⁻¹y and u_s =
H⁻¹z_s of S draws z_s = f_s(X) + ε_s from N(0, H), the gradient of the log evidence in a hyper-parameter θ is

    ½ vᵀ ∂H v - ½ tr(H⁻¹ ∂H),   tr(H⁻¹ ∂H) = E u_sᵀ ∂H u_s,

which the mean over s estimates, without bias over all draws, for exact solutions and fixed θ.  The same v and u_s make
the mean and S samples of the posterior (`parts.pathwise`), whose variance has a relative standard error of √(2/S).  f_s
and ε_s are made from the same random numbers at every θ, so that solutions change little from one step to the next, and
conjugate gradients start from the last ones; so θ comes to depend on these numbers.

A step moves θ along that gradient by the optimiser, and then solves for the new θ up to a residual of `tolerance` times
the right-hand side, or for `iterations`.  An early end acts like more noise: the record has the residuals.  The
preconditioner is the Nyström approximation by the first rows (Gardner et al.: a pivoted Cholesky factor).

Cost.  An iteration takes O(N² (D + S)) time, a solution some 10 N (S + 1) numbers, and the state 2 N (S + 1).  Beyond
the rows of `subset_rows` no N x N matrix is kept.
"""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench.core.bases.fourier import SPECTRAL, PriorDraws, prior_draws
from gpbench.core.bases.kernel import PRODUCT_COLUMNS, PRODUCT_ROWS
from gpbench.core.kernels import Kernel, require_family
from gpbench.core.predictive import Predictive
from gpbench.core.solvers import ConjugateGradients, KernelSystem, Nystroem, relative
from gpbench.methods.base import Batch, Info, size_label
from gpbench.methods.parts.exact import ExactGP, ExactStart
from gpbench.methods.parts.pathwise import posterior, residuals, right_hand_sides
from gpbench.methods.parts.settings import AllRowsMethod
from gpbench.schema import setting


class _IgpState(eqx.Module):
    """The model and its optimiser, the rows, what the samples are made of, and the solutions."""

    parameters: ExactGP
    optimiser: optax.OptState
    draws: PriorDraws
    noise: Float[Array, "N S"]
    X: Float[Array, "N D"]
    y: Float[Array, " N"]
    weights: Float[Array, "N C"]
    """v, and a column u_s for each sample."""
    iterations: Int[Array, ""]
    """Iterations of conjugate gradients in all steps."""

    @property
    def system(self) -> KernelSystem:
        """H, y and z_s."""
        gp = self.parameters
        b = right_hand_sides(gp, self.draws, self.X, self.y, self.noise)
        return KernelSystem(gp.kernel, gp.likelihood.noise, self.X, b)


class IGP(AllRowsMethod, ExactStart):
    """Exact Gaussian process regression by conjugate gradients (Gardner et al. 2018; Lin et al. 2024): `igp`."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    kernels: ClassVar[tuple[str, ...] | None] = ("squared_exponential", "matern12", "matern32", "matern52")
    label_fields: ClassVar[frozenset[str]] = frozenset({"samples"})

    optimiser: optax.GradientTransformation = setting(range="optimiser", meaning="Optimiser of kernel and noise.")
    subset_rows: int | None = setting(
        1000,
        "several or null",
        "Number of rows of the exact GP from whose kernel and noise training starts; null: all rows.",
    )
    samples: int = setting(64, "several", "Number of posterior samples, which are the probes of the gradient too.")
    frequencies: int = setting(2000, "count", "Number of random Fourier features of the prior's samples.")
    rank: int = setting(1000, "count", "Number of rows, the first ones, of the preconditioner.")
    iterations: int = setting(100, "count", "Most iterations of conjugate gradients in a step.")
    tolerance: float = setting(
        0.001, "positive", "Residual of the linear system relative to its right-hand side at which a solution ends."
    )

    @property
    def label(self) -> str:
        return size_label(self, f"samples={self.samples}")

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _IgpState:
        require_family(self.kernel, SPECTRAL, self.name)
        data = data.first(None)
        gp = self.subset_gp(data, self.subset_rows or data.total)
        return _start(self, gp, data.X, data.y, key)

    def step(self, state: _IgpState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_IgpState, Info]:
        """One step.  It reports -½ yᵀv, the part of the log evidence that has no determinant."""
        gradient = self.slope(state)
        updates, optimiser = self.optimiser.update(jax.tree.map(jnp.negative, gradient), state.optimiser)
        parameters: Any = optax.apply_updates(state.parameters, updates)
        moved = dataclasses.replace(state, parameters=parameters, optimiser=optimiser)
        return self.solved(moved), Info(-0.5 * state.y @ state.weights[:, 0])

    def slope(self, state: _IgpState) -> ExactGP:
        """The estimate of the log evidence's gradient, with that of a prior on the lengthscales."""
        W, share = state.weights, jnp.full(self.samples + 1, -0.5 / self.samples, state.y.dtype).at[0].set(0.5)
        kernel = _slope_of_kernel(state.parameters.kernel, state.X, W, share)
        squares = jnp.sum(share * jnp.sum(W**2, axis=0))

        def rest(gp: ExactGP) -> Array:
            prior = self.lengthscale_prior
            value = gp.likelihood.noise * squares
            return value if prior is None else value + prior.log_prob(gp.kernel, state.X.shape[1])

        return eqx.tree_at(lambda gp: gp.kernel, other := jax.grad(rest)(state.parameters), _add(kernel, other.kernel))

    def solved(self, state: _IgpState) -> _IgpState:
        """The state with the solutions for its model, from those that it has."""
        system = state.system
        preconditioner = Nystroem.of_first(system, min(self.rank, len(state.X)))
        start = dataclasses.replace(ConjugateGradients.start(system, preconditioner), weights=state.weights)

        def unsolved(carry: tuple[Array, ConjugateGradients]) -> Array:
            count, solver = carry
            sections = slice(1), slice(1, None)  # the mean, and all samples
            levels = [relative(solver.residual[:, columns], system.targets[:, columns]) for columns in sections]
            return (count < self.iterations) & (jnp.maximum(*levels) > self.tolerance)

        advance = lambda carry: (carry[0] + 1, carry[1].step(system))
        count, solver = jax.lax.while_loop(unsolved, advance, (jnp.zeros((), int), start.restart(system)))
        return dataclasses.replace(state, weights=solver.weights, iterations=state.iterations + count)

    def optimum(self, state: _IgpState) -> Bool[Array, ""]:
        """True where both residuals of the record are at most twice the tolerance: of the last solutions, not of θ."""
        numbers = self.diagnostics(state)
        return jnp.maximum(numbers["residual"], numbers["residual_samples"]) <= 2.0 * self.tolerance

    def predict(self, state: _IgpState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        mean, deviations = posterior(state.parameters, state.draws, state.X, state.weights, X)
        return state.parameters.likelihood.predictive(mean, jnp.mean(deviations**2, axis=1))

    def diagnostics(self, state: _IgpState) -> dict[str, Array]:
        """The residuals of the solutions (`pathwise.residuals`), and the iterations of all steps."""
        relative = residuals(state.parameters, state.X, state.system.targets, state.weights)
        return {**relative, "iterations": state.iterations}

    def row_memory(self, n: int) -> int:
        return 10 * (self.samples + 1)


@eqx.filter_jit
def _start(method: IGP, gp: ExactGP, X: Any, y: Any, key: PRNGKeyArray) -> _IgpState:
    """The state before the first step, with the solutions; compiled once for all data of one shape."""
    draw_key, noise_key = jax.random.split(key)
    draws = prior_draws(gp.kernel, X, method.frequencies, method.samples, key=draw_key)
    noise = jax.random.normal(noise_key, (len(X), method.samples), X.dtype)
    weights = jnp.zeros((len(X), method.samples + 1), X.dtype)
    optimiser = method.optimiser.init(gp)
    return method.solved(_IgpState(gp, optimiser, draws, noise, X, y, weights, jnp.zeros((), int)))


def _slope_of_kernel(
    kernel: Kernel, X: Float[Array, "N D"], W: Float[Array, "N C"], share: Float[Array, " C"]
) -> Kernel:
    """The gradient of Σ_c share_c w_cᵀ K w_c in the kernel's parameters, a block of K at a time."""
    rows, columns = min(PRODUCT_ROWS, len(X)), min(PRODUCT_COLUMNS, len(X))

    def section(first: Any, size: int) -> tuple[Array, Array]:
        index = first + jnp.arange(size)
        inside = jnp.minimum(index, len(X) - 1)
        return X[inside], jnp.where((index < len(X))[:, None], W[inside], 0.0)

    def block(total: Kernel, firsts: Array) -> tuple[Kernel, None]:
        (x, a), (z, b) = section(firsts[0], rows), section(firsts[1], columns)
        value = lambda kernel: jnp.sum(kernel.cross(x, z) * ((share * a) @ b.T))
        return _add(total, jax.grad(value)(kernel)), None

    starts = jnp.stack(jnp.meshgrid(jnp.arange(0, len(X), rows), jnp.arange(0, len(X), columns)), -1)
    return jax.lax.scan(block, jax.tree.map(jnp.zeros_like, kernel), starts.reshape(-1, 2))[0]


def _add(first: Kernel, second: Kernel) -> Kernel:
    return jax.tree.map(jnp.add, first, second)
