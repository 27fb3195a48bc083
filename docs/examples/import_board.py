"""Other programs on the leaderboard: `python import_board.py PROGRAM FILE`, where FILE is of `gpbench data rows`.

A process fits one program to one split, with the settings that its documentation begins with; every choice is made on
training rows.  A fit of over 1,200 CPU seconds is lost.
"""

import resource
import sys
import time
from importlib.metadata import version

import numpy as np
import pandas as pd

LIMIT = 1200
"""CPU seconds after which a fit is lost."""


def with_residual_variance(model, X, y, X_test):
    """Mean of a model of all rows, and the variance of the errors of one of four fifths on the others."""
    order = np.random.default_rng(0).permutation(len(y))
    held_out, others = order[: len(y) // 5], order[len(y) // 5 :]
    variance = np.mean((y[held_out] - model.fit(X[others], y[others]).predict(X[held_out])) ** 2)
    return {"mean": model.fit(X, y).predict(X_test), "variance": np.full(len(X_test), variance)}


def probabilities(p, votes=1e12):
    """Columns of probabilities, with one vote more for each class: the log of 0 is infinite."""
    return {f"prob_{k}": column for k, column in enumerate((votes * p.T + 1) / (votes + p.shape[1]))}


def boosted_trees(X, y, X_test, classes):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if classes:
        return probabilities(HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba(X_test))
    return with_residual_variance(HistGradientBoostingRegressor(random_state=0), X, y, X_test)


def random_forest(X, y, X_test, classes):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    options = {"n_estimators": 200, "oob_score": True, "n_jobs": 2, "random_state": 0}
    if classes:
        return probabilities(RandomForestClassifier(**options).fit(X, y).predict_proba(X_test), options["n_estimators"])
    model = RandomForestRegressor(**options).fit(X, y)
    variance = np.mean((y - model.oob_prediction_) ** 2)  # of each row by the trees that were not shown it
    return {"mean": model.predict(X_test), "variance": np.full(len(X_test), variance)}


def ngboost(X, y, X_test, classes):
    from ngboost import NGBClassifier, NGBRegressor
    from ngboost.distns import k_categorical

    options = {"random_state": 0, "verbose": False}
    if classes:
        codes = np.unique(y, return_inverse=True)[1]
        model = NGBClassifier(Dist=k_categorical(classes), **options).fit(X, codes)
        return probabilities(model.predict_proba(X_test))
    made = NGBRegressor(**options).fit(X, y).pred_dist(X_test)
    return {"mean": made.params["loc"], "variance": made.params["scale"] ** 2}


def pygam(X, y, X_test, classes):
    from pygam import LinearGAM, LogisticGAM
    from scipy.stats import t

    if classes:  # one penalty for all inputs, by generalised cross-validation
        p = LogisticGAM().gridsearch(X, y == y.max(), progress=False).predict_proba(X_test)
        return probabilities(np.stack([1 - p, p], axis=1))
    model = LinearGAM().gridsearch(X, y, progress=False)
    quantile = t.ppf(0.975, len(y) - model.statistics_["edof"])  # intervals of new rows are Student's
    low, high = model.prediction_intervals(X_test, width=0.95).T
    return {"mean": model.predict(X_test), "variance": ((high - low) / 2 / quantile) ** 2}


def gpboost(X, y, X_test, classes, gp_approx="vecchia"):
    import gpboost

    likelihood = "bernoulli_logit" if classes else "gaussian"
    options = {"cov_function": "matern_ard", "cov_fct_shape": 2.5, "gp_approx": gp_approx, "seed": 0}
    model = gpboost.GPModel(gp_coords=X, likelihood=likelihood, **options)
    model.fit(y=(y == y.max()).astype(float) if classes else y)
    made = model.predict(gp_coords_pred=X_test, predict_var=True, predict_response=True)
    if classes:
        return probabilities(np.stack([1 - made["mu"], made["mu"]], axis=1))
    return {"mean": made["mu"], "variance": made["var"]}


def gpboost_vif(X, y, X_test, classes):
    return gpboost(X, y, X_test, classes, "full_scale_vecchia")


def gpytorch_svgp(X, y, X_test, classes):
    import gpytorch as g
    import torch

    torch.manual_seed(0)
    batch, inducing = min(1024, len(y)), min(1024, len(y))
    X, X_test = (torch.tensor(array, dtype=torch.float32) for array in (X, X_test))
    y = torch.tensor(y == y.max() if classes else y, dtype=torch.float32)

    class SVGP(g.models.ApproximateGP):
        def __init__(self, Z):
            q = g.variational.NaturalVariationalDistribution(len(Z))
            super().__init__(g.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
            self.mean_module = g.means.ConstantMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=Z.shape[1]))

        def forward(self, X):
            return g.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    model = SVGP(X[torch.randperm(len(X))[:inducing]])
    model.covar_module.base_kernel.lengthscale = X.shape[1] ** 0.5
    likelihood = g.likelihoods.BernoulliLikelihood() if classes else g.likelihoods.GaussianLikelihood()
    bound = g.mlls.VariationalELBO(likelihood, model, len(y))
    natural = g.optim.NGD(model.variational_parameters(), num_data=len(y), lr=0.1)
    adam = torch.optim.Adam([*model.hyperparameters(), *likelihood.parameters()], lr=0.01)
    for _ in range(1000):  # half the limit; the documentation has 4 epochs
        rows = torch.randint(len(y), (batch,))
        natural.zero_grad(), adam.zero_grad()
        (-bound(model(X[rows]), y[rows])).backward()
        natural.step(), adam.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        parts = [likelihood(model(rows)) for rows in X_test.split(1024)]
    mean, variance = (
        torch.cat([getattr(part, name) for part in parts]).double().numpy() for name in ("mean", "variance")
    )
    return probabilities(np.stack([1 - mean, mean], axis=1)) if classes else {"mean": mean, "variance": variance}


