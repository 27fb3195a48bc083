"""`pep` and `fitc_gp`: sparse GP regression by power EP, whose energy is in closed form under Gaussian noise.

Bui, Yan and Turner, JMLR 2017, equation 21.  α = 1 is EP and FITC (Snelson and Ghahramani, NIPS 2006), the energy
log N(y | 0, VᵀV + diag(d + σ²)); α to 0 is the variational bound of Titsias (2009).
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.methods.parts.collapsed import CollapsedMethod
from gpbench.methods.parts.stopping import StopMethod
from gpbench.schema import setting


class PowerEP(CollapsedMethod, StopMethod):
    """Sparse GP regression by power EP (Bui, Yan and Turner 2017): `pep`, and with α = 1 `fitc_gp`.  α = 1 is FITC
    (Snelson and Ghahramani 2006); α = 0 is the variational bound of Titsias (2009)."""

    alpha: float = setting(0.5, "share", "Power α: 0 is the bound of vsgpr, 1 is EP and FITC.")

    def row_terms(self, rest: Float[Array, " N"], noise: Float[Array, ""]) -> Any:
        """r = σ² + α d and c = -(1 - α)/(2α) log(1 + α d/σ²), which tends to -d/(2σ²)."""
        ratio, alpha = rest / noise, self.alpha
        scaled = jnp.log1p(alpha * ratio) / alpha if alpha > 0 else ratio
        return noise + alpha * rest, -0.5 * (1.0 - alpha) * scaled
