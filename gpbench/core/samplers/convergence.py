"""How far the chains of networks agree: R-hat and effective sample sizes of their log joints and outputs."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.networks import Network
from gpbench.core.samplers.library import blackjax
from gpbench.core.samplers.samples import Samples

_PROBES = 5
"""Number of rows whose outputs are followed."""


def followed(networks: Network, log_joints: Float[Array, " C"], X: Float[Array, "N D"]) -> Float[Array, "C Q"]:
    """Quantities of every chain: its log joint, and its network's outputs at the first rows of X."""
    outputs = jax.vmap(lambda network: network(X[:_PROBES]).ravel())(networks)
    return jnp.concatenate([log_joints[:, None], outputs], axis=1)


@partial(jax.jit, static_argnames="method")
def agreement(samples: Samples, method: str) -> dict[str, Array]:
    """The largest `rhat` and the smallest `ess` of the quantities that `followed` gives.

    R-hat and bulk effective sample size (Vehtari et al. 2021); `rhat_outputs` and `ess_outputs` are those of the
    outputs alone, which can agree where weights do not, as layers can exchange factors.  They need 4 samples of each
    chain and a full ring, and are NaN otherwise.

    Args:
        samples: Quantities (C, Q) of the states kept.
        method: Name of the method, for the message about a missing blackjax.
    """
    library, quantities = blackjax(method).diagnostics, samples.in_order()  # (S, C, Q)
    nan = jnp.full(quantities.shape[2], jnp.nan, quantities.dtype)
    rhat, ess = nan, nan
    if samples.size >= 4:
        full = samples.count >= samples.size
        rhat = jnp.where(full, library.rhat(quantities, chain_axis=1, sample_axis=0), nan)
        ess = jnp.where(full, library.ess_bulk(quantities, chain_axis=1, sample_axis=0), nan)
    every = {"rhat": jnp.max(rhat), "ess": jnp.min(ess)}
    return every | {"rhat_outputs": jnp.max(rhat[1:]), "ess_outputs": jnp.min(ess[1:])}
