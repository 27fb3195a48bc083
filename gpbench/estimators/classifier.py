"""Every classification method as a scikit-learn classifier."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from gpbench.errors import require
from gpbench.estimators.base import Estimator
from gpbench.estimators.compiled import tasks_of


class Classifier(ClassifierMixin, Estimator):
    """A classifier of two classes, or of more where the method supports it.

        Classifier("logistic").fit([[0.0], [1.0], [2.0]], ["no", "yes", "yes"]).predict_proba([[1.5]])

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

    Attributes:
        classes_: the labels (C,), sorted.
        n_features_in_: the number D of inputs.
        config_: the resolved configuration of method and protocol, and the seed.
        state_: the trained state of the method, of scaled inputs and targets: a pytree of arrays on the host.
    """

    def __init__(
        self,
        method="sep",
        protocol="clean",
        random_state=0,
        options=None,
        config_dir=None,
        encode=None,
        impute=None,
        weights="precision",
    ):
        super().__init__(method, protocol, random_state, options, config_dir, encode, impute, weights)

    def fit(self, X, y, sample_weight=None) -> "Classifier":
        """Train the method on all rows.

        Args:
            X: inputs (N, D) in original units, an array or a table, at least two rows of finite numbers.  The
                protocol's scaler is fitted to them.
            y: labels (N,), numbers or strings, of at least two classes.
            sample_weight: a weight for each row, at least 0; None for 1.  See `weights`, and the user guide for the
                methods that take weights.

        Raises:
            ValueError: unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y, weight = self._training_rows(X, y, sample_weight)
        check_classification_targets(y)
        if not self.__sklearn_tags__().classifier_tags.multi_class and (kind := type_of_target(y)) != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        count, first = len(self.classes_), self.classes_.tolist()[0]
        require(count > 1, f"y has one class only, {first!r}: give rows of at least two classes", ValueError)
        coded = 2.0 * codes - 1.0 if count <= 2 else codes.astype(float)
        self._fit(X, coded, "binary" if count <= 2 else "multiclass", count, weight)
        return self

    def predict_proba(self, X) -> np.ndarray:
        """The predictive probability of each class (T, C), in the order of `classes_`.

        Args:
            X: inputs (T, D) in original units.

        Raises:
            NotFittedError: before `fit`.
        """
        return np.exp(self._predictions(X)["log_probs"])

    def predict(self, X) -> np.ndarray:
        """The most probable labels (T,), members of `classes_`.

        Args:
            X: inputs (T, D) in original units.

        Raises:
            NotFittedError: before `fit`.
        """
        best = self.predict_proba(X).argmax(axis=1)  # before `classes_`, which an estimator without `fit` lacks
        return self.classes_[best]

    def score(self, X, y, sample_weight=None) -> float:
        """The accuracy: the share of rows whose label is predicted, as of scikit-learn's classifiers.

        Args:
            X: inputs (T, D) in original units.
            y: labels (T,).
            sample_weight: a weight for each row.

        Raises:
            NotFittedError: before `fit`.
            ValueError: unsuitable rows or labels.
        """
        return super().score(X, self._targets(y), sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = "multiclass" in tasks_of(self.method, self.config_dir)
        return tags
