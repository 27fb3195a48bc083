"""Quantiles of boosted trees of scikit-learn, for `gpbench import`: `python import_quantiles.py sinc-0.npz ...`."""

import sys
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

LEVELS = [0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975]

tables = []
for path in sys.argv[1:]:
    data, start = np.load(path), time.process_time()
    X, y, train, test = (data[name] for name in ("X", "y", "train", "test"))
    losses = {f"quantile_{level}": {"loss": "quantile", "quantile": level} for level in LEVELS} | {"mean": {}}
    models = {name: HistGradientBoostingRegressor(random_state=0, **loss) for name, loss in losses.items()}
    values = {name: model.fit(X[train], y[train]).predict(X[test]) for name, model in models.items()}
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": "tree_quantiles", "row": test}
    tables.append(pd.DataFrame({**facts, **values, "seconds": time.process_time() - start}))
pd.concat(tables).to_parquet("quantiles.parquet")
