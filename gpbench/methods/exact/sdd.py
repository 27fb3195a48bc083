"""`sdd`: the exact posterior of a GP on many rows by stochastic dual descent, with pathwise samples.

Lin, Padhy, Antorán, Tripp, Terenin, Szepesvári, Hernández-Lobato and Janz, ICLR 2024.  Kernel and noise are those of an
exact GP of some rows (`fit_subset`) and stay fixed.  With H = K + σ²I of all N training rows, the weights α = H⁻¹b
minimise the dual objective ½ αᵀHα - αᵀb (section 3), here for S + 1 right-hand sides side by side:

- b = y, whose posterior mean is m(x) = k(x, X) α;
- b_s = f_s(X) + ε_s with a draw f_s of the prior and ε_s ~ N(0, σ²I): m(x) + f_s(x) - k(x, X) α_s is then a draw of the
  posterior (Wilson et al., ICML 2020).  The predictive variance is the mean of (f_s(x) - k(x, X) α_s)² plus σ².

A step is that of their algorithm 1.  With B random rows it moves the velocity and the weights by

    g_i = ⌈N / B⌉ (H (α + ρv) - b)_i for these rows, 0 for others,   v ← ρv - βg,   α ← α + v,

and predictions use the geometric average ᾱ ← rα + (1 - r)ᾱ with r = 100 / steps.  The paper draws rows independently
and sets βN by hand, to 50 or so.  Here the rows are those of the loop's minibatches, every row once in each epoch, and
β is a part of the largest that is stable (`step_limit`).

Errors.  A variance has the relative standard error √(2 / S), 18 % with 64 samples, so that the mean log density of test
rows is lower by about 1 / (2S) nats on average at most.  `PriorDraws` says how well f_s has the prior's covariance.

Training ends where the residuals H α - b of the rows that the steps draw, averaged over the same window, have come down
to `tolerance` times b, of the mean and of the samples; else after `steps`.

Cost.  A step takes O(B N (D + S)) time, which grows with N: each of its rows meets every training row once.  The state
holds 4 N (S + 1) numbers (b, α, v, ᾱ) and the N D of the inputs.  Kernel matrices exist in blocks alone
(`core.bases.kernel`): of B x 2,048 numbers in a step, and of 512 x 2,048 in predictions, which take O(N (D + S)) time
for each row.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gpbench.core.bases.fourier import SPECTRAL, PriorDraws, prior_draws
from gpbench.core.kernels import require_family
from gpbench.core.predictive import Predictive
from gpbench.core.solvers import Descent, KernelSystem, Rows, step_limit
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info, size_label
from gpbench.methods.parts.exact import ExactGP, ExactStart
from gpbench.methods.parts.pathwise import posterior, residuals, right_hand_sides
from gpbench.schema import setting

_GROWTH = 100.0  # ratio of a batch's mean squared residual to that of zero weights, above which a run has diverged
_WINDOW = 100  # ratio of the number of training steps to the window of the weights' average


class _SddState(eqx.Module):
    """The model, the weights of the mean (first column) and of the samples, and their right-hand sides."""

    gp: ExactGP
    draws: PriorDraws
    X: Float[Array, "N D"]
    targets: Float[Array, "N C"]
    """b: y, and a column f_s(X) + ε_s for each sample."""
    descent: Descent
    limit: Float[Array, ""]
    """The largest stable β: see `step_limit`."""
    step_size: Float[Array, ""]
    """β / limit."""
    levels: Float[Array, "2"]
    """Squares of the residuals relative to b, averaged over the last steps: of the mean, and of all samples."""

    @property
    def system(self) -> KernelSystem:
        """H and b."""
        return KernelSystem(self.gp.kernel, self.gp.likelihood.noise, self.X, self.targets)


class SDD(ExactStart):
    """Gaussian process regression by stochastic dual descent (Lin et al. 2024): `sdd`."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})
    kernels: ClassVar[tuple[str, ...] | None] = ("squared_exponential", "matern12", "matern32", "matern52")
    label_fields: ClassVar[frozenset[str]] = frozenset({"samples", "batch_size"})

    subset_rows: int | None = setting(
        1000, "several or null", "Number of rows of the exact GP whose kernel and noise the method has; null: all."
    )
    samples: int = setting(64, "several", "Number of posterior samples, from which variances are estimated.")
    frequencies: int = setting(2000, "count", "Number of random Fourier features of the prior's samples.")
    step_size: float = setting(0.9, "positive", "Step size β in units of the largest stable one; `rates` overrides it.")
    momentum: float = setting(0.99, "below_one", "Momentum ρ, 0.9 in the paper with 100,000 steps.")
    tolerance: float = setting(
        0.01,
        "nonnegative",
        "Residual of the linear system relative to its right-hand side at which training ends; 0: after all steps.",
    )

    @property
    def label(self) -> str:
        return size_label(self, f"samples={self.samples}")

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _SddState:
        require_family(self.kernel, SPECTRAL, self.name)
        if data.task != "regression":
            raise ConfigError(f"{self.name} is for regression, and these are {data.classes} classes: try svi")
        data, rows = data.first(None), self.subset_rows or data.total
        gp = self.subset_gp(data, rows)
        batch = min(self.batch_size or data.total, data.total)
        limit = step_limit(gp.kernel, gp.likelihood.noise, data.X, rows, batch, self.momentum)
        return _start(self, gp, data.X, data.y, limit, key)

    def with_rate(self, state: _SddState, rate: float) -> _SddState:
        """An initial state with another `step_size`."""
        return eqx.tree_at(lambda s: s.step_size, state, jnp.full_like(state.step_size, rate))

    def step(self, state: _SddState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_SddState, Info]:
        """One step.  It reports minus the dual objective of the mean at α + ρv, estimated from the batch.  Weights
        become NaN where a residual has grown (`_GROWTH`), so that a run that diverges never ends well."""
        system, rows = state.system, Rows(batch.X, batch.index, batch.weight[:, None])
        ahead, b = state.descent.ahead(self.momentum), rows.counted * state.targets[batch.index]
        residual = system.residual(ahead, rows)
        # The number of batches in an epoch; N / B would weigh a last batch of few rows too much
        scale = -(-batch.total // len(batch.y))
        value = 0.5 * scale * jnp.sum(batch.weight * ahead[batch.index, 0] * (b + residual)[:, 0])

        square: Callable[[Any], Array] = lambda rows: jnp.sum(rows**2, axis=0) / jnp.maximum(batch.weight.sum(), 1.0)
        of_zero, of_residual = jnp.mean(state.targets**2, axis=0), square(residual)
        sound = jnp.all(of_residual <= _GROWTH * jnp.maximum(square(b), of_zero))
        beta = jnp.where(sound, state.step_size * state.limit, jnp.nan)
        r = min(1.0, _WINDOW / max(self.steps, 1))
        descent = state.descent.step(residual, rows, length=beta * scale, momentum=self.momentum, averaged=r)
        sections = slice(1), slice(1, None)
        level = jnp.stack([jnp.sum(of_residual[section]) / jnp.sum(of_zero[section]) for section in sections])
        new = dataclasses.replace(state, descent=descent, levels=r * level + (1.0 - r) * state.levels)
        if (converged := self.converged(state)) is not None:
            new = jax.tree.map(partial(jnp.where, converged), state, new)
        return new, Info(jnp.where(sound, value, jnp.nan))

    def converged(self, state: _SddState) -> Bool[Array, ""] | None:
        """True where the residuals of mean and samples are below the tolerance; None without one."""
        return jnp.all(state.levels <= self.tolerance**2) if self.tolerance else None

    def optimum(self, state: _SddState) -> Bool[Array, ""] | None:
        """True where both residuals of the record are at most twice the tolerance; None without one.  The criterion
        that ends training is an average over steps."""
        if not self.tolerance:
            return None
        numbers = self.diagnostics(state)
        return jnp.maximum(numbers["residual"], numbers["residual_samples"]) <= 2.0 * self.tolerance

    def objective(self, state: _SddState, data: Batch) -> Float[Array, ""]:
        """Minus the dual objective of the mean at ᾱ, at most ½ yᵀH⁻¹y.  O(N² D) time."""
        average = state.descent.average
        residual = state.system.last_residual(average, len(state.X))
        return 0.5 * jnp.sum(average[:, 0] * (state.targets + residual)[:, 0])

    def posterior(self, state: _SddState, X: Float[Array, "N D"]) -> tuple[Float[Array, " N"], Float[Array, "N S"]]:
        """The posterior mean at X, and the deviations of the S posterior samples from it."""
        return posterior(state.gp, state.draws, state.X, state.descent.average, X)

    def predict(self, state: _SddState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        mean, deviations = self.posterior(state, X)
        return state.gp.likelihood.predictive(mean, jnp.mean(deviations**2, axis=1))

    def diagnostics(self, state: _SddState) -> dict[str, Array]:
        """The residuals of ᾱ (`pathwise.residuals`), and the step size."""
        relative = residuals(state.gp, state.X, state.targets, state.descent.average)
        return {**relative, "step_size": state.step_size}

    def diagnose(self, state: _SddState) -> str:
        if bool(jnp.isfinite(state.descent.average).all()):
            return ""
        step_size = float(state.step_size)
        return f"stochastic dual descent diverged with step size {step_size:g}: try method.rates=[{step_size / 3:.2g}]"

    def row_memory(self, n: int) -> int:
        return 4 * (self.samples + 1)


@eqx.filter_jit
def _start(method: SDD, gp: ExactGP, X: Any, y: Any, limit: Any, key: PRNGKeyArray) -> _SddState:
    """The state before the first step; compiled once for all data of one shape."""
    draw_key, noise_key = jax.random.split(key)
    draws = prior_draws(gp.kernel, X, method.frequencies, method.samples, key=draw_key)
    targets = right_hand_sides(gp, draws, X, y, jax.random.normal(noise_key, (len(X), method.samples), X.dtype))
    step_size = jnp.asarray(method.step_size, X.dtype)
    return _SddState(gp, draws, X, targets, Descent.start(targets), limit, step_size, jnp.ones(2, X.dtype))
