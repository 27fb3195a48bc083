"""scikit-learn estimators around every method: composed, scaled and trained as `gpbench run` does it.

The first `fit` imports JAX.  Where JAX is imported earlier, its 64-bit types must be enabled.
"""

from gpbench.estimators.classifier import Classifier
from gpbench.estimators.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
