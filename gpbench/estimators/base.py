"""Base class of classifiers and regressors: composition, training, and predictions of scaled targets."""

import copy
import re
from contextlib import AbstractContextManager, suppress
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from gpbench.arguments import in_python
from gpbench.config.declared import methods
from gpbench.config.words import word
from gpbench.data.conversion import check_counts
from gpbench.data.new_rows import check_dates
from gpbench.data.scaling import fit_scalers
from gpbench.data.split_sets import generator
from gpbench.data.splits import recalibration_rows
from gpbench.errors import ConfigError, DivergedError, cause, either, listed, require
from gpbench.estimators.compiled import configuration, folders_of, from_pickle, programs_of, to_pickle
from gpbench.estimators.faults import TARGETS_OF_TEXT, checked_targets, checked_weights, repeat_rows, value_errors
from gpbench.estimators.table import fit_table
from gpbench.records.plan import within_rows

NAME = "data"
"""The data set's name in random keys: `gpbench run` on a card of this name gives the same numbers, where the training
rows of split 0 are the rows of `fit` in the same order, without `protocol.recalibrate`."""

_SECTIONS = ("method.", "protocol.")
_Rows = Float[np.ndarray, "N D"]
_Row = Float[np.ndarray, " N"]
_KeptOut = tuple[np.ndarray, ...] | None  # inputs and targets of rows that choose a recalibration


