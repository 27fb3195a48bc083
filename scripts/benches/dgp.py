"""Milliseconds per minibatch step of a deep GP of two layers: our dgp and dsdgp, and GPyTorch's, on one problem.

The peer is left out where it is not installed (`pip install gpytorch`).  Every step is value and gradient of the bound
and Adam on all parameters.  GPyTorch samples the hidden layer 10 times, ours once (dsdgp) or not at all (dgp).
"""

import argparse
from functools import partial

import jax
import optax
from benches._results import sizes
from benches._timing import milliseconds, prepare_torch, product_rate, seconds_of_loop, seconds_per_step
from benches.svgp import D, N, problem

from gpbench import runtime
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP

SAMPLES = 10


def dgp(X, y, m: int, b: int, hidden: int) -> float:
    """Seconds per step of `dgp`."""
    method = DGP(name="dgp", inducing=m, hidden=[hidden], batch_size=b, optimiser=optax.adam(1e-2))
    return seconds_per_step(method, X, y)


def dsdgp(X, y, m: int, b: int, hidden: int) -> float:
    """Seconds per step of `dsdgp`."""
    method = DSDGP(name="dsdgp", inducing=m, hidden=[hidden], batch_size=b, optimiser=optax.adam(1e-2))
    return seconds_per_step(method, X, y)


def gpytorch(X, y, m: int, b: int, hidden: int) -> float:
    """Seconds per step of GPyTorch's deep GP, doubly stochastic with `SAMPLES` samples."""
    import gpytorch as g
    import torch
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer

    wait = prepare_torch()
    X, y = torch.tensor(X), torch.tensor(y)

    class Layer(DeepGPLayer):
        def __init__(self, inputs: int, outputs: int | None, Z):
            shape = torch.Size([outputs] if outputs else [])
            q = g.variational.CholeskyVariationalDistribution(m, batch_shape=shape)
            strategy = g.variational.VariationalStrategy(self, Z.expand(*shape, m, inputs).clone(), q)
            super().__init__(strategy, inputs, outputs)
            self.mean_module = g.means.ZeroMean()
            rbf = g.kernels.RBFKernel(batch_shape=shape, ard_num_dims=inputs)
            self.covar_module = g.kernels.ScaleKernel(rbf, batch_shape=shape)

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Model(DeepGP):
        def __init__(self):
            super().__init__()
            self.first = Layer(X.shape[1], hidden, X[:m])
            self.last = Layer(hidden, None, torch.randn(m, hidden))
            self.likelihood = g.likelihoods.GaussianLikelihood()

        def forward(self, inputs):
            return self.last(self.first(inputs))

    model = Model()
    bound = g.mlls.DeepApproximateMLL(g.mlls.VariationalELBO(model.likelihood, model, num_data=len(X)))
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step():
        rows = torch.randint(len(X), (b,))
        adam.zero_grad()
        with g.settings.num_likelihood_samples(SAMPLES):
            (-bound(model(X[rows]), y[rows])).backward()
        adam.step()

    return seconds_of_loop(step, wait)


def flops(m: int, b: int, hidden: int) -> float:
    """Of one step of dgp.

    A unit: the inverse Cholesky factors of Kzz, q and cavity and the products of their reverse rules.  A hidden unit
    has A Kzx, R V and forms of them; the last has M (M + 1)/2 pairs of inducing points for every row: their exponents
    and their weighted sum, each forward and twice back, and an exponential of some 26 operations.
    """
    unit = 3 * (2 * m**3 / 3 + 3 * 2 * m**3) + 3 * 2 * m**3
    pairs = m * (m + 1) / 2
    return (hidden + 1) * unit + hidden * 3 * 2 * (2 * m * m * b) + b * pairs * (3 * 2 * (2 * hidden + 2) + 26)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument(
        "--sizes", type=sizes(3), nargs="+", default=[(100, 50, 2), (100, 1000, 2)], metavar="M,B,HIDDEN"
    )


def main(options: argparse.Namespace) -> None:
    jax.config.update("jax_enable_x64", True)
    X, y = problem()
    print(f"float64 on {runtime.device_name()}; {N} rows, {D} inputs; ms per step")
    print("limit: the operations of dgp at the rate of matrix products")
    print("    m     b hidden       dgp      dsdgp   GPyTorch   limit")
    for m, b, hidden in options.sizes:
        rate = product_rate(m, b)
        cells = [
            milliseconds(f"dgp {step.__name__} {m},{b},{hidden}", partial(step, X, y, m, b, hidden))
            for step in (dgp, dsdgp, gpytorch)
        ]
        limit = 1e3 * flops(m, b, hidden) / rate
        print(f"{m:5d} {b:5d} {hidden:6d} " + " ".join(f"{text:>10s}" for text in cells) + f" {limit:7.2f}", flush=True)
