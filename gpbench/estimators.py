"""scikit-learn estimators around every method: composed, scaled and trained as `gpbench run` does it.

JAX is imported by the first `fit`.  Where JAX was imported before, it must have its 64-bit types on.
"""

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from gpbench.data import Dataset, Prepared, prepare
from gpbench.errors import ConfigError, DivergedError, GpbenchError

NAME = "data"
"""The data set's name in random keys: a card of this name, with the same rows in the same order in split 0, gives the
same numbers under `gpbench run`."""


class _Estimator(BaseEstimator):
    """What both estimators share: parameters, training, and predictions of scaled targets."""

    method: str
    protocol: str
    seed: int
    options: dict[str, Any] | None

    def _fit(self, X: np.ndarray, y: np.ndarray, task: str, classes: int) -> None:
        """Trains on rows X (N, D) and coded targets y (N,), and keeps what predictions need.

        Raises ValueError for what a user can mend, as scikit-learn does.
        """
        self.config_ = self._composed()
        self.X_fit_, self.y_fit_, self.task_, self._classes = X, y, task, classes
        try:
            programs = _programs(self.config_)
            if task not in programs.method.tasks:
                able = " or ".join(sorted(programs.method.tasks))
                raise ConfigError(f"method {self.method} is for {able} data, and these are {task}")
            self.state_ = self._trained(programs, self._prepared(X[:1]))
        except GpbenchError as error:
            raise ValueError(str(error)) from error

    def _composed(self) -> dict:
        """The resolved configuration.  Raises ValueError for an unknown method, protocol or option."""
        from gpbench.config.compose import compose

        options = self.options or {}
        if foreign := [key for key in options if not key.startswith(("method.", "protocol."))]:
            raise ValueError(f"options: {foreign[0]!r} is no setting of the method or the protocol; write method.KEY")
        words = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in options.items()]
        try:
            cfg = compose([f"method={self.method}", f"protocol={self.protocol}", f"seed={self.seed}", *words])
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return {key: cfg[key] for key in ("method", "protocol", "seed")}

    def _prepared(self, X: np.ndarray) -> Prepared:
        """The training rows, and X (T, D) as test rows, scaled as the protocol says."""
        n = len(self.X_fit_)
        both, y = np.concatenate([self.X_fit_, X]), np.concatenate([self.y_fit_, np.resize(self.y_fit_, len(X))])
        columns, names = tuple(f"x{i + 1}" for i in range(X.shape[1])), tuple(map(str, range(self._classes)))
        scaling = {key: self.config_["protocol"][key] for key in ("inputs", "targets")}
        dataset = Dataset(NAME, self.task_, both, y, columns, names, "")
        return prepare(dataset, np.arange(n), np.arange(n, len(y)), **scaling)

    def _trained(self, programs: Any, prepared: Prepared) -> Any:
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
            done = fit(
                programs,
                self._group(method, prepared),
                cadence=Cadence(max(1, method.steps), None),
                score=lambda predictions: {},
                checkpoint=Checkpoint(Path(folder), "none"),
                progress=silent,
                stop=StopRequest(),
            )
        state = jax.tree.map(lambda leaf: leaf[0], done.state)
        if not np.isfinite(done.predictions["log_prob"]).all():
            raise DivergedError(method.diagnose(state) or f"{method.name} diverged: its predictions are not finite")
        return jax.device_get(state)

    def _group(self, method: Any, prepared: Prepared) -> Any:
        """The rows as the loop takes them, with the random keys of split 0."""
        import jax.numpy as jnp

        from gpbench.core.random import run_key
        from gpbench.data.members import Member
        from gpbench.train.loop import Group

        precision, seed = self.config_["protocol"]["precision"], self.config_["seed"]
        X, y, X_test, y_test = (
            jnp.asarray(rows[None], precision) for rows in (prepared.X, prepared.y, prepared.X_test, prepared.y_test)
        )
        return Group(
            members=[Member(0)],
            X=X,
            y=y,
            X_test=X_test,
            y_test=y_test,
            classes=prepared.classes,
            init_keys=run_key("init", NAME, seed, 0)[None],
            step_keys=run_key("step", method.name, NAME, seed, 0)[None],
        )

    def _predictions(self, X: Any) -> tuple[dict[str, np.ndarray], Prepared]:
        """What the method says of rows X (T, D), of scaled targets, and their scaling.  Raises NotFittedError."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        programs, prepared = _programs(self.config_), self._prepared(X)

        import jax

        from gpbench.train.loop import Fit

        run = Fit(jax.tree.map(lambda leaf: jax.numpy.asarray(leaf)[None], self.state_))
        programs.predict(self._group(programs.method, prepared), run)
        return {name: np.asarray(values[0], np.float64) for name, values in run.predictions.items()}, prepared


class Classifier(ClassifierMixin, _Estimator):
    """Two classes, or more where the method can.

    `method` and `protocol` are names as in `gpbench run`, `seed` is of the method's own randomness, and `options` has
    any other setting, as in {"method.inducing": 0.2}.
    """

    def __init__(self, method="sep", protocol="clean", seed=0, options=None):
        self.method, self.protocol, self.seed, self.options = method, protocol, seed, options

    def fit(self, X, y) -> "Classifier":
        """Train on rows X (N, D) and labels y (N,).  Raises ValueError for unfit data, names or settings."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        if not self.__sklearn_tags__().classifier_tags.multi_class and (kind := type_of_target(y)) != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        coded = 2.0 * codes - 1.0 if count <= 2 else codes.astype(float)
        self._fit(X, coded, "binary" if count <= 2 else "multiclass", count)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """The probability of each class, in the order of `classes_` (T, C)."""
        return np.exp(self._predictions(X)[0]["log_probs"])

    def predict(self, X) -> np.ndarray:
        """The most probable labels (T,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = "multiclass" in _tasks(self.method)
        return tags


class Regressor(RegressorMixin, _Estimator):
    """Regression, with a normal predictive distribution; the parameters are those of `Classifier`."""

    def __init__(self, method="svi", protocol="clean", seed=0, options=None):
        self.method, self.protocol, self.seed, self.options = method, protocol, seed, options

    def fit(self, X, y) -> "Regressor":
        """Train on rows X (N, D) and targets y (N,).  Raises ValueError for unfit data, names or settings."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._fit(X, y.astype(np.float64), "regression", 0)
        return self

    def predict(self, X, return_std: bool = False):
        """The means (T,) in the targets' units; with `return_std` also the standard deviations, noise included."""
        found, prepared = self._predictions(X)
        mean = found["mean"] * prepared.y_std + prepared.y_mean
        return (mean, np.sqrt(found["var"]) * prepared.y_std) if return_std else mean