class Estimator(BaseEstimator):
    """Parameters, training, and predictions of scaled targets, of a method by its name."""

    def __init__(
        self,
        method="svi",
        protocol="clean",
        random_state=0,
        options=None,
        config_dir=None,
        encode=None,
        impute=None,
        weights="precision",
        exposure=None,
    ):
        self.method, self.protocol, self.random_state = method, protocol, random_state
        self.options, self.config_dir = options, config_dir
        self.encode, self.impute, self.weights, self.exposure = encode, impute, weights, exposure

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep` also each of `options`, under its own key."""
        own = self.options if deep and isinstance(self.options, dict) else {}  # `fit` refuses other types
        return super().get_params(deep) | own

    def set_params(self, **params: Any) -> "Estimator":
        """Sets parameters, of `options` one by one too, as in `set_params(**{"method.inducing": 20})`.

        So a search may vary them: `GridSearchCV(estimator, {"method.inducing": [10, 20]})`.  Two underscores stand for
        a dot, as in `set_params(method__inducing=20)`."""
        params = {re.sub("^(method|protocol)__", r"\1.", key): value for key, value in params.items()}
        own = {key: value for key, value in params.items() if key.startswith(_SECTIONS)}
        super().set_params(**{key: value for key, value in params.items() if key not in own})
        if own:
            self.options = {**(self.options or {}), **own}
        return self

    def __getstate__(self) -> dict[str, Any]:
        attributes = super().__getstate__()
        return attributes | ({"state_": to_pickle(attributes["state_"])} if "state_" in attributes else {})

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        if "state_" in attributes:
            with suppress(ConfigError):  # a folder that has gone matters where an own class was in it
                folders_of(self.config_dir)
            try:
                self.state_ = from_pickle(attributes["state_"])
            except ConfigError as error:
                raise ValueError(f"{type(self).__name__}: {in_python(str(error))}") from None

    def _training_rows(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> Any:
        """Inputs, targets and weights of the rows that count, of at least two; None for weights that change nothing."""
        checks |= {"dtype": np.float64, "ensure_min_samples": 2, "copy": True}
        is_plain = self.encode is None and self.impute is None
        self._table = None
        with value_errors(X) as X:
            y = checked_targets(y)
            if is_plain:
                check_dates(X)
                X, y = validate_data(self, X, y, **checks)
            else:
                validate_data(self, X, skip_check_array=True)
                check_consistent_length(X, y)
            weight = checked_weights(sample_weight, len(X), self.weights, is_classifier(self))
            X, y, weight = (_safe_indexing(rows, np.flatnonzero(weight)) for rows in (X, y, weight))
            if not is_plain:
                self._table, X = fit_table(X, NAME, self.encode, self.impute)
                X, y = check_X_y(X, y, **checks)
            y = y.astype(np.float64) if checks.get("y_numeric") else y
            X = X if self.exposure is None else self._exposure_last(X)
        neutral = weight[0] if self.weights == "precision" else 1.0
        return X, y, None if (weight == neutral).all() else weight

    def _targets(self, y: Any, dtype: type | None = None) -> Any:
        """Targets to score predictions by, of this type.  Raises ValueError as `fit` does."""
        with value_errors():
            try:
                y = checked_targets(y)
                return y if dtype is None else np.asarray(y, dtype)
            except (TypeError, ValueError):
                raise ValueError(TARGETS_OF_TEXT) from None

    def _new_rows(self, X: Any) -> Float[np.ndarray, "T D"]:
        """Inputs of rows to predict, scaled.  Raises NotFittedError, and ValueError for rows that do not fit."""
        check_is_fitted(self)
        with value_errors(X) as X:
            if self._table is None:
                check_dates(X)
                rows = validate_data(self, X, dtype=np.float64, reset=False, copy=True)
            else:
                rows = self._table.inputs(X)
            rows = rows if self.exposure is None else self._exposure_last(rows)
            self._x_scaler.transform(rows)
        return rows

    def _exposure_last(self, X: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
        """Inputs with the column of exposures as the last one.  Raises ConfigError: there is none of its name."""
        is_name = isinstance(self.exposure, str | int) and not isinstance(self.exposure, bool)
        require(is_name, "exposure is the name of a column of X, or of an array its number", ConfigError)
        names = list(self._table.dataset.columns if self._table else getattr(self, "feature_names_in_", ()))
        names = [*map(str, names)] or [*range(X.shape[1])]
        require(self.exposure in names, f"exposure={self.exposure!r} is none of {listed(map(str, names))}", ConfigError)
        filled = self._table.dataset.impute if self._table else ()
        fault = f"exposure={self.exposure!r} must be without gaps, beside another input"
        require(self.exposure not in filled and X.shape[1] > 1, fault, ConfigError)
        column = names.index(self.exposure)
        return np.column_stack([np.delete(X, column, axis=1), X[:, column]])

    def _fit(self, X: _Rows, y: _Row, task: str, classes: int, weight: _Row | None) -> None:
        """Trains on inputs X and coded targets y, which are scaled in place, and weights above 0."""
        self.config_ = self._composed(len(X), task)
        protocol = self.config_["protocol"]
        with value_errors():
            programs = programs_of(self.config_)
            tasks = programs.method.tasks
            fault = f"method {self.method} is for {either(sorted(tasks))} data, and these are {task}"
            require(task in tasks, fault, ConfigError)
            fault = "protocol.recalibrate takes no sample_weight: leave one out"
            require(weight is None or not protocol["recalibrate"], fault, ConfigError)
            if weight is not None and not programs.method.sample_weights:
                (X, y), weight = repeat_rows(self.method, X, y, weight), None
            elif weight is not None and self.weights == "precision":
                weight = weight / weight.mean()
            kept_out = None
            if count := recalibration_rows(protocol["recalibrate"], task, len(X)):
                order = generator(NAME, "recalibrate", self.config_["seed"]).permutation(len(X))
                (X, y), kept_out = ((X[rows], y[rows]) for rows in (np.sort(order[:-count]), order[-count:]))
            fault = "exposure is for counts, as of svi and gam with method.likelihood=poisson or negative_binomial"
            require(self.exposure is None or task == "count", fault, ConfigError)
            if task == "count":
                check_counts(NAME, y, "y", "take another method.likelihood, such as gaussian")
            scalers = {"inputs": protocol["inputs"], "targets": protocol["targets"], "task": task}
            scalers |= {"exposure": self.exposure is not None}
            self._x_scaler, self._y_scaler = fit_scalers(X, y, **scalers, weight=weight, dataset=NAME, target="y")
            self._classes, self.factor_ = classes, 1.0 if kept_out else None
            if kept_out and self._y_scaler.warp:
                self._y_scaler.warp.check(kept_out[1], f"{NAME}: column 'y'")
            for rows, scaler in zip(kept_out or (), (self._x_scaler, self._y_scaler)):
                scaler.transform(rows)
            self.state_ = self._train(programs, X, y, weight, kept_out)

    def _composed(self, rows: int, task: str | None = None) -> dict:
        """The resolved configuration for these rows of a task.  Raises ValueError for an unknown name or option."""
        options = self.options or {}
        fault = f"options={options!r}: give a dict, as in {{'method.inducing': 20}}"
        require(isinstance(options, dict), fault, ValueError)
        for key in options:
            fault = f"options: {key!r} is no setting of the method or the protocol; write method.KEY"
            require(key.startswith(_SECTIONS), fault, ValueError)
        # a text stands as on a command line, where it may be a list or a mapping
        is_word = lambda value: isinstance(value, str) and ("," not in value or value[0] in "[{'\"")  # else quoted
        settings = [f"{key}={value if is_word(value) else word(value)}" for key, value in options.items()]
        seed = self.random_state
        try:
            seed = seed if isinstance(seed, Integral) else check_random_state(seed).randint(2**31)
        except ValueError:
            raise ValueError(f"random_state={seed!r}: give a whole number, a RandomState or None") from None
        try:
            card = "moons" if is_classifier(self) else "sinc"  # of the task, which some defaults depend on
            own = (f"method={self.method}", f"protocol={self.protocol}", f"dataset={card}", f"seed={seed}")
            cfg = configuration(*own, *settings, folders=folders_of(self.config_dir))
            kept_out = recalibration_rows(cfg["protocol"]["recalibrate"], task, rows) if task else 0
            cfg = within_rows(cfg, rows - kept_out)
        except ConfigError as error:
            raise ValueError(re.sub("^seed=", "random_state=", in_python(str(error)))) from cause(error)
        return copy.deepcopy({key: cfg[key] for key in ("method", "protocol", "seed")})

    def _train(self, programs: Any, X: _Rows, y: _Row, weight: _Row | None, kept_out: _KeptOut) -> Any:
        """The state after the last step, on the host; sets the factor of a recalibration.  Raises DivergedError."""
        import jax

        from gpbench.methods.protocols import diagnosis
        from gpbench.train.loop import Cadence, fit
        from gpbench.train.search import recalibrated

        method = programs.method
        group = self._group(method, X, y, weight, kept_out)
        with self._one_line():
            result = fit(programs, group, cadence=Cadence(max(1, method.steps), None))
            if change := recalibrated(programs, group, result)[0].changes.recalibration:
                self.factor_ = float(change.factor[0])
        state = jax.tree.map(lambda leaf: leaf[0], result.state)
        if not np.isfinite(result.predictions["log_prob"]).all():
            raise DivergedError(diagnosis(method, state) or f"{method.name} diverged: its predictions are not finite")
        return jax.device_get(state)

    def _one_line(self) -> AbstractContextManager[None]:
        """A context in which an exception of the user's own method is a ConfigError."""
        from gpbench.train.faults import one_line_if_users_code

        folder = [] if self.config_dir is None else [str(self.config_dir)]
        return one_line_if_users_code({**self.config_, "config_dirs": folder})

    def _group(self, method: Any, X: _Rows, y: _Row, weight: _Row | None = None, kept_out: _KeptOut = None) -> Any:
        """Scaled rows as the loop takes them; the first is the test row, which shows whether predictions are finite."""
        import jax.numpy as jnp

        from gpbench.core.predictive.recalibrated import Recalibration
        from gpbench.core.predictive.warped import stack_warps
        from gpbench.core.random import run_key
        from gpbench.data.splits import Member
        from gpbench.train.group import Changes, Group

        protocol, seed = self.config_["protocol"], self.config_["seed"]
        precision, recalibration = protocol["precision"], None
        if self.factor_ is not None:
            recalibration = Recalibration(jnp.full(1, self.factor_, precision), protocol["recalibrate"])
        return Group(
            members=[Member(0)],
            X=jnp.asarray(X[None], precision),
            y=jnp.asarray(self._y_scaler.trained(y)[None], precision),
            X_test=jnp.asarray(X[None, :1], precision),
            y_test=jnp.asarray(y[None, :1], precision),
            classes=self._classes,
            changes=Changes(stack_warps([self._y_scaler.warp], precision), recalibration, self.exposure is not None),
            init_keys=run_key("init", NAME, seed, 0)[None],
            step_keys=run_key("step", method.name, NAME, seed, 0)[None],
            weight=None if weight is None else jnp.asarray(weight[None], precision),
            unit=self._x_scaler.scale[None].astype(precision),
            kept_out=kept_out
            and tuple(a[None].astype(precision) for a in (kept_out[0], self._y_scaler.trained(kept_out[1]))),
        )

    def _predictions(self, X: Any) -> dict[str, np.ndarray]:
        """The method's predictions of scaled targets at rows X (T, D).  Raises NotFittedError."""
        X = self._new_rows(X).astype(self.config_["protocol"]["precision"])
        programs = programs_of(self.config_)

        import jax

        from gpbench.train.group import Fit

        run = Fit(jax.tree.map(lambda leaf: jax.numpy.asarray(leaf)[None], self.state_))
        group = self._group(programs.method, X[:1], np.zeros(1))  # its keys, whatever its rows
        with value_errors(), self._one_line():
            predictions = programs.predict_new(group, run, X[None])
        return {name: np.asarray(values[0], np.float64) for name, values in predictions.items()}

    def _covariance(self, X: Any) -> Float[np.ndarray, "T T"]:
        """The posterior covariance of f at rows X (T, D), in units of scaled targets."""
        check_is_fitted(self)
        import equinox as eqx
        import jax.numpy as jnp

        from gpbench.methods.protocols import HasCovariance

        method = programs_of(self.config_).method
        if not isinstance(method, HasCovariance):
            others = ", ".join(methods(lambda declared: declared["covariance"]))
            raise ValueError(f"method {self.method} has no joint covariance: use one of {others}")
        rows = jnp.asarray(self._new_rows(X), self.config_["protocol"]["precision"])
        with value_errors(), self._one_line():
            return np.array(eqx.filter_jit(method.covariance)(self.state_, rows), np.float64)
