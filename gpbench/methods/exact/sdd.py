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

Cost.  A step takes O(B N (D + S)) time, which grows with N: each of its rows meets every training row once.  The state
holds 4 N (S + 1) numbers (b, α, v, ᾱ) and the N D of the inputs.  Kernel matrices exist in blocks alone
(`kernel_products`): of B x 2,048 numbers in a step, and of 512 x 2,048 in predictions, which take O(N (D + S)) time for
each row.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.bases.fourier import SPECTRAL, PriorDraws, prior_draws
from gpbench.core.bases.kernel import in_blocks, product
from gpbench.core.kernels import require
from gpbench.core.mapping import tree_at
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info
from gpbench.methods.parts.exact import ExactGP, ExactStart
from gpbench.schema import setting

_CHECKED = 1000
"""Number of training rows whose residuals `diagnostics` reports."""
_GROWTH = 100.0
"""Ratio of a batch's mean squared residual to that of zero weights, above which a run has diverged."""
_WINDOW = 100
"""Ratio of the number of training steps to the window of the weights' average."""


class SddState(eqx.Module):
    """The model, the weights of the mean (first column) and of the samples, and their right-hand sides."""

    gp: ExactGP
    draws: PriorDraws
    X: Float[Array, "N D"]
    targets: Float[Array, "N C"]
    """b: y, and a column f_s(X) + ε_s for each sample."""
    weights: Float[Array, "N C"]
    velocity: Float[Array, "N C"]
    average: Float[Array, "N C"]
    limit: Float[Array, ""]
    """The largest stable β: see `step_limit`."""
    step_size: Float[Array, ""]
    """β / limit."""


