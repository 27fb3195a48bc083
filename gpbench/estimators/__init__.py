"""scikit-learn estimators around every method: composed, scaled and trained as `gpbench run` does it.  The first `fit`
imports JAX.  Where JAX is imported earlier, its 64-bit types must be enabled."""

from gpbench import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, {"classifier": ("Classifier",), "regressor": ("Regressor",)})
