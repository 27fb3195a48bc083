# %% [markdown]
# # A method of one's own beside two of ours
#
# `docs/examples/robust_gp.py` is a sparse GP with Student t noise in 60 lines, and `method/robust_gp.yaml` its file;
# docs/how-to/own_method.md walks through both.  `config_dir` is all that gpbench needs to find them.

# %%
from pathlib import Path

import gpbench

ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path("..").resolve()
MINE = ROOT / "docs" / "examples"

# %% [markdown]
# The data as a method sees them: rows of one split, scaled, and the way back.

# %%
data = gpbench.load("coffee", config_dir=MINE)
split = data.split(0)
print(data)
print("training inputs", split.X.shape, "columns", split.columns, "target", split.target)
print("first target in its own units:", split.original_targets(split.y)[0])

# %% [markdown]
# Three methods on five splits.  Repeat a call that was stopped: it trains what is missing.

# %%
runs = [
    gpbench.run(config_dir=MINE, dataset="coffee", method=method, split=[0, 1, 2, 3, 4])
    for method in ("robust_gp", "linear", "gpr")
]
for method_runs in runs:
    print(method_runs)

# %% [markdown]
# Means over the same splits, and paired differences with intervals that allow for training rows that splits share.

# %%
print(gpbench.table(dataset="coffee", metric=["rmse", "test_ll"]))
print(gpbench.compare("robust_gp", "gpr", dataset="coffee", metric="test_ll"))

# %% [markdown]
# The same numbers in pandas.

# %%
means = gpbench.table(dataset="coffee", metric="rmse").frame.set_index("method")["mean"]
print("root mean squared errors, smallest first:", [*means.sort_values().index])
assert means["robust_gp"] < means["linear"]
