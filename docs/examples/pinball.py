"""The pinball loss of a predicted quantile."""

from statistics import NormalDist

import numpy as np
from jaxtyping import Float

from gpbench.metrics import Scored


def pinball(scored: Scored, level: float = 0.5) -> Float[np.ndarray, " N"]:
    """max(level · (y - q), (level - 1) · (y - q)), q the level-quantile of a Gaussian with the predicted moments.

    It is least on average where q is the quantile of the targets (Koenker and Bassett 1978).
    """
    quantile = scored.mean + NormalDist().inv_cdf(level) * np.sqrt(scored.var)
    excess = scored.y - quantile
    return np.maximum(level * excess, (level - 1.0) * excess)
