"""Bins of TabPFN's regressor, for `gpbench import`: `python import_tabpfn.py sinc-0.npz ...`.

Neighbouring bins are joined to 500 at most.  TabPFN's first and last bins have tails of half normals; here they end.
"""

import sys
import time

import numpy as np
import pandas as pd
from scipy.special import softmax
from tabpfn import TabPFNRegressor

MOST = 500

tables = []
for path in sys.argv[1:]:
    data, start = np.load(path), time.process_time()
    X, y, train, test = (data[name] for name in ("X", "y", "train", "test"))
    made = TabPFNRegressor(random_state=0).fit(X[train], y[train]).predict(X[test], output_type="full")
    edges, probs = np.asarray(made["criterion"].borders, float), softmax(np.asarray(made["logits"], float), axis=1)
    first = np.unique(np.linspace(0, probs.shape[1], MOST + 1).astype(int))[:-1]
    probs, edges = np.add.reduceat(probs, first, axis=1), edges[[*first, -1]]
    values = {f"edge_{k}": edge for k, edge in enumerate(edges)} | {f"bin_{k}": p for k, p in enumerate(probs.T)}
    facts = {"dataset": str(data["dataset"]), "split": int(data["split"]), "method": "tabpfn", "row": test}
    tables.append(pd.DataFrame({**facts, **values, "seconds": time.process_time() - start}))
pd.concat(tables).to_parquet("tabpfn.parquet")
