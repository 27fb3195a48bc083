"""Predictive distributions of new rows."""

from gpbench.core.predictive.base import (
    BernoulliPredictive,
    CategoricalPredictive,
    ContinuousPredictive,
    DiscretePredictive,
    Predictive,
)
from gpbench.core.predictive.continuous import GaussianPredictive, LaplacePredictive, VaryingNoisePredictive
from gpbench.core.predictive.counts import CountPredictive
from gpbench.core.predictive.mixture import MixturePredictive
from gpbench.core.predictive.student_t import StudentTPredictive

__all__ = [
    "BernoulliPredictive",
    "CategoricalPredictive",
    "ContinuousPredictive",
    "CountPredictive",
    "DiscretePredictive",
    "GaussianPredictive",
    "LaplacePredictive",
    "MixturePredictive",
    "Predictive",
    "StudentTPredictive",
    "VaryingNoisePredictive",
]
