"""`sep`: scalable expectation propagation for Gaussian-process classification.

Hernández-Lobato and Hernández-Lobato, AISTATS 2016.  Sites on the latent values are refined all at once, and the
hyper-parameters and inducing points move after every refinement instead of after convergence (sections 2.2, 2.3, A.6).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.ep import approximate_gradient, energy, log_normaliser, marginals, refine, removable
from gpbench.core.gaussians import (
    Covariances,
    Natural,
    Normal,
    Sites,
    initial_sites,
    residual,
    site_product,
    unit_factor,
    whiten,
)
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.mapping import select
from gpbench.core.predictive import Predictive
from gpbench.errors import refuse
from gpbench.methods.base import Batch, Info, inducing_count
from gpbench.methods.parts.settings import TwoClassMethod
from gpbench.methods.parts.sparse_layer import SparseLayer, SparseMethod
from gpbench.schema import setting


class RunningProducts(eqx.Module):
    """Quantities of minibatches beside the sites: the direction of each in their product, and the epoch's product.
    `product` is of all sites, as they are (factors) or as the last epoch left them (scalars, without `directions`)."""

    product: Natural
    next_product: Natural
    directions: Float[Array, "N M"] | None
    rows_seen: Float[Array, ""]

    def total(self, n: int) -> Natural:
        """The product of all n sites; of the last epoch's, those not seen in this one count in proportion."""
        if self.directions is not None:
            return self.product
        rest_share = 1.0 - self.rows_seen / n
        return jax.tree.map(lambda last, now: rest_share * last + now, self.product, self.next_product)


class _SepApproximation(eqx.Module):
    """q(w) in the coordinates whitened by A, at the hyper-parameters where it was computed."""

    layer: SparseLayer
    A: Float[Array, "M M"]
    q: Normal


class _SepState(eqx.Module):
    """Hyper-parameters and sites, the last approximation, and the states of the optimiser and of minibatches."""

    layer: SparseLayer
    sites: Sites
    optimiser: optax.OptState
    caution: Float[Array, ""]
    """Factor on damping and steps, which halves whenever a step makes the energy NaN."""
    approximation: _SepApproximation
    running: RunningProducts | None


