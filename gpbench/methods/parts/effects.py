"""What one reads of an additive posterior: each component's effect on a grid, and its share of the variance."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core.additive import Posterior
from gpbench.methods.parts.additive_layer import AdditiveLayer

_GRID = {1: 101, 2: 31}
"""Points per axis of an effect's grid, by its number of inputs; effects of more inputs have none."""
_NODES = {1: 32, 2: 16, 3: 8}
_DRAWS = 200


def effects_on_grids(
    layer: AdditiveLayer, q: Posterior, components: tuple[tuple[int, ...], ...], size: int, *, key: PRNGKeyArray
) -> dict[str, Array]:
    """Means and standard deviations on [0, 1], in units of the scaled targets, of components with `size` inputs.

    `effectS_inputs` (C, S), `effectS_place` (C,) among all components, `effectS_grid` (G, S), `effectS_mean` and
    `effectS_std` (C, G), S being `size`; nothing where there is no such component.  `effectS_joint` (C,) is how many
    standard deviations a band must have on each side to hold the whole effect on its grid with probability 0.95; of one
    point it would be 1.96.  It is the quantile of `_DRAWS` draws of w.
    """
    which = [c for c, inputs in enumerate(components) if len(inputs) == size]
    if not which or size not in _GRID:
        return {}
    axis = np.linspace(0.0, 1.0, _GRID[size])
    grid = np.stack([part.ravel() for part in np.meshgrid(*[axis] * size, indexing="ij")], axis=1)
    moments = q.moments()
    at = [_at(layer, components[c], jnp.asarray(grid, layer.low.dtype)) for c in which]
    each = [jax.tree.map(lambda a, c=c: a[:, c], layer.effects(X, *moments)) for c, X in zip(which, at)]
    w = q.sample(_DRAWS, key=key) - moments[0]
    deviations = [jnp.abs(layer.draws(X, c, w)) / jnp.sqrt(v) for c, X, (_, v) in zip(which, at, each)]
    values = {
        "inputs": jnp.asarray([components[c] for c in which]),
        "place": jnp.asarray(which),
        "grid": jnp.asarray(grid),
        "mean": jnp.stack([mean for mean, _ in each]),
        "std": jnp.sqrt(jnp.stack([variance for _, variance in each])),
        "joint": jnp.stack([jnp.quantile(deviation.max(axis=1), 0.95) for deviation in deviations]),
    }
    return {f"effect{size}_{name}": value for name, value in values.items()}


def shares(
    layer: AdditiveLayer, q: Posterior, components: tuple[tuple[int, ...], ...], *, key: PRNGKeyArray
) -> Float[Array, "K C"]:
    """K draws of each component's share of the variance of ρ under independent uniform inputs (its Sobol index).

    Components are orthogonal there, so that the variances add up to that of ρ.  Integrals are by Gauss-Legendre rules
    of `_NODES` nodes per axis, and 4 for more than three inputs.
    """
    w = q.sample(_DRAWS, key=key)
    variances = []
    for c, inputs in enumerate(components):
        nodes, weights = np.polynomial.legendre.leggauss(_NODES.get(len(inputs), 4))
        grid = np.stack([part.ravel() for part in np.meshgrid(*[(nodes + 1) / 2] * len(inputs), indexing="ij")], axis=1)
        weight = np.prod(np.stack(np.meshgrid(*[weights / 2] * len(inputs), indexing="ij")), axis=0).ravel()
        values = layer.draws(_at(layer, inputs, jnp.asarray(grid, layer.low.dtype)), c, w)
        variances.append(values**2 @ jnp.asarray(weight, values.dtype))
    stacked = jnp.stack(variances, axis=1)
    return stacked / stacked.sum(axis=1, keepdims=True)


def _at(layer: AdditiveLayer, inputs: tuple[int, ...], unit: Float[Array, "G S"]) -> Float[Array, "G D"]:
    """Rows with these values in [0, 1] of some inputs, and of the others the smallest training value."""
    rows = jnp.broadcast_to(layer.low, (len(unit), len(layer.low)))
    at = np.asarray(inputs)
    return rows.at[:, at].set(layer.low[at] + unit * layer.width[at])
