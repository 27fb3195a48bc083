"""Additive models of pygam on splits that `gpbench data rows` exported, as predictions to import."""

import sys
import time

import numpy as np
import pandas as pd
from pygam import LinearGAM
from scipy.stats import t

tables = []
for path in sys.argv[1:]:  # boston-0.npz ...
    data, start = np.load(path), time.perf_counter()
    X, y, train, test = data["X"], data["y"], data["train"], data["test"]
    # A penalised spline for each input; one penalty for all of them by generalised cross-validation
    model = LinearGAM().gridsearch(X[train], y[train], progress=False)
    # pygam's intervals of new observations are Student's: their half width in units of the quantile is a deviation
    quantile = t.ppf(0.975, len(train) - model.statistics_["edof"])
    low, high = model.prediction_intervals(X[test], width=0.95).T
    values = {"mean": model.predict(X[test]), "variance": ((high - low) / 2 / quantile) ** 2}
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": "pygam", "row": test}
    tables.append(pd.DataFrame({**facts, **values, "seconds": time.perf_counter() - start}))
pd.concat(tables).to_parquet("predictions.parquet")
