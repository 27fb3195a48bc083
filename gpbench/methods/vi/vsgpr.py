"""`vsgpr` and `tvsgpr`: sparse variational GP regression with q at its optimum in closed form.

Titsias, AISTATS 2009, and the tighter bound of Titsias, ICML 2025.  The former has q(f|w) = p(f|w); the latter scales
the variance of every eₙ by a free factor, whose optimum 1 / (1 + dₙ/σ²) is in closed form too.  q(w) is the same.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.methods.parts.collapsed import CollapsedMethod


class VSGPR(CollapsedMethod):
    """Sparse variational GP regression (Titsias 2009): `vsgpr`.  It maximises the bound log N(y | 0, VᵀV + σ²I) - Σ
    dₙ/(2σ²)."""


class TVSGPR(CollapsedMethod):
    """Sparse variational GP regression with the tighter bound (Titsias 2025): `tvsgpr`.  It maximises the bound log N(y
    | 0, VᵀV + σ²I) - ½ Σ log(1 + dₙ/σ²)."""

    def row_terms(self, rest: Float[Array, " N"], noise: Float[Array, ""]) -> Any:
        return noise * jnp.ones_like(rest), -0.5 * jnp.log1p(rest / noise)
