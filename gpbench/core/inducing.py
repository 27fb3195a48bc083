"""Initial inducing points and lengthscales.  Run once per split, on the host."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.errors import ConfigError, nearest

LengthscaleStart = Literal["median", "root_median", "median_each"]
"""Lengthscales start at the median distance between rows; at its square root (paper `sep`); or each at the median
distance along its own input (paper `svdgp`)."""

# Above this many rows k-means and pairwise distances are made on a random subset.
_SUBSET = 20_000


def inducing_points(X: Float[Array, "N D"], m: int, start: str, *, key: PRNGKeyArray) -> Float[Array, "M D"]:
    """`m` rows to start from: `start` is "rows" (random training rows) or "kmeans" (centres found from such rows).

    Raises ConfigError for another `start`.
    """
    rows = X[jax.random.choice(key, X.shape[0], (m,), replace=False)]
    if start == "rows":
        return rows
    if start == "kmeans":
        from sklearn.cluster import KMeans

        clusters = KMeans(m, init=np.asarray(rows), n_init=1, max_iter=50).fit(np.asarray(X[:_SUBSET]))
        return jnp.asarray(clusters.cluster_centers_, X.dtype)
    raise ConfigError(f"unknown start of inducing points '{start}': {nearest(start, ('rows', 'kmeans'))}")


def initial_log_lengthscales2(X: Float[Array, "N D"], start: LengthscaleStart) -> Float[Array, " D"]:
    """Logarithms of the initial squared lengthscales, in units of the inputs: see `LengthscaleStart`."""
    d = X.shape[1]
    if start == "median_each":
        return 2.0 * jnp.log(jnp.asarray([median_distance(X[:, [j]]) for j in range(d)], X.dtype))
    power = 2.0 if start == "median" else 1.0
    return jnp.full(d, power * jnp.log(median_distance(X)), X.dtype)


def median_distance(X: Float[Array, "N D"], limit: int = 2000) -> float:
    """The median Euclidean distance between pairs of rows (of the first `limit` rows), 1 if all are equal."""
    from scipy.spatial.distance import pdist

    distances = pdist(np.asarray(X[:limit]))
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0
