"""scikit-learn estimators around every method: composed, scaled and trained as `gpbench run` does it.

The first `fit` imports JAX.  Where JAX is imported earlier, its 64-bit types must be enabled.
"""

import copy
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from gpbench.data import fit_scalers
from gpbench.errors import ConfigError, DivergedError, GpbenchError, as_word

NAME = "data"
"""The data set's name in random keys: `gpbench run` on a card of this name gives the same numbers, where the training
rows of split 0 are the rows of `fit` in the same order."""


class _Estimator(BaseEstimator):
    """The common part: parameters, training, and predictions of scaled targets."""

    method: str
    protocol: str
    seed: int
    options: dict[str, Any] | None

    def _fit(self, X: Float[np.ndarray, "N D"], y: Float[np.ndarray, " N"], task: str, classes: int) -> None:
        """Train on inputs X and coded targets y, which are scaled in place.

        Raises ValueError where the user is at fault, as scikit-learn does.
        """
        self.config_ = self._composed()
        protocol = self.config_["protocol"]
        try:
            programs = _programs(self.config_)
            if task not in programs.method.tasks:
                tasks = " or ".join(sorted(programs.method.tasks))
                raise ConfigError(f"method {self.method} is for {tasks} data, and these are {task}")
            self._x_scaler, self._y_scaler = fit_scalers(
                X, y, inputs=protocol["inputs"], targets=protocol["targets"], task=task, dataset=NAME
            )
            self._classes = classes
            self.state_ = self._train(programs, X, y)
        except GpbenchError as error:
            raise ValueError(str(error)) from error

    def _composed(self) -> dict:
        """The resolved configuration.  Raises ValueError for an unknown method, protocol or option."""
        options = self.options or {}
        if unknown := [key for key in options if not key.startswith(("method.", "protocol."))]:
            raise ValueError(f"options: {unknown[0]!r} is no setting of the method or the protocol; write method.KEY")
        settings = [f"{key}={as_word(value)}" for key, value in options.items()]
        try:
            cfg = _compose(f"method={self.method}", f"protocol={self.protocol}", f"seed={self.seed}", *settings)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return copy.deepcopy({key: cfg[key] for key in ("method", "protocol", "seed")})

    def _train(self, programs: Any, X: Float[np.ndarray, "N D"], y: Float[np.ndarray, " N"]) -> Any:
        """The state after the last step, on the host.  Raises DivergedError."""
        import jax

        from gpbench.train import progress
        from gpbench.train.checkpoint import Checkpoint
        from gpbench.train.loop import Cadence, fit
        from gpbench.train.stop import StopRequest

        method = programs.method
        with tempfile.TemporaryDirectory() as folder:
            silent = progress.make(False)
            silent.begin(method.name, method.steps, "split 0")
            result = fit(
                programs,
                self._group(method, X, y, X[:1], y[:1]),  # the first row shows whether predictions are finite
                cadence=Cadence(max(1, method.steps), None),
                score=lambda predictions: {},
                checkpoint=Checkpoint(Path(folder), "none"),
                progress=silent,
                stop=StopRequest(),
            )
        state = jax.tree.map(lambda leaf: leaf[0], result.state)
        if not np.isfinite(result.predictions["log_prob"]).all():
            raise DivergedError(method.diagnose(state) or f"{method.name} diverged: its predictions are not finite")
        return jax.device_get(state)

    def _group(
        self,
        method: Any,
        X: Float[np.ndarray, "N D"],
        y: Float[np.ndarray, " N"],
        X_test: Float[np.ndarray, "T D"],
        y_test: Float[np.ndarray, " T"],
    ) -> Any:
        """Scaled rows in the form that the loop takes, with the random keys of split 0."""
        import jax.numpy as jnp

        from gpbench.core.random import run_key
        from gpbench.data.members import Member
        from gpbench.train.loop import Group

        precision, seed = self.config_["protocol"]["precision"], self.config_["seed"]
        return Group(
            members=[Member(0)],
            X=jnp.asarray(X[None], precision),
            y=jnp.asarray(y[None], precision),
            X_test=jnp.asarray(X_test[None], precision),
            y_test=jnp.asarray(y_test[None], precision),
            classes=self._classes,
            init_keys=run_key("init", NAME, seed, 0)[None],
            step_keys=run_key("step", method.name, NAME, seed, 0)[None],
        )

    def _predictions(self, X: Any) -> dict[str, np.ndarray]:
        """The method's predictions of scaled targets at rows X (T, D).  Raises NotFittedError."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, copy=True)
        self._x_scaler.transform(X)
        programs = _programs(self.config_)

        import jax

        from gpbench.train.loop import Fit

        run = Fit(jax.tree.map(lambda leaf: jax.numpy.asarray(leaf)[None], self.state_))
        y = np.zeros(len(X))  # of any value: the loop scores predictions too, and these scores are not used
        programs.predict(self._group(programs.method, X, y, X, y), run)
        return {name: np.asarray(values[0], np.float64) for name, values in run.predictions.items()}


class Classifier(ClassifierMixin, _Estimator):
    """A classifier of two classes, or of more where the method supports it.

    Parameters
    ----------
    method : str, default="sep"
        A method by its name in `gpbench run`; `gpbench ls methods` lists them.
    protocol : str, default="clean"
        The protocol, by its name in `gpbench run`: scaling, precision, initial values and optimisers.
    seed : int, default=0
        Seed of the method's own randomness.  The same seed and the same rows give the same predictions.
    options : dict or None, default=None
        Further settings of the method or the protocol, as in `{"method.inducing": 0.2, "protocol.steps": 100}`.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    n_features_in_ : int
        The number D of inputs.
    config_ : dict
        The resolved configuration of method and protocol, and the seed.
    state_ : object
        The trained state of the method: a pytree of arrays on the host.
    """

    def __init__(self, method="sep", protocol="clean", seed=0, options=None):
        self.method, self.protocol, self.seed, self.options = method, protocol, seed, options

    def fit(self, X, y) -> "Classifier":
        """Train the method on all rows.

        Parameters
        ----------
        X : array-like of shape (N, D)
            Inputs in original units, at least two rows of finite numbers.  The protocol's scaler is fitted to them.
        y : array-like of shape (N,)
            Labels, numbers or strings, of at least two classes.

        Returns
        -------
        Classifier
            The estimator itself.

        Raises
        ------
        ValueError
            For unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, copy=True)
        check_classification_targets(y)
        if not self.__sklearn_tags__().classifier_tags.multi_class and (kind := type_of_target(y)) != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        coded = 2.0 * codes - 1.0 if count <= 2 else codes.astype(float)
        self._fit(X, coded, "binary" if count <= 2 else "multiclass", count)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """Class probabilities.

        Parameters
        ----------
        X : array-like of shape (T, D)
            Inputs in original units.

        Returns
        -------
        ndarray of shape (T, C)
            The predictive probability of each class, in the order of `classes_`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        return np.exp(self._predictions(X)["log_probs"])

    def predict(self, X) -> np.ndarray:
        """The most probable labels.

        Parameters
        ----------
        X : array-like of shape (T, D)
            Inputs in original units.

        Returns
        -------
        ndarray of shape (T,)
            Members of `classes_`.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = "multiclass" in _tasks(self.method)
        return tags


