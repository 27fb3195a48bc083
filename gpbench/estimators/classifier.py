"""Every classification method as a scikit-learn classifier."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from gpbench.estimators.base import Estimator
from gpbench.estimators.compiled import tasks_of


class Classifier(ClassifierMixin, Estimator):
    """A classifier of two classes, or of more where the method supports it.

    Parameters
    ----------
    method : str, default="sep"
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
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    n_features_in_ : int
        The number D of inputs.
    config_ : dict
        The resolved configuration of method and protocol, and the seed.
    state_ : object
        The trained state of the method, of scaled inputs and targets: a pytree of arrays on the host.
    """

    def __init__(
        self, method="sep", protocol="clean", random_state=0, options=None, config_dir=None, encode=None, impute=None
    ):
        super().__init__(method, protocol, random_state, options, config_dir, encode, impute)

    def fit(self, X, y, sample_weight=None) -> "Classifier":
        """Train the method on all rows.

        Parameters
        ----------
        X : array or table of shape (N, D)
            Inputs in original units, at least two rows of finite numbers.  The protocol's scaler is fitted to them.
        y : array-like of shape (N,)
            Labels, numbers or strings, of at least two classes.
        sample_weight : array-like of shape (N,), default=None
            Weight of each row, at least 0; None for 1.  A weight w is w repeated rows: see the user guide for the
            methods that take weights.

        Returns
        -------
        Classifier
            The estimator itself.

        Raises
        ------
        ValueError
            For unsuitable data, an unknown name or setting, or training that diverges.
        """
        X, y, weight = self._training_rows(X, y, sample_weight)
        check_classification_targets(y)
        if not self.__sklearn_tags__().classifier_tags.multi_class and (kind := type_of_target(y)) != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if (count := len(self.classes_)) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()[0]!r}: give rows of at least two classes")
        coded = 2.0 * codes - 1.0 if count <= 2 else codes.astype(float)
        self._fit(X, coded, "binary" if count <= 2 else "multiclass", count, weight)
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
        best = self.predict_proba(X).argmax(axis=1)  # before `classes_`, which an estimator without `fit` lacks
        return self.classes_[best]

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows whose label is predicted, as of scikit-learn's classifiers.

        Parameters
        ----------
        X : array or table of shape (T, D)
            Inputs in original units.
        y : array-like of shape (T,)
            Labels.
        sample_weight : array-like of shape (T,), default=None
            Weight of each row.

        Returns
        -------
        float
            The accuracy.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            For unsuitable rows or labels.
        """
        return super().score(X, self._targets(y), sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = "multiclass" in tasks_of(self.method, self.config_dir)
        return tags
