# %% [markdown]
# # Records in pandas
#
# `gpbench.frame` has a row for each run, or for each run and metric: of results folders, or of the collected files that
# the repository has.  From there any analysis is a few lines.

# %%
from pathlib import Path

import gpbench

ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path("..").resolve()
runs = gpbench.frame(ROOT / "results" / "gam" / "records.parquet")
print(runs[["dataset", "method", "setting", "split", "metrics.rmse", "metrics.test_ll"]].head())

# %% [markdown]
# Means and standard errors over splits.  Only runs of one protocol and preset belong into one table.

# %%
done = runs[(runs.status == "done") & (runs.preset == "quick") & runs["metrics.rmse"].notna()]
table = done.groupby(["dataset", "method", "setting"])["metrics.rmse"].agg(["mean", "sem", "count"])
print(table.round(3).head(12))

# %% [markdown]
# What a run cost: median seconds of its parts, by method.

# %%
seconds = ["seconds.train", "seconds.evaluate"]
print(runs.groupby("method")[seconds].median().round(2))

# %% [markdown]
# Paired differences of two methods, split by split.  Their standard deviation is that of splits which share training
# rows: `gpbench compare` has the interval that allows for it.

# %%
splits = done.pivot_table(index=["dataset", "split"], columns="method", values="metrics.test_ll")
differences = (splits["svi"] - splits["linear"]).dropna()
print("svi - linear, nats per row:")
print(differences.groupby("dataset").agg(["mean", "std", "count"]).round(3))
assert len(differences) > 0
