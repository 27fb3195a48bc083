"""GPyTorch's SVGP with natural gradients for q and Adam for the rest, in float32 (a process of `accuracy`)."""

import gpytorch as g
import torch
from _peer_loop import centres, run


def prepare(problem: dict, arrays: dict):
    """A step, predictions of the test rows, and a function that waits for the device."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def tensor(values):
        return torch.tensor(values, dtype=torch.float32, device=device)

    X, y, X_test = (tensor(arrays[name]) for name in ("X", "y", "X_test"))
    d, n, is_binary = X.shape[1], len(X), problem["binary"]

    class Model(g.models.ApproximateGP):
        def __init__(self, Z):
            q = g.variational.NaturalVariationalDistribution(len(Z))
            super().__init__(g.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
            self.mean_module = g.means.ConstantMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=d))
            self.covar_module.base_kernel.lengthscale = d**0.5

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = Model(tensor(centres(arrays["X"], problem["inducing"]))).to(device)
    likelihood = (g.likelihoods.BernoulliLikelihood() if is_binary else g.likelihoods.GaussianLikelihood()).to(device)
    targets = (y > 0).float() if is_binary else y
    bound = g.mlls.VariationalELBO(likelihood, model, num_data=n)
    natural = g.optim.NGD(model.variational_parameters(), num_data=n, lr=0.1)
    adam = torch.optim.Adam([*model.hyperparameters(), *likelihood.parameters()], lr=0.01)

    def step():
        rows = torch.randint(n, (problem["batch"],), device=device)
        natural.zero_grad()
        adam.zero_grad()
        (-bound(model(X[rows]), targets[rows])).backward()
        natural.step()
        adam.step()

    def predict():
        model.eval()
        likelihood.eval()
        with torch.no_grad():
            parts = [likelihood(model(rows)) for rows in X_test.split(1000)]
        model.train()
        likelihood.train()
        return torch.cat([part.mean for part in parts]).cpu().numpy()

    def wait():  # a GPU computes behind the program's back
        if device == "cuda":
            torch.cuda.synchronize()

    return step, predict, wait


if __name__ == "__main__":
    run(prepare)