class SEP(SparseMethod, TwoClassMethod):
    """Scalable expectation propagation (Hernández-Lobato and Hernández-Lobato 2016): `sep`.

    With all rows in each step the sites' directions follow the hyper-parameters.  With minibatches each site keeps the
    direction v_n = Kzz⁻¹ k_n it had when it was last refined: `memory="factors"` stores it, O(N M) as the paper does;
    `memory="scalars"` stores two numbers per site, O(N): as the old directions are then unknown, the batch's share of
    the remaining product of the last epoch is replaced by the batch's new sites, which keeps the product positive
    definite however far the hyper-parameters have moved.
    """

    optimiser: optax.GradientTransformation = setting(
        range="optimiser", meaning="Optimiser of -log Zq over the hyper-parameters and inducing points."
    )
    update: str = setting(
        "inner",
        ["inner", "outer"],
        "Site updates before each gradient step: one refinement, or refinement to convergence.",
    )
    gradient: str = setting(
        "approximate",
        ["approximate", "exact", "scalars"],
        "Constants of the gradient: factors and matched moments (the paper's equation 4), factors, or the sites' "
        "scalars.",
    )
    memory: str = setting(
        "factors",
        ["factors", "scalars"],
        "Memory of minibatches for each site: its factor, O(N M), or its two scalars, O(N).",
    )
    damping: float = setting(0.5, "fraction", "Damping ρ of the site update: 1 is none.")
    tolerance: float = setting(
        1e-4, "nonnegative", "Largest change of a site at which EP has converged (update=outer)."
    )

    def init(self, data: Batch, *, key: PRNGKeyArray) -> _SepState:
        whole = self.batch_size is None or self.batch_size >= data.total
        needs_all = "needs all rows in each step: leave method.batch_size=null"
        refuse(
            "method.",
            (self.gradient == "scalars" and not whole, f"gradient=scalars {needs_all}"),
            (self.update == "outer" and not whole, f"update=outer {needs_all}"),
        )
        self.class_likelihood(data.X)
        return self._at_prior(self.initial_layer(data, additive_noise=True, key=key), data)

    @eqx.filter_jit
    def _at_prior(self, layer: SparseLayer, data: Batch) -> _SepState:
        """The state with these hyper-parameters and sites that say nothing."""
        n, dtype = len(data.y), data.X.dtype
        whole = self.batch_size is None or self.batch_size >= data.total
        Kzz = layer.gram()
        flat = unit_factor(len(Kzz), dtype)
        directions = jnp.zeros((n, len(Kzz)), dtype) if self.memory == "factors" else None
        running = None if whole else RunningProducts(flat, flat, directions, jnp.zeros((), dtype))
        approximation = _SepApproximation(layer, inverse_cholesky(Kzz), flat.posterior())
        sites = initial_sites(data.weight)
        return _SepState(layer, sites, self.optimiser.init(layer), jnp.ones((), dtype), approximation, running)

    def step(self, state: _SepState, batch: Batch, *, key: PRNGKeyArray) -> tuple[_SepState, Info]:
        likelihood = self.class_likelihood(batch.X)
        cov, pull_back = jax.vjp(lambda layer: layer.covariances(batch.X), state.layer)
        A = inverse_cholesky(cov.zz)
        V = A @ cov.zx
        rest = residual(cov, V)
        running, outside = state.running, None
        if running is None:
            sites = self._refine_all(state, batch, V, rest)
            factor = site_product(V, sites)
        else:
            sites, running, outside = self._refine_minibatch(state, running, batch, cov, A, V, rest)
            factor = whiten(running.total(batch.total), A, cov.zz)
        q = factor.posterior()
        counted, weight = sites.power(batch.weight), batch.weight * batch.scale
        cavities = marginals(q, V, V, counted)
        value = log_normaliser(likelihood, batch.y, rest, q, cavities, factor.shift, counted, weight)
        if self.gradient == "approximate":
            slope = approximate_gradient(likelihood, batch.y, rest, A, V, q, cavities, counted, weight)
        else:
            fixed = self.gradient == "exact"
            slope = jax.grad(energy, argnums=1)(likelihood, cov, batch.y, counted, weight, outside, fixed_factors=fixed)
        prior, prior_slope = jax.value_and_grad(SparseLayer.log_prior)(state.layer)
        value, gradient = value + prior, jax.tree.map(jnp.add, *pull_back(slope), prior_slope)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(ravel_pytree(gradient)[0]))

        updates, optimiser = self.optimiser.update(jax.tree.map(jnp.negative, gradient), state.optimiser, state.layer)
        layer = optax.apply_updates(state.layer, jax.tree.map(lambda u: state.caution * u, updates))
        accepted = _SepState(layer, sites, optimiser, state.caution, _SepApproximation(state.layer, A, q), running)
        return self._accept(is_finite, accepted, state, batch), Info(value)

    def _accept(self, is_finite: Any, new: _SepState, old: _SepState, batch: Batch) -> _SepState:
        """The new state; or, where the energy is lost to NaN, a return to the last approximation's hyper-parameters
        with half the caution: all later steps are half as bold (hl2016)."""
        back = _SepState(
            old.approximation.layer, old.sites, old.optimiser, 0.5 * old.caution, old.approximation, old.running
        )
        if new.running is None or old.running is None:
            return select(is_finite, new, back)

        def write(whole: Any, rows: Any) -> Any:
            """Write the batch's rows alone of an array with N rows: O(B M) a step and not O(N M)."""
            return whole.at[batch.index].set(jnp.where(is_finite, rows, whole[batch.index]))

        sites = jax.tree.map(write, old.sites, new.sites)
        directions = jax.tree.map(write, old.running.directions, new.running.directions)
        per_row = lambda s: (s.sites, s.running.directions)
        empty = (None, None)
        is_none = lambda leaf: leaf is None
        strip: Callable[[_SepState], _SepState] = lambda s: eqx.tree_at(per_row, s, empty, is_leaf=is_none)
        state = select(is_finite, strip(new), strip(back))
        return eqx.tree_at(per_row, state, (sites, directions), is_leaf=is_none)

    def _refine_all(self, state: _SepState, data: Batch, V: Any, rest: Any) -> Sites:
        """One parallel refinement of all sites ("inner"), or as many as convergence takes ("outer")."""
        rho = self.damping * state.caution * data.weight
        likelihood = self.class_likelihood(data.X)

        def sweep(sites: Any) -> Any:
            q = site_product(V, sites).posterior()
            return refine(likelihood, data.y, rest, marginals(q, V, V, sites), sites, rho)

        if self.update == "inner":
            return sweep(state.sites)

        def unconverged(carry: Any) -> Any:
            sweeps, change, _ = carry
            return (sweeps < 200) & (change > self.tolerance)

        def again(carry: Any) -> Any:
            sweeps, _, sites = carry
            new = sweep(sites)
            return sweeps + 1, new.change_from(sites), new

        *_, sites = jax.lax.while_loop(unconverged, again, (0, jnp.asarray(jnp.inf, V.dtype), state.sites))
        return sites

    def _refine_minibatch(
        self, state: _SepState, running: RunningProducts, batch: Batch, cov: Covariances, A: Any, V: Any, rest: Any
    ) -> Any:
        """The batch's sites refined, the running products with the batch's old factors replaced by the new, and the
        product of all sites outside the batch.  The running products that this returns have the directions of the batch
        alone."""
        old = state.sites[batch.index]
        counted = old.power(batch.weight)
        q = whiten(running.total(batch.total), A, cov.zz).posterior()
        present = A.T @ V  # v_n = Kzz⁻¹ k_n, (M, B)
        if running.directions is None:
            W, removed = V, removable(q, V, counted)
        else:
            before = running.directions[batch.index].T
            W, removed = A @ cov.zz @ before, counted
        # Rows that only fill a short batch keep their sites.
        rho = self.damping * state.caution * batch.weight
        sites = refine(self.class_likelihood(batch.X), batch.y, rest, marginals(q, V, W, removed), old, rho)
        added = site_product(present, sites.power(batch.weight))
        if running.directions is None:
            product, directions = running.product, None
        else:
            product = running.product - site_product(before, counted) + added
            directions = jnp.where(batch.weight > 0, present, before).T
        next_product = running.next_product + added
        # After an epoch every site has been refined once: the epoch's product is that of all sites, exactly.
        visited = running.rows_seen + batch.weight.sum()
        whole = visited >= batch.total
        product = select(whole, next_product, product)
        next_product = jax.tree.map(lambda a: jnp.where(whole, 0.0, a), next_product)
        running = RunningProducts(product, next_product, directions, jnp.where(whole, 0.0, visited))
        return sites, running, running.total(batch.total) - added

    def objective(self, state: _SepState, data: Batch) -> Float[Array, ""]:
        cov = state.layer.covariances(data.X)
        likelihood = self.class_likelihood(data.X)
        log_z = energy(likelihood, cov, data.y, state.sites, data.weight, None, fixed_factors=False)
        return log_z + state.layer.log_prior()

    def predict(self, state: _SepState, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        last = state.approximation
        return self.class_likelihood(X).predictive(*last.layer.marginals(last.A, last.q, X))

    def row_memory(self, n: int) -> int:
        minibatches = self.batch_size is not None and self.batch_size < n
        return 2 + (inducing_count(self.inducing, n) if minibatches and self.memory == "factors" else 0)
