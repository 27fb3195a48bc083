# %% [markdown]
# # A paper's table
#
# Every table and figure of the five papers is an experiment; `gpbench ls experiments` lists them.  `gpbench reproduce
# ID` trains the runs that are missing and makes the table; `gpbench.table(ID)` makes it of what is recorded.  The
# repository has the records of its own runs, so that the table of a long experiment is there without training.

# %%
from pathlib import Path

import gpbench

ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path("..").resolve()
SEP = ROOT / "results" / "sep"

# %% [markdown]
# Table 1 of Hernández-Lobato and Hernández-Lobato (2016), beside the published numbers: the head says what was run.

# %%
table = gpbench.table("sep/table1", preset="full", results=SEP)
print(table)

# %% [markdown]
# The same as LaTeX, for a paper of one's own; its rows in pandas; and the difference of two methods with its corrected
# interval.

# %%
print(table.to_latex()[:600])
print(table.frame[["dataset", "method", "metric", "mean", "published"]].head())
print(gpbench.compare("sep", "svi", setting="m=15%", results=SEP))

# %% [markdown]
# What the paper says of these numbers, and whether our runs support it.

# %%
print(gpbench.verify("sep/c01", results=SEP))

# %% [markdown]
# Runs of one's own: two splits of a data set that needs no download, and their mean.

# %%
runs = gpbench.run(dataset="sinc", method="svi", method__inducing=10, method__steps=200, split=[0, 1], run__save=True)
print(runs)
assert runs.mean("rmse") < 0.5

# %% [markdown]
# The trained model of the last of these runs at new inputs.

# %%
mean, std = gpbench.load_run(runs[-1].id).predict([[0.0], [1.0]], return_std=True)
print("means", mean.round(2), "standard deviations", std.round(2))
