"""`sep`: scalable expectation propagation for Gaussian-process classification.

Hernández-Lobato and Hernández-Lobato, AISTATS 2016.  Sites on the latent values are refined all at once, and the
hyper-parameters and inducing points move after every refinement instead of after convergence (sections 2.2, 2.3, A.6).
"""

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.linalg import inverse_cholesky
from gpbench.core.predictive import Bernoulli, probit_bernoulli
from gpbench.core.sites import Sites, flat_sites
from gpbench.errors import ConfigError
from gpbench.methods.base import Batch, Info, inducing_count
from gpbench.methods.sep_energy import (
    Posterior,
    Sums,
    approximate_gradient,
    energy,
    inside,
    log_normaliser,
    marginals,
    posterior,
    refine,
    site_sums,
    whiten,
)
from gpbench.methods.sparse import Covariances, Hyper, SparseMethod, covariances, residual


class Running(eqx.Module):
    """What minibatches need beside the sites: how each site entered the sums, and the sums of this epoch so far.

    `sums` is over all sites, as they are (factors) or as the last epoch left them (scalars, without `directions`).
    """

    sums: Sums
    next_sums: Sums
    directions: Float[Array, "N M"] | None
    rows_seen: Float[Array, ""]

    def total(self, n: int) -> Sums:
        """The sums over all n sites; of the last epoch's, those not seen in this one count in proportion."""
        if self.directions is not None:
            return self.sums
        left = 1.0 - self.rows_seen / n
        return jax.tree.map(lambda last, now: left * last + now, self.sums, self.next_sums)


class State(eqx.Module):
    """Hyper-parameters, sites, and the posterior at the hyper-parameters where it was last made (`at`)."""

    hyper: Hyper
    sites: Sites
    optimiser: optax.OptState
    caution: Float[Array, ""]
    at: Hyper
    q: Posterior
    running: Running | None


