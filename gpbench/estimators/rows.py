"""Rows that users hand to the estimators: weights and their meaning."""

from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench.errors import ConfigError

WITH_WEIGHTS = (
    "use one of linear, logistic, constant, gpr, alacarte, the sparse GPs (svi, svgp, vsgpr, fitc_gp, pep and their"
    " variants), svdgp, odsvgp, gam, dsdgp, vi_kw, vi_g and hmc"
)
"""Methods that take sample weights, for messages."""
_BOOSTING = ".  scikit-learn's AdaBoostClassifier gives weights that sum to 1: use BaggingClassifier"


def checked_weights(sample_weight: Any, rows: int, is_classifier: bool) -> Float[np.ndarray, " N"]:
    """The weights as an array of numbers, one for each row: a weight w is w repeated rows.  1 for None.

    Raises ValueError for another number of weights, and for weights that are no finite numbers, below 0, or together
    fewer than two rows.
    """
    if sample_weight is None:
        return np.ones(rows)
    try:
        weight = np.array(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one for each row") from None
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight has the shape {weight.shape}: give one weight for each of the {rows} rows")
    if wrong := np.flatnonzero(~np.isfinite(weight) | (weight < 0)).tolist():
        raise ValueError(f"sample_weight[{wrong[0]}] is {weight[wrong[0]]:g}: weights must be finite, and at least 0")
    if (counted := np.count_nonzero(weight)) < 2:
        raise ValueError(f"sample_weight is zero in all rows but {counted}: at least two rows must count")
    if (total := weight.sum()) < 2:
        raise ValueError(
            f"sample_weight sums to {total:.3g}, and a weight w is w rows, so that fewer than two are left: multiply"
            f" the weights, so that they sum to the number of rows, {counted}{_BOOSTING * is_classifier}"
        )
    return weight


def repeat_rows(
    method: str, X: Float[np.ndarray, "N D"], y: Float[np.ndarray, " N"], weight: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "R D"], Float[np.ndarray, " R"]]:
    """The rows as often as their weights say, for a method without weights, such as those of bootstrap samples.

    Raises ConfigError for weights that are no whole numbers, and for more rows than there is memory for.
    """
    from gpbench.core.memory import require_memory

    if (weight % 1).any():
        raise ConfigError(f"method {method} takes whole numbers alone as sample_weight, as repeats: {WITH_WEIGHTS}")
    require_memory(8.0 * weight.sum() * (X.shape[1] + 1), "repeated rows", "repeats")
    times = weight.astype(int)
    return X.repeat(times, axis=0), y.repeat(times)
