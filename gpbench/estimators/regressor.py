"""Every regression method as a scikit-learn regressor."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from gpbench import registry
from gpbench.estimators.base import Estimator


class Regressor(RegressorMixin, Estimator):
    """Regression on one output, with a predictive mean and standard deviation.

    Parameters
    ----------
    method : str, default="svi"
        A method by its name in `gpbench run`; `gpbench ls methods` lists them.
    protocol : str, default="clean"
        The protocol, by its name in `gpbench run`: scaling, precision, initial values and optimisers.
    random_state : int, RandomState or None, default=0
        Seed of the method's own randomness.  A whole number gives the same predictions for the same rows; None gives
        others in each fit.
    options : dict or None, default=None
        Further settings of the method or the protocol, as in `{"method.inducing": 0.2, "protocol.steps": 100}`.  Each
        is also a parameter of its own to `set_params`, and so to a search.
    config_dir : str, path or None, default=None
        A folder with your own method/ and protocol/ files and the modules that they name, as `gpbench run --config-dir`
        takes it.
    encode : dict or None, default=None
        Columns of a DataFrame that are categories, as in a card: `{"city": "onehot"}`, `{"size": "ordinal"}`, or with
        levels, `{"size": {"ordinal": ["S", "M", "L"]}}`.
    impute : str, dict or None, default=None
        "mean" or "median" of the training rows for missing cells, of all inputs or by column, as in a card.  Each
        column with missing cells gets an input that says where.

    Attributes
    ----------
    n_features_in_ : int
        The number D of inputs.
    config_ : dict
        The resolved configuration of method and protocol, and the seed.
    state_ : object
        The trained state of the method, of scaled inputs and targets: a pytree of arrays on the host.
    """

    def __init__(
        self, method="svi", protocol="clean", random_state=0, options=None, config_dir=None, encode=None, impute=None
    ):
        super().__init__(method, protocol, random_state, options, config_dir, encode, impute)

    def fit(self, X, y, sample_weight=None) -> "Regressor":
        """Train the method on all rows.

        Parameters
        ----------
        X : array or table of shape (N, D)
            Inputs in original units, at least two rows of finite numbers.  The protocol's scaler is fitted to them.
        y : array-like of shape (N,)
            Targets in original units, not all equal.  The protocol's scaler is fitted to them.  With a likelihood of
            counts, such as `options={"method.likelihood": "poisson"}`, they must be 0, 1, 2, ..., and are not scaled.
        sample_weight : array-like of shape (N,), default=None
            Weight of each row, at least 0; None for 1.  A weight w is w repeated rows: see the user guide for the
            methods that take weights.

        Returns
        -------
        Regressor
            The estimator itself.

        Raises
        ------
        ValueError
            For unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y, weight = self._training_rows(X, y, sample_weight, y_numeric=True)
        self._fit(X, y, *(("count", 1) if self._is_of_counts() else ("regression", 0)), weight)
        return self

    def _is_of_counts(self) -> bool:
        """True where the likelihood is one of gpbench's for counts."""
        likelihood = self._composed(2)["method"].get("likelihood", "auto")
        entry = registry.LIKELIHOODS.get(registry.read("likelihood", likelihood).name)
        return entry is not None and entry.tasks == ("count",)

    def predict(self, X, return_std: bool = False, return_cov: bool = False):
        """Predictive means, and standard deviations or the joint covariance on request.

        Parameters
        ----------
        X : array-like of shape (T, D)
            Inputs in original units.
        return_std : bool, default=False
            Whether to return standard deviations too.
        return_cov : bool, default=False
            Whether to return the joint covariance too: of methods gpr and linear, and of the sparse GPs svi,
            svi_natural, svi_minibatch, svgp, tsvgp, vsgpr, tvsgpr, sgpr_greedy, fitc_gp and pep, with Gaussian noise.

        Returns
        -------
        mean : ndarray of shape (T,)
            Predictive means in original units.
        std : ndarray of shape (T,)
            Predictive standard deviations in original units, noise included; only if `return_std` is true.
        cov : ndarray of shape (T, T)
            Covariance of the targets at the rows in squared original units, noise included, so that its diagonal is
            the square of `std`; only if `return_cov` is true.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For both at once, or where the method or its likelihood has no joint covariance.
        """
        if return_std and return_cov:
            raise ValueError("ask for one of return_std and return_cov: the standard deviations are in the covariance")
        predictions = self._predictions(X)
        mean, scale = self._y_scaler.inverse(predictions["mean"]), self._y_scaler.scale
        if return_cov:
            covariance = self._covariance(X)
            np.fill_diagonal(covariance, predictions["var"])  # with the noise, which is independent between rows
            return mean, covariance * scale**2
        return (mean, np.sqrt(predictions["var"]) * scale) if return_std else mean

    def score(self, X, y, sample_weight=None) -> float:
        """R² of the predictive means, as of scikit-learn's regressors.

        Parameters
        ----------
        X : array or table of shape (T, D)
            Inputs in original units.
        y : array-like of shape (T,)
            Targets in original units.
        sample_weight : array-like of shape (T,), default=None
            Weight of each row.

        Returns
        -------
        float
            The coefficient of determination.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For unsuitable rows or targets.
        """
        return super().score(X, self._targets(y, np.float64), sample_weight)

    def sample_y(self, X, n_samples: int = 1, random_state=0) -> np.ndarray:
        """Joint samples of the targets at rows X, noise included.

        Parameters
        ----------
        X : array-like of shape (T, D)
            Inputs in original units.
        n_samples : int, default=1
            Number of samples, at least 1.
        random_state : int, RandomState or None, default=0
            Seed or generator of the samples, as in scikit-learn.

        Returns
        -------
        ndarray of shape (T, n_samples)
            A sample in each column, in original units.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            Where the method has no joint covariance, and for no samples.
        """
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples}: give a whole number of at least 1")
        mean, covariance = self.predict(X, return_cov=True)
        return check_random_state(random_state).multivariate_normal(mean, covariance, n_samples).T
