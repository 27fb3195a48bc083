"""The prior of an additive model: a constant and zero-mean functions of a few inputs each, with inducing points."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.additive import Posterior
from gpbench.core.features import inducing_points
from gpbench.core.kernels import Effect, LengthscalePrior, LengthscaleStart, Spec
from gpbench.core.kernels.composite import fix_amplitude
from gpbench.core.linalg import describe_failure, inverse_cholesky, product
from gpbench.errors import ConfigError, require
from gpbench.methods.parts.components import Component


class _ComponentStack(eqx.Module):
    """G components of one kernel family, one number of inputs S and one of inducing points M."""

    kernel: Effect  # every leaf has a leading axis of length G
    Z: Float[Array, "G M S"]
    fixed_points: bool = eqx.field(static=True)
    """Whether Z has no gradient, so that no optimiser moves it."""
    inputs: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    @property
    def _points(self) -> Float[Array, "G M S"]:
        return jax.lax.stop_gradient(self.Z) if self.fixed_points else self.Z

    def factors(self) -> Float[Array, "G M M"]:
        """The inverse Cholesky factor of every component's Kzz."""
        return jax.vmap(lambda kernel, Z: inverse_cholesky(kernel.cross(Z, Z)))(self.kernel, self._points)

    def whitened(
        self, X: Float[Array, "N D"], factors: Float[Array, "G M M"]
    ) -> tuple[Float[Array, "G M N"], Float[Array, "G N"]]:
        """V = L⁻¹ Kzx of every component, Kzz = L Lᵀ, and k(x, x)."""

        def whiten_one(kernel: Effect, Z: Any, A: Any, x: Any) -> Any:
            return product(A, kernel.cross(Z, x)), kernel.diag(x)

        rows = jnp.moveaxis(X[:, np.asarray(self.inputs)], 1, 0)
        return jax.vmap(whiten_one)(self.kernel, self._points, factors, rows)

    @property
    def shape(self) -> tuple[int, int]:
        """G and M."""
        return self.Z.shape[0], self.Z.shape[1]


