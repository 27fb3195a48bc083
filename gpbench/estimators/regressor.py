"""Every regression method as a scikit-learn regressor."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from gpbench.estimators.base import Estimator


class Regressor(RegressorMixin, Estimator):
    """Regression on one output, with a predictive mean and standard deviation.

    Parameters
    ----------
    method : str, default="svi"
        A method by its name in `gpbench run`; `gpbench ls methods` lists them.
    protocol : str, default="clean"
        The protocol, by its name in `gpbench run`: scaling, precision, initial values and optimisers.
    seed : int, default=0
        Seed of the method's own randomness.  The same seed and the same rows give the same predictions.
    options : dict or None, default=None
        Further settings of the method or the protocol, as in `{"method.inducing": 0.2, "protocol.steps": 100}`.  Each
        is also a parameter of its own to `set_params`, and so to a search.
    config_dir : str, path or None, default=None
        A folder with your own method/ and protocol/ files and the modules that they name, as `gpbench run --config-dir`
        takes it.

    Attributes
    ----------
    n_features_in_ : int
        The number D of inputs.
    config_ : dict
        The resolved configuration of method and protocol, and the seed.
    state_ : object
        The trained state of the method: a pytree of arrays on the host.
    """

    def __init__(self, method="svi", protocol="clean", seed=0, options=None, config_dir=None):
        self.method, self.protocol, self.seed, self.options = method, protocol, seed, options
        self.config_dir = config_dir

    def fit(self, X, y) -> "Regressor":
        """Train the method on all rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (N, D)
            Inputs in original units, at least two rows of finite numbers.  The protocol's scaler is fitted to them.
        y : array-like of shape (N,)
            Targets in original units, not all equal.  The protocol's scaler is fitted to them.

        Returns
        -------
        Regressor
            The estimator itself.

        Raises
        ------
        ValueError
            For unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2, copy=True)
        self._fit(X, y.astype(np.float64), "regression", 0)
        return self

    def predict(self, X, return_std: bool = False):
        """Predictive means, and standard deviations on request.

        Parameters
        ----------
        X : array-like of shape (T, D)
            Inputs in original units.
        return_std : bool, default=False
            Whether to return standard deviations too.

        Returns
        -------
        mean : ndarray of shape (T,)
            Predictive means in original units.
        std : ndarray of shape (T,)
            Predictive standard deviations in original units, noise included; only if `return_std` is true.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        predictions = self._predictions(X)
        mean = self._y_scaler.inverse(predictions["mean"])
        return (mean, np.sqrt(predictions["var"]) * self._y_scaler.scale) if return_std else mean