class Regressor(RegressorMixin, _Estimator):
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
        Further settings of the method or the protocol, as in `{"method.inducing": 0.2, "protocol.steps": 100}`.

    Attributes
    ----------
    n_features_in_ : int
        The number D of inputs.
    config_ : dict
        The resolved configuration of method and protocol, and the seed.
    state_ : object
        The trained state of the method: a pytree of arrays on the host.
    """

    def __init__(self, method="svi", protocol="clean", seed=0, options=None):
        self.method, self.protocol, self.seed, self.options = method, protocol, seed, options

    def fit(self, X, y) -> "Regressor":
        """Train the method on all rows.

        Parameters
        ----------
        X : array-like of shape (N, D)
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


@lru_cache(maxsize=64)
def _compose(*overrides: str) -> dict:
    """The configuration of a command line, composed once: it takes a tenth of a second, and searches fit often."""
    from gpbench.config.compose import compose

    return compose(overrides)


def _programs(config: dict) -> Any:
    """The compiled programs of a method, shared by estimators with the same configuration."""
    return _programs_of(json.dumps(config["method"], sort_keys=True))


@lru_cache(maxsize=16)
def _programs_of(method: str) -> Any:
    """The programs of a method, of its configuration in JSON.  Raises ConfigError."""
    _configure_jax()
    from gpbench.config.build import build_method
    from gpbench.train.loop import Programs

    return Programs(build_method(json.loads(method)))


@lru_cache(maxsize=64)
def _tasks(method: str) -> frozenset[str]:
    """The tasks of a method; none for an unknown one, for which `fit` raises an error."""
    _configure_jax()
    from hydra.utils import get_class

    try:
        return get_class(_compose(f"method={method}")["method"]["_target_"]).tasks  # type: ignore[attr-defined]
    except ConfigError:
        return frozenset()


def _configure_jax() -> None:
    """Set up JAX.  Raises ConfigError where it was imported without 64-bit types."""
    from gpbench import runtime

    runtime.configure()
    import jax.numpy as jnp

    if jnp.zeros(()).dtype != np.float64:
        raise ConfigError("JAX was imported without 64-bit types: import gpbench.estimators first and set"
                          " JAX_ENABLE_X64=true, or call jax.config.update('jax_enable_x64', True)")  # fmt: skip