class AdditiveLayer(eqx.Module):
    """ρ(x) = constant + Σ_c f_c(x_c) of inputs that the training rows scale to [0, 1].  `low` and `width` are the
    smallest training value and the range of every input; they are not trained."""

    stacks: tuple[_ComponentStack, ...]
    log_constant: Float[Array, ""]  # the variance of the constant
    low: Float[Array, " D"]
    width: Float[Array, " D"]
    order: tuple[int, ...] = eqx.field(static=True)
    """Position of each configured component among those of the stacks, one stack after another."""
    lengthscale_prior: LengthscalePrior | None = eqx.field(static=True, default=None)

    @property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """Inputs of each configured component."""
        slots = [inputs for stack in self.stacks for inputs in stack.inputs]
        return tuple(slots[slot] for slot in self.order)

    def unit(self, X: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """Inputs in units of the training rows' range; other rows may lie outside [0, 1] and are not clipped."""
        return (X - jax.lax.stop_gradient(self.low)) / jax.lax.stop_gradient(self.width)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Numbers of components and of inducing outputs: the constant, and the stacks."""
        return (1, 1), *(stack.shape for stack in self.stacks)

    @property
    def rows(self) -> tuple[slice, ...]:
        """Rows of w and of V that each configured component has; the constant's is the first."""
        sizes = [m for count, m in self.shapes for _ in range(count)]
        ends = np.cumsum(sizes)
        return tuple(slice(int(ends[slot]), int(ends[slot + 1])) for slot in self.order)

    def factors(self) -> list[Float[Array, "G M M"]]:
        """The inverse Cholesky factors of all components' Kzz, stack after stack."""
        return [stack.factors() for stack in self.stacks]

    def whitened(self, X: Float[Array, "N D"], factors: Any = None) -> tuple[Float[Array, "T N"], Float[Array, " N"]]:
        """Whitened features of the constant and of all components; and the variance of ρ given all of w."""
        V, rest = self._stacked(X, factors)
        return V, jnp.sum(rest, axis=0)

    def _stacked(self, X: Float[Array, "N D"], factors: Any = None) -> tuple[Float[Array, "T N"], Float[Array, "C N"]]:
        """Whitened features, and the variance of each component given w, stack after stack."""
        parts, rest = [jnp.full((1, len(X)), jnp.exp(0.5 * self.log_constant), X.dtype)], []
        for stack, A in zip(self.stacks, factors or self.factors()):
            V, diagonal = stack.whitened(self.unit(X), A)
            parts.append(V.reshape(-1, len(X)))
            rest.append(jnp.maximum(diagonal - jnp.sum(V**2, axis=1), 0.0))
        return jnp.concatenate(parts), jnp.concatenate(rest)

    def effects(
        self, X: Float[Array, "N D"], mean: Float[Array, " T"], covariance: Float[Array, "T T"]
    ) -> tuple[Float[Array, "N C"], Float[Array, "N C"]]:
        """Posterior mean and variance of every component at X, from the moments of w."""
        V, rest = self._stacked(X)
        means = [V[rows].T @ mean[rows] for rows in self.rows]
        variances = [jnp.sum(V[rows] * (covariance[rows, rows] @ V[rows]), axis=0) for rows in self.rows]
        return jnp.stack(means, axis=1), jnp.stack(variances, axis=1) + rest[np.asarray(self.order)].T

    def draws(self, X: Float[Array, "N D"], component: int, w: Float[Array, "K T"]) -> Float[Array, "K N"]:
        """A component's conditional mean at X given each draw of w, without its variance given w."""
        rows = self.rows[component]
        return w[:, rows] @ self._stacked(X)[0][rows]

    def log_prior(self) -> Float[Array, ""]:
        """Log density of the lengthscales in units of the inputs; 0 without a prior."""
        zero, prior, width = jnp.zeros((), self.low.dtype), self.lengthscale_prior, jax.lax.stop_gradient(self.width)
        units = [(stack.kernel, jnp.log(width[np.asarray(stack.inputs)])[:, :, None]) for stack in self.stacks]
        return sum((prior.log_prob(kernel, unit.shape[1], unit) for kernel, unit in units), zero) if prior else zero

    def diagnose(self) -> str:
        """Find the reason why a factorisation fails with these parameters; "" where none does."""
        for stack in self.stacks:
            for i, inputs in enumerate(stack.inputs):
                kernel, Z = jax.tree.map(lambda leaf, i=i: leaf[i], (stack.kernel, stack.Z))
                name = f"Kzz of component {list(inputs)}, {kernel.describe()}"
                if reason := describe_failure(name, kernel.cross(Z, Z)):
                    return reason
        return ""


def initial_layer(
    X: Float[Array, "N D"],
    components: Sequence[Component],
    kernel: Spec,
    inducing: int,
    *,
    start: LengthscaleStart,
    fixed_points: bool,
    unit: Float[Array | np.ndarray, " D"] | None = None,
    key: PRNGKeyArray,
) -> AdditiveLayer:
    """The layer that training starts from: amplitude 1/C for each of C components, and a constant of variance 1.
    Inducing points are a regular grid on [0, 1], as in the paper, for several inputs where their number is that of one
    (16 is 4 by 4), and else centres of the training rows by k-means.  `unit` has original units per unit of X."""
    on_host = np.asarray(X)  # where no operation is compiled
    low, width = on_host.min(axis=0), np.ptp(on_host, axis=0)
    for component in components:
        for i in component.inputs:
            fault = f"{component} names the input {i}, but the data have only the inputs 0 to {X.shape[1] - 1}"
            require(i < X.shape[1], f"method.components or method.pairs: {fault}", ConfigError)
            fault = f"input {i} has one value in all training rows, and so no effect"
            require(width[i] > 0, f"{fault}: leave it out of method.components and method.pairs", ConfigError)
    width = np.where(width > 0, width, np.ones_like(width))
    ranges = width if unit is None else width * np.asarray(unit)
    scaled = (on_host - low) / width
    parts: dict[tuple[Any, ...], list[tuple[int, Effect, Array]]] = {}
    for c, component in enumerate(components):
        spec, m = component.kernel or kernel, component.inducing or inducing
        rows = scaled[:, np.asarray(component.inputs)]
        Z = _initial_inducing(rows, m, key=partial(jax.random.fold_in, key, c))
        # The same lengthscale for all inputs, of a grid: the rows of one may take a few values only
        grid, units = _grid(m, X.dtype), [ranges[[i]] for i in component.inputs]
        bases = [fix_amplitude(spec.initial(grid, start=start, unit=each)) for each in units]
        effect = Effect(jax.device_put(np.asarray(-math.log(len(components)), X.dtype)), _stacked(bases))
        parts.setdefault((spec, len(component.inputs), m), []).append((c, effect, Z))
    stacks, places = [], []
    for members in parts.values():
        places += [c for c, _, _ in members]
        kernels, Z = _stacked([(effect, Z) for _, effect, Z in members])
        inputs = tuple(components[c].inputs for c, _, _ in members)
        stacks.append(_ComponentStack(kernels, Z, fixed_points, inputs))
    order = tuple(int(i) for i in np.argsort(places))
    log_constant, low, width = jax.device_put((np.zeros((), X.dtype), low, width))
    return AdditiveLayer(tuple(stacks), log_constant, low, width, order)


def _stacked(trees: Sequence[Any]) -> Any:
    """The tree whose leaves are those of all trees, stacked on the host: to stack as many on a device is compiled."""
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *trees))


