"""The bound on held-out rows, as a run records it."""

import pytest

from gpbench.config.compose import compose
from gpbench.records.plan import RunPlan
from gpbench.records.store import Store
from gpbench.train.job import run_job
from gpbench.train.progress import make
from gpbench.train.stop import StopRequest

SVDGP = [
    "method=svdgp",
    "method.mean_basis=20",
    "method.covariance_basis=5",
    "method.growth=20",
    "method.columns=20",
    "method.batch_size=100",
    "method.trial_steps=5",
]


@pytest.mark.parametrize("words", [["method=svi", "method.inducing=10"], SVDGP], ids=["svi", "svdgp"])
@pytest.mark.parametrize("likelihood", ["gaussian", "laplace"])
def test_the_bound_lies_below_the_log_density_under_every_noise(words, likelihood, tmp_path):
    """E log p(y|f) is at most log E p(y|f), and the divergence at least 0."""
    words = [*words, "dataset=sinc500", f"method.likelihood={likelihood}", "method.steps=40"]
    cfg = compose([*words, f"run.results={tmp_path}", "run.progress=false"])
    (record,) = run_job(RunPlan.from_config(cfg), store=Store(tmp_path), progress=make(False), stop=StopRequest(None))
    assert record.status == "done" and ("likelihood=laplace" in record.setting) == (likelihood == "laplace")
    assert record.metrics["vlb_per_row"] < record.metrics["test_ll"]
