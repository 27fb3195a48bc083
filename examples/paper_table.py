# %% [markdown]
# # A paper's table from the shell
#
# Every table and figure of the five papers is an experiment; `gpbench ls experiments` lists them.  `gpbench reproduce
# ID` trains the runs that are missing and makes the table; `gpbench table ID` makes it of what is recorded.  The
# repository has the records of its own runs, so that the table of a long experiment is there without training.

# %%
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] if "__file__" in globals() else Path("..").resolve()


def shell(command: str) -> str:
    """Runs a line of the shell in the repository and prints what it says."""
    done = subprocess.run(command, shell=True, cwd=ROOT, text=True, capture_output=True, check=True)
    print(f"$ {command}\n{done.stdout}")
    return done.stdout


# %% [markdown]
# Table 1 of Hernández-Lobato and Hernández-Lobato (2016), beside the published numbers: the head says what was run.

# %%
shell("gpbench table sep/table1 --results results/sep/records.parquet")

# %% [markdown]
# The same as LaTeX, for a paper of one's own, and the difference of two methods with its corrected interval.

# %%
shell("gpbench table sep/table1 --results results/sep/records.parquet --format latex")
shell("gpbench compare sep svi --setting m=15% --results results/sep/records.parquet")

# %% [markdown]
# Runs of one's own: two splits of a data set that needs no download, and their mean.

# %%
shell("gpbench run dataset=sinc method=svi method.inducing=10 method.steps=200 'split=[0,1]'")
shell("gpbench table --dataset sinc --metric rmse,test_ll,seconds")
