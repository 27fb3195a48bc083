"""Every regression method as a scikit-learn regressor."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from gpbench import registry
from gpbench.errors import require
from gpbench.estimators.base import Estimator
from gpbench.schema import is_whole


class Regressor(RegressorMixin, Estimator):
    """Regression on one output, with a predictive mean and standard deviation.

        mean, std = Regressor("gpr").fit([[0.0], [1.0], [2.0]], [0.1, 0.9, 2.1]).predict([[1.5]], return_std=True)

    Args:
        method: a method by its name in `gpbench run`; `gpbench ls methods` lists them.
        protocol: the protocol, by its name in `gpbench run`: scaling, precision, initial values and optimisers.
        random_state: int, RandomState or None, the seed of the method's own randomness.  A whole number gives the same
            predictions for the same rows; None gives others in each fit.
        options: further settings of the method or the protocol, as in `{"method.inducing": 0.2, "protocol.steps":
            100}`.  Each is also a parameter of its own to `set_params`, and so to a search.
        config_dir: a folder with your own method/ and protocol/ files and the modules that they name, as `gpbench run
            --config-dir` takes it.
        encode: columns of a DataFrame that are categories, as in a card: `{"city": "onehot"}`, `{"size": "ordinal"}`,
            or with levels, `{"size": {"ordinal": ["S", "M", "L"]}}`.
        impute: "mean" or "median" of the training rows for missing cells, of all inputs or by column, as in a card.
            Each column with missing cells gets an input that says where.
        weights: what `sample_weight` means.  "precision": a row's log-likelihood counts w / mean(w) times, so that its
            Gaussian noise has the variance s² mean(w) / w, and equal weights change nothing.  "repeats": a row of
            weight w is w rows.
        exposure: the column of X, by its name or, of an array, its number, to which expected counts are proportional,
            such as person-years; above 0.

    Attributes:
        n_features_in_: the number D of inputs.
        config_: the resolved configuration of method and protocol, and the seed.
        state_: the trained state of the method, of scaled inputs and targets: a pytree of arrays on the host.
        factor_: the factor of `protocol.recalibrate`; None without one.
    """

    def fit(self, X, y, sample_weight=None) -> "Regressor":
        """Train the method on all rows.

        Args:
            X: inputs (N, D) in original units, an array or a table, at least two rows of finite numbers.  The
                protocol's scaler is fitted to them.
            y: targets (N,) in original units, not all equal.  The protocol's scaler is fitted to them.  With a
                likelihood of counts, such as `options={"method.likelihood": "poisson"}`, they must be 0, 1, 2, ..., and
                are not scaled.
            sample_weight: a weight for each row, at least 0; None for 1.  See `weights`, and the user guide for the
                methods that take weights.

        Raises:
            ValueError: unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y, weight = self._training_rows(X, y, sample_weight, y_numeric=True)
        likelihood = self._composed(2)["method"].get("likelihood", "auto")
        entry = registry.LIKELIHOODS.get(registry.read("likelihood", likelihood).name)
        is_of_counts = entry is not None and entry.tasks == ("count",)
        self._fit(X, y, *(("count", 1) if is_of_counts else ("regression", 0)), weight)
        return self

    def predict(self, X, return_std: bool = False, return_cov: bool = False):
        """Predictive means (T,) in original units, and standard deviations or the joint covariance on request.

        Args:
            X: inputs (T, D) in original units.
            return_std: whether to return standard deviations (T,) too, noise included.
            return_cov: whether to return the joint covariance (T, T) of the targets too, noise included, so that its
                diagonal is the square of the standard deviations.  The exact, linear and most sparse methods have one,
                with Gaussian noise; the error of another method names them.

        Raises:
            NotFittedError: before `fit`.
            ValueError: both at once, or a method or a likelihood without a joint covariance.
        """
        fault = "ask for one of return_std and return_cov: the standard deviations are in the covariance"
        require(not (return_std and return_cov), fault, ValueError)
        predictions = self._predictions(X)
        fault = "transformed targets have no joint covariance: leave out the option protocol.targets"
        require(not (return_cov and self._y_scaler.warp), fault, ValueError)
        fault = "a recalibration has no joint covariance: leave out the option protocol.recalibrate"
        require(not return_cov or self.factor_ is None, fault, ValueError)
        mean, scale = self._y_scaler.inverse(predictions["mean"]), self._y_scaler.scale
        if return_cov:
            covariance = self._covariance(X)
            np.fill_diagonal(covariance, predictions["var"])  # with the noise, which is independent between rows
            return mean, covariance * scale**2
        return (mean, np.sqrt(predictions["var"]) * scale) if return_std else mean

    def predict_interval(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The ends, each (T,) in original units, of the central 95 % intervals of the targets, noise included.  With
        `options={"protocol.recalibrate": "conformal"}` rows that were kept out of training choose their width.

        Args:
            X: inputs (T, D) in original units.

        Raises:
            NotFittedError: before `fit`.
        """
        predictions = self._predictions(X)
        return self._y_scaler.inverse(predictions["low95"]), self._y_scaler.inverse(predictions["high95"])

    def score(self, X, y, sample_weight=None) -> float:
        """R², the coefficient of determination of the predictive means, as of scikit-learn's regressors.

        Args:
            X: inputs (T, D) in original units.
            y: targets (T,) in original units.
            sample_weight: a weight for each row.

        Raises:
            NotFittedError: before `fit`.
            ValueError: unsuitable rows or targets.
        """
        return super().score(X, self._targets(y, np.float64), sample_weight)

    def sample_y(self, X, n_samples: int = 1, random_state=0) -> np.ndarray:
        """Joint samples (T, n_samples) of the targets at rows X in original units, noise included.

        Args:
            X: inputs (T, D) in original units.
            n_samples: number of samples, at least 1.
            random_state: seed or generator of the samples, as in scikit-learn.

        Raises:
            NotFittedError: before `fit`.
            ValueError: a method without a joint covariance, or no samples.
        """
        require(is_whole(n_samples) and n_samples >= 1, f"n_samples={n_samples!r}: must be from 1", ValueError)
        mean, covariance = self.predict(X, return_cov=True)
        return check_random_state(random_state).multivariate_normal(mean, covariance, n_samples).T
