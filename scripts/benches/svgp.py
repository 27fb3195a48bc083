"""Milliseconds per minibatch step of sparse variational regression: our svi, GPyTorch's and GPJax's, on one problem.

Peers that are not installed are left out (`pip install gpytorch gpjax`).  Every step is value and gradient of the bound
and Adam on kernel, noise, inducing points and q.  `--decoupled` times a step of `svdgp` instead, for growing bases.
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from benches._results import measured, sizes
from benches._timing import (
    STEPS,
    milliseconds,
    prepare_torch,
    product_rate,
    seconds_each,
    seconds_of_loop,
    seconds_per_step,
)

from gpbench import runtime
from gpbench.core.optimisers import decaying_adam
from gpbench.methods.vi.svdgp import SVDGP
from gpbench.methods.vi.svi import SVI
from gpbench.train import batches

N, D = 20_000, 8


def problem(n: int = N, d: int = D) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of standard normal inputs, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.1 * rng.normal(size=n)


def ours(X, y, m: int, b: int) -> float:
    """Seconds per step of `svi`."""
    method = SVI(name="svi", inducing=m, batch_size=b, optimiser=optax.adam(1e-2))
    return seconds_per_step(method, X, y)


def gpytorch(X, y, m: int, b: int) -> float:
    """Seconds per step of GPyTorch's SVGP with a Cholesky factor for q."""
    import gpytorch as g
    import torch

    wait = prepare_torch()
    X, y = torch.tensor(X), torch.tensor(y)

    class Model(g.models.ApproximateGP):
        def __init__(self, Z):
            q = g.variational.CholeskyVariationalDistribution(len(Z))
            super().__init__(g.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
            self.mean_module = g.means.ZeroMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=D))

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Model(X[:m].clone()), g.likelihoods.GaussianLikelihood()
    bound = g.mlls.VariationalELBO(likelihood, model, num_data=N)
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=1e-2)

    def step():
        rows = torch.randint(N, (b,))
        adam.zero_grad()
        (-bound(model(X[rows]), y[rows])).backward()
        adam.step()

    return seconds_of_loop(step, wait)


def gpjax(X, y, m: int, b: int) -> float:
    """Seconds per step of GPJax's variational GP: its own bound in a compiled loop with optax's Adam."""
    import equinox as eqx
    import gpjax as g

    X, y = jnp.asarray(X), jnp.asarray(y)[:, None]
    prior = g.gps.Prior(mean_function=g.mean_functions.Zero(), kernel=g.kernels.RBF(lengthscale=jnp.ones(D)))
    q = g.variational_families.VariationalGaussian(prior * g.likelihoods.Gaussian(), inducing_inputs=X[:m])
    first, rest = eqx.partition(q, eqx.is_inexact_array)
    adam = optax.adam(1e-2)

    def minus_bound(parameters, rows):
        batch = g.Dataset(X[rows], y[rows], n_total=N)
        return -g.objectives.elbo(eqx.combine(parameters, rest), batch)

    @jax.jit
    def chunk(parameters, moments, key):
        def one(t, carry):
            parameters, moments = carry
            rows = jax.random.randint(jax.random.fold_in(key, t), (b,), 0, N)
            updates, moments = adam.update(jax.grad(minus_bound)(parameters, rows), moments)
            return optax.apply_updates(parameters, updates), moments

        return jax.lax.fori_loop(0, STEPS, one, (parameters, moments))

    return seconds_each(chunk, first, adam.init(first), jax.random.key(0), least=4.0) / STEPS


def flops(m: int, b: int) -> float:
    """Of one step: A Kzx and R V forward and twice back, an inverse Cholesky factor forward and its products back."""
    return 3 * 2 * (2 * m * m * b) + 2 * m**3 / 3 + 3 * 2 * m**3 + 3 * 2 * D * m * (m + b)


def compare(shapes: list[tuple[int, int]]) -> None:
    X, y = problem()
    print(f"{D} inputs; ms per step; limit: the matrix products alone")
    print("    m     b       ours   GPyTorch      GPJax   limit")
    for m, b in shapes:
        rate = product_rate(m, b)
        cells = [
            milliseconds(f"svgp {step.__name__} {m},{b}", partial(step, X, y, m, b)) for step in (ours, gpytorch, gpjax)
        ]
        print(
            f"{m:5d} {b:5d} " + " ".join(f"{text:>10s}" for text in cells) + f" {1e3 * flops(m, b) / rate:7.2f}",
            flush=True,
        )


def decoupled(features: list[int], d: int = 21, rows: int = 1024) -> None:
    data = batches.whole(*map(jnp.asarray, problem(max(*features, rows), d)))
    batch = batches.at_step(data, rows, jnp.asarray(0), key=jax.random.key(0))
    rate = product_rate(rows, rows)
    print(f"{d} inputs, M_beta 128, {rows} rows and columns; limit: the same operations at the rate of matrix products")
    print("M_alpha  ms/step    limit  ratio  MiB beside the state")
    for m in features:
        method = SVDGP(name="svdgp", mean_basis=m, columns=rows, batch_size=rows, optimiser=decaying_adam())
        state = method.init(data, key=jax.random.key(0))
        one = jax.jit(partial(method.step, key=jax.random.key(1))).lower(state, batch).compile()
        memory = one.memory_analysis().temp_size_in_bytes / 2**20
        seconds = measured(f"svdgp {m}", seconds_each(one, state, batch, rounds=3))
        limit = decoupled_flops(m, rows, d) / rate
        print(f"{m:7d} {1e3 * seconds:8.0f} {1e3 * limit:8.0f} {seconds / limit:6.1f} {memory:12.0f}", flush=True)


def decoupled_flops(m: int, rows: int, d: int) -> float:
    """Of one step with as many columns as rows: features with rows are two products, forward and twice back; features
    with features some ten operations for each pair and input, forward, once more, and back."""
    return 3 * 2 * (2 * m * rows * d) + 4 * 10 * m * rows * d


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--decoupled", type=int, nargs="*", metavar="M_ALPHA", help="default: 1024 4096 16384 65536")
    parser.add_argument(
        "--sizes", type=sizes(2), nargs="+", default=[(100, 200), (200, 200), (512, 1024)], metavar="M,B"
    )


def main(options: argparse.Namespace) -> None:
    jax.config.update("jax_enable_x64", True)
    print(f"float64 on {runtime.device_name()}")
    if options.decoupled is not None:
        decoupled(options.decoupled or [1024, 4096, 16384, 65536])
    else:
        compare(options.sizes)