def _programs(config: dict) -> Any:
    """The compiled programs of a method, shared by estimators with the same configuration."""
    return _made(json.dumps(config["method"], sort_keys=True))


@lru_cache(maxsize=16)
def _made(text: str) -> Any:
    _settle()
    from hydra.utils import instantiate

    from gpbench.config.fields import check_fields
    from gpbench.train.loop import Programs

    check_fields(json.loads(text))
    return Programs(instantiate(json.loads(text)))


@lru_cache(maxsize=64)
def _tasks(method: str) -> frozenset[str]:
    """The kinds of data that a method is for; none for an unknown one, which `fit` complains about."""
    _settle()
    from hydra.utils import get_class

    from gpbench.config.compose import compose

    try:
        return get_class(compose([f"method={method}"])["method"]["_target_"]).tasks  # type: ignore[attr-defined]
    except ConfigError:
        return frozenset()


def _settle() -> None:
    """Sets up JAX, or raises ConfigError where it was imported without 64-bit types."""
    from gpbench import runtime

    runtime.configure()
    import jax.numpy as jnp

    if jnp.zeros(()).dtype != np.float64:
        raise ConfigError("JAX was imported without 64-bit types: import gpbench.estimators first and set"
                          " JAX_ENABLE_X64=true, or call jax.config.update('jax_enable_x64', True)")  # fmt: skip