def _initial_inducing(
    rows: Float[np.ndarray, "N S"], m: int, *, key: Callable[[], PRNGKeyArray]
) -> Float[Array, "M S"]:
    fault = f"{m} inducing points of a component, but there are {len(rows)} training rows"
    require(m <= len(rows), f"{fault}: choose a smaller method.inducing", ConfigError)
    size = rows.shape[1]
    side = round(m ** (1 / size))
    if side**size == m:
        axis = np.asarray(_grid(side, rows.dtype))[:, 0]
        return jax.device_put(_product(axis, size))
    return inducing_points(jax.device_put(rows), m, "kmeans", key=key())


def _product(axis: Float[np.ndarray, " K"], size: int) -> Float[np.ndarray, "G S"]:
    """All points, (K^S, S), whose S = `size` coordinates are values of the axis."""
    return np.stack([values.ravel() for values in np.meshgrid(*[axis] * size, indexing="ij")], axis=1)


def _grid(m: int, dtype: Any) -> Float[Array, "M 1"]:
    return jnp.linspace(0.0, 1.0, m, dtype=dtype)[:, None]


_GRID = {1: 101, 2: 31}
"""Number of points per axis of an effect's grid, by its number of inputs; effects of more inputs have no grid."""
_NODES = {1: 32, 2: 16, 3: 8}  # number of Gauss-Legendre nodes per axis, by the number of inputs
_DRAWS = 200  # number of draws of w behind joint bands and shares


def effects_on_grids(layer: AdditiveLayer, q: Posterior, size: int, *, key: PRNGKeyArray) -> dict[str, Array]:
    """Means and standard deviations on [0, 1], in units of the scaled targets, of components with `size` inputs.

    `effectS_inputs` (C, S), `effectS_place` (C,) among all components, `effectS_grid` (G, S), `effectS_mean` and
    `effectS_std` (C, G), S being `size`; nothing where there is no such component.  `effectS_joint` (C,) is how many
    standard deviations a band must have on each side to hold the whole effect on its grid with probability 0.95; of one
    point it would be 1.96.  It is the quantile of `_DRAWS` draws of w, without the variance given w, in which the
    standard deviations are; so it is too small where that counts, as between few inducing points.
    """
    components = layer.components
    which = [c for c, inputs in enumerate(components) if len(inputs) == size]
    if not which or size not in _GRID:
        return {}
    axis = np.linspace(0.0, 1.0, _GRID[size])
    grid = _product(axis, size)
    moments = q.moments()
    positions = [_rows_with(layer, components[c], jnp.asarray(grid, layer.low.dtype)) for c in which]
    each = [jax.tree.map(lambda a, c=c: a[:, c], layer.effects(X, *moments)) for c, X in zip(which, positions)]
    w = q.sample(_DRAWS, key=key) - moments[0]
    deviations = [jnp.abs(layer.draws(X, c, w)) / jnp.sqrt(v) for c, X, (_, v) in zip(which, positions, each)]
    values = {
        "inputs": jnp.asarray([components[c] for c in which]),
        "place": jnp.asarray(which),
        "grid": jnp.asarray(grid),
        "mean": jnp.stack([mean for mean, _ in each]),
        "std": jnp.sqrt(jnp.stack([variance for _, variance in each])),
        "joint": jnp.stack([jnp.quantile(deviation.max(axis=1), 0.95) for deviation in deviations]),
    }
    return {f"effect{size}_{name}": value for name, value in values.items()}


def shares(layer: AdditiveLayer, q: Posterior, *, key: PRNGKeyArray) -> Float[Array, "K C"]:
    """K draws of each component's share of the variance of ρ under independent uniform inputs (its Sobol index).
    Components are orthogonal there, so that the variances add up to that of ρ.  Integrals are by Gauss-Legendre rules
    of `_NODES` nodes per axis, and 4 for more than three inputs."""
    w = q.sample(_DRAWS, key=key)
    variances = []
    for c, inputs in enumerate(layer.components):
        nodes, weights = np.polynomial.legendre.leggauss(_NODES.get(len(inputs), 4))
        grid = _product((nodes + 1) / 2, len(inputs))
        weight = np.prod(_product(weights / 2, len(inputs)), axis=1)
        values = layer.draws(_rows_with(layer, inputs, jnp.asarray(grid, layer.low.dtype)), c, w)
        variances.append(values**2 @ jnp.asarray(weight, values.dtype))
    stacked = jnp.stack(variances, axis=1)
    return stacked / stacked.sum(axis=1, keepdims=True)


def _rows_with(layer: AdditiveLayer, inputs: tuple[int, ...], unit: Float[Array, "G S"]) -> Float[Array, "G D"]:
    """Rows with these values in [0, 1] of some inputs, and of the others the smallest training value."""
    rows = jnp.broadcast_to(layer.low, (len(unit), len(layer.low)))
    positions = np.asarray(inputs)
    return rows.at[:, positions].set(layer.low[positions] + unit * layer.width[positions])