class SDD(ExactStart):
    """Gaussian process regression by stochastic dual descent (Lin et al. 2024): `sdd`.

    See the module's docstring.
    """

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

    @property
    def label(self) -> str:
        return f"samples={self.samples}, batch={self.batch_size}"

    def init(self, data: Batch, *, key: PRNGKeyArray) -> SddState:
        require(self.kernel, SPECTRAL, self.name)
        if data.task != "regression":
            raise ConfigError(f"{self.name} is for regression, and these are {data.classes} classes: try svi")
        data, rows = data.first(None), self.subset_rows or data.total
        gp = self.subset_gp(data, rows)
        batch = min(self.batch_size or data.total, data.total)
        limit = step_limit(gp, data.X, rows, batch, self.momentum)
        return _start(self, gp, data.X, data.y, limit, key)

    def with_rate(self, state: SddState, rate: float) -> SddState:
        """An initial state with another `step_size`."""
        return tree_at(lambda s: s.step_size, state, jnp.full_like(state.step_size, rate))

    def step(self, state: SddState, batch: Batch, *, key: PRNGKeyArray) -> tuple[SddState, Info]:
        """One step.  It reports minus the dual objective of the mean at α + ρv, estimated from the batch.

        Weights become NaN where a residual has grown (`_GROWTH`), so that a run that diverges never ends well.
        """
        noise, i, weight = state.gp.likelihood.noise, batch.index, batch.weight[:, None]
        ahead = state.weights + self.momentum * state.velocity
        b = weight * state.targets[i]
        # b - H (α + ρv) of the batch's rows
        Ka = product(state.gp.kernel, batch.X, state.X, ahead)
        residual = b - weight * (Ka + noise * ahead[i])
        # The number of batches in an epoch; N / B would weigh a last batch of few rows too much
        scale = -(-batch.total // len(batch.y))
        value = 0.5 * scale * jnp.sum(weight[:, 0] * ahead[i, 0] * (b + residual)[:, 0])

        square: Callable[[Any], Array] = lambda rows: jnp.sum(rows**2, axis=0) / jnp.maximum(batch.weight.sum(), 1.0)
        usual = jnp.maximum(square(b), jnp.mean(state.targets**2, axis=0))
        sound = jnp.all(square(residual) <= _GROWTH * usual)
        beta = jnp.where(sound, state.step_size * state.limit, jnp.nan)

        velocity = (self.momentum * state.velocity).at[i].add(beta * scale * residual)
        weights = state.weights + velocity
        r = min(1.0, _WINDOW / max(self.steps, 1))
        average = r * weights + (1.0 - r) * state.average
        new = dataclasses.replace(state, weights=weights, velocity=velocity, average=average)
        return new, Info(jnp.where(sound, value, jnp.nan))

    def objective(self, state: SddState, data: Batch) -> Float[Array, ""]:
        """Minus the dual objective of the mean at ᾱ, at most ½ yᵀH⁻¹y.  O(N² D) time."""
        residual = _residual(state, state.X)
        return 0.5 * jnp.sum(state.average[:, 0] * (state.targets + residual)[:, 0])

    def posterior(self, state: SddState, X: Float[Array, "N D"]) -> tuple[Float[Array, " N"], Float[Array, "N S"]]:
        """The posterior mean at X, and the deviations of the S posterior samples from it."""

        def block(x: Any) -> Any:
            Ka = product(state.gp.kernel, x, state.X, state.average)
            return Ka[:, 0], state.draws(state.gp.kernel, x) - Ka[:, 1:]

        mean, deviations = in_blocks(block, X)
        return mean, deviations

    def predict(self, state: SddState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        mean, deviations = self.posterior(state, X)
        return state.gp.likelihood.predictive(mean, jnp.mean(deviations**2, axis=1))

    def diagnostics(self, state: SddState) -> dict[str, Array]:
        """|b - Hᾱ| / |b| on the first rows, of the mean and of all samples together; and the step size."""
        n = min(_CHECKED, len(state.X))
        residual, b = eqx.filter_jit(_residual)(state, state.X[:n]), state.targets[:n]
        norm = jnp.linalg.norm
        mean, samples = (
            norm(residual[:, row_range]) / norm(b[:, row_range]) for row_range in (slice(1), slice(1, None))
        )
        return {"residual": mean, "residual_samples": samples, "step_size": state.step_size}

    def diagnose(self, state: SddState) -> str:
        if bool(jnp.isfinite(state.average).all()):
            return ""
        step_size = float(state.step_size)
        return f"stochastic dual descent diverged with step size {step_size:g}: try method.rates=[{step_size / 3:.2g}]"

    def row_memory(self, n: int) -> int:
        return 4 * (self.samples + 1)


def step_limit(gp: ExactGP, X: Float[Array, "N D"], rows: int, batch: int, momentum: float) -> Float[Array, ""]:
    """The largest stable step size β, nearly: 1 / (λ (1 + 2ρ) / (2 + 2ρ) + d (N / B) / (2 - 2ρ)).

    λ, the largest eigenvalue of H, is estimated from the first `rows` rows; d is H's diagonal.  With the first term
    alone it is the limit without sampling: along an eigenvector α + ρv has the factor h = βλ, and z² - (1 - h)(1 + ρ) z
    + (1 - h) ρ has its roots in the unit circle for h < (2 + 2ρ) / (1 + 2ρ).  With the second alone it is that of a row
    by itself: it is drawn once in N / B steps, and moves until the next time by β (N / B) / (1 - ρ) of its residual,
    which falls by d times that.
    """
    n, noise, row_range = len(X), gp.likelihood.noise, X[:rows]
    top = jnp.linalg.eigvalsh(gp.kernel.cross(row_range, row_range))[-1] * (n / len(row_range)) + noise
    diagonal = jnp.mean(gp.kernel.diag(row_range)) + noise
    limit: Array = 1.0 / (
        top * (1 + 2 * momentum) / (2 + 2 * momentum) + diagonal * (-(-n // batch)) / (2 - 2 * momentum)
    )
    return limit


def _residual(state: SddState, X: Float[Array, "P D"]) -> Float[Array, "P C"]:
    """b - Hᾱ of the first rows, which are X."""
    average, noise = state.average, state.gp.likelihood.noise
    Ka: Float[Array, "P C"] = in_blocks(lambda x: product(state.gp.kernel, x, state.X, average), X)
    return state.targets[: len(X)] - Ka - noise * average[: len(X)]


@eqx.filter_jit
def _start(method: SDD, gp: ExactGP, X: Any, y: Any, limit: Any, key: PRNGKeyArray) -> SddState:
    """The state before the first step; compiled once for all data of one shape."""
    draw_key, noise_key = jax.random.split(key)
    draws = prior_draws(gp.kernel, X, method.frequencies, method.samples, key=draw_key)
    noise = jnp.sqrt(gp.likelihood.noise) * jax.random.normal(noise_key, (len(X), method.samples), X.dtype)
    targets = jnp.column_stack([y, in_blocks(partial(draws, gp.kernel), X) + noise])
    weights, velocity, average = (jnp.zeros_like(targets) for _ in range(3))
    step_size = jnp.asarray(method.step_size, X.dtype)
    return SddState(gp, draws, X, targets, weights, velocity, average, limit, step_size)
