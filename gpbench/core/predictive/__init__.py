"""Predictive distributions of new rows."""

from gpbench.core.predictive.base import (
    BernoulliPredictive,
    CategoricalPredictive,
    ContinuousPredictive,
    DiscretePredictive,
    Predictive,
)
from gpbench.core.predictive.continuous import GaussianPredictive, LaplacePredictive
from gpbench.core.predictive.mixture import MixturePredictive
from gpbench.core.predictive.student_t import StudentTPredictive

__all__ = [
    "BernoulliPredictive",
    "CategoricalPredictive",
    "ContinuousPredictive",
    "DiscretePredictive",
    "GaussianPredictive",
    "LaplacePredictive",
    "MixturePredictive",
    "Predictive",
    "StudentTPredictive",
]
