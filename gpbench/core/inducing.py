"""Where inducing points and lengthscales start.  Run once per split, on the host."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.errors import ConfigError, nearest

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

        found = KMeans(m, init=np.asarray(rows), n_init=1, max_iter=50).fit(np.asarray(X[:_SUBSET]))
        return jnp.asarray(found.cluster_centers_, X.dtype)
    raise ConfigError(f"unknown start of inducing points '{start}': {nearest(start, ('rows', 'kmeans'))}")


def median_distance(X: Float[Array, "N D"], limit: int = 2000) -> float:
    """The median Euclidean distance between pairs of rows (of the first `limit` rows), 1 if all are equal."""
    from scipy.spatial.distance import pdist

    distances = pdist(np.asarray(X[:limit]))
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0
