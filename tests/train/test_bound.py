"""The bound on held-out rows, as a run records it."""

import pytest
from toys import job

SIZES = ["mean_basis=20", "covariance_basis=5", "growth=20", "columns=20", "batch_size=100", "trial_steps=5"]
SVDGP = ["method=svdgp", *(f"method.{size}" for size in SIZES)]


@pytest.mark.parametrize("words", [["method=svi", "method.inducing=10"], SVDGP], ids=["svi", "svdgp"])
@pytest.mark.parametrize("likelihood", ["gaussian", "laplace"])
def test_the_bound_lies_below_the_log_density_under_every_noise(words, likelihood, tmp_path):
    """E log p(y|f) is at most log E p(y|f), and the divergence at least 0."""
    (record,) = job(tmp_path, *words, "dataset=sinc500", f"method.likelihood={likelihood}", "method.steps=40")
    assert record.status == "done" and ("likelihood=laplace" in record.setting) == (likelihood == "laplace")
    assert record.metrics["vlb_per_row"] < record.metrics["test_ll"]
