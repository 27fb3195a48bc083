# %% [markdown]
# # A method of one's own beside two of ours
#
# `docs/examples/robust_gp.py` is a sparse GP with Student t noise in 60 lines, and `method/robust_gp.yaml` its file;
# docs/add_a_method.md walks through both.  `--config-dir` is all that gpbench needs to find them.

# %%
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path("..").resolve()


def shell(command: str) -> str:
    """Runs a line of the shell in the repository and prints what it says."""
    done = subprocess.run(command, shell=True, cwd=ROOT, text=True, capture_output=True, check=True)
    print(f"$ {command}\n{done.stdout}")
    return done.stdout


# %% [markdown]
# Three methods on five splits of the example's data.  Repeat a command that was stopped: it trains what is missing.

# %%
shell("gpbench run --config-dir docs/examples -m dataset=coffee method=robust_gp,linear,gpr 'split=[0,1,2,3,4]'")

# %% [markdown]
# Means over the same splits, and paired differences with intervals that allow for training rows that splits share.

# %%
shell("gpbench table --dataset coffee --metric rmse,test_ll")
shell("gpbench compare robust_gp gpr --dataset coffee --metric test_ll")

# %% [markdown]
# The same numbers for a program.

# %%
answer = subprocess.check_output("gpbench table --dataset coffee --metric rmse --json", shell=True, cwd=ROOT)
means = {row["method"]: row["mean"] for row in json.loads(answer)}
print("root mean squared errors, smallest first:", sorted(means, key=means.__getitem__))
assert means["robust_gp"] < means["linear"]
