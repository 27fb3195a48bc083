"""Milliseconds per minibatch step of an additive model with each posterior, beside GPyTorch's and the machine's limit.

Every step is value and gradient of the bound and Adam on all parameters; components are functions of one input each.
`coupled_precision` has M columns, as in the paper.  GPyTorch's model is the mean-field one: C variational GPs of one
input in one batch, with plain squared exponential kernels, whose means and variances are added.  The experiment
gam/table1 fits exponents in C, M and N.
"""

import argparse
from functools import partial

import jax
import numpy as np
import optax
from benches._results import measured, sizes
from benches._timing import milliseconds, prepare_torch, product_rate, seconds_of_loop, seconds_per_step
from benches.svgp import problem

from gpbench import runtime
from gpbench.methods.additive.gam import GAM

POSTERIORS = ("mean_field", "coupled_covariance", "coupled_precision")


def gam(posterior: str, X: np.ndarray, y: np.ndarray, m: int, b: int) -> float:
    """Seconds of a step."""
    rank = m if posterior == "coupled_precision" else None
    method = GAM(name="gam", posterior=posterior, rank=rank, inducing=m, batch_size=b, optimiser=optax.adam(1e-2))
    return seconds_per_step(method, X, y)


def gpytorch(X: np.ndarray, y: np.ndarray, m: int, b: int) -> float:
    """Seconds of a step of GPyTorch's additive model with independent components."""
    import gpytorch as g
    import torch
    from linear_operator.operators import DiagLinearOperator

    wait = prepare_torch()
    c = X.shape[1]
    rows, targets = torch.tensor(X.T[:, :, None].copy()), torch.tensor(y)
    Z = torch.linspace(float(X.min()), float(X.max()), m).expand(c, m)[:, :, None].clone()

    class Components(g.models.ApproximateGP):
        def __init__(self):
            shape = torch.Size([c])
            q = g.variational.CholeskyVariationalDistribution(m, batch_shape=shape)
            super().__init__(g.variational.VariationalStrategy(self, Z, q))
            self.mean_module = g.means.ZeroMean(batch_shape=shape)
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(batch_shape=shape), batch_shape=shape)

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Components(), g.likelihoods.GaussianLikelihood()
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=1e-2)

    def step():
        which = torch.randint(len(y), (b,))
        adam.zero_grad()
        f = model(rows[:, which])
        sum_of = g.distributions.MultivariateNormal(f.mean.sum(0), DiagLinearOperator(f.variance.sum(0)))
        fit = likelihood.expected_log_prob(targets[which], sum_of).mean()
        (model.variational_strategy.kl_divergence().sum() / len(y) - fit).backward()
        adam.step()

    return seconds_of_loop(step, wait)


def flops(posterior: str, c: int, m: int, b: int) -> float:
    """Floating-point operations of one step.

    Kernels (an exponential of some 26 operations for each entry, forward and twice back; error functions are of rows
    and inducing points alone), A Kzx and the posterior's products forward and twice
    back, an inverse Cholesky factor forward and its products back.
    """
    t = c * m + 1
    factor = lambda size: 2 * size**3 / 3 + 3 * 2 * size**3
    shared = c * (factor(m) + 3 * 2 * m * m * b + 3 * 26 * m * b)
    of_q = {
        "mean_field": 3 * 2 * c * m * m * b,
        "coupled_covariance": 3 * 2 * t * t * b,
        "coupled_precision": 3 * (2 * t * m * b + 2 * m * m * b + 2 * t * m * m) + factor(m),
    }
    return shared + of_q[posterior]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this bench to the command line."""
    parser.add_argument("--sizes", type=sizes(2), nargs="+", default=[(8, 32), (32, 32), (32, 64)], metavar="C,M")
    parser.add_argument("--rows", type=int, default=100_000, metavar="N")
    parser.add_argument("--batch", type=int, default=1000, metavar="B")


def main(options: argparse.Namespace) -> None:
    jax.config.update("jax_enable_x64", True)
    b = options.batch
    print(f"float64 on {runtime.device_name()}; {b} of {options.rows} rows in a step; ms per step")
    print("limit: the operations at the rate of an (M, M) by (M, B) product, (T, T) for coupled_covariance")
    print("   C    M           posterior      gam    limit  GPyTorch")
    for c, m in options.sizes:
        X, y = problem(options.rows, max(c, 2))
        X = X[:, :c]
        for posterior in POSTERIORS:
            inner = c * m + 1 if posterior == "coupled_covariance" else m
            limit = 1e3 * flops(posterior, c, m, b) / product_rate(inner, b)
            name = f"gam {posterior} {c},{m}"
            ours = 1e3 * measured(name, gam(posterior, X, y, m, b))
            peer = milliseconds(f"{name} gpytorch", partial(gpytorch, X, y, m, b)) if posterior == "mean_field" else ""
            print(f"{c:4d} {m:4d} {posterior:>19s} {ours:8.2f} {limit:8.2f} {peer:>9s}", flush=True)
