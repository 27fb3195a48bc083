"""Exact Gaussian processes of GPyTorch on splits that `gpbench data rows` exported, as predictions to import."""

import sys
import time

import gpytorch as g
import numpy as np
import pandas as pd
import torch

torch.set_default_dtype(torch.float64)
MOST = 3_000
"""Rows up to which there are Cholesky factors; beyond them conjugate gradients, as GPyTorch has them by itself."""


class ExactGP(g.models.ExactGP):
    """Constant mean, squared exponential kernel with a lengthscale for each input."""

    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = g.means.ConstantMean()
        self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=X.shape[1]))

    def forward(self, X):
        return g.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


tables = []
for path in sys.argv[1:]:  # boston-0.npz ...
    data, start = np.load(path), time.process_time()
    y, train, test = data["y"], data["train"], data["test"]
    X = torch.tensor((data["X"] - data["X"][train].mean(axis=0)) / data["X"][train].std(axis=0))
    centre, scale = y[train].mean(), y[train].std()
    targets = torch.tensor((y[train] - centre) / scale)
    likelihood = g.likelihoods.GaussianLikelihood()
    model = ExactGP(X[train], targets, likelihood).train()
    evidence = g.mlls.ExactMarginalLogLikelihood(likelihood, model)
    adam = torch.optim.Adam(model.parameters(), lr=0.1)
    is_small = len(train) <= MOST
    with g.settings.fast_computations(*[not is_small] * 3):
        for _ in range(300 if is_small else 50):
            adam.zero_grad()
            loss = -evidence(model(X[train]), targets)
            loss.backward()
            adam.step()
        model.eval()
        likelihood.eval()
        with torch.no_grad():
            predictive = likelihood(model(X[test]))
    values = {"mean": centre + scale * predictive.mean.numpy(), "variance": scale**2 * predictive.variance.numpy()}
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": "gpytorch_gp", "row": test}
    tables.append(pd.DataFrame({**facts, **values, "seconds": time.process_time() - start}))
pd.concat(tables).to_parquet("predictions.parquet")
