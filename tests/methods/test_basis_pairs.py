"""Losses of two draws of basis functions: value and gradient of three passes against plain differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.bases import KernelFunctions, RandomFeatures
from gpbench.core.kernels import SquaredExponential
from gpbench.methods.parts import basis_weights
from gpbench.methods.parts.basis_bound import Draw, paired_loss

RNG = np.random.default_rng(0)
X, TARGETS, WEIGHT = (jnp.asarray(RNG.normal(size=shape)) for shape in ((5, 2), (5, 3), (5,)))
KERNEL = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4]))
BASES = {"rff": RandomFeatures(jax.random.key(3), 12, 2, 0), "inducing": KernelFunctions.around(X, 2)}
BLOCKS = jnp.asarray([0, 2]), jnp.asarray([2, 1])


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_three_passes_have_the_value_and_the_gradient_of_the_loss(name, learned, monkeypatch):
    """In the columns, in what the loss depends on, and in the kernel where it is learned; over several tiles."""
    monkeypatch.setitem(basis_weights._TILES, jax.default_backend(), 2)
    basis = BASES[name]
    locations = [basis.locations(blocks, 2, X.dtype) for blocks in BLOCKS]
    columns, factors = jnp.asarray(RNG.normal(size=(2, 4, 3))), jnp.asarray(RNG.normal(size=(2, 4)))

    def loss(precision, left, right):
        return precision * jnp.sum(WEIGHT[:, None] * (left - TARGETS) * (2.0 * right - TARGETS))

    def ours(kernel, columns, precision):
        draws = [*map(Draw, locations, columns, factors)]
        affine = lambda left, right: loss(precision, left, right)
        return paired_loss(affine, basis, kernel, X, draws, weight=WEIGHT, learned=learned)

    def plain(kernel, columns, precision):
        Phi = [basis.functions(kernel, X, of_draw) for of_draw in locations]
        sums = jnp.concatenate([WEIGHT @ functions**2 for functions in Phi])
        return loss(precision, Phi[0] @ columns[0], Phi[1] @ columns[1]) + factors.ravel() @ sums, sums

    wanted = (0, 1, 2) if learned else (1, 2)
    results = [
        jax.jit(jax.value_and_grad(function, argnums=wanted, has_aux=True))(KERNEL, columns, jnp.asarray(0.7))
        for function in (ours, plain)
    ]
    for of_ours, of_plain in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(of_ours, of_plain, rtol=1e-10, atol=1e-12)