PROGRAMS = {
    boosted_trees: "scikit-learn",
    random_forest: "scikit-learn",
    ngboost: "ngboost",
    pygam: "pygam",
    gpboost: "gpboost",
    gpboost_vif: "gpboost",
    gpytorch_svgp: "gpytorch torch",
}

if __name__ == "__main__":
    programs = {program.__name__: program for program in PROGRAMS}
    usage = f"usage: python import_board.py PROGRAM FILE; PROGRAM is one of {', '.join(programs)}"
    if len(sys.argv) != 3 or sys.argv[1] not in programs:
        sys.exit(usage)
    try:
        name, path = sys.argv[1:]
        data = np.load(path)
        if not {"X", "y", "train", "test", "classes"} <= {*data}:
            raise ValueError("FILE is of `gpbench data rows`")
    except (OSError, ValueError) as error:
        sys.exit(f"{error}; {usage}")
    program = programs[name]
    y, train, test, classes = data["y"], data["train"], data["test"], len(data["classes"])
    X = data["X"][:, np.ptp(data["X"][train], axis=0) > 0]  # GPBoost refuses an input of one value
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    versions = ", ".join(f"{package} {version(package)}" for package in PROGRAMS[program].split())
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": name, "row": test}

    def write(values, seconds):
        table = pd.DataFrame({**facts, **values, "seconds": seconds, "versions": versions})
        table.to_parquet(f"{name}-{data['dataset']}-{data['split']}.parquet")

    # The system ends a fit that is late; what the file says then was written before.
    write({"lost": "over time"}, LIMIT)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    start = time.process_time()
    centre, scale = (0.0, 1.0) if classes else (y[train].mean(), y[train].std())
    try:
        values = program(X[train], y[train] if classes else (y[train] - centre) / scale, X[test], classes)
        if not classes:
            values = {"mean": centre + scale * values["mean"], "variance": scale**2 * values["variance"]}
    except Exception as error:
        values = {"lost": "out of memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"}
    write(values, time.process_time() - start)
