"""Predictive objectives and deep kernels of GPyTorch on splits that `gpbench data rows` exported, as predictions to
import: `python import_gpytorch_sparse.py ppgpr|dkl FILE ...`.  Inducing points, rows of a step, steps and networks are
as in our methods of these names; everything else is as in GPyTorch's documentation."""

import sys
import time

import gpytorch as g
import numpy as np
import pandas as pd
import torch

torch.set_default_dtype(torch.float64)
INDUCING, BATCH, STEPS = 200, 200, 3000


class Sparse(g.models.ApproximateGP):
    """Constant mean, squared exponential kernel of the inputs or of the outputs of a network."""

    def __init__(self, X, network):
        self.Z = X[torch.randperm(len(X))[:INDUCING]]
        q = g.variational.CholeskyVariationalDistribution(len(self.Z))
        super().__init__(g.variational.VariationalStrategy(self, self.Z, q, learn_inducing_locations=True))
        self.network = network
        self.mean_module = g.means.ConstantMean()
        self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=network(X[:1]).shape[1]))

    def forward(self, X):
        features = self.network(X)
        return g.distributions.MultivariateNormal(self.mean_module(features), self.covar_module(features))


def fit(program, X, y, X_test):
    """Mean and variance of test rows by a model of these rows."""
    torch.manual_seed(0)
    layers = (torch.nn.Linear(X.shape[1], 50), torch.nn.ReLU(), torch.nn.Linear(50, 50), torch.nn.ReLU())
    network = torch.nn.Sequential(*layers, torch.nn.Linear(50, 10)) if program == "dkl" else torch.nn.Identity()
    model, likelihood = Sparse(X, network), g.likelihoods.GaussianLikelihood()
    objective = {"ppgpr": g.mlls.PredictiveLogLikelihood, "dkl": g.mlls.VariationalELBO}[program]
    objective = objective(likelihood, model, num_data=len(y))
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    for _ in range(STEPS):
        rows = torch.randint(len(y), (min(BATCH, len(y)),))
        adam.zero_grad()
        (-objective(model(X[rows]), y[rows])).backward()
        adam.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        made = likelihood(model(X_test))
    return made.mean.numpy(), made.variance.numpy()


tables = []
for path in sys.argv[2:]:  # kin8nm-0.npz ...
    data, start = np.load(path), time.process_time()
    y, train, test = data["y"], data["train"], data["test"]
    X = torch.tensor((data["X"] - data["X"][train].mean(axis=0)) / data["X"][train].std(axis=0))
    centre, scale = y[train].mean(), y[train].std()
    mean, variance = fit(sys.argv[1], X[train], torch.tensor((y[train] - centre) / scale), X[test])
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": f"gpytorch_{sys.argv[1]}"}
    values = {"mean": centre + scale * mean, "variance": scale**2 * variance}
    tables.append(pd.DataFrame({**facts, "row": test, **values, "seconds": time.process_time() - start}))
pd.concat(tables).to_parquet(f"gpytorch_{sys.argv[1]}.parquet")