class SEP(SparseMethod):
    """Configuration of `sep`; see the module's docstring.

    With all rows in each step the sites' directions follow the hyper-parameters.  With minibatches each site keeps the
    direction v_n = Kzz⁻¹ k_n it had when it was last refined: `memory="factors"` stores it, O(N M) as the paper does;
    `memory="scalars"` stores two numbers per site, O(N): the old directions being unknown, the batch's share of what is
    left of the last epoch's sums makes place for the batch's new sites, so that the sums stay positive definite however
    far the hyper-parameters have moved.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary"})

    optimiser: optax.GradientTransformation = eqx.field(static=True, kw_only=True)
    """Minimises -log Zq over the hyper-parameters and inducing points."""
    update: Literal["inner", "outer"] = eqx.field(static=True, kw_only=True, default="inner")
    """One refinement of the sites per gradient step, or refinement to convergence."""
    gradient: Literal["approximate", "exact", "scalars"] = eqx.field(static=True, kw_only=True, default="approximate")
    """What stays fixed under the gradient: factors and matched moments; factors; the sites' scalars."""
    memory: Literal["factors", "scalars"] = eqx.field(static=True, kw_only=True, default="factors")
    damping: float = eqx.field(static=True, kw_only=True, default=0.5)
    """ρ of the site update: 1 is no damping."""
    tolerance: float = eqx.field(static=True, kw_only=True, default=1e-4)
    """Largest change of a site at which `update="outer"` calls it converged."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        n, dtype = len(data.y), data.X.dtype
        whole = self.batch_size is None or self.batch_size >= data.total
        if self.gradient == "scalars" and not whole:
            raise ConfigError("method.gradient=scalars needs all rows in each step: leave method.batch_size=null")
        hyper = self.first_hyper(data, noise=self.noise, key=key)
        m = len(hyper.Z)
        nothing = Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))
        directions = jnp.zeros((n, m), dtype) if self.memory == "factors" else None
        running = None if whole else Running(nothing, nothing, directions, jnp.zeros((), dtype))
        q = posterior(inverse_cholesky(covariances(hyper, hyper.Z[:1], self.noise_on_inducing).zz), nothing)
        return State(hyper, flat_sites(data.weight), self.optimiser.init(hyper), jnp.ones((), dtype), hyper, q, running)

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        cov, back = jax.vjp(lambda h: covariances(h, batch.X, self.noise_on_inducing), state.hyper)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        rest = residual(cov, V)
        running, outside = state.running, None
        if running is None:
            sites = self._sweep(state, batch, A, V, rest)
            sums = site_sums(V, sites)
        else:
            sites, running, outside = self._refine_minibatch(state, running, batch, cov, A, V, rest)
            sums = whiten(running.total(batch.total), A, cov.zz)
        q = posterior(A, sums)
        counted, weight = sites.times(batch.weight), batch.weight * batch.scale
        at = marginals(q, V, V, counted)
        value = log_normaliser(batch.y, rest, q, at, sums.shift, counted, weight)
        if self.gradient == "approximate":
            slope = approximate_gradient(batch.y, rest, V, q, at, counted, weight)
        else:
            fixed = self.gradient == "exact"
            slope = jax.grad(energy)(cov, batch.y, counted, weight, outside, fixed_factors=fixed)
        gradient = self.tied(back(slope)[0])

        # A step that loses the energy to NaN is taken back, and all later ones are half as bold (hl2016).
        updates, optimiser = self.optimiser.update(jax.tree.map(jnp.negative, gradient), state.optimiser, state.hyper)
        hyper = optax.apply_updates(state.hyper, jax.tree.map(lambda u: state.caution * u, updates))
        new = State(hyper, sites, optimiser, state.caution, state.hyper, q, running)
        back_to = eqx.tree_at(lambda s: (s.hyper, s.caution), state, (state.at, 0.5 * state.caution))
        sound = jnp.isfinite(value) & jnp.all(jnp.isfinite(ravel_pytree(gradient)[0]))
        if running is not None:
            # Of what there is for every training row, write the batch's rows alone: O(B M) a step and not O(N M).
            per_row = lambda s: jax.tree.leaves((s.sites, s.running.directions))
            put = lambda whole, rows: whole.at[batch.index].set(jnp.where(sound, rows, whole[batch.index]))
            written = jax.tree.map(put, per_row(state), per_row(new))
            new, back_to = (eqx.tree_at(per_row, s, written) for s in (new, back_to))
        return jax.tree.map(lambda a, b: jnp.where(sound, a, b), new, back_to), Info(value)

    def _sweep(self, state: State, data: Batch, A, V, rest) -> Sites:
        """One parallel refinement of all sites ("inner"), or as many as convergence takes ("outer")."""
        rho = self.damping * state.caution * data.weight

        def once(sites):
            q = posterior(A, site_sums(V, sites))
            return refine(data.y, rest, marginals(q, V, V, sites), sites, rho)

        if self.update == "inner":
            return once(state.sites)

        def unconverged(carry):
            sweeps, change, _ = carry
            return (sweeps < 200) & (change > self.tolerance)

        def again(carry):
            sweeps, _, sites = carry
            new = once(sites)
            change = jnp.maximum(jnp.max(jnp.abs(new.nu - sites.nu)), jnp.max(jnp.abs(new.tau - sites.tau)))
            return sweeps + 1, change, new

        return jax.lax.while_loop(unconverged, again, (0, jnp.asarray(jnp.inf, V.dtype), state.sites))[-1]

    def _refine_minibatch(self, state: State, running: Running, batch: Batch, cov: Covariances, A, V, rest):
        """The batch's sites refined, and the running sums with the batch's old factors replaced by the new.

        The directions in what this returns are the batch's own.
        """
        old = state.sites[batch.index]
        counted = old.times(batch.weight)
        q = posterior(A, whiten(running.total(batch.total), A, cov.zz))
        present = A.T @ V  # v_n = Kzz⁻¹ k_n, (M, B)
        if running.directions is None:
            W, taken = V, inside(q, V, counted)
        else:
            before = running.directions[batch.index].T
            W, taken = A @ cov.zz @ before, counted
        # Rows that only fill a short batch keep what they had.
        sites = refine(batch.y, rest, marginals(q, V, W, taken), old, self.damping * state.caution * batch.weight)
        added = site_sums(present, sites.times(batch.weight))
        if running.directions is None:
            sums, directions = running.sums, None
        else:
            sums = running.sums - site_sums(before, counted) + added
            directions = jnp.where(batch.weight > 0, present, before).T
        next_sums = running.next_sums + added
        # After an epoch every site has been refined once, so the sums of the epoch are the sums of all sites, exactly.
        seen = running.rows_seen + batch.weight.sum()
        whole = seen >= batch.total
        sums = jax.tree.map(lambda a, b: jnp.where(whole, a, b), next_sums, sums)
        next_sums = jax.tree.map(lambda a: jnp.where(whole, 0.0, a), next_sums)
        running = Running(sums, next_sums, directions, jnp.where(whole, 0.0, seen))
        return sites, running, running.total(batch.total) - added

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        cov = covariances(state.hyper, data.X, self.noise_on_inducing)
        return energy(cov, data.y, state.sites, data.weight, None, fixed_factors=False)

    def predict(self, state: State, X: Float[Array, "N D"]) -> Bernoulli:
        cov = covariances(state.at, X, self.noise_on_inducing)
        V = state.q.A @ cov.zx
        variance = residual(cov, V) + jnp.sum((state.q.R @ V) ** 2, axis=0)
        return probit_bernoulli(V.T @ state.q.mu, variance)

    def row_memory(self, n: int) -> int:
        minibatches = self.batch_size is not None and self.batch_size < n
        return 2 + (inducing_count(self.inducing, n) if minibatches and self.memory == "factors" else 0)

    def diagnose(self, state: State) -> str:
        return self.describe(state.hyper)
