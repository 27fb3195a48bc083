"""Sparse GPs of GPyTorch, GPJax and GPBoost on exported splits: `python import_sparse.py PROGRAM FILE ...`.

FILEs are of `gpbench data rows`; the predictions, in PROGRAM.parquet, are to be imported.  All three have a squared
exponential with a lengthscale for each input and 100 inducing points, and each trains as its own guide does.
"""

import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd

INDUCING = 100


def gpytorch_svgp(X, y, X_test):
    """Variational GP, Adam, all rows in each of 2,000 steps."""
    import gpytorch as g
    import torch

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    X, y, X_test = map(torch.tensor, (X, y, X_test))

    class SVGP(g.models.ApproximateGP):
        def __init__(self, Z):
            q = g.variational.CholeskyVariationalDistribution(len(Z))
            super().__init__(g.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
            self.mean_module = g.means.ConstantMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=Z.shape[1]))

        def forward(self, X):
            return g.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    model, likelihood = SVGP(X[torch.randperm(len(X))[:INDUCING]]), g.likelihoods.GaussianLikelihood()
    bound = g.mlls.VariationalELBO(likelihood, model, len(y))
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    for _ in range(2000):
        adam.zero_grad()
        (-bound(model(X), y)).backward()
        adam.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        predictive = likelihood(model(X_test))
    return predictive.mean.numpy(), predictive.variance.numpy()


def gpjax_sgpr(X, y, X_test):
    """Titsias' collapsed bound, L-BFGS."""
    import gpjax as g
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    Z = X[np.random.default_rng(0).permutation(len(X))[:INDUCING]]
    data = g.Dataset(jnp.asarray(X), jnp.asarray(y)[:, None])
    prior = g.gps.Prior(g.kernels.RBF(lengthscale=jnp.ones(X.shape[1])), g.mean_functions.Constant())
    q = g.variational_families.CollapsedVariationalGaussian(prior * g.likelihoods.Gaussian(), jnp.asarray(Z))
    minus_bound = lambda q, rows: -g.objectives.collapsed_elbo(q, rows)
    q, _ = g.fit_lbfgs(model=q, objective=minus_bound, train_data=data, max_iters=1000)
    predictive = q.model.likelihood(q.predict(jnp.asarray(X_test), train_data=data))
    return np.ravel(predictive.mean), np.ravel(predictive.variance)


def gpboost_vif(X, y, X_test):
    """Inducing points and Vecchia's approximation with 20 neighbours of what they leave over."""
    import gpboost

    options = {"cov_function": "gaussian_ard", "gp_approx": "full_scale_vecchia", "seed": 0}
    model = gpboost.GPModel(gp_coords=X, num_ind_points=INDUCING, num_neighbors=20, **options)
    model.fit(y=y)
    predictive = model.predict(gp_coords_pred=X_test, predict_var=True, predict_response=True)
    return predictive["mu"], predictive["var"]


PROGRAMS = {gpytorch_svgp: "gpytorch torch", gpjax_sgpr: "gpjax jax", gpboost_vif: "gpboost"}

if __name__ == "__main__":
    programs = {program.__name__: program for program in PROGRAMS}
    if len(sys.argv) < 3 or sys.argv[1] not in programs:
        sys.exit(f"usage: python import_sparse.py PROGRAM FILE ...; PROGRAM is one of {', '.join(programs)}")
    name, tables = sys.argv[1], []
    versions = ", ".join(f"{package} {version(package)}" for package in PROGRAMS[programs[name]].split())
    for path in sys.argv[2:]:  # energy-0.npz ...
        data, start = np.load(path), time.perf_counter()
        y, train, test = data["y"], data["train"], data["test"]
        X = (data["X"] - data["X"][train].mean(axis=0)) / np.maximum(data["X"][train].std(axis=0), 1e-12)
        centre, scale = y[train].mean(), y[train].std()
        mean, variance = programs[name](X[train], (y[train] - centre) / scale, X[test])
        values = {"mean": centre + scale * mean, "variance": scale**2 * variance, "row": test, "versions": versions}
        facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": name}
        tables.append(pd.DataFrame({**facts, **values, "seconds": time.perf_counter() - start}))
    pd.concat(tables).to_parquet(f"{name}.parquet")
