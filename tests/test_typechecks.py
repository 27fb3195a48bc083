"""The annotations of gpbench are checked while the tests run."""

import jax.numpy as jnp
import pytest

from gpbench.core.kernels import SquaredExponential
from gpbench.data import cards

KERNEL = SquaredExponential(jnp.asarray(0.0), jnp.zeros(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: KERNEL.cross(jnp.ones((4, 2)), jnp.ones(2)),
        lambda: SquaredExponential("0", jnp.zeros(2)),
        lambda: cards.read(3),
    ],
    ids=["a shape", "a field", "a type"],
)
def test_a_wrong_argument_is_noticed(call):
    with pytest.raises(TypeError, match=r"[Tt]ype"):
        call()
