"""Gaussian processes of scikit-learn on splits that `gpbench data rows` exported, as predictions to import."""

import sys
import time

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

tables = []
for path in sys.argv[1:]:  # sinc-0.npz wdbc-0.npz ...
    data, start = np.load(path), time.process_time()
    y, train, test = data["y"], data["train"], data["test"]
    X = (data["X"] - data["X"][train].mean(axis=0)) / data["X"][train].std(axis=0)
    if len(data["classes"]):
        model = GaussianProcessClassifier(1.0 * RBF(np.sqrt(X.shape[1]))).fit(X[train], y[train])
        values = {f"prob_{c}": p for c, p in enumerate(model.predict_proba(X[test]).T)}
    else:
        model = GaussianProcessRegressor(1.0 * RBF() + WhiteKernel(), normalize_y=True).fit(X[train], y[train])
        mean, std = model.predict(X[test], return_std=True)  # WhiteKernel's noise is in it
        values = {"mean": mean, "variance": std**2}
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": "sklearn_gp", "row": test}
    tables.append(pd.DataFrame({**facts, **values, "seconds": time.process_time() - start}))
pd.concat(tables).to_parquet("predictions.parquet")
